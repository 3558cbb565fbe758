"""Closures re-evaluated from the flow they produce: an option, because it need not converge.

The T1 part acts as eddy viscosity and is treated implicitly, ν_t (1 − α1 G1 / 2C_μ), not below a tenth of ν_t; the rest
is limited to ‖b‖ ≤ 1 and both are under-relaxed. k and ε stay those of the base flow. What is reported is the relative
change that a full, unrelaxed update would still make: when it is above the tolerance, the run says *not converged*.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import HILL_FLOW, BaseFlow, FlowConditions, squashed
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver, FlowResult, flow_tensors
from sobolev_novelty.lab.turbulence.solving.momentum import momentum_system
from sobolev_novelty.lab.turbulence.solving.newton import newton

#: 2 C_μ: the linear part of the stress is −2 C_μ k S.
LINEAR_COEFFICIENT = 0.18


class FeedbackSolver:
    """Flow and closure iterated against each other.

    ``relaxation``: share of a new stress that is taken in each outer step.
    ``limit``: largest Frobenius norm of the explicit part of b⊥.
    ``smallest_factor``: lower bound of the eddy viscosity's factor.
    ``max_steps``: outer steps.
    ``tolerance``: relative change of the stress at which the pair counts as converged.
    """

    name = "feedback"

    def __init__(
        self,
        base: BaseFlow,
        conditions: FlowConditions = HILL_FLOW,
        *,
        relaxation: float = 0.3,
        limit: float = 1.0,
        smallest_factor: float = 0.1,
        max_steps: int = 25,
        tolerance: float = 1e-3,
    ) -> None:
        if not 0 < relaxation <= 1:
            raise ParameterError(f"'relaxation' must lie in (0, 1]. Got {relaxation}.")
        self.base = base
        self.relaxation = relaxation
        self.limit = limit
        self.smallest_factor = smallest_factor
        self.max_steps = max_steps
        self.tolerance = tolerance
        self.inner = EmbeddedSolver(base, conditions)

    def update(self, closure: Closure, alpha: float, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Factor of ν_t (n_cells,) and explicit stress (n_cells, 3) of a closure at a velocity (n_cells, 2)."""
        inner = self.inner
        timescale = (self.base.k / self.base.epsilon).ravel()
        state = flow_tensors(U, timescale, inner.mesh, inner.operators)
        G = closure.coefficient_values(squashed(state.invariants))
        factor = np.maximum(1 - alpha * G[:, 0] / LINEAR_COEFFICIENT, self.smallest_factor)
        b = np.einsum("nk,nkij->nij", G[:, 1:], state.tensors[:, 1:])
        norm = np.linalg.norm(b, axis=(1, 2))
        b *= np.minimum(1.0, self.limit / np.maximum(norm, 1e-300))[:, None, None]
        return factor, inner.stress_of(b, alpha)

    def solve(self, closure: Closure | None = None, alpha: float = 1.0, on_progress: OnProgress = silent) -> FlowResult:
        """Mean flow in balance with its own closure stress; ``residual`` is the stress change left."""
        inner = self.inner
        if closure is None:
            return inner.solve(on_progress=on_progress)
        begin = time.perf_counter()
        n, nut = inner.mesh.n_cells, self.base.nut.ravel()
        state = inner.base_state()
        U = self.base.U.reshape(-1, 2)
        factor, stress = np.ones(n), np.zeros((n, 3))
        change, n_steps = np.inf, 0
        outcome = None
        for n_steps in range(1, self.max_steps + 1):
            new_factor, new_stress = self.update(closure, alpha, U)
            change = _relative_change(new_stress, stress, (new_factor - factor) * nut, nut)
            on_progress(Step(n_steps, self.max_steps, f"stress change {change:.1e}"))
            if outcome is not None and change < self.tolerance:
                break
            factor = factor + self.relaxation * (new_factor - factor)
            stress = stress + self.relaxation * (new_stress - stress)
            system = momentum_system(inner.mesh, inner.operators, inner.conditions, nut=factor * nut, U=U)
            source, velocity = system.stress_source(stress), inner.conditions.mean_velocity
            outcome = newton(system, state, source, velocity, tolerance=1e-5, max_steps=6)
            if not np.isfinite(outcome.residual) or outcome.residual > 1:
                break
            state = outcome.state
            U = state.w[: 2 * n].reshape(2, n).T
        assert outcome is not None
        result = inner.result(outcome, n_steps, time.perf_counter() - begin)
        converged = outcome.is_converged and change < self.tolerance
        return replace(result, residual=float(change), is_converged=converged, solver=self.name)


def _relative_change(new: FloatArray, old: FloatArray, viscosity_change: FloatArray, viscosity: FloatArray) -> float:
    stress = np.linalg.norm(new - old) / max(float(np.linalg.norm(new)), 1e-300)
    return float(max(stress, np.linalg.norm(viscosity_change) / np.linalg.norm(viscosity)))
