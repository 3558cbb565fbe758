"""Running an experiment file: rows of the table, the grid, and what they say, all from stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.errors import DataError
from sobolev_novelty.turbulence import data as hill
from sobolev_novelty.turbulence.checks import run_bases, run_pruning, run_speed
from sobolev_novelty.turbulence.closures import Closure
from sobolev_novelty.turbulence.data import MeshVelocity
from sobolev_novelty.turbulence.flow import EmbeddedSolver
from sobolev_novelty.turbulence.measures import measure
from sobolev_novelty.turbulence.problem import closure_problem
from sobolev_novelty.turbulence.response import refine, response_data, response_path
from sobolev_novelty.turbulence.selection import backward, forward
from sobolev_novelty.turbulence.solvers import FlowSolver, make_solver
from sobolev_novelty.turbulence.store import RunStore
from sobolev_novelty.turbulence.study import (
    CLOSURE_ROWS,
    Say,
    choose_closures,
    closure_report,
    flow_row,
    grid_cells,
    load_study,
    rule_of,
    run_closure,
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Stored rows of a study and sentences about them."""

    name: str
    rows: list[tuple[str, Row]]
    sentences: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {"name": self.name, "rows": dict(self.rows), "sentences": self.sentences}


def run_study(
    experiment: str | Path,
    results: str | Path,
    *,
    solver: str = "embedded",
    with_grid: bool = True,
    only: Sequence[str] = (),
    say: Say,
) -> Outcome:
    """Run what is not stored yet and return all rows.

    Parameters
    ----------
    experiment : path
        A TOML file with [tree_search] and [grid] (the comparison) or [stability] (the response selection).
    results : path
        Folder; the runs go into ``<name>.jsonl``.
    solver : {"embedded", "openfoam", "feedback"}
        The embedded solver runs the study; the others run the closures it stored, as a cross-check.
    only : sequence of str
        Names of the rows to cross-check; all without it. "kEpsilon" and "kOmegaSST" run the base models themselves.
    """
    study = load_study(experiment)
    store = RunStore(Path(results) / f"{study.get('name', Path(experiment).stem)}.jsonl")
    engine = make_solver(solver, hill.load_base_flow(), say)
    if solver != "embedded":
        return _cross_check(study, store, engine, only, say)
    if "stability" in study:
        return _run_response(study, store, engine, say)
    if "tree_search" not in study:
        raise DataError(
            f"'{experiment}' has neither [tree_search] nor [stability]. Start from experiments/turbulence_*.toml."
        )
    return _run_comparison(study, store, engine, with_grid, say)


def _cross_check(
    study: Mapping[str, Any], store: RunStore, engine: FlowSolver, only: Sequence[str], say: Say
) -> Outcome:
    """Run the stored closures of a study in another solver, under keys that begin with its name."""
    bases = [name for name in only if name in ("kEpsilon", "kOmegaSST")]
    if bases:
        run_bases(store, bases, say)
        return Outcome(study["name"], [(name, store.find(f"base/{name}") or {}) for name in bases], [])
    chosen = [row for row in store.rows() if row["key"].startswith("row/") and row.get("closure")]
    if only:
        chosen = [row for row in chosen if row["key"].removeprefix("row/") in only]
    if not chosen:
        raise DataError(f"'{store.path}' holds no such closures yet. Run the study with --solver embedded first.")
    rows: list[tuple[str, Row]] = []
    for row in chosen:
        name = row["key"].removeprefix("row/")
        say(f"{name} in {engine.name}")
        key = f"{engine.name}/{name}"
        found, _ = run_closure(key, stored_closure(row), row["alpha"], solver=engine, store=store, notes={})
        rows += [(name, row), (f"{name}, {engine.name}", found)]
    return Outcome(study["name"], rows, [])


def _run_comparison(
    study: Mapping[str, Any], store: RunStore, engine: FlowSolver, with_grid: bool, say: Say
) -> Outcome:
    rows = reference_rows(store, engine, say)
    missing = [row for row in CLOSURE_ROWS if store.find(f"row/{row}") is None]
    if missing:
        for chosen in choose_closures(study, say):
            say(f"{chosen.row}: solving")
            run_closure(
                f"row/{chosen.row}", chosen.closure, chosen.alpha, solver=engine, store=store, notes=dict(chosen.notes)
            )
    rows += [(name, found) for name in CLOSURE_ROWS if (found := store.find(f"row/{name}")) is not None]
    sentences = []
    if with_grid:
        _run_grid(study, store, engine, say)
        run_pruning(store, say)
        run_speed(store, say)
        sentences = grid_sentences(study, store)
    return Outcome(study["name"], rows, sentences)


def reference_rows(store: RunStore, engine: FlowSolver, say: Say) -> list[tuple[str, Row]]:
    """DNS, both RANS models, the published closure and the exact target."""
    dns, base = hill.load_dns(mesh="xiao"), hill.load_base_flow()
    stored = {
        "DNS": (dns, dns, "DNS of Xiao et al., its own mesh"),
        "k-epsilon": (MeshVelocity(base.nodes, base.U), hill.load_dns(), "the frozen base flow"),
    }
    # Data prepared from the repositories alone lacks the two files that neither of them holds.
    if hill.has("rans_sst_reference.npz"):
        stored["RANS"] = (hill.load_sst(mesh="xiao"), dns, "k-omega SST, OpenFOAM v1912, mesh of the DNS")
    for name, (field, reference, status) in stored.items():
        if store.find(f"row/{name}") is None:
            numbers = measure(field, reference).to_dict()
            store.add(f"row/{name}", {"measures": numbers, "status": status, "alpha": None})
    if hill.has("closures_published.json"):
        say("published closure")
        published = hill.load_published()
        run_closure("row/DSRRANS published", published, 0.7, solver=engine, store=store, notes={"n_terms": 12})
    if store.find("row/exact target") is None and isinstance(engine, EmbeddedSolver):
        say("exact target stress")
        data = hill.load_regression()
        result = engine.solve_stress(engine.stress_of(data.target[data.structured_cell.ravel()], 1.0))
        store.add("row/exact target", flow_row(None, 1.0, result, engine, {}))
    names = ("DNS", "RANS", "k-epsilon", "DSRRANS published", "exact target")
    return [(name, found) for name in names if (found := store.find(f"row/{name}")) is not None]


def _run_grid(study: Mapping[str, Any], store: RunStore, engine: FlowSolver, say: Say) -> None:
    cells = [cell for cell in grid_cells(study) if store.find(cell[0]) is None]
    if not cells:
        return
    problem = closure_problem(hill.load_regression())
    share = study["selection"]["share"]
    longest = max(start or count for _, _, count, start, _ in cells)
    paths = {name: forward(problem, longest, rule_of(name, share)).indices for name in ("greedy", "sobolev")}
    for number, (key, rule, count, start, alpha) in enumerate(cells, start=1):
        say(f"grid {number} of {len(cells)}: {key}")
        kept = backward(problem, paths[rule][:start], count) if start else paths[rule][:count]
        fit = problem.fit(kept)
        notes = {"mse": fit.mse, "condition": fit.condition, "n_terms": count}
        run_closure(key, problem.closure(kept, key), alpha, solver=engine, store=store, notes=notes)


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


def _run_response(study: Mapping[str, Any], store: RunStore, engine: FlowSolver, say: Say) -> Outcome:
    options, limits = study["selection"], study["stability"]
    rules = limits["rules"]
    if any(store.find(f"row/{rule}") is None for rule in rules):
        if not isinstance(engine, EmbeddedSolver):
            raise DataError("The response selection linearises the embedded solver. Use --solver embedded.")
        data = hill.load_regression()
        responses = response_data(engine, data, report=lambda done, total: say(f"velocity responses {done} of {total}"))
        for name in rules:
            say(f"{name}: selecting on velocity changes")
            path, problem = response_path(
                responses, data, rule_of(name, options["share"]), options["counts"], options["n_folds"]
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
                say(f"{name}: refining coefficients in the solver")
                closure, distances = refine(
                    engine,
                    closure,
                    responses.reference,
                    n_steps=study["refinement"]["n_steps"],
                    max_coefficient=limits["max_coefficient"],
                )
                notes["distances"] = distances
                notes["max_coefficient"] = max(abs(c) for c in closure.coefficients)
            say(f"{name}: solving")
            run_closure(f"row/{name}", closure, options["alpha"], solver=engine, store=store, notes=notes)
    rows = reference_rows(store, engine, say)
    rows += [
        (f"{study['name'].removeprefix('turbulence_')}, {name}", found)
        for name in rules
        if (found := store.find(f"row/{name}")) is not None
    ]
    return Outcome(study["name"], rows, [])


def stored_closure(row: Row) -> Closure | None:
    """The closure of a stored run."""
    return None if row.get("closure") is None else Closure.from_dict(row["closure"])
