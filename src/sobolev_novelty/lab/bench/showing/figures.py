"""Figures of the paper from the same numbers as the tables. Each figure has a function that gives the numbers alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sobolev_novelty.core.output import write_figure
from sobolev_novelty.errors import DataError, require
from sobolev_novelty.lab.bench.showing.gap import GROUND_TRUTH
from sobolev_novelty.lab.bench.showing.paper import paper_rows
from sobolev_novelty.lab.bench.showing.tables import ablation_table, guided_pairs, rows_at, suite_title, task_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

_OURS, _PAPER, _GUIDED = "#1b5e9e", "#9a9a9a", "#c2410c"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, without a global state."""
    require("matplotlib", extra="plot")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure; the ending decides the format. The same numbers give the same bytes."""
    path = Path(path)
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise DataError(f"'{path}' must end in .svg, .png or .pdf.")
    path.parent.mkdir(parents=True, exist_ok=True)
    matplotlib = require("matplotlib", extra="plot")
    with matplotlib.rc_context({"svg.hashsalt": "sobolev"}):
        write_figure(path, figure, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def rank_plane_numbers(frame: pd.DataFrame, suite: str, *, noise: float = 0.0, with_paper: bool = True) -> pd.DataFrame:
    """Ranks by mean R² and by mean complexity, and the Pareto tier, of every method.

    With ``with_paper`` the paper's methods stand beside ours as it reports them, those we ran ourselves as well:
    budgets differ, and leaving out the better of two rows of a method would flatter the others.

    Returns columns ``method, source, r2, complexity, accuracy_rank, complexity_rank, tier``.
    """
    scores = task_scores(rows_at(frame, noise)).groupby("method")[["r2", "complexity"]].mean()
    table = scores.reset_index().assign(source="ours")
    if with_paper:
        rows = [
            {"method": name, "r2": row[0], "complexity": row[1], "source": "paper"}
            for name, row in paper_rows(suite).items()
        ]
        table = pd.concat([table, pd.DataFrame(rows)], ignore_index=True) if rows else table
    table["accuracy_rank"] = table["r2"].rank(ascending=False, method="min").astype(int)
    table["complexity_rank"] = table["complexity"].rank(method="min", na_option="bottom").astype(int)
    table["tier"] = pareto_tiers(table[["accuracy_rank", "complexity_rank"]].to_numpy(dtype=float))
    return table[["method", "source", "r2", "complexity", "accuracy_rank", "complexity_rank", "tier"]]


def pareto_tiers(points: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[int]:
    """Tier of each point, smaller is better on all axes: 1 is dominated by none, 2 by tier 1 only, and so on."""
    tiers = np.zeros(len(points), dtype=int)
    tier = 0
    while (tiers == 0).any():
        tier += 1
        rest = np.flatnonzero(tiers == 0)
        members = points[rest]
        no_worse = (members[:, None] <= members[None]).all(axis=2)  # [i, j]: i is no worse than j anywhere
        better = (members[:, None] < members[None]).any(axis=2)
        dominated = (no_worse & better).any(axis=0)
        tiers[rest[~dominated]] = tier
    return [int(value) for value in tiers]


def rank_plane(frame: pd.DataFrame, suite: str, *, noise: float = 0.0, with_paper: bool = True) -> Figure:
    """Accuracy rank against complexity rank, with Pareto tiers and arrows from backbone to guided variant."""
    table = rank_plane_numbers(frame, suite, noise=noise, with_paper=with_paper)
    figure = new_figure(6.4, 5.2)
    axes = figure.add_subplot()
    for _, members in table.groupby("tier"):
        line = members.sort_values(["accuracy_rank", "complexity_rank"])
        axes.plot(line["accuracy_rank"], line["complexity_rank"], "--", color="#c8c8c8", linewidth=0.8, zorder=1)
    place = table.set_index("method")[["accuracy_rank", "complexity_rank"]]
    pairs = [(base, guided, _GUIDED) for base, guided in guided_pairs(table["method"])]
    pairs += [(name, f"SN-{name}", _PAPER) for name in place.index if f"SN-{name}" in place.index]
    for base, guided, color in pairs:
        axes.annotate(
            "",
            xy=tuple(place.loc[guided]),
            xytext=tuple(place.loc[base]),
            arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.4, "shrinkA": 5, "shrinkB": 5},
        )
    for row in table.to_dict("records"):
        _point(axes, row["accuracy_rank"], row["complexity_rank"], row["method"], source=row["source"])
    axes.set(xlabel="rank by mean R² (1 is best)", ylabel="rank by mean complexity (1 is shortest)")
    axes.margins(0.12)
    axes.locator_params(integer=True)
    axes.set_title(suite_title(suite))
    _legend(axes, with_paper=with_paper)
    _part_labels(figure, axes)
    return figure


def _point(axes: Axes, x: float, y: float, label: str, *, source: str) -> None:
    color = _PAPER if source == "paper" else _GUIDED if "+novelty" in label else _OURS
    face = "none" if source == "paper" else color
    axes.scatter([x], [y], s=36, edgecolors=color, facecolors=face, zorder=3)
    axes.annotate(label, (x, y), xytext=_OFFSETS[0], textcoords="offset points", fontsize=7, color=color)


#: Where a label may stand beside its point, best place first, in points.
_OFFSETS = (
    *((5, 4), (5, -9), (7, -3), (-5, 4), (-5, -9), (-7, -3), (0, 8), (0, -13)),
    *((5, 17), (-5, 17), (5, -22), (-5, -22)),
)


def _part_labels(figure: Figure, axes: Axes) -> None:
    """Move each label to the first place beside its point where it covers no other label, no point and no arrow."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Annotation

    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]  # places are known only after the layout
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent(renderer)
    places = [xy for dots in axes.collections for xy in np.atleast_2d(dots.get_offsets())]
    arrows = [(text.xy, text.xyann) for text in axes.texts if isinstance(text, Annotation) and not text.get_text()]
    for head, tail in arrows:
        places += list(np.linspace(head, tail, 25))
    points = [axes.transData.transform(xy) for xy in places]
    taken: list[Bbox] = []
    labels = [text for text in axes.texts if text.get_text()]
    for label in labels:
        covered: list[tuple[float, int, Bbox]] = []
        for offset in _OFFSETS:
            _put(label, offset)
            box = label.get_window_extent(renderer).padded(2)
            hidden = sum(box.overlaps(other) for other in taken) + sum(bool(box.contains(*xy)) for xy in points)
            outside = not (frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)
            covered.append((hidden + 0.5 * outside, len(covered), box))
        _, best, box = min(covered, key=lambda entry: entry[:2])
        _put(label, _OFFSETS[best])
        taken.append(box)


def _put(label: Text, offset: tuple[int, int]) -> None:
    x, _ = offset
    label.set(position=offset, horizontalalignment="left" if x > 0 else "right" if x < 0 else "center")


def _legend(axes: Axes, *, with_paper: bool) -> None:
    axes.scatter([], [], s=36, color=_OURS, label="run here")
    axes.scatter([], [], s=36, color=_GUIDED, label="run here, guided")
    if with_paper:
        axes.scatter([], [], s=36, edgecolors=_PAPER, facecolors="none", label="as the paper reports it")
    axes.legend(fontsize=7, frameon=False, loc="best")


def novelty_against_complexity(gap: pd.DataFrame) -> Figure:
    """Mean complexity against mean term novelty of ground truth and methods (the figure of Sec. 4.1)."""
    shown = gap.dropna(subset=["mean_novelty", "complexity"])
    if shown.empty:
        raise DataError("No method has a multi-term expression with R² ≥ 0.8: there is nothing to draw.")
    figure = new_figure(6.0, 4.4)
    from matplotlib.ticker import LogLocator, NullFormatter

    axes = figure.add_subplot()
    for row in shown.to_dict("records"):
        is_truth = row["method"] == GROUND_TRUTH
        axes.scatter(
            [row["complexity"]],
            [row["mean_novelty"]],
            s=110 if is_truth else 36,
            marker="*" if is_truth else "o",
            color=_GUIDED if is_truth else _OURS,
            zorder=3,
        )
        axes.annotate(
            row["method"],
            (row["complexity"], row["mean_novelty"]),
            xytext=_OFFSETS[0],
            textcoords="offset points",
            fontsize=7,
        )
    axes.set(xscale="log", ylim=(0, 1), xlabel="mean complexity (nodes)", ylabel="mean term novelty")
    axes.margins(x=0.28)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axhline(1 / np.sqrt(10), linestyle="--", color="#c8c8c8", linewidth=0.8, zorder=1)
    _part_labels(figure, axes)
    return figure


def derivative_ablation(frame: pd.DataFrame) -> Figure:
    """Mean test NMSE (left axis) and novelty evaluations per run (right axis) of guided methods (Appendix F)."""
    table = ablation_table(frame).frame
    if table.empty:
        raise DataError("The store has no guided methods: their labels contain '+novelty'.")
    figure = new_figure(6.4, 3.4)
    left = figure.add_subplot()
    right = left.twinx()
    n = len(table)
    positions = np.arange(n)
    left.bar(positions, table["NMSE"], width=0.7, color=_OURS)
    right.bar(positions + n + 1, table["SN calls"].fillna(0.0), width=0.7, color=_GUIDED)
    left.set_xticks([*positions, *(positions + n + 1)], [*table["method"], *table["method"]], rotation=20, fontsize=7)
    left.set_ylabel("mean test NMSE", color=_OURS)
    right.set_ylabel("SN calls per run", color=_GUIDED)
    return figure
