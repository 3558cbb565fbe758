"""Rules that choose an equation in the place of the price, where ``select=`` asks for one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.rows import IntArray, Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import choice_rank
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.metric.batch import novelties
from sobolev_novelty.search.choose.choice import Choice, Priced
from sobolev_novelty.search.choose.chooser import N_REFITTED
from sobolev_novelty.search.choose.refits import fitted
from sobolev_novelty.search.fit.loss_fit import refined
from sobolev_novelty.search.problem.loss import LEAST_SQUARES, Loss, Rating

if TYPE_CHECKING:
    import pandas as pd

#: The table of equations -> the index of the row to choose.
Rule = Callable[["pd.DataFrame"], int]

RULES = ("price", "score", "distinct", "validation", "one-se")
#: Folds of a cross-validation, as usual.
N_FOLDS = 5


def by_rule(choice: Choice, select: str, loss: Loss = LEAST_SQUARES) -> Priced:
    """The equation that a rule by name takes."""
    if select == "price":
        return choice.priced[0]
    if select == "score":
        return max(choice.priced, key=lambda p: choice_rank(p.nmse, p.score))
    leading = choice.priced[:N_REFITTED]
    expressions = [p.expression for p in leading]
    if select == "distinct":
        own = novelties(expressions, choice.rows.sample)
        kept = (
            p for p, found in zip(leading, own, strict=True)
            if found.status is Status.OK and float(np.min(found.nu)) > TAU_ID
        )  # fmt: skip
        return next(kept, leading[0])
    mean, error = cross_validated(expressions, choice.rows, loss)
    order = sorted(range(len(leading)), key=lambda i: (mean[i], leading[i].complexity))
    if select == "one-se":
        limit = mean[order[0]] + error[order[0]]
        order = sorted((i for i in order if mean[i] <= limit), key=lambda i: leading[i].complexity)
    return leading[order[0]]


def by_callable(select: Rule, table: pd.DataFrame) -> int:
    """The row that a user's own rule takes."""
    index = select(table)
    if not isinstance(index, int | np.integer) or not -len(table) <= index < len(table):
        raise ParameterError(
            f"'select' must return the index of a row of equations_, 0 to {len(table) - 1}. Got {index!r}."
        )
    return int(index) % len(table)


def cross_validated(
    expressions: Sequence[Expression], rows: Rows, loss: Loss = LEAST_SQUARES
) -> tuple[FloatArray, FloatArray]:
    """Mean error of each equation on folds that its constants were not fitted to, and its standard error.

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
