"""Tables from files: CSV, TSV and parquet, plain or compressed, with errors that name file, column and row."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import DataError, require

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = {".parquet", ".pq"}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as it was read, and where from.

    Parameters
    ----------
    frame : DataFrame
    source : str
        Name of the file, for messages.
    first_row : int, optional
        For a part of a file: the number of its rows before these.
    """

    frame: pd.DataFrame
    source: str
    first_row: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)

    def check_columns(self, names: Sequence[str], option: str) -> None:
        """Refuse names the table does not have."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise DataError(
                f"{option}: '{self.source}' has no column '{missing[0]}'. Its columns: {_listed(self.columns)}."
            )

    def numbers(self, name: str) -> FloatArray:
        """One column as floats, empty entries as ``nan``; an error names the first entry that is no number."""
        column = self.frame[name]
        if column.dtype.kind in "biuf":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        position, entry = self._first_text(column)
        if position is None:
            return np.asarray(column.astype("object").to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        raise DataError(
            f"Column '{name}' of '{self.source}' is not numeric: {entry!r} in data row "
            f"{self._row(position)}. Correct the entry, leave it empty, or encode the column as numbers."
        )

    def is_numeric(self, name: str) -> bool:
        """Whether every entry of a column is a number or empty."""
        column = self.frame[name]
        return column.dtype.kind in "biuf" or self._first_text(column)[0] is None

    def _first_text(self, column: Any) -> tuple[int | None, object]:
        """Row and content of the first entry that is neither a number nor empty."""
        import pandas as pd

        if column.dtype.kind in "mM":  # dates would be read as nanoseconds
            return 0, str(column.iloc[0])
        values = pd.to_numeric(column.astype("object"), errors="coerce")
        bad = np.flatnonzero((values.isna() & column.notna()).to_numpy())
        return (int(bad[0]), column.iloc[int(bad[0])]) if len(bad) else (None, None)

    def target(self, name: str) -> FloatArray:
        """A target column: every entry a finite number."""
        values = self.numbers(name)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise DataError(
                f"Target column '{name}' of '{self.source}' has {'' if self.first_row is None else 'at least '}"
                f"{len(bad)} empty or non-finite value(s), the first in data row {self._row(int(bad[0]))}. "
                "Remove or fill these rows."
            )
        return values

    def _row(self, position: int) -> int:
        """Number of a row in the file, counted from 1."""
        return (self.first_row or 0) + position + 1


def read_table(path: str | Path, *, separator: str | None = None, has_header: bool = True) -> Table:
    """Read a table; the kind of file follows from its name.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.parquet``; text also compressed (``.csv.gz`` …).
    separator : str, optional
        Between the columns of a text file, where it is not the usual one.
    has_header : bool
        Whether the first line names the columns; otherwise they are ``x0, x1, …``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = path.write_text("mass,speed\\n1,2\\n3,4\\n")
    >>> read_table(path).columns
    ('mass', 'speed')
    """
    path = Path(path)
    kind, between = kind_of(path, separator)
    frame = _read_parquet(path) if kind == "parquet" else _read_text(path, between, has_header)
    table = Table(frame, path.name)
    check_not_empty(table, path)
    return table


def check_not_empty(table: Table, path: Path) -> None:
    """Refuse a table without columns or rows."""
    if len(table.columns) == 0:
        raise DataError(f"'{path}' has no columns. Give a table with at least one input.")
    if len(table) == 0:
        raise DataError(f"'{path}' has no rows. Give at least 32 rows of data.")


def kind_of(path: Path, separator: str | None) -> tuple[str, str]:
    """``"parquet"`` or ``"text"`` by the file's name, and what separates the columns of text."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"The file '{path}' {what}. Check the path.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    if kind in _PARQUET:
        return "parquet", ""
    if kind in _SEPARATORS or separator is not None:
        return "text", _SEPARATORS.get(kind, ",") if separator is None else separator
    raise DataError(
        f"The kind of '{path}' is not known by its name. Use .csv, .tsv or .parquet (text may be compressed, "
        ".csv.gz), or say what separates the columns (--separator)."
    )


def _read_parquet(path: Path) -> pd.DataFrame:
    with parquet_errors(path):
        import pandas as pd

        return pd.read_parquet(path)


def _read_text(path: Path, separator: str, has_header: bool) -> pd.DataFrame:
    import pandas as pd

    with text_errors(path, separator):
        frame: pd.DataFrame = pd.read_csv(path, **text_options(path, separator, has_header))
    return frame


def text_options(path: Path, separator: str, has_header: bool) -> dict[str, Any]:
    """How pandas reads this text file."""
    import pandas as pd

    # The header by itself: pandas would rename a column that appears twice.
    first = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype="object", keep_default_na=False)
    names = _column_names(path, [str(entry).strip() for entry in first.iloc[0]], separator, has_header)
    return {
        "sep": separator, "header": None, "names": names, "skiprows": int(has_header), "low_memory": False,
        "skipinitialspace": True, "index_col": False, "encoding": "utf-8-sig",
    }  # fmt: skip


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Errors of pyarrow as errors that name the file."""
    require("pyarrow", extra="parquet")
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"'{path}' cannot be read as parquet: {_first_line(error)}. Write it again or use .csv."
        ) from error


@contextmanager
def text_errors(path: Path, separator: str) -> Iterator[None]:
    """Errors of pandas as errors that name file and remedy."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # Longer rows than the header: pandas would cut them with a warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.EmptyDataError:
        raise DataError(f"'{path}' is empty. Give a table with a header line and at least 32 rows.") from None
    except pd.errors.ParserWarning:
        raise DataError(
            f"'{path}' has rows with more entries than its header has names. Name every column, or correct these rows."
        ) from None
    except pd.errors.ParserError as error:
        raise DataError(
            f"'{path}' is no table separated by {separator!r}: {_first_line(error)}. Correct that line or give "
            "--separator."
        ) from error
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise DataError(f"'{path}' cannot be read: {_first_line(error)}. Save it as UTF-8 text.") from error


def _column_names(path: Path, first: list[str], separator: str, has_header: bool) -> list[str]:
    if not has_header:
        return [f"x{k}" for k in range(len(first))]
    first = [first[0].removeprefix("\ufeff"), *first[1:]]
    if all(_is_number(entry) for entry in first):
        raise DataError(
            f"The first line of '{path}' holds numbers, not names. Add a header line, or say that there is none "
            "(--no-header)."
        )
    if len(first) == 1 and separator not in "; \t" and any(mark in first[0] for mark in ";\t|"):
        raise DataError(f"'{path}' has one column, '{first[0]}'. Say what separates the columns (--separator ';').")
    twice = sorted({name for name in first if first.count(name) > 1})
    if twice:
        raise DataError(f"'{path}' has more than one column named '{twice[0]}'. Rename them.")
    if "" in first:
        # Spreadsheets and pandas write an unnamed column of row numbers.
        return [name or f"unnamed{k}" for k, name in enumerate(first)]
    return first


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _listed(names: Sequence[str], at_most: int = 12) -> str:
    shown = ", ".join(names[:at_most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > at_most else shown
