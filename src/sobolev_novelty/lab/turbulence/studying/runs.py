"""One closure, run in one flow solver, measured and stored; and the reference rows of every study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.progress import OnProgress, Step, part_of, silent
from sobolev_novelty.lab.evidence.origin import without_folders
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import MeshVelocity
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver, FlowResult
from sobolev_novelty.lab.turbulence.solving.solvers import FlowSolver
from sobolev_novelty.lab.turbulence.studying.measures import measure
from sobolev_novelty.lab.turbulence.studying.store import Row, RunStore


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """Stored rows of a study and sentences about them."""

    name: str
    rows: list[tuple[str, Row]]
    sentences: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {"name": self.name, "rows": dict(self.rows), "sentences": self.sentences}


def run_closure(
    key: str, closure: Closure | None, alpha: float, *, solver: FlowSolver, store: RunStore, notes: Mapping[str, Any],
    on_progress: OnProgress = silent,
) -> Row:  # fmt: skip
    """Run one closure unless its key is stored already; failures are stored too."""
    stored = store.find(key)
    if stored is not None:
        return stored
    try:
        result = solver.solve(closure, alpha, on_progress)
    except (ArithmeticError, RuntimeError) as error:
        reason = without_folders(f"failed: {error}")
        return store.add(key, {"status": reason, "is_converged": False, "alpha": alpha, **notes})
    return store.add(key, flow_row(closure, alpha, result, solver, notes))


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
        "measures": found.to_dict(),
    }


def _dns_on(solver: FlowSolver) -> MeshVelocity | None:
    """DNS on the solver's mesh; ``None`` where it is missing or the mesh is another."""
    if not hill.has_dns():
        return None
    dns = hill.load_dns()
    return dns if dns.nodes.shape == solver.base.nodes.shape and np.allclose(dns.nodes, solver.base.nodes) else None


def reference_rows(store: RunStore, engine: FlowSolver, on_progress: OnProgress) -> list[tuple[str, Row]]:
    """DNS, both RANS models, the published closure and the exact target."""
    dns, base = hill.load_dns(mesh="xiao"), hill.load_base_flow()
    stored = {
        "DNS": (dns, dns, "DNS of Xiao et al., its own mesh"),
        "k-epsilon": (MeshVelocity(base.nodes, base.U), hill.load_dns(), "the frozen base flow"),
    }
    # Data prepared from the repositories alone lacks the file that neither of them holds.
    if hill.has("rans_sst_reference.npz"):
        stored["RANS"] = (hill.load_sst(mesh="xiao"), dns, "k-omega SST, OpenFOAM v1912, mesh of the DNS")
    for name, (field, reference, status) in stored.items():
        if store.find(f"row/{name}") is None:
            numbers = measure(field, reference).to_dict()
            store.add(f"row/{name}", {"measures": numbers, "status": status, "alpha": None})
    run_closure(
        "row/DSRRANS published", hill.load_published(), 0.7, solver=engine, store=store, notes={"n_terms": 12},
        on_progress=part_of(Step(0, 2, "published closure"), on_progress),
    )  # fmt: skip
    if store.find("row/exact target") is None and isinstance(engine, EmbeddedSolver):
        part = part_of(Step(1, 2, "exact target stress"), on_progress)
        data = hill.load_regression()
        target = engine.stress_of(data.target[data.structured_cell.ravel()], 1.0)
        result = engine.solve_stress(target, on_progress=part)
        store.add("row/exact target", flow_row(None, 1.0, result, engine, {}))
    names = ("DNS", "RANS", "k-epsilon", "DSRRANS published", "exact target")
    return [(name, found) for name in names if (found := store.find(f"row/{name}")) is not None]
