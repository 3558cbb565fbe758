r"""Rows: inputs, target, what each row is worth, and what follows from them, each fact worked out once.

Notation
--------
``n``  rows;  ``m``  distinct inputs among them;  ``w``  weights
``r``  residuals in units of the noise's shape, :math:`(y - f)/h`
``P``  sum of squares within the rows of equal inputs, the pure error;  ``A``  that of their means, the lack of fit
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.core.score import EXACT_NMSE, merged_rows

IntArray = npt.NDArray[np.intp]

#: Points that stand for the box of the inputs, and those beside each row, as many altogether.
N_POINTS = 2000


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs, target and weights."""

    sample: Sample
    y: FloatArray  # shape (n_samples,)
    weights: FloatArray | None = None  # shape (n_samples,)
    level: float | None = None  # standard deviation of the noise of a row of weight 1, where it is known
    #: shape (n_features,): standard deviations of the inputs' own errors; ``level`` is known then.
    x_sigma: FloatArray | None = None

    @classmethod
    def of(
        cls,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray | None = None,
        names: Sequence[str] | None = None,
        **known: Any,
    ) -> Rows:
        """Rows of a table, shape (n_samples, n_features).

        >>> Rows.of(np.ones((3, 2)), np.arange(3.0)).names
        ('x0', 'x1')
        """
        own = tuple(f"x{k}" for k in range(X.shape[1])) if names is None else tuple(names)
        return cls(Sample(np.ascontiguousarray(X.T), own), y, weights, **known)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the inputs."""
        return self.sample.names

    @cached_property
    def X(self) -> FloatArray:
        """The inputs as a table, (n_samples, n_features)."""
        return np.ascontiguousarray(self.sample.X.T)

    def some(self, keep: npt.NDArray[Any]) -> Rows:
        """Some of the rows, by a mask or by indices."""
        w = None if self.weights is None else self.weights[keep]
        return replace(self, sample=self.sample.rows(keep), y=self.y[keep], weights=w)

    def weighed(self, weights: FloatArray | None) -> Rows:
        """The same rows with other weights."""
        return replace(self, weights=weights)

    @property
    def merged(self) -> Rows:
        """Each row once, in lexicographic order: :func:`~sobolev_novelty.core.score.merged_rows`."""
        X, y, w = merged_rows(self.X, self.y, self.weights)
        level = self.level
        if level is not None and self.weights is not None:  # the weights are scaled to mean 1
            level *= math.sqrt(len(y) / np.sum(self.weights))
        return Rows.of(X, np.ascontiguousarray(y), w, self.names, level=level, x_sigma=self.x_sigma)

    @property
    def ordered(self) -> Rows:
        """The same rows, sorted in a way that the order of rows and columns does not change."""
        columns = sorted(self.sample.X, key=_seed)
        return self.some(np.lexsort((self.y, *columns)))

    # --- of the target

    @cached_property
    def own_weights(self) -> FloatArray:
        """Weights with mean 1."""
        return np.ones_like(self.y) if self.weights is None else self.weights / self.weights.mean()

    @cached_property
    def root(self) -> FloatArray | None:
        """Square roots of the weights."""
        return None if self.weights is None else np.sqrt(self.weights)

    @cached_property
    def total(self) -> float:
        """Weighted sum of squares of the target about its mean: what errors are relative to."""
        w = np.ones_like(self.y) if self.weights is None else self.weights
        return float(np.sum(w * (self.y - np.average(self.y, weights=w)) ** 2))

    @cached_property
    def rounding(self) -> float:
        """The sum of squares that is rounding: the share of the target's variance at which a fit is exact."""
        w = self.own_weights
        return max(EXACT_NMSE * float(w @ (self.y - np.average(self.y, weights=w)) ** 2), math.ulp(0.0))

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the target; 1 where it is constant."""
        centre = np.average(self.y, weights=self.weights)
        return float(np.sqrt(np.average((self.y - centre) ** 2, weights=self.weights))) or 1.0

    # --- of the inputs

    @cached_property
    def replicates(self) -> Replicates:
        """Which rows have equal inputs."""
        return Replicates.of(self.X)

    @cached_property
    def box(self) -> Sample:
        """Points of the box of the inputs and a little beyond: inputs come together anew.

        Each input by itself is distributed as in the rows. Beyond its ends it goes on as far as its tails say: by the
        mean excess of the √n most extreme values, but not beyond zero.
        """
        return Sample(np.array([_drawn(column) for column in self.sample.X]), self.names)

    @cached_property
    def beside(self) -> Sample:
        """Points beside the rows: each input of a row somewhere between its neighbours."""
        n = len(self)
        rows = (
            np.arange(max(1, N_POINTS // n) * n) % n if n <= N_POINTS else np.linspace(0, n - 1, N_POINTS).astype(int)
        )
        return Sample(np.array([_between(column, rows) for column in self.sample.X]), self.names)

    def folds(self, n_folds: int) -> list[IntArray]:
        """Parts of the rows for a cross-validation, drawn with a fixed seed: a function of the data."""
        shuffled = np.random.default_rng(0).permutation(len(self))
        return [np.sort(part) for part in np.array_split(shuffled, min(n_folds, len(self)))]


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """Which rows have equal inputs."""

    group: IntArray  # ndarray of int, shape (n_samples,): the number of its input for each row
    n_distinct: int

    @classmethod
    def of(cls, X: FloatArray) -> Replicates:
        """Those of a table, shape (n_samples, n_features).

        >>> Replicates.of(np.array([[1.0], [2.0], [1.0]])).n_distinct
        2
        """
        _, group = np.unique(X, axis=0, return_inverse=True)
        group = group.reshape(-1)
        return cls(group, int(group.max(initial=-1)) + 1)

    @property
    def n_rows(self) -> int:
        """All rows."""
        return len(self.group)

    def split(self, r: FloatArray, w: FloatArray) -> tuple[float, float]:
        """Pure error and lack of fit: P and A."""
        if self.n_distinct == self.n_rows:
            return 0.0, float(w @ r**2)
        sizes = np.bincount(self.group, w, self.n_distinct)
        means = np.bincount(self.group, w * r, self.n_distinct) / sizes
        return float(w @ (r - means[self.group]) ** 2), float(sizes @ means**2)


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


def _between(column: FloatArray, rows: IntArray) -> FloatArray:
    known, inverse = np.unique(column, return_inverse=True)
    low, high = np.r_[known[:1], known[:-1]], np.r_[known[1:], known[-1:]]
    place = inverse.reshape(-1)[rows]
    u = np.random.default_rng(_seed(column)).random(len(rows))
    return np.asarray(low[place] + u * (high - low)[place])
