"""Errors on rows that a fit did not see: folds dealt at random, and the rim of the data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.digits import number_text
from sobolev_novelty.errors import ExtrapolationWarning
from sobolev_novelty.expression import Expression
from sobolev_novelty.scoring import ROWS_PER_LEVEL
from sobolev_novelty.search.fits import FIT_ITERATIONS, Fitter
from sobolev_novelty.search.forms import Form, split_form
from sobolev_novelty.search.loss import Loss, Rating
from sobolev_novelty.search.loss_fit import predictions, refined

IndexArray = npt.NDArray[np.intp]

#: Share of an input's range by which a pole must at least lie outside. So far out predictions do not warn either.
MARGIN = 0.05
#: Rows with the lowest or highest level of an input below which a level beyond may come.
RARE = 4
#: Folds of a cross-validation.
N_FOLDS = 5


def has_levels(column: FloatArray) -> bool:
    """Whether an input takes a few values only, each in many rows: codes, counts, grades.

    Examples
    --------
    >>> has_levels(np.repeat([1.0, 2.0, 3.0], 20)), has_levels(np.linspace(0.0, 1.0, 60))
    (True, False)
    """
    return len(np.unique(column)) * ROWS_PER_LEVEL <= len(column)


def possible_levels(column: FloatArray) -> FloatArray:
    """The values of an input with levels, and the next whole number at an end where few rows are.

    Grades from 1 to 9 of which one row has the lowest: the next row may have 0.

    Examples
    --------
    >>> possible_levels(np.r_[np.full(2, 1.0), np.full(40, 2.0), np.full(40, 3.0)])
    array([0., 1., 2., 3.])
    """
    levels, counts = np.unique(column, return_counts=True)
    if len(levels) < 3 or (levels != np.rint(levels)).any():
        return levels
    below = [levels[0] - 1.0] if counts[0] < RARE else []
    above = [levels[-1] + 1.0] if counts[-1] < RARE else []
    return np.array([*below, *levels, *above])


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows equations are compared on.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,) or None
    names : tuple of str
    box : ndarray of shape (2, n_features), optional
        Least and largest value of each input, where more rows are known than these.
    loss : Loss
        What stands for squared errors in the comparison.
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray | None
    names: tuple[str, ...]
    box: FloatArray | None = None
    loss: Loss = field(default_factory=Loss)

    @property
    def sample(self) -> Sample:
        """The inputs as a sample."""
        return Sample(np.ascontiguousarray(self.X.T), self.names)

    @property
    def tails(self) -> FloatArray:
        """How far each input may go on beyond its least and its largest value, shape (2, n_features).

        The mean excess of the √n most extreme values over the last of them: new rows exceed the range by as much. An
        input with levels does not go on.
        """
        k = max(2, math.isqrt(len(self.X)))
        ordered = np.sort(self.X, axis=0)
        return np.array([(ordered[k - 1] - ordered[:k]).mean(axis=0), (ordered[-k:] - ordered[-k]).mean(axis=0)])

    def corners(self, widened: Collection[str] = (), reach: FloatArray | None = None) -> Sample:
        """The range of the inputs, as a sample of two rows; that of some inputs widened, but not beyond zero.

        Parameters
        ----------
        reach : ndarray of shape (2, n_features), optional
            How far to widen below and above, where that is more than the margin.
        """
        low, high = [self.X.min(axis=0), self.X.max(axis=0)] if self.box is None else self.box
        margin = np.maximum(MARGIN * (high - low), np.zeros((2, 1)) if reach is None else reach)
        goes_on = [name in widened and not has_levels(x) for name, x in zip(self.names, self.X.T, strict=True)]
        margin = np.where(goes_on, margin, 0.0)
        lower = np.where(low >= 0.0, np.maximum(low - margin[0], 0.5 * low), low - margin[0])
        upper = np.where(high <= 0.0, np.minimum(high + margin[1], 0.5 * high), high + margin[1])
        return Sample(np.ascontiguousarray(np.array([lower, upper]).T), self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Errors on rows that a fit did not see.

    Parameters
    ----------
    errors : ndarray of shape (n_equations, n_folds)
        Mean squared error of each fold, infinite where a prediction is not finite.
    squares : ndarray of shape (n_equations, n_samples)
        Squared error of each row, when it was not fitted to.
    """

    errors: FloatArray
    squares: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Error of each equation."""
        return np.asarray(self.errors.mean(axis=1))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of :attr:`mean`, from the scatter of the folds."""
        with np.errstate(invalid="ignore"):
            spread = self.errors.std(axis=1, ddof=1) / math.sqrt(self.errors.shape[1])
        return np.where(np.isfinite(spread), spread, 0.0)


def warn_outside(X: FloatArray, expression: Expression, names: Sequence[str], ranges: FloatArray) -> list[str]:
    """Warn of rows beyond the training range of an input that the equation uses, and name the input."""
    for k in (names.index(name) for name in expression.variables):
        low, high = ranges[:, k]
        margin = MARGIN * (high - low)
        beyond = (X[:, k] < low - margin) | (X[:, k] > high + margin)
        if beyond.any():
            warnings.warn(
                f"{int(beyond.sum())} of {len(X)} rows have '{names[k]}' outside the training range, "
                f"{number_text(low)} to {number_text(high)}: these predictions extrapolate.",
                ExtrapolationWarning,
                stacklevel=3,
            )
            return [names[k]]
    return []


def lead(squares: FloatArray, others: FloatArray, weights: FloatArray | None) -> float:
    """By how many standard errors the squared errors of an equation are below those of another, row by row.

    Examples
    --------
    >>> lead(np.array([0.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0]), None).__round__(2)
    3.46
    """
    with np.errstate(all="ignore"):
        difference = others - squares
        difference = difference if weights is None else weights * difference
        mean, spread = float(difference.mean()), float(difference.std(ddof=1)) / math.sqrt(len(difference))
    if not math.isfinite(mean) or not spread > 0.0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / spread


def cross_validated(
    expressions: Sequence[Expression], rows: Rows, n_folds: int = N_FOLDS, n_repeats: int = 1
) -> Validation:
    """Refit the constants of each equation without a fold of the rows, and look at its errors there.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> rows = Rows(x[:, None], 2.0 * x, None, ("x0",))
    >>> cross_validated([Expression.of("x0"), Expression.of(1.0)], rows).mean.round(3)
    array([0.   , 0.356])
    """
    forms = [split_form(expression) for expression in expressions]
    folds = dealt_folds(rows, n_folds, n_repeats)
    if not folds:
        return Validation(np.full((len(forms), 1), np.inf), np.full((len(forms), len(rows.y)), np.inf))
    squares = np.zeros((len(forms), len(rows.y)))
    errors = np.zeros((len(forms), len(folds)))
    for k, fold in enumerate(folds):
        found = held_out(forms, rows, fold)
        squares[:, fold] += found / n_repeats
        errors[:, k] = averaged(found, rows, fold)
    return Validation(errors, squares)


def dealt_folds(rows: Rows, n_folds: int = N_FOLDS, n_repeats: int = 1) -> list[IndexArray]:
    """The rows of each fold, drawn with a fixed seed from rows in a fixed order: a function of the data."""
    rng = np.random.default_rng(0)
    order = np.lexsort((rows.y, *rows.X.T))
    n = min(n_folds, len(order))
    folds = [fold for _ in range(n_repeats) for fold in np.array_split(rng.permutation(order), n)]
    return [fold for fold in folds if len(fold) < len(order)]


def held_out(forms: Sequence[Form], rows: Rows, fold: IndexArray) -> FloatArray:
    """Squared errors, or losses, at the rows of a fold, the constants refitted to the others: (n_forms, n_fold)."""
    kept = np.ones(len(rows.y), dtype=bool)
    kept[fold] = False
    weights = None if rows.weights is None else rows.weights[kept]
    X = np.ascontiguousarray(rows.X.T)
    fitter = Fitter(np.ascontiguousarray(X[:, kept]), rows.names, rows.y[kept], weights, 1.0)
    outside = Fitter(np.ascontiguousarray(X[:, fold]), rows.names, rows.y[fold], None, 1.0)
    squares = np.full((len(forms), len(fold)), np.inf)
    is_plain = rows.loss.is_squared or np.ptp(fitter.y) == 0.0
    rating = None if is_plain else Rating.of(rows.loss, fitter.y, weights)
    with np.errstate(all="ignore"):
        for k, fitted in enumerate(fitter.fit(forms, FIT_ITERATIONS)):
            if math.isfinite(fitted.nmse) and rating is None:
                squares[k] = (outside.y - fitted.coefficients @ outside.values(fitted.terms)) ** 2
            elif math.isfinite(fitted.nmse) and rating is not None:
                expression = assemble(fitted.terms, fitted.coefficients.tolist())
                expression, _ = refined(expression, rows.X[kept], rows.names, rating, has_simplex=False)
                found = predictions(expression, rows.X[fold], rows.names)
                squares[k] = rows.loss.values(outside.y, found, rating.scale) - rating.least
    return np.where(np.isfinite(squares), squares, np.inf)


def averaged(squares: FloatArray, rows: Rows, fold: IndexArray) -> FloatArray:
    """Mean of squared errors over the rows of a fold, by their weights."""
    w = None if rows.weights is None else rows.weights[fold]
    if w is not None and not w.any():
        return np.where(np.isfinite(squares).all(axis=1), 0.0, np.inf)
    return np.asarray(np.average(squares, axis=1, weights=w))


def rim_errors(forms: Sequence[Form], rows: Rows, names: Sequence[str]) -> FloatArray:
    """Mean error on the lowest and the highest tenth of each input, the constants refitted to the other rows.

    A power that was fitted to noise shows at the rim, not in folds dealt at random.
    """
    n = max(2, len(rows.y) // 10)
    orders = [np.lexsort((rows.y, rows.X[:, rows.names.index(name)])) for name in names]
    folds = [fold for order in orders for fold in (order[:n], order[-n:])]
    errors = [averaged(held_out(forms, rows, fold), rows, fold) for fold in folds]
    return np.mean(errors, axis=0) if errors else np.zeros(len(forms))
