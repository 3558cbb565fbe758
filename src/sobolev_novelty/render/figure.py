"""A report as a matplotlib figure: novelty per term with the threshold, and the matrix of which terms rebuild which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.errors import require
from sobolev_novelty.render.sentences import (
    Data,
    geometry_text,
    headline,
    novelty_text,
    rebuilt_shares,
    shorten,
    term_verdict,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's palette: blue and vermilion are told apart by all common kinds of colour vision.
_COLOUR = {"distinct": "#0072B2", "intercept": "#999999", "no verdict": "#999999"}
_OTHER = "#D55E00"
_INK, _FAINT = "#222222", "#8a8a8a"
#: Up to this many terms the matrix has numbers in its cells and labels on its columns.
_MAX_WRITTEN = 10


def report_figure(data: Data, ax: Axes | None = None) -> Figure:
    """Bars of ν with the threshold (left), and which terms rebuild which (right, aligned row by row).

    The figure belongs to no window and changes no state of pyplot; save it with ``figure.savefig(path)``.

    Parameters
    ----------
    data : dict
        ``NoveltyReport.to_dict()``.

    Examples
    --------
    >>> from sobolev_novelty import novelty
    >>> len(novelty("x0 + cos(3*x0)", [[i / 50] for i in range(-50, 50)]).plot().axes)
    3
    """
    require("matplotlib", extra="plot")
    from matplotlib.figure import Figure

    m = len(data["terms"])
    shares = rebuilt_shares(data) if m > 1 else None
    row = 0.42 if m <= 15 else 0.24
    figure = Figure(figsize=(10.5 if shares else 6.5, 1.9 + row * max(m, 2)), dpi=144, layout="constrained")
    figure.suptitle(headline(data), x=0.01, ha="left", fontsize=12, fontweight="bold", color=_INK)
    if shares:
        bars, matrix = figure.subplots(1, 2, sharey=True, width_ratios=(1.15, 1.0))
        _draw_matrix(figure, matrix, shares)
    else:
        bars = figure.subplots()
    _draw_bars(bars, data)
    return figure


def _draw_bars(axes: Axes, data: Data) -> None:
    terms = data["terms"]
    m = len(terms)
    rows = np.arange(m)
    nu = np.array([term["novelty"] or 0.0 for term in terms])
    colours = [_COLOUR.get(term_verdict(term), _OTHER) for term in terms]
    axes.barh(rows, np.ones(m), height=0.62, color="#eeeeee", zorder=1)
    axes.barh(rows, nu, height=0.62, color=colours, zorder=2)
    _draw_intervals(axes, terms)
    axes.axvline(data["tau"], color=_INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=4)
    axes.annotate(
        f"τ = {data['tau']:.3f}", (data["tau"], 1.0), xycoords=("data", "axes fraction"), xytext=(0, 4),
        textcoords="offset points", ha="center", va="bottom", fontsize=9, color=_INK,
    )  # fmt: skip
    small = 9 if m <= 15 else 7
    for i, term in enumerate(terms):
        word = term_verdict(term)
        axes.text(
            1.02,
            i,
            novelty_text(term["novelty"]) + ("" if word == "distinct" else f"  {word}"),
            va="center",
            fontsize=small,
            color=colours[i],
        )
    labels = [f"{shorten(term['term'], 34)}  {i}" for i, term in enumerate(terms)]
    axes.set_yticks(rows, labels, fontsize=small, family="monospace", parse_math=False)
    axes.set_ylim(max(m, 2) - 0.5 - (m == 1) * 0.5, -0.5 - (m == 1) * 0.5)
    axes.set_xlim(0.0, 1.0)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel(
        f"novelty ν  ({geometry_text(data)}; {data['n_used']:,} rows)",
        fontsize=8,
        color=_FAINT,
        loc="left",
    )
    _bare(axes)


def _draw_intervals(axes: Axes, terms: list[Data]) -> None:
    for i, term in enumerate(terms):
        if "interval" in term:
            low, high = (bound or 0.0 for bound in term["interval"])
            axes.plot([low, high], [i, i], color=_INK, linewidth=1.4, zorder=3, solid_capstyle="butt")
            axes.plot([low, high], [i, i], "|", color=_INK, markersize=6, zorder=3)


def _draw_matrix(figure: Figure, axes: Axes, shares: list[list[float]]) -> None:
    matrix = np.array(shares)
    m = len(matrix)
    shown = np.ma.masked_array(matrix, mask=np.eye(m, dtype=bool))
    image = axes.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    if m <= _MAX_WRITTEN:
        for i, j in np.ndindex(m, m):
            if matrix[i, j] >= 0.005:
                ink = "white" if matrix[i, j] > 0.6 else _INK
                axes.text(j, i, f"{matrix[i, j]:.0%}", ha="center", va="center", fontsize=8, color=ink)
    axes.set_xticks(range(m), [str(j) if m <= 20 or j % 5 == 0 else "" for j in range(m)], fontsize=9 if m <= 15 else 7)
    axes.xaxis.tick_top()
    axes.set_title("share of the row's term that the column's term rebuilds", fontsize=9, color=_INK, loc="left", pad=6)
    axes.tick_params(labelleft=False)
    for edge in np.arange(m + 1) - 0.5:
        axes.axhline(edge, color="white", linewidth=1.0)
        axes.axvline(edge, color="white", linewidth=1.0)
    _bare(axes)
    colours: Any = figure.colorbar(image, ax=axes, shrink=0.8 if m <= 15 else 0.4, aspect=18, ticks=[0.0, 0.5, 1.0])
    colours.ax.set_yticklabels(["0", "50%", "all"])
    colours.ax.tick_params(labelsize=8, length=0)
    colours.outline.set_visible(False)


def _bare(axes: Axes) -> None:
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
