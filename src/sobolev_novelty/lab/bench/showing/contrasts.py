"""The comparisons that an experiment set out to make: one row per contrast and measure, with everything that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.problems.suites import WITH_NOISE
from sobolev_novelty.lab.bench.showing.bootstrap import paired_difference
from sobolev_novelty.lab.bench.showing.paper import paper_row
from sobolev_novelty.lab.bench.showing.tables import BenchTable, paired, rows_at, suite_title, task_scores

#: Column of ``tables.task_scores`` -> what it is called; the first three are the paper's.
MEASURES = {"r2": "R²", "complexity": "complexity", "novelty": "SN", "exact_numeric": "solved"}
#: Of suites whose terms are judged.
TERM_MEASURES = {"precision": "precision", "recall": "recall"}


def contrast_table(
    frame: pd.DataFrame, suite: str, contrasts: Sequence[Sequence[str]], *, noise: float = 0.0
) -> BenchTable:
    """Differences of means with bootstrap interval, sign-flip p and the number of tasks that differ.

    ``contrasts``: sequence of (str, str), labels of the methods, as the experiment's ``contrasts`` has them; those not
    yet run are left out.
    """
    if not contrasts:
        raise DataError("The store has no contrasts. Name them in the experiment: contrasts = [['plain', 'guided']].")
    runs = rows_at(frame, noise)
    pairs = {(before, after): _shared(runs, before, after) for before, after in contrasts}
    compared = {pair: task_scores(shared) for pair, shared in pairs.items() if len(shared)}
    rows = [
        row
        for (before, after), scores in compared.items()
        for position, measure in enumerate((*MEASURES, *TERM_MEASURES))
        if (row := _contrast(scores, before, after, measure, _paper(suite, before, after, position, noise)))
    ]
    if not rows:
        raise DataError("No contrast has rows for both of its methods yet. Run the experiment first.")
    notes = (
        "Means over tasks of the mean over seeds; differences are absolute. 'from' and 'to' bound the paired bootstrap "
        "interval over tasks (95 %, 10,000 resamples), p is that of the sign-flip test over tasks (two-sided, 10,000 "
        "flips), 'differ' counts the tasks on which the two differ. Clear: the interval and p < 0.05 exclude zero, "
        "and at least ten tasks differ.",
        f"Runs for each method and task: {_runs(compared)}.",
    )
    decimals = dict.fromkeys(("before", "after", "Δ", "from", "to", "paper Δ"), 4) | {"p": 4}
    at = "" if suite in WITH_NOISE else f", noise {noise:g}"
    return BenchTable(f"Contrasts, {suite_title(suite)}{at}", pd.DataFrame(rows), decimals, notes)


def _contrast(
    scores: pd.DataFrame, before: str, after: str, measure: str, paper: float | None
) -> dict[str, Any] | None:
    both = paired(scores, before, after, measure)
    if not len(both):
        return None
    d = paired_difference(*both.T)
    return {
        "contrast": f"{before} → {after}",
        "measure": (MEASURES | TERM_MEASURES)[measure],
        "before": both[:, 0].mean(),
        "after": both[:, 1].mean(),
        "Δ": d.value,
        "from": d.lower,
        "to": d.upper,
        "p": d.p,
        "tasks": d.n_tasks,
        "differ": d.n_differ,
        "clear": "yes" if d.is_clear else "no",
        "paper Δ": paper,
    }


def _paper(suite: str, before: str, after: str, position: int, noise: float) -> float | None:
    rows = [paper_row(suite, name) for name in (before, after)]
    if noise != 0.0 or rows[0] is None or rows[1] is None or position >= len(rows[0]):
        return None
    return rows[1][position] - rows[0][position]


def _shared(runs: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """The runs of two methods on the tasks and seeds that both have: another seed is another split."""
    both = [runs[runs["method"] == name] for name in (before, after)]
    keys = both[0][["task", "seed"]].merge(both[1][["task", "seed"]])
    return pd.concat([part.merge(keys) for part in both])


def _runs(compared: Mapping[tuple[str, str], pd.DataFrame]) -> str:
    """How many, said once where all contrasts rest on as many."""
    said = {}
    for (before, after), scores in compared.items():
        low, high = int(scores["runs"].min()), int(scores["runs"].max())
        said[f"{before} → {after}"] = str(low) if low == high else f"{low} to {high} (not finished)"
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{number} ({contrast})" for contrast, number in said.items())
