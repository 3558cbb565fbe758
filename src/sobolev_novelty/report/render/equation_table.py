"""A table of equations as a person reads it: four digits, the chosen row marked."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pandas as pd

from sobolev_novelty.core.expression import Expression, short_text

#: Significant digits that are shown; the table itself has all of them.
DIGITS = 4
#: Longer tables are shown as pandas shows them.
_MAX_ROWS = 60
_MAX_WIDTH = 100


class EquationTable(pd.DataFrame):
    """A DataFrame of equations that shows four digits and holds all of them.

    pandas offers no other way than a class of one's own to format one table and not all.
    """

    @property
    def _constructor(self) -> Callable[..., EquationTable]:
        return EquationTable

    def __repr__(self) -> str:
        if len(self) > _MAX_ROWS or not len(self):
            return super().__repr__()
        return "\n".join(line.rstrip() for line in _aligned(self).to_string().splitlines())

    def _repr_html_(self) -> str:
        return table_html(self)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table as text."""
    return pd.DataFrame({name: [_text(value) for value in table[name]] for name in table.columns}, index=table.index)


def _aligned(table: pd.DataFrame) -> pd.DataFrame:
    """The table as text, words and their heads to the left, numbers and theirs to the right."""
    texts = shown(table)
    for name in texts.columns:
        if any(isinstance(value, Expression | str) for value in table[name]):
            width = max(map(len, [str(name), *texts[name]]))
            texts[name] = [text.ljust(width) for text in texts[name]]
            texts = texts.rename(columns={name: str(name).ljust(width)})
    return texts


def table_html(table: pd.DataFrame) -> str:
    """The table for a notebook; the chosen row in bold."""
    texts = shown(table)
    is_chosen = list(table["chosen"]) if "chosen" in table.columns else [False] * len(table)
    head = "".join(f'<th style="text-align:left">{html.escape(str(name))}</th>' for name in texts.columns)
    rows = []
    for picked, row in zip(is_chosen, texts.itertuples(index=True), strict=True):
        cells = "".join(f'<td style="text-align:left">{html.escape(str(cell))}</td>' for cell in row[1:])
        weight = ' style="font-weight:bold"' if picked else ""
        rows.append(f"<tr{weight}><th>{html.escape(str(row[0]))}</th>{cells}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _text(value: Any) -> str:
    if isinstance(value, Expression):
        text = short_text(value, digits=DIGITS)
        return text if len(text) <= _MAX_WIDTH else text[: _MAX_WIDTH - 1] + "…"
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "▶" if value else ""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
