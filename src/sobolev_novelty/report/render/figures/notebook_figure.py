"""A matplotlib figure that notebooks show without a magic command. Import it only where matplotlib is at hand."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure of no window, unknown to pyplot, that a notebook shows where it is the value of a cell.

    A notebook asks an object for its picture; matplotlib's own figures answer only once its backend is set up. As with
    tables of equations, a class of one's own is the only way to add the answer.
    """

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()
