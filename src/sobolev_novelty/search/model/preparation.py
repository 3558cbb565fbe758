"""From the user's table to the problem an engine sees.

Equal rows are merged, columns and rows chosen where there are too many, and columns far from one put in other units.

Rows are brought into a fixed order and equal ones are merged into one with their joint weight. A row of weight two and
a row given twice are then the same problem, and the order of the rows does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample, as_target, numeric_array
from sobolev_novelty.core.score import merged_rows
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.search.contract.engine import Deadline, MoreRows, UserTerms
from sobolev_novelty.search.problem.dimensions import Dimensions
from sobolev_novelty.search.problem.natural_units import natural_units
from sobolev_novelty.search.problem.units import Units

#: Rows an engine searches on, and those that it goes on with in its second half (:class:`MoreRows`); constants are
#: polished on all rows afterwards.
MAX_ROWS, MAX_MORE_ROWS = 2000, 10_000
#: Columns an engine searches on.
MAX_COLUMNS = 20
#: Larger tables are sampled before equal rows are merged.
MAX_MERGED_ROWS = 100_000
#: Targets that are larger, or vary by less than one over this, have squares that are not finite, or 0.
LARGEST_TARGET = 1e140
#: Trees and mutual information take a second or two of a fit, most of it their import.
SECONDS_FOR_TREES = 6.0

IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What an engine searches on.

    Parameters
    ----------
    sample : Sample
        Named ``x0, x1, …`` by the column's place in the user's table; only chosen columns are there.
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,) or None
        With mean 1.
    columns : tuple of int
        Chosen columns of the user's table.
    n_rows : int
        Distinct rows of the user's table, of a very long one among those looked at.
    is_complete : bool
        Whether every row of the user's table is in the sample.
    units : Units
        What the columns of the sample were divided by.
    X_user : ndarray of shape (n_features, n_rows)
        The sample's columns in the user's units.
    more : MoreRows, optional
        The sample and further rows, where there are any.
    more_in_user_units : ndarray of shape (n_features, n_more_rows), optional
        Their inputs in the user's units.
    """

    sample: Sample
    y: FloatArray
    weights: FloatArray | None
    columns: tuple[int, ...]
    n_rows: int
    is_complete: bool
    units: Units
    X_user: FloatArray
    more: MoreRows | None = None
    more_in_user_units: FloatArray | None = None

    def table(self, n_features: int) -> FloatArray:
        """The rows of the search with all of the user's columns; those not searched on are 0."""
        table = np.zeros((self.sample.n_samples, n_features))
        table[:, list(self.columns)] = self.X_user.T
        return table


def prepare(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    rng: np.random.Generator,
    deadline: Deadline | None = None,
) -> Prepared:
    """Merge, order and choose rows and columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    deadline : Deadline, optional
        Of the whole fit: where little time is left, columns are ranked without trees.

    Examples
    --------
    >>> X = np.array([[2.0], [1.0], [2.0]])
    >>> prepared = prepare(X, X[:, 0], None, np.random.default_rng(0))
    >>> prepared.sample.X.tolist(), (prepared.weights * 3 / 2).tolist()
    ([[1.0, 2.0]], [1.0, 2.0])
    """
    _refuse_what_has_no_square(y)
    n_rows = len(y)
    if n_rows > MAX_MERGED_ROWS:
        rows = np.sort(rng.choice(n_rows, MAX_MERGED_ROWS, replace=False))
        X, y, weights = X[rows], y[rows], None if weights is None else weights[rows]
    X, y, weights = merged_rows(X, y, weights)
    n_distinct = len(y)
    is_complete = n_rows <= MAX_MERGED_ROWS and n_distinct <= MAX_ROWS
    more: tuple[FloatArray, FloatArray, FloatArray | None] | None = None
    if n_distinct > MAX_ROWS:
        drawn = rng.choice(n_distinct, min(n_distinct, MAX_MORE_ROWS), replace=False)
        rows, all_drawn = np.sort(drawn[:MAX_ROWS]), np.sort(drawn)
        more = X[all_drawn], y[all_drawn], None if weights is None else weights[all_drawn]
        X, y, weights = X[rows], y[rows], None if weights is None else weights[rows]
    in_time = deadline is None or deadline.remaining > SECONDS_FOR_TREES
    columns = chosen_columns(X, y, with_trees=in_time)
    names = tuple(f"x{k}" for k in columns)
    searched = np.ascontiguousarray(X[:, columns].T)
    units = Units.of(searched, names)
    sample = Sample(units.applied(searched, names), names)
    chosen = tuple(int(k) for k in columns)
    prepared = Prepared(sample, np.ascontiguousarray(y), weights, chosen, n_distinct, is_complete, units, searched)
    if more is None:
        return prepared
    wide = np.ascontiguousarray(more[0][:, columns].T)
    rest = MoreRows(Sample(units.applied(wide, names), names), np.ascontiguousarray(more[1]), more[2])
    return replace(prepared, more=rest, more_in_user_units=wide)


def with_units(
    dimensions: Dimensions, prepared: Prepared, user: UserTerms, guesses: Sequence[Expression], *, is_plain: bool
) -> tuple[Prepared, UserTerms, Dimensions | None, list[Expression]]:
    """A problem whose columns have units, in the user's names; where it can be, one of pure numbers.

    Parameters
    ----------
    is_plain : bool
        Whether it can: limits on forms hold for equations of the user's own columns, not for those of pure numbers.
    """
    for guess in guesses:
        dimensions.check(guess)
    names = prepared.sample.names
    own = dimensions.renamed({name: own for own, name in user.names.items()})
    guesses = [*guesses, *(user.written(e) for e in own.monomials(names))]
    natural = natural_units(own, names, prepared.X_user, prepared.y) if is_plain else None
    if natural is None:
        return prepared, user, own, guesses
    rows = natural.applied(prepared.X_user, names, prepared.y, prepared.weights)
    units = Units.of(rows.X, natural.names)
    sample = Sample(units.applied(rows.X, natural.names), natural.names)
    pure = replace(prepared, sample=sample, y=rows.y, weights=rows.weights, units=units, X_user=rows.X)
    if prepared.more is not None and prepared.more_in_user_units is not None:
        wide = natural.applied(prepared.more_in_user_units, names, prepared.more.y, prepared.more.weights)
        more = MoreRows(Sample(units.applied(wide.X, natural.names), natural.names), wide.y, wide.weights)
        pure = replace(pure, more=more, more_in_user_units=wide.X)
    return pure, replace(user, units=units, natural=natural), None, guesses


def refuse_several_targets(y: Any) -> None:
    """Refuse a target of several columns."""
    shape = np.shape(np.asarray(y))  # an array-like need not answer NumPy's functions
    if len(shape) == 2 and shape[1] > 1:
        raise ParameterError(
            f"'y' must have one column. Got {shape[1]}. For one equation per column use scikit-learn's "
            "MultiOutputRegressor(SymbolicRegressor(…)).fit(X, y); sobolev_novelty.novelty takes the result."
        )


def _refuse_what_has_no_square(y: FloatArray) -> None:
    """Refuse a target whose squared errors no float can hold."""
    size = float(np.max(np.abs(y)))
    spread = float(np.ptp(y)) if size < LARGEST_TARGET else size
    if spread and not 1.0 / LARGEST_TARGET < spread < LARGEST_TARGET:
        raise DataError(
            f"'y' must vary by more than {1.0 / LARGEST_TARGET:g} and less than {LARGEST_TARGET:g}: squares of errors "
            f"go beyond what floats hold. Got {spread:.3g}. Take it in another unit, as y / {spread:.0e}."
        )


def checked_weights(sample_weight: Any, X: FloatArray) -> FloatArray:
    """Weights of the rows, none of them negative, not all zero."""
    weights = as_target(sample_weight, len(X), "sample_weight")
    if (weights < 0.0).any() or not (weights > 0.0).any():
        raise ParameterError("'sample_weight' must not be negative, and not all zero.")
    return weights


def row_weights(
    X: FloatArray, sample_weight: Any, sigma: Any, x_sigma: Any
) -> tuple[FloatArray | None, FloatArray | None]:
    """Weights of the rows, and the errors of the inputs, from what the user knows of the noise.

    Examples
    --------
    >>> row_weights(np.ones((2, 1)), None, [0.5, 1.0], 0.1)
    (array([4., 1.]), array([0.1]))
    """
    n, d = X.shape
    if sigma is None:
        if x_sigma is not None:
            raise ParameterError("'x_sigma' needs 'sigma', the standard deviation of the target's own noise. Got None.")
        return (None if sample_weight is None else checked_weights(sample_weight, X)), None
    if sample_weight is not None:
        raise ParameterError("'sigma' says what each row is worth: leave out 'sample_weight', or give it alone.")
    own = _positive(sigma, n, "sigma", "one for each row")
    return own**-2.0, None if x_sigma is None else _positive(x_sigma, d, "x_sigma", "one for each input", least=0.0)


def _positive(values: Any, n: int, name: str, what: str, least: float = math.ulp(0.0)) -> FloatArray:
    own = numeric_array(values, name)
    try:
        found = np.broadcast_to(own, (n,))
    except ValueError:
        raise ParameterError(f"'{name}' must be a number or {what}, {n}. Got {np.shape(values)}.") from None
    if not (np.isfinite(found) & (found >= least)).all():
        raise ParameterError(
            f"'{name}' must be positive and finite. Got {float(found.min()):g} to {float(found.max()):g}."
        )
    return np.array(found)


def chosen_columns(
    X: FloatArray, y: FloatArray, n_columns: int = MAX_COLUMNS, *, with_trees: bool = True
) -> IndexArray:
    """Columns worth searching on: all that vary, or the best ``n_columns`` of them.

    Columns are ranked by correlation with the target, by rank correlation, by mutual information and by the importance
    in a forest of randomised trees; a column's place is the best of its four ranks, then their sum. The trees have a
    fixed seed: the choice is a function of the data. Without trees the mutual information and the forest are replaced
    by the share of the target's variance that the deciles of a column explain.
    """
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
    if len(varying) == 0:
        return np.arange(min(1, X.shape[1]))
    if len(varying) <= n_columns:
        return varying
    Z = X[:, varying]
    scores = [
        np.abs(_correlations(Z, y)),
        np.abs(_correlations(_ranks(Z), _ranks(y[:, None])[:, 0])),
        *(_learned(Z, y) if with_trees else [_explained_by_deciles(Z, y)]),
    ]
    ranks = np.array([np.argsort(np.argsort(-score, kind="stable"), kind="stable") for score in scores])
    order = np.lexsort((ranks.sum(axis=0), ranks.min(axis=0)))
    return np.sort(varying[order[:n_columns]])


def _learned(Z: FloatArray, y: FloatArray) -> list[FloatArray]:
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.feature_selection import mutual_info_regression

    forest = ExtraTreesRegressor(n_estimators=64, min_samples_leaf=3, random_state=0, n_jobs=1).fit(Z, y)
    return [mutual_info_regression(Z, y, random_state=0), forest.feature_importances_]


def _explained_by_deciles(Z: FloatArray, y: FloatArray) -> FloatArray:
    decile = (10.0 * _ranks(Z) / len(y)).astype(np.intp)
    found = np.zeros(Z.shape[1])
    for k, column in enumerate(decile.T):
        sizes = np.bincount(column, minlength=10)
        means = np.bincount(column, weights=y - y.mean(), minlength=10) / np.maximum(sizes, 1)
        found[k] = float(sizes @ means**2)
    return found


def _ranks(Z: FloatArray) -> FloatArray:
    return np.argsort(np.argsort(Z, axis=0, kind="stable"), axis=0, kind="stable").astype(np.float64)


def _correlations(Z: FloatArray, y: FloatArray) -> FloatArray:
    centred = Z - Z.mean(axis=0)
    target = y - y.mean()
    lengths = np.linalg.norm(centred, axis=0) * np.linalg.norm(target)
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(centred.T @ target / lengths))
