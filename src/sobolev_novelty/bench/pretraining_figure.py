"""Curves of the pretraining experiment: mean of max(0, R²) against formulas seen, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.bench.figures import new_figure
from sobolev_novelty.bench.pretraining import PAPER, ArmRow, Evaluation, compared, least_squares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#1b5e9e", "#c2410c", "#3f7d3a", "#7b4ba0", "#8a6d1a", "#b03060")


def curves(evaluations: Sequence[Evaluation]) -> dict[str, list[ArmRow]]:
    """Lines of the table by arm, in the order of the samples."""
    found: dict[str, list[ArmRow]] = {}
    for row in compared(evaluations):
        found.setdefault(row.arm, []).append(row)
    return {arm: sorted(rows, key=lambda row: row.samples) for arm, rows in found.items()}


def figure(evaluations: Sequence[Evaluation]) -> Figure:
    """One curve per arm; what needs no network, and the paper's figures, as horizontal lines."""
    drawn = new_figure(6.4, 4.2)
    axes = drawn.subplots()
    for colour, (arm, rows) in zip(_COLOURS * 4, curves(evaluations).items(), strict=False):
        mean = [row.mean.value for row in rows]
        if rows[0].samples == 0:
            axes.axhline(mean[0], color=colour, linestyle="-.", linewidth=1, label=arm)
            continue
        samples = [row.samples for row in rows]
        spread = np.abs(np.array([[row.mean.lower, row.mean.upper] for row in rows]).T - mean)
        axes.errorbar(samples, mean, yerr=spread, color=colour, marker="o", capsize=3, label=arm)
    tasks = evaluations[0].tasks
    for name, degree in (("linear least squares", 1), ("quadratic least squares", 2)):
        axes.axhline(
            float(least_squares(degree, tasks).mean()), color="#555555", linestyle="--", linewidth=1, label=name
        )
    for name, value in PAPER.items():
        axes.axhline(value, color="#bbbbbb", linestyle=":", linewidth=1, label=f"paper, {name}")
    axes.set(xlabel="formulas seen in training", ylabel="mean of max(0, R²)", ylim=(0.0, 1.02))
    if any(row.samples for rows in curves(evaluations).values() for row in rows):
        axes.set_xscale("log")
    axes.legend(fontsize=7, loc="lower right")
    return drawn
