r"""Constants of a fitted expression, polished on more rows than fit into a search.

Gauss–Newton with the Jacobian taken in blocks of rows: each block is reduced to its triangular factor, and factors
combine (:mod:`sobolev_novelty.projection`), so memory does not grow with the number of rows.

Notation
--------
``J``  derivative of the prediction along the coefficients and the free constants, shape (block, m + q);  ``r``
residuals
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.algebra.waves import with_small_phases
from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.expression import Expression
from sobolev_novelty.projection import combine, factor
from sobolev_novelty.search.engine import Deadline
from sobolev_novelty.search.fits import relative_loss
from sobolev_novelty.search.forms import Form, split_form

#: Rows of one block.
BLOCK_ROWS = 32_768
N_STEPS = 6
#: A step that lowers the error by less than this share ends the polishing.
CONVERGED = 1e-7


def relative_error(
    expression: Expression, X: FloatArray, y: FloatArray, weights: FloatArray | None, names: tuple[str, ...]
) -> float:
    """NMSE over all rows of ``X`` (n_samples, n_features), in blocks.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> relative_error(Expression.of("x0"), X, X[:, 0], None, ("x0",))
    0.0
    """
    programs = kernels.compile_programs([expression], names)
    w = np.ones_like(y) if weights is None else weights
    total = float(np.sum(w * (y - np.average(y, weights=w)) ** 2))
    loss = 0.0
    for rows in _blocks(len(y)):
        with np.errstate(all="ignore"):
            values = kernels.derivatives(programs, np.ascontiguousarray(X[rows].T))[0, 0]
            loss += float(np.sum(w[rows] * (y[rows] - values) ** 2))
    return relative_loss(loss, total)


def polished(
    expression: Expression,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    names: tuple[str, ...],
    *,
    deadline: Deadline | None = None,
) -> tuple[Expression, float]:
    """The expression with its constants fitted to all rows, or as it was where that is not better; and its NMSE.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    names : tuple of str
        Names of the columns.
    deadline : Deadline, optional
        No further step is begun when the time is over.
    """
    form = split_form(expression)
    root = None if weights is None else np.sqrt(weights)
    best, best_error = expression, relative_error(expression, X, y, weights, names)
    terms = form.terms
    coefficients = np.zeros(len(terms))
    for k in range(N_STEPS):
        if deadline is not None and deadline.is_over:
            break
        step = _gauss_newton_step(Form(terms, form.free), coefficients, X, y, root=root, names=names)
        if step is None:
            break
        coefficients = coefficients + step[: len(terms)]
        terms = _moved(terms, form.free, step[len(terms) :])
        try:
            trial = assemble(terms, coefficients.tolist())
        except ExpressionError:  # a number that no float can hold
            break
        error = relative_error(trial, X, y, weights, names)
        gain = 1.0 - error / best_error if best_error > 0.0 else 0.0
        if gain > 0.0:
            best, best_error = trial, error
        if gain < CONVERGED and (k > 0 or form.n_free == 0):  # the first step is linear: the constants are yet to move
            break
    return best, best_error


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK_ROWS, n_rows)) for start in range(0, n_rows, BLOCK_ROWS))


def _gauss_newton_step(
    form: Form, b: FloatArray, X: FloatArray, y: FloatArray, *, root: FloatArray | None, names: tuple[str, ...]
) -> FloatArray | None:
    """Change of the coefficients and free constants that solves the linearised problem; None where it is not finite."""
    programs = kernels.compile_programs(form.terms, names)
    owner = np.repeat(np.arange(programs.n_programs), np.diff(programs.constant_offsets))
    # At zero coefficients the constants have no effect yet: the first step is linear.
    free = np.flatnonzero(form.free) if b.any() else np.zeros(0, dtype=np.intp)
    R = np.zeros((0, len(b) + len(free) + 1))
    for rows in _blocks(len(y)):
        values, jacobian = kernels.jacobians(programs, np.ascontiguousarray(X[rows].T))
        block = np.vstack([values, (jacobian * b[owner][:, None])[free], (y[rows] - b @ values)[None]]).T
        if root is not None:
            block = block * root[rows, None]
        if not np.isfinite(block).all():
            return None
        R = factor(block) if len(R) == 0 else combine(R, factor(block))
    scale = np.linalg.norm(R[:, :-1], axis=0)
    scale[scale == 0.0] = 1.0
    step: FloatArray = np.linalg.lstsq(R[:, :-1] / scale, R[:, -1], rcond=1e-12)[0] / scale
    full = np.zeros(len(b) + len(form.free))
    full[: len(b)] = step[: len(b)]
    full[len(b) + free] = step[len(b) :]
    return full if np.isfinite(full).all() else None


def _moved(terms: tuple[Expression, ...], free: tuple[bool, ...], step: FloatArray) -> tuple[Expression, ...]:
    moved = []
    start = 0
    for term in terms:
        n_constants = len(term.constants)
        changed = (np.array(term.constants) + step[start : start + n_constants]).tolist()
        moved.append(with_small_phases(term.with_constants(changed)))
        start += n_constants
    return tuple(moved)
