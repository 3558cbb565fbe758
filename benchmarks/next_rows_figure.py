"""The figure of docs/next-rows.md: ``python -m benchmarks.next_rows_figure``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

import sobolev_novelty as sn

mpl.use("svg")

from matplotlib import pyplot as plt

PATH = Path(__file__).resolve().parents[1] / "docs" / "next_rows.svg"
RIVALS = ("2.5*tanh(T/30)", "0.7*sqrt(T)")
SIGMA = 0.05


def main() -> None:
    mpl.rcParams |= {"svg.hashsalt": "sobolev", "svg.fonttype": "none", "font.size": 9}
    rng = np.random.default_rng(1)
    T = rng.uniform(20.0, 30.0, 20)
    y = 3.0 * np.tanh(T / 30.0) + SIGMA * rng.normal(size=20)
    law, rival = (sn.intervals(text, _table(T), y).expression for text in RIVALS)
    rows = sn.next_rows([law, rival], _table(T), bounds={"T": (2.0, 90.0)}, n=4, sigma=SIGMA)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.1), width_ratios=(1.7, 1.0), layout="constrained")
    wide = np.linspace(2.0, 90.0, 300)
    for equation, colour, name in ((law, "#0b62a4", "a tanh(T/b)"), (rival, "#b3470b", "a √T")):
        left.plot(wide, sn.evaluate(equation, _table(wide)), color=colour, label=name)
    left.plot(T, y, ".", color="#565d66", label="rows at hand")
    for k, place in enumerate(rows["T"], 1):
        left.axvline(place, color="#1d2125", linewidth=0.8, linestyle=":")
        left.annotate(str(k), (place, 0.02 + 0.07 * (k - 1)), xycoords=("data", "axes fraction"), ha="center")
    left.set(xlabel="T", ylabel="flow", title="Two equations, and the rows that part them")
    left.legend(frameon=False)
    steps = rows.steps
    assert steps is not None
    right.plot(steps.index, steps["leading"], "o-", color="#1d2125")
    right.axhline(5.0, color="#565d66", linewidth=0.8)
    right.set(xlabel="rows added", ylabel="difference after refitting, in σ", title="What they buy", xticks=steps.index)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PATH, metadata={"Date": None})


def _table(T: np.ndarray) -> object:
    import pandas as pd

    return pd.DataFrame({"T": T})


if __name__ == "__main__":
    main()
