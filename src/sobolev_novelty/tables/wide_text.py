"""Text tables of thousands of columns, read as one: pandas takes some 50 µs for each column, whatever it holds."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.tables.format import BLANKS, TextLayout

if TYPE_CHECKING:
    import pandas as pd

#: Columns from which it is worth the trouble.
MANY_COLUMNS = 1000
#: Columns of text that a table of numbers may have: names of its rows, say.
MAX_TEXT_COLUMNS = 50
#: Entries that are read together: the parser takes some 50 bytes for each.
BLOCK = 100_000
_LIKE_ASCII = ("utf-8", "utf-8-sig", "cp1252", "latin-1", "ascii")


#: Whole numbers that floats cannot hold.
_FAR = re.compile(r"\s*[+-]?[0-9]{309,}\s*")


def coerced(column: pd.Series[Any]) -> pd.Series[float]:
    """Entries as numbers, ``nan`` where they are none; a whole number beyond what floats hold is infinite.

    >>> import pandas as pd
    >>> coerced(pd.Series(["1", "x", "9" * 400])).tolist()
    [1.0, nan, inf]
    """
    import pandas as pd

    try:
        found = pd.to_numeric(column, errors="coerce")
    except OverflowError:  # of pandas, which reads them as whole numbers first
        return column.map(_float).astype(np.float64)
    lost = column[found.isna()]
    far = lost[lost.map(lambda entry: isinstance(entry, str) and _FAR.fullmatch(entry) is not None)]
    if len(far):  # pandas before 3 takes them for text
        found = found.astype(np.float64)
        found[far.index] = far.map(_float)
    return found


def _float(entry: Any) -> float:
    try:
        return float(entry)
    except OverflowError:
        return math.inf if entry > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def is_wide(layout: TextLayout) -> bool:
    """Whether a text may be one that :func:`read_wide` reads."""
    is_plain = layout.encoding in _LIKE_ASCII and layout.separator != BLANKS and layout.separator.isascii()
    return is_plain and len(layout.names) >= MANY_COLUMNS


def data_lines(handle: IO[bytes], layout: TextLayout) -> Iterator[bytes]:
    """The lines of a text, read from its start, that hold rows."""
    return (line.rstrip(b"\r\n") for line in islice(handle, layout.n_skipped, None) if line.strip())


def read_wide(handle: IO[bytes], layout: TextLayout, n_rows: int) -> tuple[pd.DataFrame, list[int]] | None:
    """A table of numbers with many columns, and the places of a few that are text: in the table they are missing.

    ``None`` where pandas has to look at it column by column.

    ``handle``: from the start of the text; after ``None`` it is somewhere else.
    ``n_rows``: number of :func:`data_lines`: with it the table is in memory once.
    """
    import pandas as pd

    n_columns, separator = len(layout.names), layout.separator.encode()
    columns = np.empty((n_columns, n_rows))  # the layout of a sample, which then needs no copy
    text: set[int] = set()
    lines, n_read = data_lines(handle, layout), 0
    while block := list(islice(lines, -(-BLOCK // n_columns))):
        n_read += len(block)
        if any(line.count(separator) != n_columns - 1 or b'"' in line or b"\r" in line for line in block):
            return None  # pandas says which row is too long
        entries = _entries(block, layout, text)
        if entries.dtype.kind not in "iuf":
            text |= _text_columns(entries, layout)
            entries = _entries(block, layout, text) if len(text) <= MAX_TEXT_COLUMNS else entries
        if entries.dtype.kind not in "iuf" or len(entries) != len(block) * n_columns or n_read > n_rows:
            return None
        columns[:, n_read - len(block) : n_read] = entries.to_numpy(dtype=np.float64).reshape(-1, n_columns).T
    if n_read != n_rows or not n_rows:
        return None
    return pd.DataFrame(columns.T, columns=pd.Index(layout.names, dtype=object), copy=False), sorted(text)


def read_few(handle: IO[bytes], layout: TextLayout, places: list[int]) -> pd.DataFrame:
    """The columns at these places of a text that :func:`read_wide` has read, as pandas reads them."""
    import pandas as pd

    separator = layout.separator.encode()
    split = (line.split(separator) for line in data_lines(handle, layout))
    rows = b"\n".join(separator.join([fields[k] for k in places]) for fields in split)
    names = [layout.names[k] for k in places]
    options = layout.options() | {"names": names, "skiprows": 0, "skip_blank_lines": False}
    few: pd.DataFrame = pd.read_csv(io.BytesIO(rows + b"\n"), **options)
    return few


def _entries(lines: list[bytes], layout: TextLayout, left_out: Collection[int]) -> pd.Series[Any]:
    """The entries of some lines, one after the other, as one column; missing in the columns that are left out."""
    import pandas as pd

    separator = layout.separator.encode()
    if left_out:
        split = [line.split(separator) for line in lines]
        for fields in split:
            for k in left_out:
                fields[k] = b""
        lines = [separator.join(fields) for fields in split]
    options = layout.options() | {"names": ["entry"], "skiprows": 0, "skip_blank_lines": False, "sep": "\t"}
    column: pd.DataFrame = pd.read_csv(io.BytesIO(b"\n".join(lines).replace(separator, b"\n") + b"\n"), **options)
    return column["entry"]


def _text_columns(entries: pd.Series[Any], layout: TextLayout) -> set[int]:
    """Columns in which an entry is neither missing nor a number."""
    plain = entries.astype(str).str.strip().str.replace(layout.decimal, ".", regex=False)
    is_text = (coerced(plain).isna() & entries.notna()).to_numpy()
    return set((np.flatnonzero(is_text) % len(layout.names)).tolist())
