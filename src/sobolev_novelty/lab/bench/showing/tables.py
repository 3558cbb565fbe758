"""Tables of the paper from the rows of a store, with the paper's numbers beside ours.

A run without a model, or with a test R² below zero, counts as R² = 0; its complexity and novelty do not exist and are
left out of those means. Means are over tasks, of the mean over seeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, shortened
from sobolev_novelty.lab.bench.problems.suites import SUITES, suite_tasks
from sobolev_novelty.lab.bench.showing.bootstrap import Difference, paired_difference
from sobolev_novelty.lab.bench.showing.paper import paper_name, paper_row
from sobolev_novelty.search.contract.registry import engine_names

#: Label of a guided variant: its backbone's, and this.
GUIDED = "+novelty"


@dataclass(frozen=True, slots=True, eq=False)
class BenchTable:
    """A table of results."""

    title: str
    frame: pd.DataFrame  # numbers, unrounded
    decimals: dict[str, int]  # column -> digits after the point
    notes: tuple[str, ...] = ()

    def render(self) -> str:
        """The table as Markdown."""
        heads = [str(column) for column in self.frame.columns]
        lines = [f"**{self.title}**", "", f"| {' | '.join(heads)} |"]
        lines.append(f"|{'|'.join(['---', *['---:'] * (len(heads) - 1)])}|")
        for row in self.frame.to_dict("records"):
            lines.append(f"| {' | '.join(self._cell(column, value) for column, value in row.items())} |")
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes]) + "\n"

    def _cell(self, column: Any, value: Any) -> str:
        if value is None or value is pd.NA or (isinstance(value, float) and not np.isfinite(value)):
            return "–"
        if isinstance(value, bool | str):
            return str(value)
        digits = self.decimals.get(str(column))
        return f"{int(value)}" if digits is None and float(value).is_integer() else f"{value:.{digits or 0}f}"


def task_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per (method, task): means over seeds of R² (at least 0), complexity, novelty, and more.

    Columns: ``r2, complexity, novelty, terms, qualified, nmse, sn_calls, wall_time, exact_numeric, exact_symbolic,
    precision, recall, failures, runs``. ``terms`` and ``qualified`` count those of multi-term expressions, as the paper
    does.
    """
    if frame.empty:
        raise DataError("The store has no finished rows. Run the experiment first.")
    runs = pd.DataFrame(
        {
            "method": frame["method"],
            "task": frame["task"],
            "r2": frame["r2_test"].astype(float).fillna(0.0).clip(lower=0.0),
            # What is worse than predicting the mean counts as predicting it, as for R².
            "nmse": 1.0 - frame["r2_test"].astype(float).fillna(0.0).clip(lower=0.0),
            "complexity": frame["complexity"].astype(float),
            "novelty": [_mean_novelty(text) for text in frame["novelties"]],
            "terms": [_term_counts(text)[0] for text in frame["novelties"]],
            "qualified": [_term_counts(text)[1] for text in frame["novelties"]],
            "sn_calls": frame["sn_calls"].astype(float),
            "wall_time": frame["wall_time"].astype(float),
            "exact_numeric": frame["exact_numeric"].astype(float).fillna(0.0),
            "precision": [_of_terms(text, "precision") for text in _terms_column(frame)],
            "recall": [_of_terms(text, "recall") for text in _terms_column(frame)],
            "exact_symbolic": frame["exact_symbolic"].astype(float).fillna(0.0),
            "failures": frame["r2_test"].isna().astype(int),
            "runs": 1,
        }
    )
    groups = runs.groupby(["method", "task"], sort=True)
    means = groups.mean()
    means[["failures", "runs"]] = groups[["failures", "runs"]].sum()
    return means.reset_index()


def rows_at(frame: pd.DataFrame, noise: float) -> pd.DataFrame:
    """The rows of one noise level."""
    rows = frame[frame["noise"] == noise]
    if rows.empty and len(frame):
        levels = ", ".join(f"{level:g}" for level in sorted(frame["noise"].unique()))
        raise DataError(f"The store has no rows with noise {noise:g}. It has: {levels}.")
    return rows


@contextmanager
def _undamaged(column: str, text: Any) -> Iterator[None]:
    """What a column holds as JSON may be anything: stores come from others."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError):
        raise DataError(f"The store is damaged: '{column}' holds {shortened(text, 40)}. Name another store.") from None


def _numbers(text: Any) -> list[float]:
    """The numbers of a column that holds them as JSON."""
    with _undamaged("novelties", text):
        values = json.loads(text) if isinstance(text, str) else []
        return [float(value) for value in values]


def term_scores_of(text: Any) -> dict[str, float]:
    """The scores of the terms that a run found; nothing where they were not judged."""
    with _undamaged("terms", text):
        stored = json.loads(text) if isinstance(text, str) else {}
        return {str(name): float("nan") if value is None else float(value) for name, value in stored.items()}


def _terms_column(frame: pd.DataFrame) -> list[Any]:
    """What is stored of the terms of each run; in older stores nothing."""
    return list(frame["terms"]) if "terms" in frame else [None] * len(frame)


def _of_terms(text: Any, name: str) -> float:
    """One of the scores of the terms that a run found; ``nan`` where they were not judged."""
    return term_scores_of(text).get(name, float("nan"))


def _mean_novelty(text: Any) -> float:
    values = _numbers(text)
    return float(np.mean(values)) if values else float("nan")


def _term_counts(text: Any) -> tuple[int, int]:
    """Terms, and terms above the threshold, of a multi-term expression; zeros for others."""
    values = _numbers(text)
    return (len(values), sum(value > TAU_ID for value in values)) if len(values) > 1 else (0, 0)


def results_table(frame: pd.DataFrame, suite: str, *, noise: float = 0.0) -> BenchTable:
    """Mean R², complexity and novelty of every method (the paper's white-box and black-box tables)."""
    scores = task_scores(rows_at(frame, noise))
    rows = []
    for method in ordered_methods(scores["method"].unique()):
        part = scores[scores["method"] == method]
        paper = (paper_row(suite, method) if noise == 0.0 else None) or (None, None, None)  # the paper adds no noise
        row: dict[str, Any] = {
            "method": method,
            "tasks": len(part),
            "R²": part["r2"].mean(),
            "complexity": part["complexity"].mean(),
            "SN": part["novelty"].mean(),
            "qualified %": 100 * part["qualified"].sum() / part["terms"].sum() if part["terms"].any() else None,
            "seconds": part["wall_time"].mean(),
            "failed runs": int(part["failures"].sum()),
        }
        if suite != "blackbox":
            row["solved %"] = 100 * part["exact_numeric"].mean()
            row["solved % (SymPy)"] = 100 * part["exact_symbolic"].mean()
        row |= {"paper": paper_name(method) if paper[0] is not None else None}
        row |= {"paper R²": paper[0], "paper complexity": paper[1], "paper SN": paper[2]}
        rows.append(row)
    decimals = {"R²": 4, "complexity": 2, "SN": 4, "qualified %": 1, "seconds": 1, "solved %": 1, "solved % (SymPy)": 1}
    decimals |= {"paper R²": 4, "paper complexity": 2, "paper SN": 4}
    title = f"{suite_title(suite)}, noise {noise:g}"
    truth = " (ground truth: 92.6 %)" if suite == "whitebox" else ""
    notes = (
        "R² is the mean over tasks of max(0, R²) on the test part; runs without a model count as 0. "
        f"Qualified: share of the terms of multi-term expressions with ν > 1/√10{truth}.",
        *_tasks_left_out(set(scores["task"]), suite),
    )
    table = pd.DataFrame(rows)
    unknown = [name for name in table if str(name).startswith("paper") and table[name].isna().all()]
    return BenchTable(title, table.drop(columns=unknown), decimals, notes)


def _tasks_left_out(ran: set[str], suite: str) -> list[str]:
    """Which tasks of a suite have no row, in one sentence; nothing where none is left out."""
    try:
        tasks = suite_tasks(suite) if suite in SUITES else ()
    except DataError:  # stored rows are shown without the suite's data as well
        return []
    missing = [task for task in tasks if task not in ran]
    if not missing:
        return []
    names = f" (all but {', '.join(missing)})" if len(missing) <= 10 else ""
    return [f"{len(tasks) - len(missing)} of the {len(tasks)} tasks of the suite were run{names}."]


def suite_title(suite: str) -> str:
    """What a suite is called above a table or figure.

    >>> suite_title("whitebox"), suite_title("formulas/textbook.toml")
    ('White-box tasks', 'Formulas from textbook.toml')
    """
    known = {
        "whitebox": "White-box tasks",
        "blackbox": "Black-box tasks",
        "fastsrb": "FastSRB",
        "lsr_synth": "LSR-Synth",
        "identifiability": "Many-term laws",
        "identifiability_held": "Many-term laws, held out",
    }
    return known.get(suite, f"Formulas from {suite.rpartition('/')[2]}")


def ordered_methods(methods: Iterable[str]) -> list[str]:
    """By name, each guided variant after its backbone."""
    return sorted(methods, key=lambda name: (name.replace(GUIDED, "").lower(), GUIDED in name, name))


def guided_pairs(methods: Iterable[str]) -> list[tuple[str, str]]:
    """Backbones and their guided variants, where both are there."""
    names = set(methods)
    return [
        (name.replace(GUIDED, ""), name)
        for name in sorted(names)
        if GUIDED in name and name.replace(GUIDED, "") in names
    ]


def compared_pairs(methods: Iterable[str]) -> list[tuple[str, str]]:
    """Every backbone with its guided variant, then every other method with each guided variant.

    >>> compared_pairs(["genetic", "genetic+novelty", "linear"])
    [('genetic', 'genetic+novelty'), ('linear', 'genetic+novelty')]
    """
    pairs = guided_pairs(methods)
    others = sorted(set(methods) - {name for pair in pairs for name in pair})
    return pairs + [(other, guided) for _, guided in pairs for other in others if GUIDED not in other]


_MEASURES = {"r2": "R²", "complexity": "complexity", "novelty": "SN"}


def paired(scores: pd.DataFrame, before: str, after: str, measure: str) -> FloatArray:
    """A measure of two methods on the tasks where both have it, shape (n_tasks, 2)."""
    both = [scores[scores["method"] == name].set_index("task")[measure] for name in (before, after)]
    return pd.concat(both, axis=1, join="inner").dropna().to_numpy(dtype=float)


def differences(scores: pd.DataFrame, base: str, guided: str) -> dict[str, Difference]:
    """Relative change of each mean from backbone to guided variant, over the tasks where both have a value."""
    columns = {measure: paired(scores, base, guided, measure) for measure in _MEASURES}
    return {name: paired_difference(*both.T, relative=True) for name, both in columns.items() if len(both)}


def difference_table(frame: pd.DataFrame, suite: str, *, noise: float = 0.0) -> BenchTable:
    """Δ % from every backbone, and from every other method, to guided variants, with paired bootstrap intervals."""
    scores = task_scores(rows_at(frame, noise))
    rows = []
    for base, guided in compared_pairs(scores["method"].unique()):
        ours = differences(scores, base, guided)
        theirs = [paper_row(suite, name) if noise == 0.0 else None for name in (base, guided)]
        for position, (measure, label) in enumerate(_MEASURES.items()):
            if measure not in ours:
                continue
            paper = None
            if theirs[0] is not None and theirs[1] is not None:
                paper = 100 * (theirs[1][position] / theirs[0][position] - 1)
            d = ours[measure]
            rows.append(
                {
                    "pair": f"{base} → {guided}",
                    "measure": label,
                    "Δ %": 100 * d.value,
                    "from": 100 * d.lower,
                    "to": 100 * d.upper,
                    "clear": "yes" if d.is_clear else "no",
                    "tasks": d.n_tasks,
                    "paper Δ %": paper,
                }
            )
    columns = ["pair", "measure", "Δ %", "from", "to", "clear", "tasks", "paper Δ %"]
    decimals = dict.fromkeys(("Δ %", "from", "to", "paper Δ %"), 2)
    notes = ("'from' and 'to' bound the paired bootstrap interval over tasks (95 %, 10,000 resamples).",)
    return BenchTable(
        f"Differences, {suite_title(suite)}, noise {noise:g}", pd.DataFrame(rows, columns=columns), decimals, notes
    )


def ablation_table(frame: pd.DataFrame) -> BenchTable:
    """Mean test NMSE and novelty evaluations per run of every guided method (Appendix F).

    A method labelled ``<guided>, <what is left out>`` is compared with ``<guided>`` on the tasks both have.
    """
    scores = task_scores(frame)
    rows = []
    notes = ["NMSE is 1 - max(0, R²). 'from' and 'to' bound the paired bootstrap interval of the change (95 %)."]
    for method in ordered_methods(name for name in scores["method"].unique() if GUIDED in name):
        part = scores[scores["method"] == method].set_index("task")
        paper = paper_row("ablation", method) or (None, None)
        both = paired(scores, method.partition(",")[0], method, "nmse")
        row: dict[str, Any] = {
            "method": method,
            "tasks": len(part),
            "NMSE": part["nmse"].mean(),
            "SN calls": part["sn_calls"].mean(),
        }
        row |= dict.fromkeys(("Δ NMSE", "from", "to"))
        if "," in method and len(both):
            d = paired_difference(*both.T)
            row |= {"Δ NMSE": d.value, "from": d.lower, "to": d.upper}
            notes += _calls_within_a_budget(frame, method.partition(",")[0], method)
        rows.append({**row, "paper NMSE": paper[0], "paper SN calls": paper[1]})
    columns = ["method", "tasks", "NMSE", "SN calls", "Δ NMSE", "from", "to", "paper NMSE", "paper SN calls"]
    decimals = {"NMSE": 4, "SN calls": 1, "Δ NMSE": 4, "from": 4, "to": 4, "paper NMSE": 4, "paper SN calls": 1}
    table = pd.DataFrame(rows, columns=columns)
    return BenchTable("First derivatives in the signature, equal time", table, decimals, tuple(notes))


def _calls_within_a_budget(frame: pd.DataFrame, full: str, ablated: str) -> list[str]:
    """SN calls of the full method beside those without derivatives, where neither run ended early."""
    spent = frame[frame["extra"].fillna("").astype(str).str.contains("is spent")]
    calls = spent.pivot_table("sn_calls", ["task", "seed", "noise"], "method", aggfunc="sum")
    if not {full, ablated} <= set(calls.columns):
        return []
    both = calls[[full, ablated]].dropna()
    if not both[ablated].sum() > 0.0:
        return []
    share = 100.0 * both[full].sum() / both[ablated].sum()
    own, other = paper_row("ablation", full), paper_row("ablation", ablated)
    paper = f" (paper: {100.0 * own[1] / other[1]:.1f} %)" if own and other else ""
    return [
        f"{full}: {share:.1f} % of the SN calls of '{ablated}'{paper}, where both used up their budget "
        f"(runs of each: {len(both)})."
    ]


def _one_rate_for_each_method_of_others(gap: pd.DataFrame) -> dict[str, float]:
    """Rates by method; what stands in brackets behind its name tells runs apart, not methods."""
    ours = {name for engine in engine_names() for name in (engine, f"{engine}{GUIDED}")}
    rates = {}
    for row in gap.sort_values("terms").to_dict("records"):
        if row["method"] not in {*ours, "Ground Truth"} and row["terms"]:
            rates[str(row["method"]).partition("(")[0]] = float(row["rate"])
    return rates


def qualification_table(
    gap: pd.DataFrame, *, coordinates: str = "own", suite: str = "whitebox", min_r2: float = 0.8
) -> BenchTable:
    """Term qualification of the ground truth and every method (the paper's Sec. 4.1 table, of the white-box tasks)."""
    rates = _one_rate_for_each_method_of_others(gap)
    decimals = {"rate": 1, "mean_novelty": 4, "complexity": 1, "paper_rate": 1}
    is_paper = suite == "whitebox"
    where = "the coordinates each method used" if coordinates == "own" else "raw variables"
    if not is_paper:
        where += ", black-box tables"
        gap = gap.drop(columns=[name for name in gap.columns if name.startswith("paper_")])
    notes = [f"Candidates with a test R² below {min_r2:g} are counted and not judged."]
    if rates:
        mean = float(np.mean(list(rates.values())))
        notes += [
            f"Mean rate over {len(rates)} methods of others (unweighted, our engines left out, of several runs of one "
            f"method that with most terms): {mean:.1f} %."
        ]
    notes += ["Paper: 38.3 % over 15 methods."] if is_paper else []
    notes += ["Every candidate is in exactly one of the outcome columns or in multi_term."]
    return BenchTable(f"Term qualification in {where}", gap, decimals, tuple(notes))
