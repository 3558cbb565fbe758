"""Which equation of a front is reported: rules of choice, cross-validation, and baselines that must be beaten.

A rule ranks the candidates; the first that has no certain pole within the range of the inputs is chosen. Exact fits
(:data:`TRUSTED_NMSE`) are always trusted: the law is found, whatever its poles. On few rows a search can explain
noise, so there the choice has to stand against the straight line and the constant by cross-validation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.domains import Answer, check_domain
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.projection import TAU_ID
from sobolev_novelty.search.engine import Candidate
from sobolev_novelty.search.fits import FIT_ITERATIONS, Fitter
from sobolev_novelty.search.forms import Form, split_form

if TYPE_CHECKING:
    import pandas as pd

#: The table of equations -> the index of the row to choose.
Rule = Callable[["pd.DataFrame"], int]

RULES = ("score", "distinct", "validation", "one-se")
#: Fits with an error below this share of the target's variance are trusted as they are.
TRUSTED_NMSE = 1e-9
#: Share of an input's range by which a pole must at least lie outside. So far out predictions do not warn either.
MARGIN = 0.05
#: Folds of a cross-validation.
N_FOLDS = 5
#: On fewer rows the choice is checked against the straight line and the constant.
FEW_ROWS = 300
#: The straight line is a candidate where there are this many rows for each of its columns; the folds say what it is
#: worth.
ROWS_PER_COLUMN = 2
#: Share of the cross-validated error by which a searched equation must at least beat a baseline on few rows: the folds
#: do not repeat the search, so its own error is seen too small. Set by looking at searches on seven small tables of
#: PMLB (docs/intervals.md has the figures, and those of tables that were not looked at).
REQUIRED_GAIN = 0.15
#: Times the rows are dealt into folds anew for that comparison.
N_REPEATS = 5


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
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray | None
    names: tuple[str, ...]
    box: FloatArray | None = None

    def corners(self, widened: int | None = None) -> Sample:
        """The range of the inputs, as a sample of two rows; that of one input widened, but not beyond zero."""
        box = np.array([self.X.min(axis=0), self.X.max(axis=0)] if self.box is None else self.box)
        if widened is not None:
            low, high = box[:, widened]
            margin = MARGIN * (high - low)
            box[0, widened] = max(low - margin, 0.5 * low) if low >= 0.0 else low - margin
            box[1, widened] = min(high + margin, 0.5 * high) if high <= 0.0 else high + margin
        return Sample(np.ascontiguousarray(box.T), self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Errors on rows that a fit did not see.

    Parameters
    ----------
    errors : ndarray of shape (n_equations, n_folds)
        Mean squared error of each fold, infinite where a prediction is not finite.
    """

    errors: FloatArray

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


def cross_validated(
    expressions: Sequence[Expression], rows: Rows, n_folds: int = N_FOLDS, n_repeats: int = 1
) -> Validation:
    """Refit the constants of each equation without a fold of the rows, and look at its errors there.

    The folds are drawn with a fixed seed from rows in a fixed order: the result is a function of the data.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> rows = Rows(x[:, None], 2.0 * x, None, ("x0",))
    >>> cross_validated([Expression.of("x0"), Expression.of(1.0)], rows).mean.round(3)
    array([0.   , 0.356])
    """
    rng = np.random.default_rng(0)
    order = np.lexsort((rows.y, *rows.X.T))
    forms = [split_form(expression) for expression in expressions]
    n = min(n_folds, len(order))
    folds = [fold for _ in range(n_repeats) for fold in np.array_split(rng.permutation(order), n)]
    errors = np.array([_fold_errors(forms, rows, fold) for fold in folds if len(fold) < len(order)])
    return Validation(errors.T if len(errors) else np.full((len(forms), 1), np.inf))


def _fold_errors(forms: Sequence[Form], rows: Rows, fold: Any) -> FloatArray:
    kept = np.ones(len(rows.y), dtype=bool)
    kept[fold] = False
    weights = None if rows.weights is None else rows.weights[kept]
    X = np.ascontiguousarray(rows.X.T)
    fitter = Fitter(np.ascontiguousarray(X[:, kept]), rows.names, rows.y[kept], weights, 1.0)
    outside = Fitter(np.ascontiguousarray(X[:, ~kept]), rows.names, rows.y[~kept], None, 1.0)
    w = None if rows.weights is None else rows.weights[~kept]
    errors = []
    with np.errstate(all="ignore"):
        for fitted in fitter.fit(forms, FIT_ITERATIONS):
            residual = outside.y - fitted.coefficients @ outside.values(fitted.terms)
            if not math.isfinite(fitted.nmse) or (w is not None and not w.any()):
                errors.append(math.inf if not math.isfinite(fitted.nmse) else 0.0)
                continue
            error = float(np.average(residual**2, weights=w))
            errors.append(error if math.isfinite(error) else math.inf)
    return np.array(errors)


def linear_form(rows: Rows) -> Expression | None:
    """The straight line in all columns that vary, to be fitted; None where there are too many for the rows."""
    varying = [name for name, column in zip(rows.names, rows.X.T, strict=True) if np.ptp(column) > 0.0]
    if not varying or len(varying) * ROWS_PER_COLUMN > len(rows.y):
        return None
    total = Expression.of(varying[0])
    for name in varying[1:]:
        total = Expression.of("add", total, name)
    return Expression.of("add", total, 1.0)


def check_select(select: object) -> None:
    """Refuse what is not a rule of choice, before a search is spent on it."""
    if not callable(select) and select not in RULES:
        raise ParameterError(f"'select' must be one of {', '.join(RULES)}, or a callable. Got {select!r}.")


def chosen_index(candidates: Sequence[Candidate], table: pd.DataFrame, rows: Rows, select: str | Rule) -> int:
    """The row of the table of equations that a rule chooses.

    Parameters
    ----------
    candidates : sequence of Candidate
        One for each row of the table.
    table : DataFrame
        ``equations_``, as a rule of the user's own gets it.
    select : {"score", "distinct", "validation", "one-se"} or callable
    """
    if callable(select):
        index = select(table)
        if not isinstance(index, int | np.integer) or not -len(table) <= index < len(table):
            raise ParameterError(
                f"'select' must return the index of a row of equations_, 0 to {len(table) - 1}. Got {index!r}."
            )
        return int(index) % len(table)
    order = _ranked(candidates, table, rows, select)
    for index in order:
        if candidates[index].nmse < TRUSTED_NMSE or not has_pole(candidates[index].expression, rows):
            return index
    return order[0]


def has_pole(expression: Expression, rows: Rows) -> bool:
    """Whether a problem is certain within the range of the inputs, or just beyond the range of one of them."""
    places = [None, *(rows.names.index(name) for name in expression.variables)]
    return any(check_domain(expression, rows.corners(place)).answer is Answer.CERTAIN for place in places)


def _ranked(candidates: Sequence[Candidate], table: pd.DataFrame, rows: Rows, select: str) -> list[int]:
    """Indices, the best first."""
    by_score = sorted(range(len(candidates)), key=lambda i: candidates[i].rank, reverse=True)
    if select == "score" or candidates[by_score[0]].nmse < TRUSTED_NMSE:
        return by_score
    if select == "distinct":
        distinct = (table["min_novelty"] > TAU_ID).tolist()
        return sorted(by_score, key=lambda i: not distinct[i])
    found = cross_validated([candidate.expression for candidate in candidates], rows)
    by_error = sorted(range(len(candidates)), key=lambda i: (found.mean[i], candidates[i].complexity))
    if select == "validation":
        return by_error
    best = by_error[0]
    limit = found.mean[best] + found.standard_error[best]
    within = [i for i in range(len(candidates)) if found.mean[i] <= limit]
    simplest = sorted(within, key=lambda i: candidates[i].complexity)
    return simplest + [i for i in by_error if i not in within]


def baselines(rows: Rows, max_complexity: int, operators: Collection[str]) -> list[Expression]:
    """The constant, and the straight line where it is allowed, fitted to the rows."""
    forms = [Expression.of(1.0)]
    line = linear_form(rows) if {"add", "mul"} <= set(operators) else None
    if line is not None:
        forms.append(line)
    fitter = Fitter(np.ascontiguousarray(rows.X.T), rows.names, rows.y, rows.weights, 1.0)
    fits = fitter.fit([split_form(form) for form in forms])
    found = [assemble(fit.terms, fit.coefficients.tolist()) for fit in fits if math.isfinite(fit.nmse)]
    return [expression for expression in found if expression.complexity <= max(max_complexity, 1)]


def required_gain(n_rows: int, n_tried: int) -> float:
    """Share of the error by which an equation must beat a baseline that nobody searched for.

    The best of N forms explains a share 2 ln N / n of pure noise in n rows (the look-elsewhere effect).

    Examples
    --------
    >>> round(required_gain(250, 1000), 2), round(required_gain(40, 1000), 2)
    (0.15, 0.35)
    """
    return max(REQUIRED_GAIN, min(0.9, 2.0 * math.log(max(n_tried, 1)) / n_rows))


def better_baseline(
    chosen: Candidate, baselines: Sequence[Candidate], rows: Rows, n_tried: int = 1
) -> Candidate | None:
    """The straight line or the constant, where rows are few and the chosen equation does not clearly beat it.

    Parameters
    ----------
    n_tried : int
        Forms that the search has fitted.
    """
    if len(rows.y) >= FEW_ROWS or chosen.nmse < TRUSTED_NMSE:
        return None
    others = [baseline for baseline in baselines if baseline.expression != chosen.expression]
    if not others:
        return None
    forms = [chosen.expression, *(baseline.expression for baseline in others)]
    errors = cross_validated(forms, rows, n_repeats=N_REPEATS).mean
    best = int(np.argmin(errors[1:]))
    if errors[1 + best] * (1.0 - required_gain(len(rows.y), n_tried)) < errors[0]:
        return others[best]
    outward = _rim_errors([split_form(form) for form in (forms[0], forms[1 + best])], rows, chosen.expression.variables)
    return others[best] if outward[1] < outward[0] else None


def _rim_errors(forms: Sequence[Form], rows: Rows, names: Sequence[str]) -> FloatArray:
    """Mean error on the lowest and the highest tenth of each input, the constants refitted to the other rows.

    A power that was fitted to noise shows at the rim, not in folds dealt at random.
    """
    n = max(2, len(rows.y) // 10)
    orders = [np.lexsort((rows.y, rows.X[:, rows.names.index(name)])) for name in names]
    errors = [_fold_errors(forms, rows, fold) for order in orders for fold in (order[:n], order[-n:])]
    return np.mean(errors, axis=0) if errors else np.zeros(len(forms))
