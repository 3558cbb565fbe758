r"""Constants of a fitted expression, polished on more rows than fit into a search.

Gauss–Newton with the Jacobian taken in blocks of rows: each block is reduced to its triangular factor, and factors
combine (:mod:`sobolev_novelty.core.linear.projection`), so memory does not grow with the number of rows.

Notation
--------
``J``  derivative of the prediction along the free constants, shape (free constants, block);  ``r``  residuals
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.algebra.canonical import tidy
from sobolev_novelty.algebra.waves import with_small_phases
from sobolev_novelty.core.digits import significant_digits
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.projection import combine, factor
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.price.numbers import is_simple
from sobolev_novelty.report.intervals.constants import Parametrised, parametrised
from sobolev_novelty.report.intervals.profiles import BoolArray, Model
from sobolev_novelty.search.contract.engine import Deadline
from sobolev_novelty.search.fit.fits import relative_loss

#: Rows of one block.
BLOCK_ROWS = 32_768
N_STEPS = 6
#: A step that lowers the error by less than this share ends the polishing.
CONVERGED = 1e-7
#: Digits that tell every float from the next.
ALL_DIGITS = 17


def relative_error(expression: Expression, rows: Rows) -> float:
    """NMSE over all rows, in blocks.

    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> relative_error(Expression.of("x0"), Rows.of(X, X[:, 0]))
    0.0
    """
    programs = kernels.compile_programs([expression], rows.names)
    y, w = rows.y, np.ones_like(rows.y) if rows.weights is None else rows.weights
    loss = 0.0
    for block in _blocks(len(rows)):
        with np.errstate(all="ignore"):
            values = kernels.derivatives(programs, np.ascontiguousarray(rows.sample.X[:, block]))[0, 0]
            loss += float(np.sum(w[block] * (y[block] - values) ** 2))
    return relative_loss(loss, rows.total)


def polished(
    expression: Expression, rows: Rows, *, keeps_simple: bool = False, deadline: Deadline | None = None
) -> tuple[Expression, float]:
    """The expression with its constants fitted to all rows, or as it was where that is not better; and its NMSE.

    ``keeps_simple``: whether simple numbers stay: somebody has chosen them.
    ``deadline``: no further step is begun when the time is over.

    >>> from sobolev_novelty.language.parsing import parse
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> y = 0.5001 * X[:, 0] + 0.7372
    >>> print(polished(parse("0.5*x0 + 0.73"), Rows.of(X, y), keeps_simple=True)[0].rounded(5))
    0.5*x0 + 0.73725
    """
    written = parametrised(expression)
    theta = written.theta
    free = np.array([not (keeps_simple and is_simple(value, len(rows))) for value in theta.tolist()], dtype=bool)
    best, best_error = expression, relative_error(expression, rows)
    for _ in range(N_STEPS if free.any() else 0):
        if deadline is not None and deadline.is_over:
            break
        step = _gauss_newton_step(written, theta, free, rows)
        if step is None:
            break
        theta = theta + step
        try:
            trial = with_small_phases(tidy(written.at(theta)))
        except ExpressionError:  # a number that no float can hold
            break
        error = relative_error(trial, rows)
        gain = 1.0 - error / best_error if best_error > 0.0 else 0.0
        if gain > 0.0:
            best, best_error = trial, error
        if gain < CONVERGED:
            break
    return best, best_error


def with_known_digits(expression: Expression, rows: Rows, *, n_rows: int) -> Expression:
    r"""The fitted expression without the digits of its constants that the rows cannot tell.

    Each is rounded at the place of a tenth of its standard error :math:`\sigma/\lVert J_i \rVert`, all others held.
    So p constants raise :math:`\chi^2` by no more than :math:`(p/20)^2`, whatever goes with what. Simple numbers stay,
    and no other becomes a whole one.

    ``n_rows``: how many of the rows are different ones.

    >>> from sobolev_novelty.language.parsing import parse
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> y = 0.7372181 * x + 0.01 * np.cos(40.0 * x)
    >>> print(with_known_digits(parse("0.737218124*x0 + 1/3"), Rows.of(x[:, None], y + 1 / 3), n_rows=50))
    0.7372*x0 + 0.3333333333333333
    """
    written, theta = parametrised(expression), []
    p = len(written.theta)
    loss, curvature = 0.0, np.zeros(p)
    for J, left in _linearised(written, written.theta, rows):
        loss += float(left @ left)
        curvature += np.sum(J**2, axis=1)
    if not (p < n_rows and 0.0 < loss < np.inf and np.isfinite(curvature).all()):
        return expression
    for value, c in zip(written.theta.tolist(), curvature.tolist(), strict=True):
        error = math.sqrt(loss / (n_rows - p) / c) if c > loss * sys.float_info.min else math.inf
        digits = significant_digits(value, error, ALL_DIGITS) if math.isfinite(error) else ALL_DIGITS
        while digits < ALL_DIGITS and float(f"{value:.{digits}g}").is_integer():
            digits += 1
        theta.append(value if is_simple(value, n_rows) or digits >= ALL_DIGITS else float(f"{value:.{digits}g}"))
    return written.at(np.array(theta)) if theta != written.theta.tolist() else expression


def _blocks(n_rows: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK_ROWS, n_rows)) for start in range(0, n_rows, BLOCK_ROWS))


def _gauss_newton_step(written: Parametrised, theta: FloatArray, free: BoolArray, rows: Rows) -> FloatArray | None:
    """Change of the parameters that solves the linearised problem; None where it is not finite."""
    R = np.zeros((0, int(free.sum()) + 1))
    for J, left in _linearised(written, theta, rows):
        block = np.vstack([J[free], left]).T
        if not np.isfinite(block).all():
            return None
        R = factor(block) if len(R) == 0 else combine(R, factor(block))
    scale = np.linalg.norm(R[:, :-1], axis=0)
    scale[scale == 0.0] = 1.0
    step = np.zeros(len(theta))
    step[free] = np.linalg.lstsq(R[:, :-1] / scale, R[:, -1], rcond=1e-12)[0] / scale
    return step if np.isfinite(step).all() else None


def _linearised(written: Parametrised, theta: FloatArray, rows: Rows) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Derivatives along the parameters (n_parameters, block) and residuals, as weighted, block after block."""
    for block in _blocks(len(rows)):
        some = None if rows.root is None else rows.root[block]
        y = rows.y[block]
        with np.errstate(all="ignore"):
            model = Model(written.parts, theta, np.ascontiguousarray(rows.sample.X[:, block]), rows.names, some)
            f, J = (found[0] for found in model.evaluate(theta[None]))
            yield J, (y if some is None else some * y) - f
