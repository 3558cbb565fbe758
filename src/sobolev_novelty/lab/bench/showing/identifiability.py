"""The table of the many-term suite: laws and terms found, for each method or each level of a factor of the design."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.problems.identifiability import IDENTIFIABILITY, cell_named
from sobolev_novelty.lab.bench.showing.tables import BenchTable, ordered_methods, term_scores_of

#: Factors by which a table can be split, and their names in the design.
FACTORS = {
    "condition": "condition", "noise": "noise", "rows": "n_rows", "terms": "n_terms", "inputs": "n_inputs",
    "setting": "setting", "shape": "shape",
}  # fmt: skip
#: Column -> what it is called; a run without an equation has found nothing.
_SHARES = {
    "precision": "precision %", "recall": "recall %", "precision_in_class": "precision in class %",
    "recall_in_class": "recall in class %",
}  # fmt: skip
_MEDIANS = {"coefficient_error": "coefficients off %", "far_error": "error outside"}


def many_term_table(frame: pd.DataFrame, suite: str, *, by: str | None = None) -> BenchTable:
    """Laws and terms found by every method; with a factor, a row for each of its levels."""
    if suite not in IDENTIFIABILITY:
        raise DataError(f"The store holds the suite '{suite}'. Name one that holds {' or '.join(IDENTIFIABILITY)}.")
    if by is not None and by not in FACTORS:
        raise ParameterError(f"'by' must be one of {', '.join(FACTORS)}. Got '{by}'.")
    if frame.empty:
        raise DataError("The store has no finished rows. Run the experiment first.")
    runs = _runs(frame, suite, by)
    levels = sorted(runs["level"].unique()) if by else [""]
    rows = [
        {"method": method, **({by: level} if by else {}), **_summary(part)}
        for level in levels
        for method in ordered_methods(runs["method"].unique())
        if len(part := runs[(runs["method"] == method) & (runs["level"] == level)])
    ]
    decimals = dict.fromkeys(("law %", *_SHARES.values(), "coefficients off %", "nodes", "seconds"), 1)
    notes = (
        "A law is found if its form is: with refitted constants it is the law and nothing in it vanishes. Precision "
        "and recall: shares of found terms that are true, and of true terms that were found, up to 5 % far beyond the "
        "data; in class: up to what the other terms can rebuild on rows like the data. Medians: relative error of the "
        "coefficients of the terms found; error in a box twice as wide, in spreads of the law.",
    )
    title = f"Many-term laws ({suite})"
    return BenchTable(title, pd.DataFrame(rows), decimals | {"error outside": 2, "noise": 2}, notes)


def _runs(frame: pd.DataFrame, suite: str, by: str | None) -> pd.DataFrame:
    """One row for each run, its scores beside the level of the factor."""
    scores = pd.DataFrame([term_scores_of(text) for text in frame["terms"]])
    runs = scores.reindex(columns=[*_SHARES, *_MEDIANS]).astype(float).set_index(frame.index)
    runs[list(_SHARES)] = runs[list(_SHARES)].fillna(0.0)
    runs["found"] = frame["exact_numeric"].astype(float).fillna(0.0)
    runs["nodes"], runs["seconds"] = frame["complexity"].astype(float), frame["wall_time"].astype(float)
    runs["method"], runs["task"] = frame["method"], frame["task"]
    factor = None if by is None else FACTORS[by]
    runs["level"] = [getattr(cell_named(suite, task), factor) if factor else "" for task in frame["task"]]
    return runs


def _summary(part: pd.DataFrame) -> dict[str, Any]:
    return {
        "laws": part["task"].nunique(),
        "law %": 100 * part["found"].mean(),
        **{name: 100 * part[column].mean() for column, name in _SHARES.items()},
        "coefficients off %": 100 * float(np.nanmedian(part["coefficient_error"]))
        if part["coefficient_error"].notna().any()
        else None,
        # What is not finite out there is further off than any other.
        "error outside": float(part["far_error"].fillna(np.inf).median()),
        "nodes": part["nodes"].mean(),
        "seconds": part["seconds"].mean(),
    }
