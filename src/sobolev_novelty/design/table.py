"""The chosen rows as a table that also says what they will buy."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd


class NextRows(pd.DataFrame):
    """Rows to measure, in the columns of the rows at hand.

    pandas offers no other way than a class of one's own to keep words beside a table.

    ``words``: what the rows will buy, in sentences.
    ``steps``: one row for each number of rows, from 0: ``risk``, the chance that a wrong equation of two would fit
    better, and by how many standard deviations of the noise the two leading equations (``leading``) and the two most
    alike (``closest``) differ, their constants refitted. For one equation: with and without a term.
    """

    _metadata = ["words", "steps"]  # noqa: RUF012 - a list is what pandas looks for
    words: str = ""
    steps: pd.DataFrame | None = None

    @property
    def _constructor(self) -> Callable[..., NextRows]:
        return NextRows

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.words}" if self.words else super().__repr__()

    def _repr_html_(self) -> str:
        import html

        lines = "<br>".join(map(html.escape, self.words.splitlines()))
        return f"{self.to_html()}<p>{lines}</p>"
