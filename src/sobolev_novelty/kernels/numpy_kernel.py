r"""The NumPy kernel: the definition of every kernel function, and the stand-in where nothing can be compiled.

Notation
--------
``X``      inputs, shape (d, N): one contiguous row per feature
``theta``  inner constants of a form, ``b`` its linear coefficients, ``Phi`` the terms' values, shape (N, m)
``D``      derivative of the prediction along each free constant at fixed ``b``, shape (N, q)

Derivatives are forward mode: each node carries its value and a sparse map from direction to derivative, so a
direction that a subtree does not contain costs nothing and contributes no ``nan``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from sobolev_novelty.core.geometry import n_derivative_rows, second_order_pairs
from sobolev_novelty.core.operators import BY_OPCODE, OPERATORS, Operator
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.program import (
    CONSTANT,
    FIRST_VARIABLE,
    IntArray,
    OffsetArray,
    Programs,
    with_constants,
)

#: The second derivative of operators that have none.
_FLAT = OPERATORS["add"].second[0]
Array = np.ndarray[Any, np.dtype[np.float64]]
First = dict[int, Any]
Second = dict[tuple[int, int], Any]


class FitStatus(IntEnum):
    """How a fit ended.

    Singular: some terms are linearly dependent on the sample, and their coefficients are zero. Non-finite: the form has
    no finite value at some sample, or no finite fit.
    """

    CONVERGED = 0
    MAX_ITERATIONS = 1
    SINGULAR = 2
    NON_FINITE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """Fitted candidates."""

    coefficients: FloatArray  # shape (n_programs,): linear coefficient of each term program
    constants: FloatArray  # shape (total_constants,): constants of the programs after the fit
    loss: FloatArray  # shape (n_candidates,): weighted sum of squared residuals; ``inf`` where the fit is not finite
    status: IntArray  # int32, shape (n_candidates,): :class:`FitStatus` values


def derivatives(programs: Programs, X: FloatArray, order: int = 0, *, n_threads: int = 1) -> FloatArray:
    """Values and input derivatives of every program at every sample.

    Returns shape (n_programs, n_derivative_rows(d, order), N): row 0 holds the values, rows 1 to d the gradient, then
    the second derivatives of ``second_order_pairs(d)``.
    """
    d, n_samples = X.shape
    out = np.zeros((programs.n_programs, n_derivative_rows(d, order), n_samples), dtype=X.dtype)
    pairs = second_order_pairs(d) if order >= 2 else []
    with np.errstate(all="ignore"):
        for i in range(programs.n_programs):
            value, first, second = _propagate(*_program(programs, i), X, order=order, along_constants=False)
            out[i, 0] = value
            for j, derivative in first.items():
                out[i, 1 + j] = derivative
            for row, pair in enumerate(pairs):
                if pair in second:
                    out[i, 1 + d + row] = second[pair]
    return out


def jacobians(programs: Programs, X: FloatArray, *, n_threads: int = 1) -> tuple[FloatArray, FloatArray]:
    """Values (n_programs, N), and derivatives along every constant (total_constants, N)."""
    values = np.zeros((programs.n_programs, X.shape[1]))
    jacobian = np.zeros((len(programs.constants), X.shape[1]))
    with np.errstate(all="ignore"):
        for i in range(programs.n_programs):
            values[i], first, _ = _propagate(*_program(programs, i), X, order=1, along_constants=True)
            start = programs.constant_offsets[i]
            for k, derivative in first.items():
                jacobian[start + k] = derivative
    return values, jacobian


def _program(programs: Programs, i: int) -> tuple[IntArray, FloatArray]:
    code = programs.codes[programs.offsets[i] : programs.offsets[i + 1]]
    return code, programs.constants[programs.constant_offsets[i] : programs.constant_offsets[i + 1]]


def _propagate(
    code: IntArray, constants: FloatArray, X: FloatArray, *, order: int, along_constants: bool
) -> tuple[Any, First, Second]:
    """Value and derivatives of one program, along the inputs or along its constants."""
    stack: list[tuple[Any, First, Second]] = []
    next_constant = len(constants)
    for token in reversed(code.tolist()):
        if token == CONSTANT:
            next_constant -= 1
            seed = {next_constant: 1.0} if along_constants else {}
            stack.append((np.float64(constants[next_constant]), seed if order else {}, {}))
        elif token >= FIRST_VARIABLE:
            column = token - FIRST_VARIABLE
            seed = {} if along_constants else {column: 1.0}
            stack.append((X[column], seed if order else {}, {}))
        else:
            op = BY_OPCODE[token]
            operands = [stack.pop() for _ in range(op.arity)]
            stack.append(_apply(op, operands, order))
    return stack[0]


def _apply(op: Operator, operands: list[tuple[Any, First, Second]], order: int) -> tuple[Any, First, Second]:
    """The chain rule, to the order asked for."""
    arguments = [value for value, _, _ in operands]
    value = op.value(*arguments)
    firsts = [first for _, first, _ in operands]
    if order == 0 or not any(firsts):
        return value, {}, {}
    partials = [f(*arguments, value) if first else None for f, first in zip(op.first, firsts, strict=True)]
    out_first: First = {}
    for partial, first in zip(partials, firsts, strict=True):
        for j, derivative in first.items():
            _add(out_first, j, partial * derivative)
    if order == 1:
        return value, out_first, {}
    out_second: Second = {}
    for partial, (_, _, second) in zip(partials, operands, strict=True):
        for pair, derivative in second.items():
            _add(out_second, pair, partial * derivative)
    for (p, q), formula in zip(_operand_pairs(op.arity), op.second, strict=True):
        # A curvature that is zero by definition contributes nothing, not 0 × inf.
        if not firsts[p] or not firsts[q] or formula is _FLAT:
            continue
        curvature = formula(*arguments, value)
        for j, k in _index_pairs(firsts[p], firsts[q], same=p == q):
            product = _cross(firsts[p], firsts[q], j, k, same=p == q)
            _add(out_second, (j, k), curvature * product)
    return value, out_first, out_second


def _operand_pairs(arity: int) -> list[tuple[int, int]]:
    return [(0, 0)] if arity == 1 else [(0, 0), (0, 1), (1, 1)]


def _index_pairs(left: First, right: First, *, same: bool) -> Iterable[tuple[int, int]]:
    if same:
        keys = sorted(left)
        return ((j, k) for j in keys for k in keys if j <= k)
    pairs = {(min(j, k), max(j, k)) for j in left for k in right}
    return sorted(pairs)


def _cross(left: First, right: First, j: int, k: int, *, same: bool) -> Any:
    """a_j a_k for one operand; a_j b_k + a_k b_j for two."""
    if same:
        return left[j] * left[k]
    total: Any = 0.0
    if j in left and k in right:
        total = total + left[j] * right[k]
    if k in left and j in right:
        total = total + left[k] * right[j]
    return total


def _add(target: dict[Any, Any], key: Any, value: Any) -> None:
    target[key] = target[key] + value if key in target else value


#: Columns whose residual after the others is below this share of their length count as dependent in a fit.
DEPENDENT = 1e-9
#: A step that lowers the loss by less than this share, or promises no more, ends the fit.
CONVERGED_STEP = 1e-10
#: A constant whose effect outside the span of the terms is below this share of its effect stays where it is.
REDUNDANT = 1e-6
#: A loss below this share of the target's square is a perfect fit.
EXACT = 1e-28


def fit(
    programs: Programs,
    term_offsets: OffsetArray,
    free: npt_bool,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None = None,
    *,
    n_iterations: int = 8,
    n_threads: int = 1,
) -> Fits:
    r"""Least squares for a population of sums of terms.

    Solves :math:`\min_{b,\theta}\sum_n w_n (y_n - \sum_j b_j\phi_j(x_n;\theta))^2`.

    Levenberg–Marquardt on the free inner constants with the linear coefficients projected out (variable projection,
    Kaufman's approximation). The number of iterations is fixed, never a wall clock.

    ``programs``: the term programs of all candidates, in a row.
    ``term_offsets``: int64, shape (n_candidates + 1,), candidate ``c`` is the sum of programs
    ``term_offsets[c]:term_offsets[c + 1]``.
    ``free``: bool, shape (total_constants,), which constants the fit may change.
    ``X``: shape (d, N).
    ``y``, ``weights``: shape (N,).
    """
    coefficients = np.zeros(programs.n_programs)
    constants = programs.constants.copy()
    n_candidates = len(term_offsets) - 1
    loss = np.full(n_candidates, np.inf)
    status = np.full(n_candidates, int(FitStatus.NON_FINITE), dtype=np.int32)
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    with np.errstate(all="ignore"):
        for c in range(n_candidates):
            members = slice(int(term_offsets[c]), int(term_offsets[c + 1]))
            theta_range = slice(
                int(programs.constant_offsets[members.start]), int(programs.constant_offsets[members.stop])
            )
            problem = _Problem(_subset(programs, members), np.flatnonzero(free[theta_range]), X, y * root, root)
            result = _levenberg_marquardt(problem, constants[theta_range], n_iterations)
            if result is not None:
                coefficients[members], constants[theta_range], loss[c], status[c] = result
    return Fits(coefficients, constants, loss, status)


npt_bool = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    programs: Programs
    free: np.ndarray[Any, np.dtype[np.intp]]  # indices of the free constants
    X: FloatArray
    y: FloatArray  # weighted
    root: FloatArray  # square roots of the weights

    def linear_fit(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, bool] | None:
        """Phi, b, the residual and whether terms are dependent; None where a value is not finite."""
        Phi = derivatives(with_constants(self.programs, theta), self.X)[:, 0].T * self.root[:, None]
        if not np.isfinite((Phi * Phi).sum(axis=0)).all():
            return None
        b, singular = _solve(Phi, self.y)
        residual = self.y - Phi @ b
        return (Phi, b, residual, singular) if np.isfinite(residual).all() else None

    def step_matrix(self, theta: FloatArray, Phi: FloatArray, b: FloatArray) -> FloatArray | None:
        """D, with its component in the span of Phi removed."""
        programs = with_constants(self.programs, theta)
        _, jacobian = jacobians(programs, self.X)
        owner = np.repeat(np.arange(programs.n_programs), np.diff(programs.constant_offsets))
        D = (jacobian * b[owner][:, None])[self.free].T * self.root[:, None]
        if not np.isfinite((D * D).sum(axis=0)).all():
            return None
        scale = np.linalg.norm(Phi, axis=0)
        scale[scale == 0.0] = 1.0
        projection = np.linalg.lstsq(Phi / scale, D, rcond=DEPENDENT)[0]
        rest: FloatArray = D - (Phi / scale) @ projection
        rest[:, np.linalg.norm(rest, axis=0) <= REDUNDANT * np.linalg.norm(D, axis=0)] = 0.0
        return rest


def _levenberg_marquardt(
    problem: _Problem, theta: FloatArray, n_iterations: int
) -> tuple[FloatArray, FloatArray, float, FitStatus] | None:
    theta = theta.copy()
    current = problem.linear_fit(theta)
    if current is None:
        return None
    Phi, b, residual, singular = current
    loss = float(residual @ residual)
    ended = FitStatus.MAX_ITERATIONS
    damping = 1e-3
    D = problem.step_matrix(theta, Phi, b) if len(problem.free) and n_iterations else None
    if D is None:
        return b, theta, loss, FitStatus.SINGULAR if singular else FitStatus.CONVERGED
    for _ in range(n_iterations):
        if loss <= EXACT * float(problem.y @ problem.y):
            ended = FitStatus.CONVERGED
            break
        normal = D.T @ D
        diagonal = np.diag(normal).copy()
        diagonal[diagonal <= 0.0] = 1.0
        try:
            step = np.linalg.solve(normal + damping * np.diag(diagonal), D.T @ residual)
        except np.linalg.LinAlgError:
            damping *= 10.0
            continue
        if step @ (D.T @ residual) <= CONVERGED_STEP * loss:
            ended = FitStatus.CONVERGED
            break
        trial = theta.copy()
        trial[problem.free] += step
        candidate = problem.linear_fit(trial) if np.isfinite(trial).all() else None
        trial_loss = np.inf if candidate is None else float(candidate[2] @ candidate[2])
        if candidate is None or not trial_loss < loss:
            damping *= 10.0
            continue
        small = loss - trial_loss <= CONVERGED_STEP * loss
        theta, (Phi, b, residual, singular), loss = trial, candidate, trial_loss
        damping = max(damping * 0.1, 1e-12)
        next_D = None if small else problem.step_matrix(theta, Phi, b)
        if next_D is None:
            ended = FitStatus.CONVERGED
            break
        D = next_D
    return b, theta, loss, FitStatus.SINGULAR if singular else ended


def _solve(Phi: FloatArray, y: FloatArray) -> tuple[FloatArray, bool]:
    """Least squares with dependent columns at zero, in the order given."""
    scale = np.linalg.norm(Phi, axis=0)
    kept: list[int] = []
    for j in range(Phi.shape[1]):
        if scale[j] == 0.0:
            continue
        column = Phi[:, j] / scale[j]
        others = Phi[:, kept] / scale[kept]
        rest = column - others @ np.linalg.lstsq(others, column, rcond=None)[0] if kept else column
        if np.linalg.norm(rest) > DEPENDENT:
            kept.append(j)
    b = np.zeros(Phi.shape[1])
    if kept:
        b[kept] = np.linalg.lstsq(Phi[:, kept] / scale[kept], y, rcond=None)[0] / scale[kept]
    return b, len(kept) < Phi.shape[1]


def _subset(programs: Programs, members: slice) -> Programs:
    offsets = programs.offsets[members.start : members.stop + 1]
    constant_offsets = programs.constant_offsets[members.start : members.stop + 1]
    return Programs(
        programs.codes[offsets[0] : offsets[-1]],
        offsets - offsets[0],
        programs.constants[constant_offsets[0] : constant_offsets[-1]],
        constant_offsets - constant_offsets[0],
        programs.n_features,
    )
