"""Errors on rows that a fit did not see, for the rules that ask for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import IntArray, Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.search.choose.weighted import fitted
from sobolev_novelty.search.fit.loss_fit import refined
from sobolev_novelty.search.problem.loss import LEAST_SQUARES, Loss, Rating

#: Folds of a cross-validation, as usual.
N_FOLDS = 5


def cross_validated(
    expressions: Sequence[Expression], rows: Rows, loss: Loss = LEAST_SQUARES
) -> tuple[FloatArray, FloatArray]:
    """Mean error of each equation on folds that its constants were not fitted to, and its standard error.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> cross_validated([Expression.of("x0"), Expression.of(1.0)], Rows.of(x[:, None], 2.0 * x))[0].round(3)
    array([0.   , 0.356])
    """
    folds = rows.ordered.folds(N_FOLDS)
    errors = np.array([_errors(expressions, rows.ordered, fold, loss) for fold in folds])
    with np.errstate(invalid="ignore"):
        spread = errors.std(axis=0, ddof=1) / math.sqrt(len(folds))
    return errors.mean(axis=0), np.where(np.isfinite(spread), spread, 0.0)


def _errors(expressions: Sequence[Expression], rows: Rows, fold: IntArray, loss: Loss) -> list[float]:
    train, test = rows.some(np.isin(np.arange(len(rows)), fold, invert=True)), rows.some(fold)
    weights = test.weights if test.weights is not None and test.weights.any() else None
    rating, found = Rating.of(loss, train), []
    for e in fitted(expressions, train):
        error = math.inf
        if e is not None:
            own = e if rating is None else refined(e, rating, has_simplex=False)[0]
            p = values([own], test.sample)[0]
            with np.errstate(all="ignore"):
                left = (test.y - p) ** 2 if rating is None else loss.values(test.y, p, rating.scale) - rating.least
                error = float(np.average(left, weights=weights))
        found.append(error if math.isfinite(error) else math.inf)
    return found
