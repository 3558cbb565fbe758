r"""Selection by the velocity a term causes, instead of the stress it fits.

Notation
--------
J : Jacobian of the mean-flow equations at a reference flow
A : ndarray of shape (2 · n_cells, n_terms)
    Velocity change of each term, :math:`-J^{-1}\nabla\cdot(k\,\phi T)`, at constant mean velocity, weighted by √volume.
b : ndarray of shape (2 · n_cells,)
    The same for the target stress.

One factorisation of J serves all columns. The reference flow is the one the *target stress* produces, so no velocity
measurement enters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.linear.projection import factor
from sobolev_novelty.core.progress import OnProgress, silent, tracked
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import RegressionData, squashed
from sobolev_novelty.lab.turbulence.selecting.selection import Rule, forward
from sobolev_novelty.lab.turbulence.selecting.tensors import TensorTerm, dictionary, monomials
from sobolev_novelty.lab.turbulence.solving.flow import EmbeddedSolver, FlowResult
from sobolev_novelty.lab.turbulence.solving.newton import Factorisation, nested_dissection
from sobolev_novelty.lab.turbulence.solving.problem import ClosureProblem, closure_problem


@dataclass(frozen=True, slots=True)
class ResponseData:
    """Velocity changes of all candidate terms and of the target."""

    terms: tuple[TensorTerm, ...]
    A: FloatArray  # shape (n_rows, n_columns, 2, n_terms)
    b: FloatArray  # shape (n_rows, n_columns, 2)
    reference: FlowResult  # the flow of the target stress


def response_data(
    solver: EmbeddedSolver,
    data: RegressionData,
    terms: Sequence[TensorTerm] | None = None,
    on_progress: OnProgress = silent,
) -> ResponseData:
    """Linear velocity responses at the flow that the target stress produces."""
    candidates = tuple(dictionary() if terms is None else terms)
    stress = solver.stress_of(data.target[data.structured_cell.ravel()], 1.0)
    reference = solver.solve_stress(stress)
    respond = linear_response(solver, reference, stress)
    A = term_responses(solver, candidates, respond, on_progress)
    rows, columns = solver.mesh.shape
    by_cell = np.moveaxis(A.reshape(2, rows, columns, len(candidates)), 0, 2)
    b = np.moveaxis(respond(stress).reshape(2, rows, columns), 0, 2)
    return ResponseData(candidates, by_cell, b, reference)


def linear_response(solver: EmbeddedSolver, flow: FlowResult, stress: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A function from stress (n_cells, 3) to weighted velocity change (2 · n_cells,), linear about a flow."""
    system, n = solver.system, solver.mesh.n_cells
    w = np.concatenate([flow.U[..., 0].ravel(), flow.U[..., 1].ravel(), flow.p.ravel()])
    lu = Factorisation(
        system.jacobian(system.linearise(w, flow.force, system.stress_source(stress))),
        nested_dissection(solver.mesh.shape),
    )
    driven = lu.solve(np.concatenate([system.forcing, np.zeros(2 * n)]))[: 2 * n]
    mean, weight = system.mean_row, velocity_weight(solver)

    def response(a: FloatArray) -> FloatArray:
        source = system.stress_source(a)
        change = lu.solve(-np.concatenate([source[0], source[1], np.zeros(n)]))[: 2 * n]
        # The driving force adapts so that the mean velocity stays.
        change = change - driven * (mean @ change[:n]) / (mean @ driven[:n])
        return np.asarray(weight * change)

    return response


def velocity_weight(solver: EmbeddedSolver) -> FloatArray:
    """√volume of each velocity component, so that squares sum to volume integrals."""
    return np.sqrt(np.tile(solver.mesh.volumes, 2))


def term_responses(
    solver: EmbeddedSolver,
    terms: Sequence[TensorTerm],
    respond: Callable[[FloatArray], FloatArray],
    on_progress: OnProgress = silent,
) -> FloatArray:
    """Velocity change of each term at unit coefficient, shape (2 · n_cells, n_terms)."""
    T = solver.base_tensors.tensors
    phi = monomials(terms, squashed(solver.base_tensors.invariants))[0]
    A = np.empty((2 * solver.mesh.n_cells, len(terms)))
    for index, term in enumerate(tracked(terms, on_progress, "velocity responses")):
        A[:, index] = respond(solver.stress_of(phi[:, index, None, None] * T[:, term.channel], 1.0))
    return A


def refine(
    solver: EmbeddedSolver, closure: Closure, target: FlowResult, *, n_steps: int, max_coefficient: float
) -> tuple[Closure, list[float]]:
    """Gauss–Newton on a closure's coefficients until the solver's velocity meets a target flow's.

    ``target``: the flow to meet: that of the target stress, not a measurement.
    ``max_coefficient``: bound of every coefficient in every step.

    Returns the coefficients with the smallest distance seen,
    and distance to the target flow before each step and at the end, relative to the target's norm.
    """
    from scipy.optimize import lsq_linear

    weight = velocity_weight(solver)
    goal = weight * np.moveaxis(target.U, 2, 0).ravel()
    current, distances, seen = closure, [], []
    for step in range(n_steps + 1):
        stress = solver.stress(current, 1.0)
        flow = solver.solve_stress(stress)
        gap = goal - weight * np.moveaxis(flow.U, 2, 0).ravel()
        distances.append(float(np.linalg.norm(gap) / np.linalg.norm(goal)) if flow.is_converged else np.inf)
        seen.append(current)
        if step == n_steps or not flow.is_converged:
            break
        A = term_responses(solver, current.terms, linear_response(solver, flow, stress))
        c = np.array(current.coefficients)
        change = lsq_linear(A, gap, (-max_coefficient - c - 1e-12, max_coefficient - c + 1e-12)).x
        current = Closure(closure.terms, tuple(float(v) for v in c + change), closure.name)
    return seen[int(np.argmin(distances))], distances


def response_problem(
    responses: ResponseData, data: RegressionData, columns: npt.NDArray[np.intp] | None = None
) -> ClosureProblem:
    """The regression of velocity changes, with the signatures of the terms themselves.

    ``columns``: mesh columns to use, for cross-validation.
    """
    used = slice(None) if columns is None else columns
    A = responses.A[:, used].reshape(-1, len(responses.terms))
    b = responses.b[:, used].ravel()
    triangle = factor(np.column_stack([A, b]))
    plain = closure_problem(data, responses.terms)
    return replace(plain, R=triangle[:, :-1], z=triangle[:, -1], n_rows=len(b), variance=float(b.var()))


@dataclass(frozen=True, slots=True)
class ResponsePath:
    """A forward path on velocity changes, judged per term count.

    ``value_condition``, ``max_coefficient``: of the terms' value matrix, and of the fitted coefficients.
    """

    counts: tuple[int, ...]
    indices: tuple[list[int], ...]  # dictionary positions of the model of each count
    #: shape (n_folds, n_counts): squared error of held-out velocity changes, relative to their squared norm.
    held_out: FloatArray
    value_condition: tuple[float, ...]
    max_coefficient: tuple[float, ...]

    def choose(self, max_condition: float, max_coefficient: float) -> int:
        """Position of the count with the lowest held-out error among those that keep both limits."""
        allowed = [
            i
            for i in range(len(self.counts))
            if self.value_condition[i] < max_condition and self.max_coefficient[i] <= max_coefficient
        ]
        if not allowed:
            raise ParameterError(
                f"No term count keeps condition < {max_condition:g} and |c| <= {max_coefficient:g}. Allow fewer terms."
            )
        mean = self.held_out.mean(axis=0)
        return min(allowed, key=lambda i: (mean[i], self.counts[i]))


def response_path(
    responses: ResponseData, data: RegressionData, rule: Rule, counts: Sequence[int], n_folds: int
) -> tuple[ResponsePath, ClosureProblem]:
    """Forward selection on velocity changes, cross-validated over blocks of mesh columns."""
    full = response_problem(responses, data)
    values = closure_problem(data, responses.terms)
    path = forward(full, max(counts), rule).indices
    chosen = tuple(path[:count] for count in counts)
    n_columns = responses.A.shape[1]
    held_out = np.empty((n_folds, len(counts)))
    for fold, test in enumerate(np.array_split(np.arange(n_columns), n_folds)):
        problem = response_problem(responses, data, np.setdiff1d(np.arange(n_columns), test))
        fold_path = forward(problem, max(counts), rule).indices
        A, b = responses.A[:, test].reshape(-1, len(responses.terms)), responses.b[:, test].ravel()
        for position, count in enumerate(counts):
            kept = fold_path[:count]
            error = b - A[:, kept] @ problem.fit(kept).coefficients
            held_out[fold, position] = error @ error / (b @ b)
    return (
        ResponsePath(
            tuple(counts),
            chosen,
            held_out,
            tuple(values.fit(kept).condition for kept in chosen),
            tuple(float(np.abs(full.fit(kept).coefficients).max()) for kept in chosen),
        ),
        full,
    )
