"""Figures of a study from its stored runs; fields that are not kept are computed again from the stored closures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.core.output import write_arrays, write_figure
from sobolev_novelty.core.progress import OnProgress, Step, part_of, silent
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import MeshVelocity
from sobolev_novelty.lab.turbulence.selecting.selection import forward, rule_named
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver
from sobolev_novelty.lab.turbulence.solving.problem import closure_problem
from sobolev_novelty.lab.turbulence.studying import figures
from sobolev_novelty.lab.turbulence.studying.comparison import CLOSURE_ROWS
from sobolev_novelty.lab.turbulence.studying.store import RunStore
from sobolev_novelty.lab.turbulence.studying.study import load_study, study_store

KINDS = ("fields", "streamlines", "profiles", "wall-shear", "selection")


def draw_study(kind: str, experiment: Path, results: Path, out: Path, on_progress: OnProgress = silent) -> list[Path]:
    """Draw one kind of figure, or all, as PNG.

    Returns the files written.
    """
    if kind not in (*KINDS, "all"):
        raise ParameterError(f"'kind' must be one of {', '.join(KINDS)} or all. Got {kind!r}.")
    study = load_study(experiment)
    store = study_store(study, results, read_only=True)
    out.mkdir(parents=True, exist_ok=True)
    wanted = KINDS if kind == "all" else (kind,)
    fields = rows_as_fields(study, store, results / "fields", on_progress) if set(wanted) - {"selection"} else {}
    written = []
    for number, name in enumerate(wanted):
        on_progress(Step(number, len(wanted), f"drawing {name}"))
        path = out / f"{study['name']}_{name}.png"
        write_figure(path, _figure(name, study, store, fields))
        written.append(path)
    return written


def _figure(kind: str, study: Mapping[str, Any], store: RunStore, fields: Mapping[str, MeshVelocity]) -> Any:
    if kind == "fields":
        return figures.velocity_fields(fields)
    if kind == "streamlines":
        marks = {}
        for name in fields:
            found = (store.find(f"row/{name}") or {}).get("measures") or {}
            marks[name] = found.get("reattachment_interpolated")
        return figures.streamlines(fields, marks)
    if kind == "profiles":
        return figures.velocity_profiles(fields)
    if kind == "wall-shear":
        return figures.wall_shear_curves(fields)
    problem = closure_problem(hill.load_regression())
    paths = [forward(problem, 30, rule_named(name)) for name in ("greedy", "sobolev")]
    held_out = {}
    for name, row_name in (("greedy", "DSRRANS"), ("sobolev", "SN-DSRRANS")):
        row = store.find(f"row/{row_name}")
        if row is not None and "cv" in row:
            held_out[name] = {int(count): error for count, error in row["cv"]["forward"].items()}
    return figures.selection_curves(paths, held_out)


def rows_as_fields(
    study: Mapping[str, Any], store: RunStore, cache: Path, on_progress: OnProgress
) -> dict[str, MeshVelocity]:
    """Velocity of every row of a study, DNS and RANS first; closures are solved again unless their field is kept."""
    closures = list(CLOSURE_ROWS) if "tree_search" in study else list(study["stability"]["rules"])
    missing = [name for name in closures if store.find(f"row/{name}") is None]
    if missing:
        raise DataError(f"No stored run for {', '.join(missing)}. Run the study first: sobolev turbulence compare")
    fields = {"DNS": hill.load_dns(mesh="xiao"), "RANS": hill.load_sst(mesh="xiao")}
    solver: EmbeddedSolver | None = None
    cache.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(closures):
        row = store.find(f"row/{name}")
        assert row is not None
        path = cache / f"{study['name']}_{name}_{row['created'].replace(':', '')}.npz"
        if not path.is_file():
            part = part_of(Step(number, len(closures), f"{name}: solving again"), on_progress)
            solver = EmbeddedSolver(hill.load_base_flow()) if solver is None else solver
            result = solver.solve(Closure.from_dict(row["closure"]), row["alpha"], part)
            write_arrays(path, {"U": result.U})
        with np.load(path) as kept:
            fields[name] = MeshVelocity(hill.load_base_flow().nodes, kept["U"])
    return fields
