"""Checks around the comparison, stored like its runs: pruning from other starts, base models in OpenFOAM, speed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from sobolev_novelty.core.progress import OnProgress, Step, part_of
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.data import HILL_FLOW, FlowConditions, MeshVelocity
from sobolev_novelty.lab.turbulence.selecting.selection import Greedy, SobolevGuided, backward, forward
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver
from sobolev_novelty.lab.turbulence.solving.foam_case import FoamCase
from sobolev_novelty.lab.turbulence.solving.newton import Factorisation, nested_dissection
from sobolev_novelty.lab.turbulence.solving.openfoam import run_case
from sobolev_novelty.lab.turbulence.solving.problem import closure_problem
from sobolev_novelty.lab.turbulence.studying.measures import measure
from sobolev_novelty.lab.turbulence.studying.store import RunStore

STARTS, COUNTS = (16, 20, 24, 30), (8, 10, 12)
#: Base models, with their mesh and what holds the flow there; on its own mesh the DNS has this volume-mean velocity.
BASES: Mapping[str, tuple[str, FlowConditions]] = {
    "kEpsilon": ("rans", HILL_FLOW),
    "kOmegaSST": ("xiao", FlowConditions(mean_velocity=0.020188, forced_zone="volume")),
}


def run_pruning(store: RunStore, on_progress: OnProgress) -> None:
    """Condition number and error after pruning, from several starts: is a gain more than one lucky start?"""
    if store.find("pruning") is not None:
        return
    on_progress(Step(0, 1, "pruning from several starts"))
    problem = closure_problem(hill.load_regression())
    cells = []
    for rule in (Greedy(), SobolevGuided()):
        path = forward(problem, max(STARTS), rule).indices
        for start in STARTS:
            for count in COUNTS:
                fit = problem.fit(backward(problem, path[:start], count))
                largest = float(np.abs(fit.coefficients).max())
                cells.append([rule.name, start, count, fit.mse, fit.condition, largest])
    store.add("pruning", {"columns": ["rule", "start", "count", "mse", "condition", "max_coefficient"], "cells": cells})


def run_bases(store: RunStore, models: Sequence[str], on_progress: OnProgress) -> None:
    """Base models from a uniform start in generated cases: k–ε on the RANS mesh, k–ω SST on that of the DNS."""
    for number, model in enumerate(models):
        key = f"base/{model}"
        if store.find(key) is not None:
            continue
        part = part_of(Step(number, len(models), f"{model} in OpenFOAM"), on_progress)
        mesh, conditions = BASES[model]
        dns = hill.load_dns(mesh=mesh)
        result = run_case(FoamCase(dns.nodes, model, conditions, n_iterations=10_000, tolerance=1e-6), part)
        found = measure(MeshVelocity(dns.nodes, result.U), dns).to_dict()
        store.add(key, {"measures": found, "status": result.status, "seconds": round(result.seconds, 1)})


def run_speed(store: RunStore, on_progress: OnProgress) -> None:
    """CPU seconds of a selection, of a factorisation in two orderings and of a closure."""
    if store.find("speed") is not None:
        return
    on_progress(Step(0, 1, "speed"))
    data, base = hill.load_regression(), hill.load_base_flow()
    seconds = {}
    begin = time.process_time()
    forward(closure_problem(data), 30, SobolevGuided())
    seconds["select 30 terms"] = time.process_time() - begin
    solver = EmbeddedSolver(base)
    state = solver.base_state()
    matrix = solver.system.jacobian(solver.system.linearise(state.w, state.force, np.zeros((2, solver.mesh.n_cells))))
    begin = time.process_time()
    Factorisation(matrix, nested_dissection(solver.mesh.shape))
    seconds["LU, nested dissection"] = time.process_time() - begin
    # One pressure is held fixed, as in Factorisation: the plain matrix is singular.
    pinned = sp.csr_array(([1.0], ([matrix.shape[0] - 1], [matrix.shape[0] - 1])), shape=matrix.shape)
    scale = 1.0 / abs(matrix).max(axis=1).toarray().ravel()
    begin = time.process_time()
    sla.splu(sp.csc_array(sp.diags_array(scale) @ matrix + pinned), permc_spec="COLAMD")
    seconds["LU, COLAMD"] = time.process_time() - begin
    begin = time.process_time()
    solver.solve(hill.load_published(), 0.7)
    seconds["one closure"] = time.process_time() - begin
    store.add("speed", {"cpu_seconds": {name: round(value, 2) for name, value in seconds.items()}})
