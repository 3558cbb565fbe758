"""The pre-registered comparison: which closures, by which rule, run where, stored how."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.errors import DataError
from sobolev_novelty.report import NoveltyReport, novelty_of_arrays
from sobolev_novelty.search.engine import SobolevGuidance
from sobolev_novelty.turbulence import data as hill
from sobolev_novelty.turbulence.closures import Closure
from sobolev_novelty.turbulence.data import MeshVelocity, RegressionData
from sobolev_novelty.turbulence.flow import FlowResult
from sobolev_novelty.turbulence.measures import measure
from sobolev_novelty.turbulence.problem import ClosureProblem, closure_problem
from sobolev_novelty.turbulence.selection import (
    Greedy,
    NoveltyFloor,
    Rule,
    SobolevGuided,
    cross_validate,
    select_closure,
    streamwise_folds,
)
from sobolev_novelty.turbulence.solvers import FlowSolver
from sobolev_novelty.turbulence.store import RunStore
from sobolev_novelty.turbulence.tensors import design_matrix, dictionary, stacked_target, term_arrays
from sobolev_novelty.turbulence.tree_search import TreeSearch, tree_search

Say = Callable[[str], None]

#: Rows of the paper's table that are closures, in its order.
CLOSURE_ROWS = ("DSRRANS", "SN-DSRRANS", "MCTS", "SN-MCTS")


@dataclass(frozen=True, slots=True)
class ChosenClosure:
    """A closure with how it was chosen."""

    row: str
    closure: Closure
    alpha: float
    notes: Mapping[str, Any]


def load_study(path: str | Path) -> dict[str, Any]:
    """An experiment file as a dictionary."""
    file = Path(path)
    if not file.is_file():
        raise DataError(
            f"'{file}' does not exist. Give an experiment file, e.g. experiments/turbulence_comparison.toml."
        )
    try:
        return tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"'{file}' is not TOML: {error}.") from error


def rule_of(name: str, share: float = 0.94) -> Rule:
    """The selection rule with a name: "greedy", "sobolev" or "threshold"."""
    rules: dict[str, Rule] = {"greedy": Greedy(), "sobolev": SobolevGuided(share), "threshold": NoveltyFloor()}
    if name not in rules:
        raise DataError(f"'rule' must be one of {', '.join(rules)}. Got {name!r}.")
    return rules[name]


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


def choose_closures(study: Mapping[str, Any], say: Say) -> Iterator[ChosenClosure]:
    """The four closures of the comparison, chosen by the rules of the study."""
    data = hill.load_regression()
    terms = dictionary(study["selection"]["max_degree"])
    problem = closure_problem(data, terms)
    for row, name in (("DSRRANS", "greedy"), ("SN-DSRRANS", "sobolev")):
        say(f"{row}: cross-validating term counts")
        rule = rule_of(name, study["selection"]["share"])
        count, start, notes = choose_count(data, rule, study)
        closure, kept, _ = select_closure(problem, count, rule, forward_to=start)
        yield _chosen(row, closure, kept, problem=problem, data=data, study=study, notes={**notes, "forward_to": start})
    options = dict(study["tree_search"])
    seeds = options.pop("seeds")
    for row, guidance in (("MCTS", None), ("SN-MCTS", SobolevGuidance())):
        results = []
        for seed in seeds:
            say(f"{row}: tree search, seed {seed}")
            search = TreeSearch(guidance=guidance, **options)
            results.append((seed, tree_search(problem, search, np.random.default_rng(seed))))
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


def closure_report(closure: Closure, data: RegressionData) -> NoveltyReport:
    """Sobolev Novelty of every term of a closure against all its other terms, as tensors."""
    values, derivatives = term_arrays(closure.terms, data.inputs, data.tensors)
    return novelty_of_arrays(
        values, derivatives, coefficients=closure.coefficients, labels=[str(term) for term in closure.terms]
    )


def run_closure(
    key: str, closure: Closure | None, alpha: float, *, solver: FlowSolver, store: RunStore, notes: Mapping[str, Any]
) -> tuple[dict[str, Any], FlowResult | None]:
    """Run one closure unless its key is stored already; failures are stored too."""
    stored = store.find(key)
    if stored is not None:
        return stored, None
    try:
        result = solver.solve(closure, alpha)
    except (ArithmeticError, RuntimeError) as error:
        row = store.add(key, {"status": f"failed: {error}", "is_converged": False, "alpha": alpha, **notes})
        return row, None
    return store.add(key, flow_row(closure, alpha, result, solver, notes)), result


def flow_row(
    closure: Closure | None, alpha: float, result: FlowResult, solver: FlowSolver, notes: Mapping[str, Any]
) -> dict[str, Any]:
    """What is stored of a run."""
    found = measure(MeshVelocity(solver.base.nodes, result.U), _dns_on(solver))
    return {
        **notes,
        "solver": result.solver,
        "alpha": alpha,
        "closure": None if closure is None else closure.to_dict(),
        "status": result.status,
        "is_converged": result.is_converged,
        "residual": result.residual,
        "seconds": round(result.seconds, 2),
        "measures": asdict(found),
    }


def _dns_on(solver: FlowSolver) -> MeshVelocity | None:
    dns = hill.load_dns()
    return dns if dns.nodes.shape == solver.base.nodes.shape and np.allclose(dns.nodes, solver.base.nodes) else None


def grid_cells(study: Mapping[str, Any]) -> Iterator[tuple[str, str, int, int | None, float]]:
    """Keys and options of the grid: key, rule, term count, terms before pruning, α1."""
    grid = study["grid"]
    ways = [(count, None) for count in grid["counts"]] + [(last, first) for first, last in grid["pruned"]]
    for count, start in ways:
        for alpha in grid["alphas"]:
            for rule in ("greedy", "sobolev"):
                pruned = f"{start}-pruned-to-" if start else ""
                yield f"grid/{rule}/{pruned}{count}/alpha={alpha:g}", rule, count, start, float(alpha)
