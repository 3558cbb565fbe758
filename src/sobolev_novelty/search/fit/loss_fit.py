"""Constants moved to where a loss other than squared errors is smallest, from where least squares left them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import derivatives
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


def predictions(expression: Expression, X: FloatArray, names: tuple[str, ...]) -> FloatArray:
    """Values at the rows of ``X``, shape (n_samples, n_features)."""
    with np.errstate(all="ignore"):
        return np.asarray(derivatives([expression], Sample(np.ascontiguousarray(X.T), names), order=0)[0, 0])


def refined(
    expression: Expression,
    X: FloatArray,
    names: tuple[str, ...],
    rating: Rating,
    deadline: Deadline | None = None,
    *,
    goes_on: Callable[[float], bool] = lambda error: True,
    has_simplex: bool = True,
) -> tuple[Expression, float]:
    """The expression with constants that are better by the loss, and its relative error.

    Iteratively reweighted least squares where the loss has a value for each row; a function of the user's own is then
    followed by a simplex search, with a bounded number of evaluations. What comes back is never worse.

    Parameters
    ----------
    goes_on : callable
        Asked with the relative error after the first reweighted fits, and before a simplex search, whether more is
        worth its time.
    has_simplex : bool
        Whether a function of the user's own is followed further; without, the time is that of a few fits.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> from sobolev_novelty.search.problem.loss import Loss
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> y = np.where(x < 0.1, 50.0, 3.0 * x)  # five rows are wrong
    >>> rating = Rating.of(Loss("absolute"), y, None)
    >>> found, _ = refined(parse("x0"), x[:, None], ("x0",), rating)
    >>> print(found.rounded(3))
    3*x0
    """
    best, error = expression, rating.error(predictions(expression, X, names))
    trial = expression
    for k in range(N_REWEIGHTED):
        if (deadline is not None and deadline.is_over) or (k == N_FIRST and not goes_on(error)):
            return best, error
        p = predictions(trial, X, names)
        w = rating.loss.row_weights(rating.y, p, rating.scale) if np.isfinite(p).all() else None
        if w is None:
            break
        joint = w if rating.weights is None else w * rating.weights
        trial = _reweighted(trial, X, names, rating.y, joint)
        now = rating.error(predictions(trial, X, names))
        gain = error - now
        if gain > 0.0:
            best, error = trial, now
        if not gain > GAIN * error:
            break
    if rating.loss.function is None or not has_simplex or not goes_on(error):
        return best, error
    return _searched(best, error, X, names, rating)


def _reweighted(
    expression: Expression, X: FloatArray, names: tuple[str, ...], y: FloatArray, weights: FloatArray
) -> Expression:
    if len(y) > BLOCK_ROWS:
        return polished(expression, X, y, weights, names)[0]
    fitter = Fitter(np.ascontiguousarray(X.T), names, y, weights, 1.0)
    (fit,) = fitter.fit([split_form(expression)], N_ITERATIONS)
    return assemble(fit.terms, fit.coefficients.tolist()) if math.isfinite(fit.nmse) else expression


def _searched(
    expression: Expression, error: float, X: FloatArray, names: tuple[str, ...], rating: Rating
) -> tuple[Expression, float]:
    """By a simplex on all coefficients and free constants."""
    form = split_form(expression)
    programs = kernels.compile_programs(form.terms, names)
    columns = np.ascontiguousarray(X.T)
    with np.errstate(all="ignore"):
        values = np.asarray(kernels.derivatives(programs, columns)[:, 0])
        if not np.isfinite(values).all():
            return expression, error
        target = predictions(expression, X, names)
        b = np.linalg.lstsq(values.T, target, rcond=None)[0]
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
            programs = kernels.compile_programs(terms, names)
            now = kernels.derivatives(programs, columns)[:, 0] if len(free) else values
            return min(rating.error(coefficients @ now), 1e300)

    from scipy.optimize import minimize  # not with the module: islands must start fast

    limit = min(MAX_EVALUATIONS, EVALUATIONS_PER_CONSTANT * len(start))
    simplex = np.vstack([np.zeros(len(start)), 0.1 * np.eye(len(start))])
    options: Any = {"maxfev": limit, "initial_simplex": simplex, "xatol": 1e-8, "fatol": 0.0}
    found = minimize(loss, np.zeros(len(start)), method="Nelder-Mead", options=options)
    if not found.fun < error:
        return expression, error
    terms, coefficients = moved(found.x)
    return assemble(terms, coefficients.tolist()), float(found.fun)
