"""The rows that decide, in an order that does not depend on how they were given."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.price.noise import Noise, weights_of
from sobolev_novelty.search.problem.loss import Loss

#: Points that stand for the box of the inputs, and those beside each row, as many altogether.
N_POINTS = 2000
#: Numbers held at once where many equations are evaluated.
_VALUES_AT_ONCE = 1 << 23


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows equations are compared on.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,) or None
    names : tuple of str
    loss : Loss
        What stands for squared errors in the comparison.
    level : float, optional
        Standard deviation of the noise of a row of weight 1, where it is known.
    x_sigma : ndarray of shape (n_features,), optional
        Standard deviations of the inputs' own errors; ``level`` is known then.
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray | None
    names: tuple[str, ...]
    loss: Loss = field(default_factory=Loss)
    level: float | None = None
    x_sigma: FloatArray | None = None

    @property
    def sample(self) -> Sample:
        """The inputs as a sample."""
        return Sample(np.ascontiguousarray(self.X.T), self.names)

    @property
    def ordered(self) -> Rows:
        """The same rows, sorted in a way that the order of rows and columns does not change."""
        columns = sorted(range(self.X.shape[1]), key=lambda k: _seed(self.X[:, k]))
        order = np.lexsort((self.y, *(self.X[:, k] for k in columns)))
        w = None if self.weights is None else self.weights[order]
        return Rows(self.X[order], self.y[order], w, self.names, self.loss, self.level, self.x_sigma)

    @property
    def spread(self) -> float:
        """Standard deviation of the target; 1 where it is constant."""
        centre = np.average(self.y, weights=self.weights)
        return float(np.sqrt(np.average((self.y - centre) ** 2, weights=self.weights))) or 1.0

    def values(self, expressions: list[Expression], X: FloatArray | None = None) -> FloatArray:
        """Values of equations at the rows, or at those of X (n_features, n_points): (n_equations, n_points)."""
        X = np.ascontiguousarray(self.X.T) if X is None else X
        step = max(1, _VALUES_AT_ONCE // (8 * max(1, X.shape[1])))
        found = np.empty((len(expressions), X.shape[1]))
        with np.errstate(all="ignore"):
            for start in range(0, len(expressions), step):
                programs = kernels.compile_programs(expressions[start : start + step], self.names)
                found[start : start + step] = kernels.derivatives(programs, X)[:, 0]
        return found

    def heights(self, expression: Expression, values: FloatArray, noise: Noise) -> FloatArray:
        """The shape of the noise at an equation; errors of inputs count as far as its slopes carry them on.

        That is the effective variance of Orear (1982).
        """
        h = noise.heights(values)
        if self.x_sigma is None or self.level is None:
            return h
        with np.errstate(all="ignore"):
            slopes = derivatives([expression], self.sample, order=1)[0, 1:]
            carried = np.sum((slopes * self.x_sigma[:, None]) ** 2, axis=0) / self.level**2
        w = 1.0 if self.weights is None else self.weights
        return np.asarray(np.sqrt(h**2 + w * np.nan_to_num(carried, nan=0.0, posinf=0.0)))

    def weights_at(self, expression: Expression, values: FloatArray, noise: Noise) -> FloatArray | None:
        """Weights for a fit near an equation, with mean 1; those that are given where its values are not finite."""
        if (noise.is_constant and self.x_sigma is None) or not np.isfinite(values).all():
            return self.weights
        return weights_of(self.heights(expression, values, noise), self.weights)

    def box(self) -> FloatArray:
        """Points of the box of the inputs and a little beyond, (n_features, n_points): inputs come together anew.

        Each input by itself is distributed as in the rows. Beyond its ends it goes on as far as its tails say: by the
        mean excess of the √n most extreme values, but not beyond zero.
        """
        return np.array([_drawn(column) for column in self.X.T])

    def beside(self) -> FloatArray:
        """Points beside the rows, (n_features, n_points): each input of a row somewhere between its neighbours."""
        n = len(self.y)
        rows = (
            np.arange(max(1, N_POINTS // n) * n) % n if n <= N_POINTS else np.linspace(0, n - 1, N_POINTS).astype(int)
        )
        return np.array([_between(column, rows) for column in self.X.T])


def _seed(column: FloatArray) -> int:
    return zlib.crc32(np.sort(column).tobytes())


def _drawn(column: FloatArray) -> FloatArray:
    """Of one input, whatever the order of rows and columns."""
    ordered = np.sort(column)
    k = max(2, int(np.sqrt(len(ordered))))
    low, high = float(ordered[0]), float(ordered[-1])
    below = low - float((ordered[k - 1 : k] - ordered[:k]).mean())
    above = high + float((ordered[-k:] - ordered[-k]).mean())
    ends = max(below, 0.5 * low) if low >= 0.0 else below, min(above, 0.5 * high) if high <= 0.0 else above
    u = np.random.default_rng(_seed(column)).uniform(0.0, len(ordered) + 1.0, N_POINTS)
    return np.interp(u, np.arange(len(ordered) + 2.0), np.r_[ends[0], ordered, ends[1]])


def _between(column: FloatArray, rows: np.ndarray) -> FloatArray:
    known, inverse = np.unique(column, return_inverse=True)
    low, high = np.r_[known[:1], known[:-1]], np.r_[known[1:], known[-1:]]
    place = inverse.reshape(-1)[rows]
    u = np.random.default_rng(_seed(column)).random(len(rows))
    return np.asarray(low[place] + u * (high - low)[place])
