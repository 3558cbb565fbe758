"""Does the smallest novelty of an equation say whether it is the law? Beside what needs no novelty."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.showing.tables import BenchTable, suite_title


def telling_table(frame: pd.DataFrame, suite: str) -> BenchTable:
    """How well each quantity ranks equations that are the law above others, for every noise of a store.

    Of equations with several terms, by all methods: one term alone always has the novelty 1.
    """
    nu: list[list[float]] = [json.loads(text) if isinstance(text, str) else [] for text in frame["novelties"]]
    found = frame.assign(nu=pd.Series(nu, index=frame.index, dtype=object))[[len(own) > 1 for own in nu]]
    if found.empty:
        raise DataError("The store has no equation of several terms with novelties. Run the experiment first.")
    rows = []
    for noise, part in found.groupby("noise"):
        is_law = part["exact_numeric"].fillna(0).to_numpy(dtype=float) == 1.0
        rows.append(
            {
                "noise": noise,
                "equations": len(part),
                "laws %": 100.0 * float(np.mean(is_law)),
                "smallest ν": area([min(nu) for nu in part["nu"]], is_law),
                "mean ν": area([float(np.mean(nu)) for nu in part["nu"]], is_law),
                "fewer terms": area([-len(nu) for nu in part["nu"]], is_law),
                "fewer nodes": area(-part["complexity"].to_numpy(dtype=float), is_law),
                "R² of training": area(part["r2_train"].fillna(-np.inf), is_law),
            }
        )
    table = pd.DataFrame(rows)
    decimals = dict.fromkeys(table.columns[3:], 3) | {"noise": 2, "laws %": 1}
    note = "Areas under the ROC curve: 0.5 says nothing, 1 tells every law from every other equation."
    return BenchTable(f"What tells a law from other equations, {suite_title(suite)}", table, decimals, (note,))


def area(values: FloatArray | list[float] | pd.Series, is_law: np.ndarray) -> float | None:
    """Chance that a law has a larger value than another equation, ties counted half; None where one kind is missing.

    >>> area([0.9, 0.5, 0.5, 0.1], np.array([True, True, False, False]))
    0.875
    """
    ranks = pd.Series(values, dtype=float).rank().to_numpy()
    n_laws, n_others = int(is_law.sum()), int((~is_law).sum())
    if not n_laws or not n_others:
        return None
    return float((ranks[is_law].sum() - n_laws * (n_laws + 1) / 2) / (n_laws * n_others))
