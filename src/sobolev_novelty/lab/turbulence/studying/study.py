"""Experiment files: run what is not stored yet, and return all rows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sobolev_novelty.core.progress import OnProgress, Step, part_of, silent
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.selection import rule_named
from sobolev_novelty.lab.turbulence.solving.checks import BASES, run_bases
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver
from sobolev_novelty.lab.turbulence.solving.problem import closure_report
from sobolev_novelty.lab.turbulence.solving.response import refine, response_data, response_path
from sobolev_novelty.lab.turbulence.solving.solvers import FlowSolver, make_solver
from sobolev_novelty.lab.turbulence.studying.comparison import run_comparison
from sobolev_novelty.lab.turbulence.studying.runs import StudyOutcome, reference_rows, run_closure
from sobolev_novelty.lab.turbulence.studying.store import Row, RunStore


def load_study(path: str | Path) -> dict[str, Any]:
    """An experiment file as a dictionary; a study without a name has that of its file."""
    file = Path(path)
    if not file.is_file():
        raise DataError(
            f"'{file}' does not exist. Give an experiment file, e.g. experiments/turbulence_comparison.toml."
        )
    try:
        return {"name": file.stem, **tomllib.loads(file.read_text(encoding="utf-8"))}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(
            f"'{file}' is not TOML in UTF-8: {error}. Correct that line, or save the file again."
        ) from error


def study_store(study: Mapping[str, Any], results: str | Path, *, read_only: bool = False) -> RunStore:
    """The store of a study in the folder of results."""
    return RunStore(Path(results) / f"{study['name']}.sqlite", read_only=read_only)


def run_study(
    experiment: str | Path,
    results: str | Path,
    *,
    solver: str = "embedded",
    with_grid: bool = True,
    only: Sequence[str] = (),
    on_progress: OnProgress = silent,
) -> StudyOutcome:
    """Run what is not stored yet and return all rows.

    ``experiment``: a TOML file with [tree_search] and [grid] (the comparison) or [stability] (the response selection).
    ``results``: folder; the runs go into ``<name>.sqlite``.
    ``solver``: {"embedded", "openfoam", "feedback"}, the embedded solver runs the study; the others run the closures it
    stored, as a cross-check.
    ``only``: names of the rows to cross-check; all by default. "kEpsilon" and "kOmegaSST" run the base models
    themselves.
    """
    study = load_study(experiment)
    store = study_store(study, results)
    engine = make_solver(solver, hill.load_base_flow())
    if solver != "embedded":
        return _cross_check(study, store, engine, only, on_progress)
    if "stability" in study:
        return _run_response(study, store, engine, on_progress)
    if "tree_search" not in study:
        raise DataError(
            f"'{experiment}' has neither [tree_search] nor [stability]. Start from experiments/turbulence_*.toml."
        )
    return run_comparison(study, store, engine, with_grid, on_progress)


def _cross_check(
    study: Mapping[str, Any], store: RunStore, engine: FlowSolver, only: Sequence[str], on_progress: OnProgress
) -> StudyOutcome:
    """Run the stored closures of a study in another solver, under keys that begin with its name."""
    bases = [name for name in only if name in BASES]
    if bases:
        run_bases(store, bases, on_progress)
        return StudyOutcome(study["name"], [(name, store.find(f"base/{name}") or {}) for name in bases], [])
    chosen = [row for row in store.rows() if row["key"].startswith("row/") and row.get("closure")]
    if only:
        chosen = [row for row in chosen if row["key"].removeprefix("row/") in only]
    if not chosen:
        raise DataError(f"'{store.path}' has no such closures yet. Run the study in the embedded solver first.")
    rows: list[tuple[str, Row]] = []
    for number, row in enumerate(chosen):
        name = row["key"].removeprefix("row/")
        found = run_closure(
            f"{engine.name}/{name}", Closure.from_dict(row["closure"]), row["alpha"], solver=engine, store=store,
            notes={}, on_progress=part_of(Step(number, len(chosen), f"{name} in {engine.name}"), on_progress),
        )  # fmt: skip
        rows += [(name, row), (f"{name}, {engine.name}", found)]
    return StudyOutcome(study["name"], rows, [])


def _run_response(
    study: Mapping[str, Any], store: RunStore, engine: FlowSolver, on_progress: OnProgress
) -> StudyOutcome:
    options, limits = study["selection"], study["stability"]
    rules = limits["rules"]
    if any(store.find(f"row/{rule}") is None for rule in rules):
        if not isinstance(engine, EmbeddedSolver):
            raise DataError("The response selection linearises the embedded solver. Run it there.")
        data = hill.load_regression()
        responses = response_data(engine, data, on_progress=on_progress)
        for number, name in enumerate(rules):
            on_progress(Step(number, len(rules), f"{name}: selecting on velocity changes"))
            path, problem = response_path(
                responses, data, rule_named(name, options["share"]), options["counts"], options["n_folds"]
            )
            place = path.choose(limits["max_condition"], limits["max_coefficient"])
            closure = problem.closure(path.indices[place], f"response-{name}")
            notes = {
                "n_terms": len(closure),
                "condition": path.value_condition[place],
                "max_coefficient": path.max_coefficient[place],
                "min_novelty": float(closure_report(closure, data).nu.min()),
                "path": {
                    "counts": path.counts,
                    "held_out": path.held_out.mean(axis=0).tolist(),
                    "condition": path.value_condition,
                    "max_coefficient": path.max_coefficient,
                },
            }
            if "refinement" in study:
                on_progress(Step(number, len(rules), f"{name}: refining coefficients in the solver"))
                closure, distances = refine(
                    engine,
                    closure,
                    responses.reference,
                    n_steps=study["refinement"]["n_steps"],
                    max_coefficient=limits["max_coefficient"],
                )
                notes["distances"] = distances
                notes["max_coefficient"] = max(abs(c) for c in closure.coefficients)
            run_closure(
                f"row/{name}", closure, options["alpha"], solver=engine, store=store, notes=notes,
                on_progress=part_of(Step(number, len(rules), f"{name}: solving"), on_progress),
            )  # fmt: skip
    rows = reference_rows(store, engine, on_progress)
    rows += [
        (f"{study['name'].removeprefix('turbulence_')}, {name}", found)
        for name in rules
        if (found := store.find(f"row/{name}")) is not None
    ]
    return StudyOutcome(study["name"], rows, [])
