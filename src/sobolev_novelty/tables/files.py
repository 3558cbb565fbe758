"""Tables from files and streams: text and parquet, plain or compressed, with errors that name file, column and row."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from sobolev_novelty.core.sample import FloatArray, repeated
from sobolev_novelty.errors import DataError, SobolevError, meant, shortened
from sobolev_novelty.tables.compression import COMPRESSIONS, compression_of, decompressed
from sobolev_novelty.tables.entries import cleaned
from sobolev_novelty.tables.format import HEAD, LONGEST_HEAD, TableFormat, TextLayout, layout_of, not_text
from sobolev_novelty.tables.parquet import ParquetTable
from sobolev_novelty.tables.sheets import WORKBOOKS, is_workbook, sheet_as_text
from sobolev_novelty.tables.wide_text import MANY_COLUMNS, coerced, data_lines, is_wide, read_few, read_wide

if TYPE_CHECKING:
    import pandas as pd

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
_PARQUET = (".parquet", ".pq")
#: How much shorter compression makes tables of numbers, at most.
USUAL_RATIO = 30


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as it was read, and where from."""

    frame: pd.DataFrame
    source: str  # name of the file, for messages
    first_row: int = 0  # for a part of a file: the number of rows before these
    notes: tuple[str, ...] = ()  # what was guessed about the format and might be wrong, and what was left out
    units: Mapping[str, str] = field(default_factory=dict)  # column -> unit, where the line below the names says so

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, from left to right."""
        return tuple(map(str, self.frame.columns.tolist()))

    def __len__(self) -> int:
        return len(self.frame)

    def check_columns(self, names: Sequence[str], argument: str) -> None:
        """Refuse names the table does not have; ``argument`` is where they come from."""
        present = set(self.columns)
        missing = [name for name in names if name not in present]
        if missing:
            raise DataError(
                f"'{argument}': '{self.source}' has no column '{missing[0]}'.{meant(missing[0], self.columns)} "
                f"Its columns: {_listed(self.columns)}.",
                arguments=[argument],
            )

    def numbers(self, name: str) -> FloatArray:
        """One column as floats, missing entries as ``nan``; an error names the first entry that is not a number."""
        column = self.frame[name]
        if column.dtype.kind in "biuf":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        text = self.first_text(name)
        if text is None:
            return np.asarray(coerced(column.astype("object")), dtype=np.float64)
        comma = " For a decimal comma give 'decimal'." if re.match(r"'[+-]?\d*,\d", text) else ""
        raise DataError(
            f"Column '{name}' of '{self.source}' is not numeric: {text}. Correct the entry, leave it empty, or encode "
            f"the column as numbers.{comma}",
            arguments=["decimal"] if comma else [],
        )

    def first_text(self, name: str) -> str | None:
        """The first entry of a column that is neither a number nor missing, and its row; None where there is none."""
        column = self.frame[name]
        if column.dtype.kind in "biuf" or not len(column):
            return None
        if column.dtype.kind in "mM":  # dates would be read as nanoseconds
            return f"{shortened(str(column.iloc[0]), 60)} in data row {self.first_row + 1}"
        values = coerced(column.astype("object"))
        bad = np.flatnonzero((values.isna() & column.notna()).to_numpy())
        return f"{shortened(column.iloc[bad[0]], 60)} in data row {self.first_row + bad[0] + 1}" if len(bad) else None

    def not_numeric(self) -> set[str]:
        """Columns that pandas did not read as numbers; some of their entries may be."""
        dtypes = self.frame.dtypes.tolist()
        return {name for name, dtype in zip(self.columns, dtypes, strict=True) if dtype.kind not in "biuf"}

    def empty(self) -> set[str]:
        """Columns that have no entry at all."""
        if not len(self):
            return set(self.columns)
        # The first row clears nearly all columns at once; a look at each takes seconds for tens of thousands.
        missing = self.frame.columns[self.frame.iloc[0].isna().to_numpy()]
        return {str(name) for name in missing if not self.frame[name].notna().any()}


@dataclass(frozen=True, slots=True)
class TableFile:
    """Where a table is, and of what kind."""

    name: str  # for messages
    suffix: str  # kind by name, such as ``".csv"``; empty for a stream
    compression: str | None
    content: Path | bytes  # a file, or what a stream held
    #: How long the text behind compressed bytes may be, where that is more than :data:`USUAL_RATIO` times their own
    #: length.
    max_bytes: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: str | Path | IO[bytes], written: TableFormat) -> TableFile:
        """The kind of a file follows from its name, that of a stream from its first bytes."""
        if not isinstance(source, str | Path):
            return cls._of_stream(source, written)
        path = Path(source)
        if path.is_fifo() or path.is_char_device():  # it can be read once: '<(cat data.csv)' of a shell
            with path.open("rb") as stream:
                return cls._of_stream(stream, written, str(path))
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise DataError(f"The file '{path}' {what}. Check the path.")
        return cls.named(path, path, written)

    @classmethod
    def named(cls, name: str | Path, content: Path | bytes, written: TableFormat) -> TableFile:
        """Content that is in a file, or in memory, under a name that says its kind."""
        suffixes = [suffix.lower() for suffix in Path(name).suffixes]
        compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
        kind = ("", *suffixes)[-2 if compression else -1]
        if kind in WORKBOOKS and compression is None:
            return cls._of_workbook(content, str(name), written)
        if kind not in (*_TEXT, *_PARQUET) and written.separator is None:
            raise DataError(
                f"The name of '{name}' does not say what kind of file it is. Use .csv, .tsv, .txt, .xlsx or .parquet "
                "(text may be compressed, .csv.gz), or say what separates the columns ('separator').",
                arguments=["separator"],
            )
        return cls(str(name), kind, compression, content, written.max_megabytes << 20)

    @classmethod
    def _of_stream(cls, stream: IO[bytes], written: TableFormat, name: str = "standard input") -> TableFile:
        content = stream.read()
        if is_workbook(content):
            return cls._of_workbook(content, name, written)
        suffix = ".parquet" if content.startswith(b"PAR1") else ""
        return cls(name, suffix, compression_of(content), content, written.max_megabytes << 20)

    @classmethod
    def _of_workbook(cls, content: Path | bytes, name: str, written: TableFormat) -> TableFile:
        text, notes = sheet_as_text(content, name, written.sheet, written.max_megabytes << 20)
        return cls(name, ".csv", None, text, written.max_megabytes << 20, notes)

    @property
    def is_parquet(self) -> bool:
        """Whether the content is a parquet file; otherwise it is text."""
        return self.suffix in _PARQUET

    @property
    def label(self) -> str:
        """The name without its folders."""
        return self.content.name if isinstance(self.content, Path) else Path(self.name).name

    @property
    def allowed(self) -> int:
        """Bytes that may come out of the stored ones."""
        stored = self.content.stat().st_size if isinstance(self.content, Path) else len(self.content)
        return max(self.max_bytes, USUAL_RATIO * stored)

    def open(self) -> IO[bytes]:
        """The bytes as they are stored."""
        return self.content.open("rb") if isinstance(self.content, Path) else io.BytesIO(self.content)

    def text(self, raw: IO[bytes]) -> IO[bytes]:
        """The text behind the stored bytes."""
        return raw if self.compression is None else decompressed(raw, self.compression, self.name, self.allowed)

    def check_length(self) -> None:
        """Refuse compressed text that is longer than allowed, before a parser takes ten times its memory."""
        if self.compression is not None:
            with self.errors(), self.open() as raw, self.text(raw) as handle:
                while handle.read(2**20):
                    pass

    def layout(self, written: TableFormat) -> TextLayout:
        """How the text is written."""
        with self.errors(), self.open() as raw, self.text(raw) as handle:
            head = handle.read(HEAD)
            while len(head) >= HEAD and head.count(b"\n") + head.count(b"\r") < 2:  # tens of thousands of columns
                more = handle.read(len(head))
                if more and len(head) > LONGEST_HEAD:
                    raise DataError(
                        f"The first lines of '{self.name}' are longer than {LONGEST_HEAD} bytes: it is not a table."
                    )
                head += more
                if not more:
                    break
            return layout_of(head, written, self.name, suffix=self.suffix)

    @contextmanager
    def errors(self, separator: str = "") -> Iterator[None]:
        """Errors of the readers as errors that name file and remedy."""
        import pandas as pd

        try:
            with warnings.catch_warnings():
                # Rows longer than the header: pandas would cut them with a warning.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                yield
        except pd.errors.EmptyDataError:
            raise DataError(f"'{self.name}' has no rows of data. Give a row for each measurement.") from None
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
        except SobolevError:
            raise
        except Exception as error:  # pyarrow and pandas raise what they like, down to KeyError, on damaged files
            kind = " as parquet" if self.is_parquet else ""
            raise DataError(
                f"'{self.name}' cannot be read{kind}: {_first_line(error)}. Check the file, or write it again."
            ) from error


def read_table(source: str | Path | IO[bytes] | TableFile, written: TableFormat | None = None) -> Table:
    r"""Read a table.

    ``source``: ``.csv``, ``.tsv``, ``.txt``, ``.dat``, ``.parquet`` or a workbook (``.xlsx``, ``.xls``, ``.ods``); text
    also compressed (``.csv.gz`` …).
    ``written``: how a text table is written, where the guess would be wrong.

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
        with file.errors(), file.open() as raw:
            stored = ParquetTable.opened(raw)
            # Threads read ahead in every column: gigabytes where there are tens of thousands.
            few_columns = stored.stored.metadata.num_columns < MANY_COLUMNS
            table = Table(stored.read(file.name, file.allowed, use_threads=few_columns), file.label)
    else:
        file.check_length()
        layout = file.layout(written)
        frame = _read_wide(file, layout) if is_wide(layout) else None
        if frame is None:
            with file.errors(layout.separator), file.open() as raw, file.text(raw) as handle:
                frame = pd.read_csv(layout.opened(handle), **layout.options())
        frame, notes = cleaned(frame, layout.decimal)
        table = Table(frame, file.label, notes=file.notes + layout.notes + notes, units=layout.units)
    check_not_empty(table, file.name)
    return table


def _read_wide(file: TableFile, layout: TextLayout) -> pd.DataFrame | None:
    with file.errors(layout.separator), file.open() as raw, file.text(raw) as handle:
        n_rows = sum(1 for _ in data_lines(layout.opened(handle), layout))
    with file.errors(layout.separator), file.open() as raw, file.text(raw) as handle:
        found = read_wide(layout.opened(handle), layout, n_rows)
    if found is None:
        return None
    frame, places = found
    if places:
        with file.errors(layout.separator), file.open() as raw, file.text(raw) as handle:
            few = read_few(layout.opened(handle), layout, places)
        for k, place in enumerate(places):
            frame.isetitem(place, few.iloc[:, k].array)
    return frame


def check_not_empty(table: Table, name: str) -> None:
    """Refuse a table without columns or rows, or with a name that stands for two columns."""
    twice = repeated(table.columns)
    if twice:
        raise DataError(f"'{name}' has more than one column named '{twice[0]}'. Rename them.")
    if len(table.columns) == 0:
        raise DataError(f"'{name}' has no columns. Give a table with at least one input.")
    if len(table) == 0:
        raise DataError(f"'{name}' has no rows of data. Give a row for each measurement.")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _listed(names: Sequence[str], at_most: int = 12) -> str:
    shown = ", ".join(names[:at_most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > at_most else shown
