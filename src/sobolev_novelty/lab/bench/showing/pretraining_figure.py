"""The pretraining experiment in a figure: R² on the tasks with intervals, and learning curves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.showing.figures import new_figure
from sobolev_novelty.lab.bench.showing.pretraining import PAPER, Evaluation, arm_name, compared, least_squares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (
    *("#1b5e9e", "#c2410c", "#3f7d3a", "#7b4ba0", "#8a6d1a", "#b03060", "#0f766e", "#525252"),
    *("#5aa9e6", "#e8985e", "#8fce7a", "#c39bd3"),
)
#: One run's learning curve: formulas seen, nats per token.
Curve = list[tuple[int, float]]


def learning_curves(logs: Sequence[Path], corpus: str = "random") -> dict[str, list[Curve]]:
    """Nats per token on unseen formulas of a corpus, by arm, one curve for every seed.

    Each run is validated on formulas of its own law; of several laws only the one with most logs is given.

    ``logs``: training logs; each tells its arm.
    ``corpus``: the validation formulas: ``"random"`` or ``"filtered"``.
    """
    found: dict[str, dict[str, list[Curve]]] = {}
    for path in sorted(logs):
        try:
            entries: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            curve = [
                (int(entry["funnel"]["accepted"]), float(entry["validation"][corpus]["nats_per_token"]))
                for entry in entries
                if entry["kind"] == "checkpoint"
            ]
            settings = entries[0]["settings"]["corpus"]
            arm, law = arm_name(**settings), str(settings["law"])
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"'{path}' is not a training log with a validation on '{corpus}'.") from error
        found.setdefault(law, {}).setdefault(arm, []).append(curve)
    return max(found.values(), key=lambda arms: sum(map(len, arms.values())), default={})


def figure(evaluations: Sequence[Evaluation], logs: Sequence[Path] = ()) -> Figure:
    """A line per arm with its interval, beside what needs no network and the paper's figures; with logs, their curves.

    ``logs``: training logs.
    """
    drawn = new_figure(10.0 if logs else 6.4, 4.2)
    panels: Any = drawn.subplots(1, 2 if logs else 1, squeeze=False)[0]
    arms = _scores(panels[0], evaluations)
    if logs:
        _losses(panels[1], logs, arms)
    return drawn


def _scores(axes: Axes, evaluations: Sequence[Evaluation]) -> dict[str, str]:
    """The first panel; the colour of each arm."""
    rows = compared(evaluations)
    colours = dict(zip(dict.fromkeys(row.arm for row in rows), _COLOURS * 4, strict=False))
    labels = []
    for place, row in enumerate(rows):
        spread = [[row.mean.value - row.mean.lower], [row.mean.upper - row.mean.value]]
        axes.errorbar(row.mean.value, place, xerr=spread, color=colours[row.arm], marker="o", capsize=3)
        formulas = f"\n{row.samples:,} formulas" if row.samples else ""
        labels.append(f"{row.arm}{formulas}")
    tasks = evaluations[0].tasks
    for name, degree, style in (("linear least squares", 1, "--"), ("quadratic least squares", 2, "-.")):
        level = float(least_squares(degree, tasks).mean())
        axes.axvline(level, color="#555555", linestyle=style, linewidth=1, label=name)
    for name, level in PAPER.items():
        axes.axvline(level, color="#999999", linestyle=":", linewidth=1)
        axes.annotate(f"paper, {name}", (level, -0.45), rotation=90, fontsize=7, va="top", ha="right", color="#666666")
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.set(xlabel="mean of max(0, R²) on the tasks", xlim=(0.0, 1.02), ylim=(len(rows) - 0.4, -0.6))
    axes.legend(fontsize=7, loc="lower left")
    return colours


def _losses(axes: Axes, logs: Sequence[Path], colours: dict[str, str]) -> None:
    """The second panel: means over seeds, and the seeds themselves as thin lines."""
    spare = iter(_COLOURS[::-1])
    for arm, seeds in learning_curves(logs).items():
        colour = colours.get(arm) or next(spare)
        for curve in seeds:
            axes.plot(*zip(*curve, strict=True), color=colour, linewidth=0.7, alpha=0.5)
        # Seeds are validated at moments of their own: the mean is taken between them.
        first, last = max(c[0][0] for c in seeds), min(c[-1][0] for c in seeds)
        grid = np.geomspace(first, last, 60)
        points = [np.array(curve, dtype=float).T for curve in seeds]
        mean = np.mean([np.interp(grid, seen, loss) for seen, loss in points], axis=0)
        n = len(seeds)
        axes.plot(grid, mean, color=colour, linewidth=1.6, label=f"{arm} ({n} {'seed' if n == 1 else 'seeds'})")
    axes.set(xscale="log", xlabel="formulas seen in training", ylabel="nats per token, unseen random formulas")
    axes.legend(fontsize=8)
