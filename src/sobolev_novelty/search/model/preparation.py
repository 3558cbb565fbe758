"""From the user's table to the problem an engine sees.

Equal rows are merged, columns and rows chosen where there are too many, and columns far from one put in other units.

Rows are brought into a fixed order and equal ones are merged into one with their joint weight. A row of weight two and
a row given twice are then the same problem, and the order of the rows does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, Sample, as_target, numeric_array
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.search.contract.engine import Deadline, UserTerms
from sobolev_novelty.search.problem.dimensions import Dimensions
from sobolev_novelty.search.problem.natural_units import NaturalUnits, natural_units
from sobolev_novelty.search.problem.units import Units

#: Rows an engine searches on, and those that it goes on with in its second half (:attr:`Problem.more`); constants are
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


@dataclass(frozen=True, eq=False)
class Prepared:
    """What an engine searches on."""

    #: In the user's units; only chosen columns, named ``x0, x1, …`` by their place in the user's table.
    given: Rows
    units: Units  # what the columns are divided by in a search
    columns: tuple[int, ...]  # chosen columns of the user's table
    n_rows: int  # distinct rows of the user's table, of a very long one among those looked at
    is_complete: bool  # whether every row of the user's table is among those given
    more: Rows | None = None  # those and further ones, in the user's units, where there are any
    natural: NaturalUnits | None = None  # which inputs were set to one before

    @cached_property
    def rows(self) -> Rows:
        """The rows of the search, in its own units."""
        return self._searched(self.given)

    @property
    def more_rows(self) -> Rows | None:
        """Those with further ones."""
        return None if self.more is None else self._searched(self.more)

    def _searched(self, rows: Rows) -> Rows:
        pure = rows if self.natural is None else self.natural.applied(rows)
        return replace(pure, sample=Sample(self.units.applied(pure.sample.X, pure.names), pure.names))

    def table(self, names: Sequence[str]) -> Rows:
        """The rows of the search with all of the user's columns; those not searched on are 0."""
        X = np.zeros((len(names), len(self.given)))
        X[list(self.columns)] = self.given.sample.X
        return replace(self.rows, sample=Sample(X, tuple(names)))


def prepare(rows: Rows, rng: np.random.Generator, deadline: Deadline | None = None) -> Prepared:
    """Merge, order and choose rows and columns.

    ``deadline``: of the whole fit: where little time is left, columns are ranked without trees.

    >>> X = np.array([[2.0], [1.0], [2.0]])
    >>> prepared = prepare(Rows.of(X, X[:, 0]), np.random.default_rng(0))
    >>> prepared.rows.X.tolist(), (prepared.rows.weights * 3 / 2).tolist()
    ([[1.0], [2.0]], [1.0, 2.0])
    """
    _refuse_what_has_no_square(rows.y)
    n_rows, more = len(rows), None
    if n_rows > MAX_MERGED_ROWS:
        rows = rows.some(np.sort(rng.choice(n_rows, MAX_MERGED_ROWS, replace=False)))
    rows = replace(rows.merged, level=None, x_sigma=None)
    n_distinct = len(rows)
    is_complete = n_rows <= MAX_MERGED_ROWS and n_distinct <= MAX_ROWS
    if n_distinct > MAX_ROWS:
        drawn = rng.choice(n_distinct, min(n_distinct, MAX_MORE_ROWS), replace=False)
        more, rows = rows.some(np.sort(drawn)), rows.some(np.sort(drawn[:MAX_ROWS]))
    in_time = deadline is None or deadline.remaining > SECONDS_FOR_TREES
    columns = chosen_columns(rows.X, rows.y, with_trees=in_time)
    names = tuple(f"x{k}" for k in columns)
    given, wide = (some and replace(some, sample=Sample(some.sample.X[columns], names)) for some in (rows, more))
    assert given is not None
    units = Units.of(given.sample.X, names)
    return Prepared(given, units, tuple(int(k) for k in columns), n_distinct, is_complete, wide)


def with_units(
    dimensions: Dimensions, prepared: Prepared, user: UserTerms, guesses: Sequence[Expression], *, is_plain: bool
) -> tuple[Prepared, UserTerms, Dimensions | None, list[Expression]]:
    """A problem whose columns have units, in the user's names; where it can be, one of pure numbers.

    ``is_plain``: whether it can: limits on forms hold for equations of the user's own columns, not for those of pure
    numbers.
    """
    for guess in guesses:
        dimensions.check(guess)
    own = dimensions.renamed({name: own for own, name in user.names.items()})
    guesses = [*guesses, *(user.written(e) for e in own.monomials(prepared.given.names))]
    natural = natural_units(own, prepared.given) if is_plain else None
    if natural is None:
        return prepared, user, own, guesses
    units = Units.of(natural.applied(prepared.given).sample.X, natural.names)
    pure = replace(prepared, units=units, natural=natural)
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
