"""Errors on rows that a fit did not see, for the rules that ask for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.choose.rows import Rows
from sobolev_novelty.search.fit.fits import FIT_ITERATIONS, Fitter
from sobolev_novelty.search.fit.forms import split_form
from sobolev_novelty.search.fit.loss_fit import predictions, refined
from sobolev_novelty.search.problem.loss import Rating

#: Folds of a cross-validation.
N_FOLDS = 5


def cross_validated(expressions: Sequence[Expression], rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Mean error of each equation on folds that its constants were not fitted to, and its standard error.

    The folds are drawn with a fixed seed from rows in a fixed order: a function of the data.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> rows = Rows(x[:, None], 2.0 * x, None, ("x0",))
    >>> cross_validated([Expression.of("x0"), Expression.of(1.0)], rows)[0].round(3)
    array([0.   , 0.356])
    """
    rows, n = rows.ordered, len(rows.y)
    folds = np.array_split(np.random.default_rng(0).permutation(n), min(N_FOLDS, n))
    errors = np.array([_errors(expressions, rows, np.sort(fold)) for fold in folds])
    with np.errstate(invalid="ignore"):
        spread = errors.std(axis=0, ddof=1) / math.sqrt(len(folds))
    return errors.mean(axis=0), np.where(np.isfinite(spread), spread, 0.0)


def _errors(expressions: Sequence[Expression], rows: Rows, fold: np.ndarray) -> list[float]:
    kept = np.ones(len(rows.y), dtype=bool)
    kept[fold] = False
    weights = None if rows.weights is None else rows.weights[kept]
    own = None if rows.weights is None else rows.weights[fold]
    if own is not None and not own.any():
        own = None
    fitter = Fitter(np.ascontiguousarray(rows.X[kept].T), rows.names, rows.y[kept], weights, 1.0)
    is_plain = rows.loss.is_squared or np.ptp(fitter.y) == 0.0
    rating = None if is_plain else Rating.of(rows.loss, fitter.y, weights)
    found = []
    with np.errstate(all="ignore"):
        for fit in fitter.fit([split_form(e) for e in expressions], FIT_ITERATIONS):
            if not math.isfinite(fit.nmse):
                found.append(math.inf)
                continue
            expression = assemble(fit.terms, fit.coefficients.tolist())
            if rating is not None:
                expression, _ = refined(expression, rows.X[kept], rows.names, rating, has_simplex=False)
            values = predictions(expression, rows.X[fold], rows.names)
            left = (rows.y[fold] - values) ** 2
            if rating is not None:
                left = rows.loss.values(rows.y[fold], values, rating.scale) - rating.least
            error = float(np.average(left, weights=own))
            found.append(error if math.isfinite(error) else math.inf)
    return found
