"""The picture of the README and the site's first page: one equation on two tables. python tools/draw_picture.py"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import sobolev_novelty as sn

EQUATION = "2.1*sin(x) + 0.3*x - 0.05*x**3 + 0.8*cos(2*x)"

# Text stays text, and the file does not change from run to run.
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "sobolev", "font.family": "sans-serif", "font.size": 11})


def draw(path: Path) -> None:
    """Bars of novelty, with the threshold."""
    figure = Figure(figsize=(9.0, 2.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, width in zip(axes, (1, 6), strict=True):
        table = pd.DataFrame({"x": np.random.default_rng(0).uniform(-width, width, 400)})
        report = sn.novelty(EQUATION, table)
        labels = [str(label) for label in report.labels][::-1]
        colours = ["#1a7f5a" if is_above else "#c2410c" for is_above in report.qualified][::-1]
        bars = ax.barh(labels, report.nu[::-1], color=colours, height=0.62)
        ax.bar_label(bars, [f"{nu:.3f}" for nu in report.nu[::-1]], padding=4, color="#333333")
        ax.axvline(sn.TAU_ID, color="#333333", linewidth=1, linestyle=(0, (4, 3)))
        ax.set(xlim=(0, 1.18), xticks=[0, sn.TAU_ID, 1], xticklabels=["0", "τ", "1"])
        ax.set_title(f"rows with |x| < {width}", fontsize=11)
        ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("novelty: the share of a term that the other terms cannot rebuild", fontsize=10)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).parents[1] / "docs" / "picture.svg")
