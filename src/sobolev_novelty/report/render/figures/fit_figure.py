"""Parity, residuals and effects of the terms, for the figure of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.language.convert import to_latex
from sobolev_novelty.report.render.formulas import read_formula
from sobolev_novelty.report.render.sentences import Data, r2_text, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _INK, _GREY = "#0072B2", "#222222", "#8a8a8a"
#: Effects of at most so many terms are drawn, the largest first.
_MAX_EFFECTS = 10
#: Labels with more characters than this are shortened text, not formulas.
_MAX_LABEL = 34


def draw_fit(figure: Any, data: Data) -> None:
    """Three drawings side by side.

    ``data``: ``NoveltyReport.to_dict()`` with a target, and ``points``: target and prediction at some rows.
    """
    parity, residuals, effects = figure.subplots(1, 3)
    points = np.array(data["points"], dtype=np.float64)
    y, p = points[:, np.isfinite(points).all(axis=0)]
    fit = data["fit"]
    if len(y):
        ends = (min(y.min(), p.min()), max(y.max(), p.max()))
        parity.plot(ends, ends, color=_INK, linewidth=1.0, linestyle=(0, (4, 2)))
        parity.plot(y, p, "o", color=_BLUE, markersize=3, alpha=0.5, markeredgewidth=0)
        residuals.axhline(0.0, color=_INK, linewidth=1.0, linestyle=(0, (4, 2)))
        residuals.plot(p, y - p, "o", color=_BLUE, markersize=3, alpha=0.5, markeredgewidth=0)
    _named(parity, "target", "prediction", f"R² {r2_text(fit['r2'])}, cross-validated {r2_text(fit['cv_r2'])}")
    _named(residuals, "prediction", "residual", f"residuals, rms {fit['rmse']:.3g}" if fit["rmse"] is not None else "")
    _draw_effects(effects, data)


def _named(axes: Axes, across: str, up: str, title: str) -> None:
    axes.set_xlabel(across, fontsize=8)
    axes.set_ylabel(up, fontsize=8)
    axes.set_title(title, fontsize=9, color=_INK, loc="left")
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_effects(axes: Axes, data: Data) -> None:
    """Middle 90 % of each term's part of the prediction about its median, above that of the target."""
    fit = data["fit"]
    known = [
        (t["term"], e) for t, e in zip(data["terms"], fit["effects"], strict=True) if None not in e and e[0] != e[1]
    ]
    rows = sorted(known, key=lambda row: row[1][0] - row[1][1])[:_MAX_EFFECTS]
    labels = [axis_label(shorten(label, 24)) for label, _ in rows] + [("target", False)]
    ends = np.array([effect for _, effect in rows] + [fit["spread"]], dtype=np.float64)
    at = np.arange(len(ends))
    axes.barh(at, ends[:, 1] - ends[:, 0], left=ends[:, 0], height=0.55, color=[_BLUE] * len(rows) + [_GREY])
    axes.axvline(0.0, color=_INK, linewidth=0.8)
    axes.set_yticks(at, [text for text, _ in labels])
    _named(axes, "in units of the target", "", "effect of each term, middle 90 %")
    for tick, (_, is_formula) in zip(axes.get_yticklabels(), labels, strict=True):
        tick.set(parse_math=is_formula, fontsize=8)
    axes.set_ylim(len(ends) - 0.5, -0.5)
    low, high = np.nanmin(ends), np.nanmax(ends)
    axes.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low) or 1.0)


def axis_label(text: object, width: int = _MAX_LABEL) -> tuple[str, bool]:
    """A term for the axis of a figure, and whether it is mathtext; what is long or not a formula stays text."""
    from matplotlib.mathtext import MathTextParser

    expression = read_formula(str(text))
    short = shorten(text, width)
    if expression is None or "…" in short:
        return short, False
    written = f"${to_latex(expression)}$"
    try:
        MathTextParser("path").parse(written)
    except ValueError:  # a command that mathtext does not know
        return short, False
    return written, True
