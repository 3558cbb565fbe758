"""A report as a matplotlib figure: novelty per term with the threshold, which terms rebuild which, and the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sobolev_novelty.errors import ParameterError, require
from sobolev_novelty.report.render.figures.fit_figure import axis_label, draw_fit
from sobolev_novelty.report.render.sentences import (
    Data,
    geometry_text,
    headline,
    novelty_text,
    rebuilt_shares,
    term_verdict,
)
from sobolev_novelty.report.render.words import determined_word, needed_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's palette: blue and vermilion are told apart by all common kinds of colour vision.
_COLOUR = {"distinct": "#0072B2", "intercept": "#999999", "no verdict": "#999999"}
_OTHER = "#D55E00"
_INK, _FAINT = "#222222", "#6a6a6a"
#: Up to this many terms the matrix has numbers in its cells and labels on its columns.
_MAX_WRITTEN = 10
#: Inches that the drawings of the fit take.
_FIT_HEIGHT = 2.9


def report_figure(data: Data, ax: Axes | None = None) -> Figure:
    """Bars of ν with the threshold (left), which terms rebuild which (right, row by row) and, with a target, the fit.

    The figure belongs to no window and changes no state of pyplot; a notebook shows it, and ``figure.savefig(path)``
    saves it.

    ``data``: ``NoveltyReport.to_dict()``, where it has ``points`` also the fit at these rows.
    ``ax``: where to draw; only the bars are drawn then, and the figure of these axes is returned.
    """
    require("matplotlib", extra="plot")
    if ax is not None:
        if not hasattr(ax, "barh"):
            raise ParameterError(f"'ax' must be the axes of a matplotlib figure. Got {type(ax).__name__}.")
        _draw_bars(ax, data)
        return ax.figure.figure  # of a subfigure, the whole
    from sobolev_novelty.report.render.figures.notebook_figure import NotebookFigure

    m = len(data["terms"])
    shares = rebuilt_shares(data) if m > 1 else None
    has_fit = bool(data.get("points") and data["points"][0])
    top = 1.9 + (0.42 if m <= 15 else 0.24) * max(m, 2)
    size = (13.0 if shares and has_fit else 10.5 if shares or has_fit else 6.5, top + _FIT_HEIGHT * has_fit)
    whole = NotebookFigure(figsize=size, dpi=144, layout="constrained")
    whole.suptitle(headline(data), x=0.01, ha="left", fontsize=12, fontweight="bold", color=_INK)
    upper: Any = whole
    if has_fit:
        upper, lower = cast("tuple[Any, Any]", whole.subfigures(2, 1, height_ratios=(top, _FIT_HEIGHT)))
    if shares:
        bars, matrix = upper.subplots(1, 2, sharey=True, width_ratios=(1.15, 1.0))
        _draw_matrix(upper, matrix, shares, data)
    else:
        bars = upper.subplots()
    _draw_bars(bars, data)
    if has_fit:
        draw_fit(lower, data)
    return whole


def _draw_bars(axes: Axes, data: Data) -> None:
    """Bars of ν with a free intercept, the number behind *distinct*; ν of the paper as a diamond."""
    terms = data["terms"]
    m = len(terms)
    rows = np.arange(m)
    nu = np.array([term["verdict"]["novelty"] or 0.0 for term in terms])
    colours = [_COLOUR.get(term_verdict(term), _OTHER) for term in terms]
    axes.barh(rows, np.ones(m), height=0.62, color="#eeeeee", zorder=1)
    axes.barh(rows, nu, height=0.62, color=colours, zorder=2)
    _draw_paper(axes, data)
    axes.axvline(data["tau"], color=_INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=4)
    axes.annotate(
        f"τ = {data['tau']:.3f}", (data["tau"], 1.0), xycoords=("data", "axes fraction"), xytext=(0, 4),
        textcoords="offset points", ha="center", va="bottom", fontsize=9, color=_INK,
    )  # fmt: skip
    small = 9 if m <= 15 else 7
    for i, term in enumerate(terms):
        axes.text(1.02, i, _said(term, data["has_target"]), va="center", fontsize=small, color=colours[i])
    labels = [axis_label(term["term"]) for term in terms]
    axes.set_yticks(rows, [f"{text}  {i}" for i, (text, _) in enumerate(labels)], fontsize=small)
    for tick, (_, is_formula) in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set(parse_math=is_formula, family="sans-serif" if is_formula else "monospace")
    axes.set_ylim(max(m, 2) - 0.5 - (m == 1) * 0.5, -0.5 - (m == 1) * 0.5)
    axes.set_xlim(0.0, 1.0)
    axes.tick_params(axis="x", labelsize=8)
    paper = "" if data["intercept"] == "free" else "; ◇ intercept a term, as in the paper"
    axes.set_xlabel(
        f"novelty ν, intercept free{paper}\n{geometry_text(data)}; {data['n_used']:,} rows",
        fontsize=8, color=_FAINT, loc="left",
    )  # fmt: skip
    _bare(axes)


def _said(term: Data, has_target: bool) -> str:
    """ν with a free intercept, and the words that are not good."""
    first = term_verdict(term)
    words = [needed_word(term), *([determined_word(term)] if has_target else [])]
    bad = [word.text for word in words if word.is_good is False]
    shown = [*([] if first == "distinct" else [first]), *bad]
    nu = term["verdict"]["novelty"]
    return "  ".join([*([] if nu is None else [novelty_text(nu)]), ", ".join(shown)]).rstrip()


def _draw_paper(axes: Axes, data: Data) -> None:
    """ν as the whole report has it, where its intercept is a term; its bootstrap interval, where there is one."""
    for i, term in enumerate(data["terms"]):
        if "interval" in term:
            low, high = (bound or 0.0 for bound in term["interval"])
            axes.plot([low, high], [i, i], color=_INK, linewidth=1.4, zorder=3, solid_capstyle="butt")
            axes.plot([low, high], [i, i], "|", color=_INK, markersize=6, zorder=3)
        if data["intercept"] != "free" and term["novelty"] is not None:
            axes.plot(
                [term["novelty"]],
                [i],
                "D",
                color=_INK,
                markerfacecolor="white",
                markersize=4.5,
                zorder=5,
                clip_on=False,
            )


def _draw_matrix(figure: Any, axes: Axes, shares: list[list[float]], data: Data) -> None:
    matrix = np.array(shares)
    m = len(matrix)
    shown = np.ma.masked_array(matrix, mask=np.eye(m, dtype=bool))
    image = axes.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    if m <= _MAX_WRITTEN:
        for i, j in np.ndindex(m, m):
            if matrix[i, j] >= 0.005:
                ink = "white" if matrix[i, j] > 0.6 else _INK
                axes.text(j, i, f"{matrix[i, j]:.0%}", ha="center", va="center", fontsize=8, color=ink)
    axes.set_xticks(range(m), [str(j) if m <= 20 or j % 5 == 0 else "" for j in range(m)], fontsize=9 if m <= 8 else 7)
    axes.xaxis.tick_top()
    axes.set_title("share of the row's term that the column's rebuilds", fontsize=9, color=_INK, loc="left", pad=6)
    if data["intercept"] != "free":
        axes.set_xlabel("intercept a term, as in the paper", fontsize=8, color=_FAINT, loc="left")
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
