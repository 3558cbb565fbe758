"""Constants moved to where a loss other than squared errors is smallest, from where least squares left them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.search.contract.engine import Deadline
from sobolev_novelty.search.fit.final_fit import BLOCK_ROWS, polished
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import split_form
from sobolev_novelty.search.problem.loss import Rating

#: Reweighted fits at first, at most, and the share of the loss that the next one must take away.
N_FIRST, N_REWEIGHTED, GAIN = 2, 12, 1e-3
#: Levenberg–Marquardt iterations of one reweighted fit.
N_ITERATIONS = 4
#: Evaluations of a user's own loss for each constant, and at most.
EVALUATIONS_PER_CONSTANT, MAX_EVALUATIONS = 40, 300


def refined(
    expression: Expression,
    rating: Rating,
    deadline: Deadline | None = None,
    *,
    goes_on: Callable[[float], bool] = lambda error: True,
    has_simplex: bool = True,
) -> tuple[Expression, float]:
    """The expression with constants that are better by the loss on its rows, and its relative error.

    Iteratively reweighted least squares where the loss has a value for each row; a function of the user's own is then
    followed by a simplex search, with a bounded number of evaluations. What comes back is never worse.

    ``goes_on``: asked with the relative error after the first reweighted fits, and before a simplex search, whether
    more is worth its time.
    ``has_simplex``: whether a function of the user's own is followed further; without, the time is that of a few fits.

    >>> from sobolev_novelty.language.parsing import parse
    >>> from sobolev_novelty.core.rows import Rows
    >>> from sobolev_novelty.search.problem.loss import Loss
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> y = np.where(x < 0.1, 50.0, 3.0 * x)  # five rows are wrong
    >>> rating = Rating.of(Loss("absolute"), Rows.of(x[:, None], y))
    >>> found, _ = refined(parse("x0"), rating)
    >>> print(found.rounded(3))
    3*x0
    """
    rows, trial = rating.rows, expression
    p = values([expression], rows.sample)[0]
    best, error = expression, rating.error(p)
    for k in range(N_REWEIGHTED):
        if (deadline is not None and deadline.is_over) or (k == N_FIRST and not goes_on(error)):
            return best, error
        w = rating.loss.row_weights(rows.y, p, rating.scale) if np.isfinite(p).all() else None
        if w is None:
            break
        trial = _reweighted(trial, rows.weighed(w if rows.weights is None else w * rows.weights))
        p = values([trial], rows.sample)[0]
        now = rating.error(p)
        gain = error - now
        if gain > 0.0:
            best, error = trial, now
        if not gain > GAIN * error:
            break
    if rating.loss.function is None or not has_simplex or not goes_on(error):
        return best, error
    return _searched(best, error, rating)


def _reweighted(expression: Expression, rows: Rows) -> Expression:
    if len(rows) > BLOCK_ROWS:
        return polished(expression, rows)[0]
    (fit,) = Fitter(rows).fit([split_form(expression)], N_ITERATIONS)
    return assemble(fit.terms, fit.coefficients.tolist()) if math.isfinite(fit.loss) else expression


def _searched(expression: Expression, error: float, rating: Rating) -> tuple[Expression, float]:
    """By a simplex on all coefficients and free constants."""
    form, sample = split_form(expression), rating.rows.sample
    columns = values(form.terms, sample)
    if not np.isfinite(columns).all():
        return expression, error
    b = least_squares(columns, values([expression], sample)[0])
    free = np.flatnonzero(form.free)
    constants = np.array([c for term in form.terms for c in term.constants])
    start = np.concatenate([b, constants[free]])
    size = np.where(start == 0.0, 1e-3, start)

    def moved(u: FloatArray) -> tuple[list[Expression], FloatArray]:
        parameters = start + u * size
        changed = constants.copy()
        changed[free] = parameters[len(b) :]
        pieces = np.split(changed, np.cumsum([len(term.constants) for term in form.terms])[:-1])
        terms = [term.with_constants(piece.tolist()) for term, piece in zip(form.terms, pieces, strict=True)]
        return terms, parameters[: len(b)]

    def loss(u: FloatArray) -> float:
        terms, coefficients = moved(u)
        with np.errstate(all="ignore"):
            return min(rating.error(coefficients @ (values(terms, sample) if len(free) else columns)), 1e300)

    from scipy.optimize import minimize  # not with the module: islands must start fast

    limit = min(MAX_EVALUATIONS, EVALUATIONS_PER_CONSTANT * len(start))
    simplex = np.vstack([np.zeros(len(start)), 0.1 * np.eye(len(start))])
    options: Any = {"maxfev": limit, "initial_simplex": simplex, "xatol": 1e-8, "fatol": 0.0}
    found = minimize(loss, np.zeros(len(start)), method="Nelder-Mead", options=options)
    if not found.fun < error:
        return expression, error
    terms, coefficients = moved(found.x)
    return assemble(terms, coefficients.tolist()), float(found.fun)
