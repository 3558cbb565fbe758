r"""The straight line on few rows: its coefficients are drawn towards zero as far as rows left out ask for it.

Least squares follows the noise of few rows in many columns. Ridge regression on standardised columns follows it less,
and leave-one-out errors, which have a closed form, say how much less. Where they say nothing clear the line is that of
least squares.

Notation
--------
``Z``  columns, each with mean 0 and spread 1;  ``t``  target less its mean;  ``w``  weights, with mean 1;
``Z = U diag(d) Vᵀ`` of the rows times √w;  ``λ``  penalty;  ``h``  leverages
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.validation import IndexArray, Rows

#: Penalties that are tried, for each row.
PENALTIES = np.logspace(-5.0, 2.0, 29)
#: Share by which the leave-one-out error must fall; for less, the line stays the one that everybody knows.
REQUIRED_GAIN = 0.02
#: Directions of the columns with less than this share of the largest spread are left out.
NEGLIGIBLE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """``intercept + X @ slopes``."""

    slopes: FloatArray
    intercept: float

    def at(self, X: FloatArray) -> FloatArray:
        """Its values at rows, shape (n_samples,)."""
        return np.asarray(X @ self.slopes + self.intercept)


def steady_line(X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> Line | None:
    """The line with the lowest leave-one-out error; None where least squares is nearly as good.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 12))
    >>> noisy = steady_line(X, X[:, 0] + rng.normal(size=30))
    >>> noisy is not None, steady_line(X, X[:, 0] - X[:, 1]) is None
    (True, True)
    """
    n = len(y)
    w = np.ones(n) if weights is None else weights * (n / weights.sum())
    root = np.sqrt(w)
    centre, middle = np.average(X, axis=0, weights=w), float(np.average(y, weights=w))
    largest = np.abs(X - centre).max(axis=0)  # squares of columns in awkward units could overflow
    largest = np.where(largest > 0.0, largest, 1.0)
    spread = np.sqrt(np.average(((X - centre) / largest) ** 2, axis=0, weights=w))
    scale = np.where(spread > 0.0, spread, 1.0) * largest
    U, d, Vt = np.linalg.svd(root[:, None] * ((X - centre) / scale), full_matrices=False)
    kept = d > NEGLIGIBLE * d[0]
    U, d, Vt = U[:, kept], d[kept], Vt[kept]
    along = U.T @ (root * (y - middle))
    penalties = np.r_[0.0, n * PENALTIES]
    shares = d**2 / (d**2 + penalties[:, None])
    residuals = root * (y - middle) - (shares * along) @ U.T
    leverages = shares @ (U**2).T + w / n
    with np.errstate(all="ignore"):
        errors = np.mean((residuals / (1.0 - leverages)) ** 2, axis=1)
    best = int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))
    if not errors[best] < (1.0 - REQUIRED_GAIN) * errors[0]:
        return None
    slopes = Vt.T @ (shares[best] / d * along) / scale
    return Line(slopes, middle - float(centre @ slopes))


def steadied(expression: Expression, rows: Rows) -> Expression:
    """A straight line of least squares, with steadier coefficients where they promise smaller errors on new rows."""
    line = steady_line(rows.X[:, _places(expression, rows)], rows.y, rows.weights)
    if line is None:
        return expression
    terms = [*(Expression.of(name) for name in expression.variables), Expression.of(1.0)]
    return assemble(terms, [*line.slopes.tolist(), line.intercept])


def held_out_squares(expression: Expression, rows: Rows, folds: Sequence[IndexArray]) -> FloatArray:
    """Squared error of that line at each row, the mean over the folds it is in, when it was not fitted to."""
    X = rows.X[:, _places(expression, rows)]
    total, times = np.zeros(len(rows.y)), np.zeros(len(rows.y))
    for fold in folds:
        kept = np.setdiff1d(np.arange(len(rows.y)), fold)
        weights = None if rows.weights is None else rows.weights[kept]
        line = steady_line(X[kept], rows.y[kept], weights) or least_squares_line(X[kept], rows.y[kept], weights)
        total[fold] += (line.at(X[fold]) - rows.y[fold]) ** 2
        times[fold] += 1.0
    return total / times


def least_squares_line(X: FloatArray, y: FloatArray, weights: FloatArray | None) -> Line:
    """The line of least squares."""
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    columns = np.column_stack([X, np.ones(len(y))])
    solution = np.linalg.lstsq(root[:, None] * columns, root * y, rcond=None)[0]
    return Line(solution[:-1], float(solution[-1]))


def _places(expression: Expression, rows: Rows) -> list[int]:
    return [rows.names.index(name) for name in expression.variables]
