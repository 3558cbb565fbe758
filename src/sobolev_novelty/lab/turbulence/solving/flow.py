"""The embedded flow solver: a base flow and a frozen closure in, a velocity field out; NumPy and SciPy only.

k, ε and ν_t stay those of the base flow; the closure is evaluated once from the base flow's gradients, as DSRRANS does,
and its stress a = α1·k·b⊥ then drives a new mean flow.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.progress import OnProgress, Progress, Step, silent
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import HILL_FLOW, BaseFlow, FlowConditions, squashed
from sobolev_novelty.lab.turbulence.solving.mesh import Mesh, Operators, build_mesh, build_operators, velocity_gradient
from sobolev_novelty.lab.turbulence.solving.momentum import momentum_system
from sobolev_novelty.lab.turbulence.solving.newton import NewtonOutcome, State, newton

#: The smallest load step that is tried before a run is given up.
SMALLEST_LOAD = 1 / 32


@dataclass(frozen=True, slots=True)
class FlowResult:
    """A computed mean flow."""

    U: FloatArray  # shape (n_rows, n_columns, 2)
    p: FloatArray  # shape (n_rows, n_columns)
    force: float  # driving force of the crest column, m/s²
    residual: float  # last residual, relative to the driving force
    n_steps: int  # Newton steps or solver iterations
    seconds: float
    is_converged: bool
    solver: str = "embedded"

    @property
    def status(self) -> str:
        """A sentence for a person."""
        if self.is_converged:
            return f"converged in {self.n_steps} steps, residual {self.residual:.1e}"
        return f"not converged after {self.n_steps} steps, residual {self.residual:.1e}"


@dataclass(frozen=True, slots=True)
class FlowTensors:
    """Invariants and bases of a flow, cells in structured order."""

    invariants: FloatArray  # shape (n_cells, 2)
    tensors: FloatArray  # shape (n_cells, 3, 3, 3)


def flow_tensors(U: FloatArray, timescale: FloatArray, mesh: Mesh, operators: Operators) -> FlowTensors:
    """The invariants tr S², tr R² and the tensors T1, T2, T3 of a velocity field (Appendix D.5.1).

    ``U``: shape (n_cells, 2).
    ``timescale``: shape (n_cells,), k/ε.
    """
    gradient = np.zeros((len(U), 3, 3))
    gradient[:, :2, :2] = velocity_gradient(U, mesh, operators)
    half = 0.5 * timescale[:, None, None]
    transposed = gradient.transpose(0, 2, 1)
    S, R = half * (gradient + transposed), half * (gradient - transposed)
    S2 = S @ S
    invariants = np.stack([np.trace(S2, axis1=1, axis2=2), np.einsum("nij,nji->n", R, R)], axis=1)
    T3 = S2 - np.eye(3) * invariants[:, 0, None, None] / 3
    return FlowTensors(invariants, np.stack([S, S @ R - R @ S, T3], axis=1))


class EmbeddedSolver:
    """Frozen-closure flow solver on one base flow; its matrices are built once and serve every closure.

    Parameters
    ----------
    base : BaseFlow
    conditions : FlowConditions
    """

    name = "embedded"

    def __init__(self, base: BaseFlow, conditions: FlowConditions = HILL_FLOW) -> None:
        self.base = base
        self.conditions = conditions
        self.mesh = build_mesh(base.nodes)
        self.operators = build_operators(self.mesh)
        U = base.U.reshape(-1, 2)
        self.system = momentum_system(self.mesh, self.operators, conditions, nut=base.nut.ravel(), U=U)
        self.base_tensors = flow_tensors(U, (base.k / base.epsilon).ravel(), self.mesh, self.operators)

    def stress(self, closure: Closure, alpha: float) -> FloatArray:
        """Stress a = α1·k·b⊥ of a closure at the base flow, shape (n_cells, 3): components 11, 12, 22."""
        b = closure.evaluate(squashed(self.base_tensors.invariants), self.base_tensors.tensors)
        return self.stress_of(b, alpha)

    def stress_of(self, b: FloatArray, alpha: float) -> FloatArray:
        """Stress a = α1·k·b⊥ of given corrections, shape (n_cells, 3, 3), cells in structured order."""
        return alpha * self.base.k.ravel()[:, None] * np.stack([b[:, 0, 0], b[:, 0, 1], b[:, 1, 1]], axis=1)

    def base_state(self) -> State:
        """The base flow as a start; its driving force is read from the momentum balance."""
        w = np.concatenate([self.base.U[..., 0].ravel(), self.base.U[..., 1].ravel(), self.base.p.ravel()])
        nothing = np.zeros((2, self.mesh.n_cells))
        balance = self.system.linearise(w, 0.0, nothing).residual[: self.mesh.n_cells]
        forcing = self.system.forcing
        return State(w, float(balance @ forcing / (forcing @ forcing)))

    def solve(self, closure: Closure | None = None, alpha: float = 1.0, on_progress: OnProgress = silent) -> FlowResult:
        """Mean flow under a closure; without one, the base model's own flow in this discretisation."""
        stress = np.zeros((self.mesh.n_cells, 3)) if closure is None else self.stress(closure, alpha)
        return self.solve_stress(stress, on_progress=on_progress)

    def solve_stress(
        self, stress: FloatArray, *, tolerance: float = 1e-8, on_progress: OnProgress = silent
    ) -> FlowResult:
        """Mean flow under a frozen stress (n_cells, 3), by load steps that shrink where Newton's method fails."""
        begin = time.perf_counter()
        source = self.system.stress_source(stress)
        state, load, step = self.base_state(), 0.0, 1.0
        n_steps = 0
        while True:
            target = min(1.0, load + step)
            outcome = self._newton(state, target, source, tolerance if target == 1.0 else 1e-4, on_progress)
            n_steps += outcome.n_steps
            if outcome.is_converged:
                state, load = outcome.state, target
                if load == 1.0:
                    return self.result(outcome, n_steps, time.perf_counter() - begin)
            else:
                step *= 0.5
                if step < SMALLEST_LOAD:
                    return self.result(outcome, n_steps, time.perf_counter() - begin)

    def _newton(
        self, state: State, load: float, source: FloatArray, tolerance: float, on_progress: OnProgress
    ) -> NewtonOutcome:
        def tell(step: Progress) -> None:
            on_progress(Step(step.done, step.total, f"load {load:g}, {step.note}"))

        velocity = self.conditions.mean_velocity
        return newton(self.system, state, load * source, velocity, tolerance=tolerance, on_progress=tell)

    def result(self, outcome: NewtonOutcome, n_steps: int, seconds: float) -> FlowResult:
        """Fields of a Newton outcome in the mesh's shape."""
        u, v, p = (part.reshape(self.mesh.shape) for part in np.split(outcome.state.w, 3))
        return FlowResult(
            U=np.stack([u, v], axis=-1),
            p=p,
            force=outcome.state.force,
            residual=outcome.residual,
            n_steps=n_steps,
            seconds=seconds,
            is_converged=outcome.is_converged,
        )
