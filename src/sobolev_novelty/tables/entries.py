"""Entries that are numbers to a person and text to a parser: limits such as <0.1, and thousands set apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sobolev_novelty.tables.wide_text import coerced

if TYPE_CHECKING:
    import pandas as pd

_LIMIT = re.compile(r"\s*[<>≤≥]=?\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*\Z")
_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\Z")
#: Thousands between groups of three digits; each mark with the decimal marks it can stand beside.
_THOUSANDS = {
    mark: re.compile(rf"[+-]?\d{{1,3}}({re.escape(mark)}\d{{3}})+(?:[{re.escape(decimals)}](\d*))?\Z")
    for mark, decimals in {"'": ".,", "’": ".,", " ": ".,", "\u00a0": ".,", "\u202f": ".,", ",": ".", ".": ","}.items()
}


def cleaned(frame: pd.DataFrame, decimal: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table with such entries as numbers, limits as missing, and what is said of it.

    >>> import pandas as pd
    >>> frame, notes = cleaned(pd.DataFrame({"y": ["1.5", "<0.1", "1,234.5"]}), ".")
    >>> frame["y"].tolist(), notes
    ([1.5, nan, 1234.5], ("1 entry of 'y' is a limit, such as <0.1: it counts as missing.",))
    """
    notes: list[str] = []
    for k, dtype in enumerate(frame.dtypes.tolist()):
        if dtype.kind in "biufmM":
            continue
        column = frame.iloc[:, k].astype("object")
        values = coerced(column)
        bad = values.isna() & column.notna()
        if not bad.any():
            continue
        text = column[bad].astype(str).str.strip()
        is_limit = text.map(lambda entry: _LIMIT.match(entry) is not None)
        numbers = _numbers(column, text[~is_limit], decimal)
        if numbers is None or int(is_limit.sum()) == len(column):
            continue
        values = values.astype(float)
        values[numbers.index] = numbers
        frame.isetitem(k, values.to_numpy())
        n, first = int(is_limit.sum()), text[is_limit]
        if n:
            what, counts = (
                ("entries of {} are limits", "they count") if n > 1 else ("entry of {} is a limit", "it counts")
            )
            name = f"'{frame.columns[k]}'"
            notes.append(f"{n} {what.format(name)}, such as {first.iloc[0]}: {counts} as missing.")
    return frame, tuple(notes)


def _numbers(column: pd.Series[Any], text: pd.Series[str], decimal: str) -> pd.Series[float] | None:
    """These entries of a column as numbers, if one mark of thousands explains all that have no plain spelling.

    Where a mark is used in a column, 1.234 is a thousand in all its rows.
    """
    rest = text[~text.map(lambda entry: _COMMA.match(entry) is not None)] if decimal == "," else text
    for mark, pattern in _THOUSANDS.items() if len(rest) else ():
        if mark != decimal and rest.map(lambda entry, p=pattern: p.match(entry) is not None).all():
            whole = column.dropna().astype(str).str.strip()
            whole = whole[whole.map(lambda entry, p=pattern: p.match(entry) is not None)]
            text = text.where(~text.index.isin(whole.index)).dropna()
            parts = [text, whole.str.replace(mark, "", regex=False)]
            return _floats(parts[0], decimal).combine_first(_floats(parts[1], decimal))
    return None if len(rest) else _floats(text, decimal)


def _floats(text: pd.Series[str], decimal: str) -> pd.Series[float]:
    return text.str.replace(decimal, ".", regex=False).astype(float)
