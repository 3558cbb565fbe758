"""Tables from files and streams: text and parquet, plain or compressed, with errors that name file, column and row."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import DataError, require
from sobolev_novelty.table_format import HEAD, TableFormat, TextLayout, layout_of, not_text

if TYPE_CHECKING:
    import pandas as pd

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
_PARQUET = (".parquet", ".pq")
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
#: First bytes -> compression, for what has no name.
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\3\4": "zip"}
#: What a damaged archive raises.
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as it was read, and where from.

    Parameters
    ----------
    frame : DataFrame
    source : str
        Name of the file, for messages.
    first_row : int
        For a part of a file: the number of rows before these.
    notes : tuple of str
        What was guessed about the format and might be wrong.
    """

    frame: pd.DataFrame
    source: str
    first_row: int = 0
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, from left to right."""
        return tuple(str(name) for name in self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)

    def check_columns(self, names: Sequence[str], argument: str) -> None:
        """Refuse names the table does not have; ``argument`` is where they come from."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise DataError(
                f"'{argument}': '{self.source}' has no column '{missing[0]}'. Its columns: {_listed(self.columns)}.",
                arguments=[argument],
            )

    def numbers(self, name: str) -> FloatArray:
        """One column as floats, missing entries as ``nan``; an error names the first entry that is not a number."""
        column = self.frame[name]
        if column.dtype.kind in "biuf":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        text = self.first_text(name)
        if text is None:
            return np.asarray(column.astype("object").to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        comma = " For a decimal comma give 'decimal'." if re.match(r"'[+-]?\d*,\d", text) else ""
        raise DataError(
            f"Column '{name}' of '{self.source}' is not numeric: {text}. Correct the entry, leave it empty, or encode "
            f"the column as numbers.{comma}",
            arguments=["decimal"] if comma else [],
        )

    def first_text(self, name: str) -> str | None:
        """The first entry of a column that is neither a number nor missing, and its row; None where there is none."""
        import pandas as pd

        column = self.frame[name]
        if column.dtype.kind in "biuf" or not len(column):
            return None
        if column.dtype.kind in "mM":  # dates would be read as nanoseconds
            return f"{str(column.iloc[0])!r} in data row {self.first_row + 1}"
        values = pd.to_numeric(column.astype("object"), errors="coerce")
        bad = np.flatnonzero((values.isna() & column.notna()).to_numpy())
        return f"{column.iloc[bad[0]]!r} in data row {self.first_row + bad[0] + 1}" if len(bad) else None

    def is_empty(self, name: str) -> bool:
        """Whether a column has no entry at all."""
        return not self.frame[name].notna().any()


@dataclass(frozen=True, slots=True)
class TableFile:
    """Where a table is, and of what kind.

    Parameters
    ----------
    name : str
        For messages.
    suffix : str
        Kind by name, such as ``".csv"``; empty for a stream.
    compression : str or None
    content : Path or bytes
        A file, or what a stream held.
    """

    name: str
    suffix: str
    compression: str | None
    content: Path | bytes

    @classmethod
    def of(cls, source: str | Path | IO[bytes], written: TableFormat) -> TableFile:
        """The kind of a file follows from its name, that of a stream from its first bytes."""
        if not isinstance(source, str | Path):
            return cls._of_stream(source)
        path = Path(source)
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise DataError(f"The file '{path}' {what}. Check the path.")
        return cls.named(path, path, written)

    @classmethod
    def named(cls, name: str | Path, content: Path | bytes, written: TableFormat) -> TableFile:
        """Content that is in a file, or in memory, under a name that says its kind."""
        suffixes = [suffix.lower() for suffix in Path(name).suffixes]
        compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
        kind = ("", *suffixes)[-2 if compression else -1]
        if kind not in (*_TEXT, *_PARQUET) and written.separator is None:
            raise DataError(
                f"The name of '{name}' does not say what kind of file it is. Use .csv, .tsv, .txt or .parquet (text "
                "may be compressed, .csv.gz), or say what separates the columns ('separator').",
                arguments=["separator"],
            )
        return cls(str(name), kind, compression, content)

    @classmethod
    def _of_stream(cls, stream: IO[bytes]) -> TableFile:
        content = stream.read()
        compression = next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), None)
        return cls("standard input", ".parquet" if content.startswith(b"PAR1") else "", compression, content)

    @property
    def is_parquet(self) -> bool:
        """Whether the content is a parquet file; otherwise it is text."""
        return self.suffix in _PARQUET

    @property
    def label(self) -> str:
        """The name without its folders."""
        return self.content.name if isinstance(self.content, Path) else self.name

    def open(self) -> IO[bytes]:
        """The bytes as they are stored."""
        return self.content.open("rb") if isinstance(self.content, Path) else io.BytesIO(self.content)

    def text(self, raw: IO[bytes]) -> IO[bytes]:
        """The text behind the stored bytes."""
        handle: IO[bytes] = _OPENERS[self.compression](raw)
        return handle

    def layout(self, written: TableFormat) -> TextLayout:
        """How the text is written."""
        with self.errors(), self.open() as raw, self.text(raw) as handle:
            return layout_of(handle.read(HEAD), written, self.name, suffix=self.suffix)

    @contextmanager
    def errors(self, separator: str = "") -> Iterator[None]:
        """Errors of the readers as errors that name file and remedy."""
        import pandas as pd

        try:
            with warnings.catch_warnings():
                # Rows longer than the header: pandas would cut them with a warning.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                yield
        except DataError:
            raise
        except pd.errors.EmptyDataError:
            raise DataError(f"'{self.name}' has no rows. Give at least 32 rows of data.") from None
        except pd.errors.ParserWarning:
            raise DataError(
                f"'{self.name}' has rows with more entries than its header has names. Name every column, or correct "
                "these rows."
            ) from None
        except pd.errors.ParserError as error:
            raise DataError(
                f"'{self.name}' is not a table separated by {separator!r}: {_first_line(error)}. Correct that line, or "
                "say what separates the columns ('separator').",
                arguments=["separator"],
            ) from error
        except UnicodeError as error:
            raise not_text(self.name, _first_line(error)) from error
        except (*_DAMAGED, ValueError) as error:  # pyarrow's errors are ValueErrors
            kind = " as parquet" if self.is_parquet else ""
            raise DataError(
                f"'{self.name}' cannot be read{kind}: {_first_line(error)}. Check the file, or write it again."
            ) from error


def _open_zip(raw: IO[bytes]) -> IO[bytes]:
    archive = zipfile.ZipFile(raw)
    if len(archive.namelist()) != 1:
        raise DataError(f"The archive holds {len(archive.namelist())} files. Give an archive of one table.")
    return archive.open(archive.namelist()[0])


def _open_zstd(raw: IO[bytes]) -> IO[bytes]:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise DataError("Reading .zst needs the package 'zstandard': install it, or compress with gzip.") from None
    handle: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(raw)
    return handle


_OPENERS: dict[str | None, Callable[[Any], Any]] = {
    None: lambda raw: raw, "gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open, "zip": _open_zip, "zstd": _open_zstd,
}  # fmt: skip


def read_table(source: str | Path | IO[bytes] | TableFile, written: TableFormat | None = None) -> Table:
    r"""Read a table.

    Parameters
    ----------
    source : str, Path, binary stream or TableFile
        ``.csv``, ``.tsv``, ``.txt``, ``.dat`` or ``.parquet``; text also compressed (``.csv.gz`` …).
    written : TableFormat, optional
        How a text table is written, where the guess would be wrong.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = path.write_text("mass;speed\n1,5;2\n3;4\n")
    >>> table = read_table(path)
    >>> table.columns, table.numbers("mass").tolist()
    (('mass', 'speed'), [1.5, 3.0])
    """
    import pandas as pd

    written = TableFormat() if written is None else written
    file = source if isinstance(source, TableFile) else TableFile.of(source, written)
    if file.is_parquet:
        require("pyarrow", extra="parquet")
        with file.errors(), file.open() as raw:
            table = Table(pd.read_parquet(raw).rename(columns=str), file.label)
    else:
        layout = file.layout(written)
        with file.errors(layout.separator), file.open() as raw, file.text(raw) as handle:
            frame: pd.DataFrame = pd.read_csv(handle, **layout.options())
        table = Table(frame, file.label, notes=layout.notes)
    check_not_empty(table, file.name)
    return table


def check_not_empty(table: Table, name: str) -> None:
    """Refuse a table without columns or rows."""
    if len(table.columns) == 0:
        raise DataError(f"'{name}' has no columns. Give a table with at least one input.")
    if len(table) == 0:
        raise DataError(f"'{name}' has no rows. Give at least 32 rows of data.")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _listed(names: Sequence[str], at_most: int = 12) -> str:
    shown = ", ".join(names[:at_most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > at_most else shown
