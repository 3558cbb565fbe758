"""The pre-registered comparison: which closures, by which rule, with which α1, and the grid around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.progress import OnProgress, Step, part_of
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import RegressionData
from sobolev_novelty.lab.turbulence.selecting.selection import (
    Rule,
    backward,
    cross_validate,
    forward,
    rule_named,
    select_closure,
    streamwise_folds,
)
from sobolev_novelty.lab.turbulence.selecting.tensors import design_matrix, dictionary, stacked_target
from sobolev_novelty.lab.turbulence.selecting.tree_search import TreeSearch, tree_search
from sobolev_novelty.lab.turbulence.solving.checks import run_pruning, run_speed
from sobolev_novelty.lab.turbulence.solving.problem import ClosureProblem, closure_problem, closure_report
from sobolev_novelty.lab.turbulence.solving.solvers import FlowSolver
from sobolev_novelty.lab.turbulence.studying.runs import StudyOutcome, reference_rows, run_closure
from sobolev_novelty.lab.turbulence.studying.store import Row, RunStore
from sobolev_novelty.search.contract.engine import SobolevGuidance

#: Rows of the paper's table that are closures, in its order.
CLOSURE_ROWS = ("DSRRANS", "SN-DSRRANS", "MCTS", "SN-MCTS")


@dataclass(frozen=True, slots=True)
class ChosenClosure:
    """A closure with how it was chosen."""

    row: str
    closure: Closure
    alpha: float
    notes: Mapping[str, Any]


def run_comparison(
    study: Mapping[str, Any], store: RunStore, engine: FlowSolver, with_grid: bool, on_progress: OnProgress
) -> StudyOutcome:
    """Run what the comparison still lacks: reference rows, the closures and, if wanted, the grid around them."""
    rows = reference_rows(store, engine, on_progress)
    missing = [row for row in CLOSURE_ROWS if store.find(f"row/{row}") is None]
    if missing:
        for chosen in choose_closures(study, on_progress):
            run_closure(
                f"row/{chosen.row}", chosen.closure, chosen.alpha, solver=engine, store=store, notes=chosen.notes,
                on_progress=part_of(_step(chosen.row, "solving"), on_progress),
            )  # fmt: skip
    rows += [(name, found) for name in CLOSURE_ROWS if (found := store.find(f"row/{name}")) is not None]
    sentences = []
    if with_grid:
        _run_grid(study, store, engine, on_progress)
        run_pruning(store, on_progress)
        run_speed(store, on_progress)
        sentences = grid_sentences(study, store)
    return StudyOutcome(study["name"], rows, sentences)


def _step(row: str, what: str) -> Step:
    return Step(CLOSURE_ROWS.index(row), len(CLOSURE_ROWS), f"{row}: {what}")


def choose_count(data: RegressionData, rule: Rule, study: Mapping[str, Any]) -> tuple[int, int | None, dict[str, Any]]:
    """Term count and pruning with the lowest cross-validated error; also all errors."""
    options = study["selection"]
    n_folds, top = study["folds"]["n_folds"], options["forward_to"]
    counts = list(options["counts"])
    below = [count for count in counts if count < top]
    straight = cross_validate(data, counts, rule, n_folds=n_folds).mean(axis=0)
    pruned = cross_validate(data, below, rule, n_folds=n_folds, forward_to=top).mean(axis=0)
    ways = [(float(e), n, 0) for e, n in zip(straight, counts)] + [(float(e), n, top) for e, n in zip(pruned, below)]
    error, count, start = min(ways)
    table = {
        "forward": dict(zip(map(str, counts), straight.tolist())),
        "pruned": dict(zip(map(str, below), pruned.tolist())),
    }
    return count, start or None, {"cv_error": error, "cv": table}


def shrinkage(data: RegressionData, closure: Closure, n_folds: int) -> float:
    """α1 from held-out predictions of the closure's terms, refitted without each fold; between 0 and 1."""
    above = below = 0.0
    for test in streamwise_folds(data, n_folds):
        train = np.setdiff1d(np.arange(len(data.target)), test)
        problem = closure_problem(data, closure.terms, samples=train)
        c = problem.fit(range(len(closure))).coefficients
        prediction = design_matrix(closure.terms, data.inputs[test], data.tensors[test]) @ c
        above += float(prediction @ stacked_target(data.target[test]))
        below += float(prediction @ prediction)
    return float(np.clip(above / below, 0.0, 1.0))


def choose_closures(study: Mapping[str, Any], on_progress: OnProgress) -> Iterator[ChosenClosure]:
    """The four closures of the comparison, chosen by the rules of the study."""
    data = hill.load_regression()
    terms = dictionary(study["selection"]["max_degree"])
    problem = closure_problem(data, terms)
    for row, name in (("DSRRANS", "greedy"), ("SN-DSRRANS", "sobolev")):
        on_progress(_step(row, "cross-validating term counts"))
        rule = rule_named(name, study["selection"]["share"])
        count, start, notes = choose_count(data, rule, study)
        closure, kept, _ = select_closure(problem, count, rule, forward_to=start)
        yield _chosen(row, closure, kept, problem=problem, data=data, study=study, notes={**notes, "forward_to": start})
    options = dict(study["tree_search"])
    seeds = options.pop("seeds")
    for row, guidance in (("MCTS", None), ("SN-MCTS", SobolevGuidance())):
        results = []
        for seed in seeds:
            part = part_of(_step(row, f"tree search, seed {seed}"), on_progress)
            search = TreeSearch(guidance=guidance, **options)
            results.append((seed, tree_search(problem, search, np.random.default_rng(seed), part)))
        seed, best = max(results, key=lambda pair: pair[1].best.guided)
        notes = {"seed": seed, "scores": [result.best.guided for _, result in results]}
        yield _chosen(row, best.closure, best.indices, problem=problem, data=data, study=study, notes=notes)


def _chosen(
    row: str,
    closure: Closure,
    kept: Sequence[int],
    *,
    problem: ClosureProblem,
    data: RegressionData,
    study: Mapping[str, Any],
    notes: Mapping[str, Any],
) -> ChosenClosure:
    fit = problem.fit(kept)
    facts = {
        **notes,
        "n_terms": len(closure),
        "mse": fit.mse,
        "condition": fit.condition,
        "max_coefficient": float(np.abs(fit.coefficients).max()),
        "min_novelty": float(closure_report(closure, data).nu.min()),
    }
    alpha = shrinkage(data, closure, study["folds"]["n_folds"])
    return ChosenClosure(row, Closure(closure.terms, closure.coefficients, row), alpha, facts)


def grid_cells(study: Mapping[str, Any]) -> Iterator[tuple[str, str, int, int | None, float]]:
    """Keys and options of the grid: key, rule, term count, terms before pruning, α1."""
    grid = study["grid"]
    ways = [(count, None) for count in grid["counts"]] + [(last, first) for first, last in grid["pruned"]]
    for count, start in ways:
        for alpha in grid["alphas"]:
            for rule in ("greedy", "sobolev"):
                pruned = f"{start}-pruned-to-" if start else ""
                yield f"grid/{rule}/{pruned}{count}/alpha={alpha:g}", rule, count, start, float(alpha)


def _run_grid(study: Mapping[str, Any], store: RunStore, engine: FlowSolver, on_progress: OnProgress) -> None:
    cells = [cell for cell in grid_cells(study) if store.find(cell[0]) is None]
    if not cells:
        return
    problem = closure_problem(hill.load_regression())
    share = study["selection"]["share"]
    longest = max(start or count for _, _, count, start, _ in cells)
    paths = {name: forward(problem, longest, rule_named(name, share)).indices for name in ("greedy", "sobolev")}
    for number, (key, rule, count, start, alpha) in enumerate(cells):
        part = part_of(Step(number, len(cells), key), on_progress)
        kept = backward(problem, paths[rule][:start], count) if start else paths[rule][:count]
        fit = problem.fit(kept)
        notes = {"mse": fit.mse, "condition": fit.condition, "n_terms": count}
        closure = problem.closure(kept, key)
        run_closure(key, closure, alpha, solver=engine, store=store, notes=notes, on_progress=part)


def grid_sentences(study: Mapping[str, Any], store: RunStore) -> list[str]:
    """How often the guided closure is closer to DNS than the greedy one, over all cells of the grid."""
    counts = grid_wins(study, store)
    n_pairs = counts.pop("pairs")
    return [
        f"{name}: the guided closure is closer to DNS in {wins} of {n_pairs} pairs." for name, wins in counts.items()
    ]


def grid_wins(study: Mapping[str, Any], store: RunStore) -> dict[str, int]:
    """Pairs of the grid, and for each measure how many of them the guided closure wins."""
    dns = store.find("row/DNS")
    assert dns is not None
    wins = {"reattachment": 0, "reattachment_interpolated": 0, "max_reversed": 0, "field_error": 0, "pairs": 0}
    for key, rule, *_ in grid_cells(study):
        if rule != "greedy":
            continue
        plain, guided = store.find(key), store.find(key.replace("/greedy/", "/sobolev/"))
        if plain is None or guided is None:
            continue
        wins["pairs"] += 1
        for name in ("reattachment", "reattachment_interpolated", "max_reversed", "field_error"):
            wins[name] += _distance(guided, dns, name) < _distance(plain, dns, name)
    return wins


def _distance(row: Row, dns: Row, name: str) -> float:
    value = (row.get("measures") or {}).get(name)
    return np.inf if value is None else abs(value - dns["measures"][name])
