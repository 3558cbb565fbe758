r"""What one pass over the rows leaves behind: enough for the whole report, however many rows there were.

Notation
--------
``m, d``  terms and inputs;  ``n``  rows
``R_0``   triangular factor of the term values, ``R_j`` of ∂φ/∂x_j, ``R_jk`` of ∂²φ/∂x_j∂x_k, each (m, m)
``Psi``   signatures of all rows; ΨᵀΨ = Σ_r f_r² R_rᵀR_r with the block factors f_r of Eq. 1

The factors f_r hold the standard deviations of the inputs, which are known only after the last row. So each derivative
row keeps a factor of its own, in units of the largest input seen so far, and the stack of f_r R_r stands for Ψ at the
end. Units are powers of two, so that a change of them is exact; without them the slopes of 1/x at 1e200 would be zero.
Factors combine by QR (TSQR), never through a Gram matrix: digits of small novelties would be lost.

The constant is the first column of every factor, so that the rows of R_0 after the first are the factor of the centred
values, whatever the blocks were: one pass gives the novelties with the constant as a term and with a free intercept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.core.geometry import Geometry, n_derivative_rows, without_intercept, zero_where_constant
from sobolev_novelty.core.linear.projection import Residuals, combine, factor, residuals
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.kernels.evaluate import along_blocks, far_derivatives, is_far
from sobolev_novelty.report.source import DROP_REASONS
from sobolev_novelty.report.streaming.moments import (
    IntArray,
    Moments,
    Size,
    merge_moments,
    merge_sizes,
    moments,
    no_moments,
    size,
)
from sobolev_novelty.report.verdicts import TermVerdict, verdicts_of_factor

#: Rows that are evaluated and factored at once, at most: their derivatives stay in cache.
TILE_ROWS = 8192
#: Values and derivatives of a tile, at most.
TILE_NUMBERS = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """What is computed at each row."""

    programs: kernels.Programs  # the terms
    coefficients: FloatArray  # shape (n_terms,)
    columns: IntArray  # inputs that the terms use
    geometry: Geometry

    @property
    def n_terms(self) -> int:
        """Number of terms, one program each."""
        return self.programs.n_programs

    @property
    def n_blocks(self) -> int:
        """Rows of values and derivatives that each term has at a sample."""
        return int(n_derivative_rows(self.programs.n_features, self.geometry.order))

    @property
    def tile_rows(self) -> int:
        """Rows that are evaluated at a time: enough for one factorisation, few enough for the cache."""
        return max(4 * self.n_terms, 64, min(TILE_ROWS, TILE_NUMBERS // max(1, self.n_terms * self.n_blocks)))


@dataclass(frozen=True, slots=True, eq=False)
class RowSummary:
    """Sums over the rows seen so far."""

    #: shape (n_blocks, 1 + n_terms, 1 + n_terms): R_0, R_j, R_jk along inputs in ``units``; the constant comes before
    #: the terms.
    factors: FloatArray
    units: FloatArray  # shape (n_features,)
    moments: Moments  # of every input, over its finite entries
    size: Size  # of the candidate, over the used rows
    n_samples: int
    n_used: int
    dropped: IntArray  # int64, shape (3,): rows not used, by :data:`~sobolev_novelty.report.reporting.DROP_REASONS`
    n_finite: IntArray  # int64, shape (n_terms,): rows where the value of each term is finite


def no_rows(recipe: Recipe) -> RowSummary:
    """The summary of no rows."""
    m = recipe.n_terms
    return RowSummary(
        np.zeros((recipe.n_blocks, m + 1, m + 1)), np.ones(recipe.programs.n_features),
        no_moments(recipe.programs.n_features), Size(), 0, 0, np.zeros(len(DROP_REASONS), np.int64),
        np.zeros(m, np.int64),
    )  # fmt: skip


def merge_summaries(a: RowSummary, b: RowSummary) -> RowSummary:
    """The summary of both sets of rows."""
    units = np.where(a.moments.count == 0, b.units, np.maximum(a.units, b.units))
    units = np.where(b.moments.count == 0, a.units, units)
    return RowSummary(
        combine(in_units(a, units), in_units(b, units)), units, merge_moments(a.moments, b.moments),
        merge_sizes(a.size, b.size), a.n_samples + b.n_samples, a.n_used + b.n_used, a.dropped + b.dropped,
        a.n_finite + b.n_finite,
    )  # fmt: skip


def in_units(found: RowSummary, units: FloatArray) -> FloatArray:
    """The factors of a summary along inputs in other units."""
    if np.array_equal(units, found.units):
        return found.factors
    order = 0 if len(found.factors) == 1 else 1 if len(found.factors) == 1 + len(units) else 2
    with np.errstate(over="ignore", invalid="ignore"):
        changed = found.factors * along_blocks(units / found.units, order)[:, None, None]
    return np.asarray(np.where(found.factors == 0.0, 0.0, changed))  # no slope in any unit


def summarise(recipe: Recipe, X: FloatArray) -> RowSummary:
    """The summary of a block of shape (n_features, n_samples), tile by tile."""
    n, step = X.shape[1], recipe.tile_rows
    tiles = (_tile(recipe, np.ascontiguousarray(X[:, i : i + step])) for i in range(0, n, step))
    return reduce(merge_summaries, tiles, no_rows(recipe))


def _tile(recipe: Recipe, X: FloatArray) -> RowSummary:
    n, order, seen = X.shape[1], recipe.geometry.order, moments(X)
    units = np.ones(len(X))
    if order and recipe.geometry.coordinates == "standardized":
        units[recipe.columns] = np.where(seen.count > 0, seen.unit, 1.0)[recipe.columns]
    far = is_far(units)
    rows = (
        far_derivatives(recipe.programs, X, units, order) if far else kernels.derivatives(recipe.programs, X, order)
    )  # (m, n_blocks, n)
    dropped = np.zeros(len(DROP_REASONS), np.int64)
    n_finite = np.full(recipe.n_terms, n, np.int64)
    finite = np.isfinite(rows)
    if not finite.all():
        used = finite.all(axis=(0, 1))
        bad_input = ~np.isfinite(X[recipe.columns]).all(axis=0) & ~used
        bad_value = ~finite[:, 0].all(axis=0) & ~bad_input
        dropped[:] = bad_input.sum(), bad_value.sum(), (~used & ~bad_input & ~bad_value).sum()
        n_finite = finite[:, 0].sum(axis=1, dtype=np.int64)
        rows = rows[:, :, used]
    found = RowSummary(
        _factors(_with_constant(rows)), units if far else np.ones(len(X)), seen, size(_values(recipe, rows)), n,
        rows.shape[2], dropped, n_finite,
    )  # fmt: skip
    return found if far else replace(found, factors=in_units(found, units), units=units)


def _values(recipe: Recipe, rows: FloatArray) -> FloatArray:
    """The candidate at the used rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(recipe.coefficients @ rows[:, 0])


def _with_constant(rows: FloatArray) -> FloatArray:
    constant = np.zeros((1, *rows.shape[1:]))
    constant[:, 0] = 1.0
    return np.concatenate([constant, rows])


def _factors(rows: FloatArray) -> FloatArray:
    """R of each derivative row, of shape (n_blocks, m, m) from (m, n_blocks, n); rows of zeros where n < m."""
    m, n_blocks, n = rows.shape
    out = np.zeros((n_blocks, m, m))
    if m and n:
        out[:, : min(m, n)] = factor(rows.transpose(1, 2, 0))
    return out


def residuals_of_summary(found: RowSummary, geometry: Geometry) -> Residuals:
    """Novelty of every term from the summary of all rows (Eq. 2)."""
    scales = found.moments.scales() if geometry.coordinates == "standardized" else np.ones(len(found.moments.count))
    if not np.isfinite(scales).all():
        raise _beyond_range()
    weights = geometry.block_factors(scales / found.units) / np.sqrt(max(found.n_used, 1))
    # Derivatives near the end of the range of floats overflow when they are standardized, so their size is set aside.
    first = np.abs(found.factors).max(axis=(0, 1), initial=0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        Psi = found.factors / np.where(first == 0.0, 1.0, first) * weights[:, None, None]
    # Of an input that no term uses the slopes are zero, however it is spread.
    Psi = np.where(found.factors == 0.0, 0.0, Psi).reshape(-1, len(first))
    if not np.isfinite(Psi).all():
        raise _beyond_range()
    second = np.abs(Psi).max(axis=0, initial=0.0)
    Psi = Psi / np.where(second == 0.0, 1.0, second)
    if geometry.is_free:  # the first row is what the constant rebuilds of the values
        Psi = zero_where_constant(Psi[1:], np.linalg.norm(Psi, axis=0))
    result = residuals(Psi[:, 1:])
    with np.errstate(over="ignore"):
        lengths = result.lengths * (first * second)[1:]
    return Residuals(result.nu, lengths, result.is_null, result.R)


def _beyond_range() -> DataError:
    return DataError("The spread of an input is beyond the range of floats. Rescale the inputs and begin anew.")


def verdicts_of_summary(
    found: RowSummary, coefficients: FloatArray, geometry: Geometry, tau: float
) -> tuple[TermVerdict, ...]:
    """The words on every term that need neither a target nor single rows."""
    free = replace(geometry, intercept="free")
    result = residuals_of_summary(found, free)
    nu = without_intercept(result.nu, result.lengths, free)
    R = found.factors[0]
    peak = np.abs(R).max(axis=0, initial=0.0)
    unit = R / np.where(peak == 0.0, 1.0, peak)
    values = zero_where_constant(unit[1:], np.linalg.norm(unit, axis=0)) * peak
    return verdicts_of_factor(values[:, 1:], coefficients, nu, tau)
