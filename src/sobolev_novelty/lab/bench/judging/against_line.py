"""Set by set beside a straight line: medians over splits, and every run that a line would have beaten.

A mean over sets hides a catastrophe. A run counts as one that a line beats where its test R² is below zero while that
of least squares on the same split is not, or more than :data:`MARGIN` below it.
"""

from __future__ import annotations

import pandas as pd

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.showing.tables import BenchTable, rows_at, suite_title

#: The method that is the line.
LINE = "linear"
MARGIN = 0.1


def median_table(frame: pd.DataFrame, suite: str, *, noise: float = 0.0) -> BenchTable:
    """The median test R² of each method on each set, as it is, and the means over sets in the last row."""
    rows = _scored(frame, noise)
    medians = rows.groupby(["task", "method"])["r2"].median().unstack()
    nodes = rows.groupby(["task", "method"])["complexity"].median().unstack()
    runs = rows.groupby(["task", "method"]).size().unstack()
    table = pd.DataFrame({"set": medians.index, "splits": runs.min(axis=1).to_numpy()})
    for method in medians.columns:
        table[method] = medians[method].to_numpy()
        table[f"{method}, nodes"] = nodes[method].to_numpy()
    decimals = {method: 3 for method in medians.columns} | {f"{method}, nodes": 0 for method in medians.columns}
    last = {"set": f"mean of {len(table)} sets", "splits": None} | table.drop(
        columns=["set", "splits"]
    ).mean().to_dict()
    table = pd.concat([table, pd.DataFrame([last])], ignore_index=True)
    means = rows.assign(r2=rows["r2"].clip(lower=0.0)).groupby(["method", "task"])["r2"].mean().groupby("method").mean()
    note = ", ".join(f"{method} {value:.3f}" for method, value in means.items())
    return BenchTable(
        f"Medians over splits, {suite_title(suite)}, noise {noise:g}",
        table,
        decimals,
        ("R² on the test part; a run without a finite prediction counts as minus infinity in a median, as 0 below.",
         f"Means over sets of the mean over splits of max(0, R²): {note}."),
    )  # fmt: skip


def beaten_table(frame: pd.DataFrame, suite: str, *, noise: float = 0.0) -> BenchTable:
    """Every run that the line beats, the worst first; the counts are in the notes."""
    rows = _scored(frame, noise)
    line = rows[rows["method"] == LINE].set_index(["task", "seed"])["r2"].rename("line")
    if line.empty:
        raise DataError(f"The store has no rows of '{LINE}'. Add [methods.{LINE}] to the experiment.")
    others = rows[rows["method"] != LINE].join(line, on=["task", "seed"], how="inner")
    is_beaten = ((others["r2"] < 0.0) & (others["line"] > 0.0)) | (others["r2"] < others["line"] - MARGIN)
    beaten = others[is_beaten].assign(behind=lambda found: found["line"] - found["r2"])
    beaten = beaten.sort_values("behind", ascending=False)[["method", "task", "seed", "r2", "line", "complexity"]]
    counts = (
        f"{method}: {int(is_beaten[own.index].sum())} of {len(own)} runs ({100.0 * is_beaten[own.index].mean():.1f} %)."
        for method, own in others.groupby("method")
    )
    names = {"task": "set", "seed": "split", "r2": "R²", "line": "least squares", "complexity": "nodes"}
    return BenchTable(
        f"Runs that least squares beats, {suite_title(suite)}, noise {noise:g}",
        beaten.rename(columns=names),
        {"R²": 3, "least squares": 3},
        (f"Test R² below 0 where least squares is above, or more than {MARGIN:g} below it, same split.", *counts),
    )


def _scored(frame: pd.DataFrame, noise: float) -> pd.DataFrame:
    rows = rows_at(frame, noise)
    if rows.empty:
        raise DataError("The store has no finished rows. Run the experiment first.")
    r2 = rows["r2_test"].astype(float).fillna(float("-inf"))
    return rows[["task", "method", "seed"]].assign(r2=r2, complexity=rows["complexity"].astype(float))
