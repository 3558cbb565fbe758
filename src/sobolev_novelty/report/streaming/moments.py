r"""Running spread of inputs and running size of a candidate, in one pass, from blocks of rows.

Notation
--------
``x``      entries of one input seen so far, the finite ones;  ``n`` their number
``shift``  the first of them;  ``unit``  a power of two near the largest |x|
``mean, M2``  mean of z = (x − shift)/unit, and Σ (z − mean)²
``s``      values of the candidate at the used rows

Blocks combine by the formula of Chan, Golub and LeVeque (1983). Means count from ``shift``, so that inputs far from
zero keep their digits, and in multiples of ``unit``, so that squares of 1e200 or 1e-200 stay in the range of floats;
powers of two make the change of unit exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray

IntArray = npt.NDArray[np.int64]

_SMALLEST_UNIT = 2.0**-1022


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Number, range, mean and spread of each input over its finite entries; every field has shape (n_features,)."""

    count: IntArray
    low: FloatArray
    high: FloatArray
    shift: FloatArray
    unit: FloatArray
    mean: FloatArray
    M2: FloatArray

    def scales(self) -> FloatArray:
        """Standard deviations; exactly 0 for a constant column, as those of a sample."""
        spread = np.sqrt(self.M2 / np.maximum(self.count, 1)) * self.unit
        return np.where((self.count == 0) | (self.low == self.high), 0.0, spread)


def no_moments(n_features: int) -> Moments:
    """The moments of no rows."""
    zero = np.zeros(n_features)
    inf = np.full(n_features, np.inf)
    return Moments(np.zeros(n_features, np.int64), inf, -inf, zero, np.full(n_features, _SMALLEST_UNIT), zero, zero)


def moments(X: FloatArray) -> Moments:
    """Moments of a block of shape (n_features, n_samples) with at least one sample.

    >>> import numpy as np
    >>> moments(np.array([[1.0, 3.0, np.nan], [5.0, 5.0, 5.0]])).scales()
    array([1., 0.])
    """
    finite = np.isfinite(X)
    if finite.all():
        return _moments(X, X[:, 0].copy(), np.full(len(X), X.shape[1], np.int64))
    count = finite.sum(axis=1, dtype=np.int64)
    first = np.where(count > 0, X[np.arange(len(X)), finite.argmax(axis=1)], 0.0)
    found = _moments(np.where(finite, X, first[:, None]), first, count, missing=~finite)
    nothing = no_moments(len(X))
    return Moments(
        count,
        *(
            np.where(count > 0, getattr(found, name), getattr(nothing, name))
            for name in ("low", "high", "shift", "unit", "mean", "M2")
        ),
    )


def _moments(
    X: FloatArray, shift: FloatArray, count: IntArray, missing: npt.NDArray[np.bool_] | None = None
) -> Moments:
    """Moments of a finite block; the entries that stand for missing ones equal the shift."""
    low, high = X.min(axis=1), X.max(axis=1)
    unit = _power_of_two(np.maximum(np.abs(low), np.abs(high)))
    z = X / unit[:, None]
    z -= (shift / unit)[:, None]
    mean = z.sum(axis=1) / np.maximum(count, 1)
    z -= mean[:, None]
    if missing is not None:
        z[missing] = 0.0
    return Moments(count, low, high, shift, unit, mean, np.einsum("ij,ij->i", z, z))


def merge_moments(a: Moments, b: Moments) -> Moments:
    """The moments of both blocks together."""
    n = a.count + b.count
    unit = np.maximum(a.unit, b.unit)
    to_a, to_b = a.unit / unit, b.unit / unit
    shift = np.where(a.count == 0, b.shift, a.shift)
    mean_a = a.mean * to_a
    delta = b.mean * to_b + (b.shift / unit - shift / unit) - mean_a
    delta = np.where(b.count == 0, 0.0, delta)
    share = b.count / np.maximum(n, 1)
    M2 = a.M2 * to_a**2 + b.M2 * to_b**2 + delta**2 * (a.count * share)
    low, high = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
    return Moments(n, low, high, shift, unit, mean_a + delta * share, M2)


@dataclass(frozen=True, slots=True)
class Size:
    """Σ s² over the used rows, in multiples of ``unit``²; an infinite unit says that some s is not finite."""

    unit: float = 0.0
    total: float = 0.0

    def root_mean_square(self, n: int) -> float:
        """σ_s of Eq. 1 over ``n`` rows; 1 where the candidate vanishes or is not finite."""
        if self.unit == 0.0 or not math.isfinite(self.unit):
            return 1.0
        return self.unit * math.sqrt(self.total / n)


def size(s: FloatArray) -> Size:
    """The size of a block of values."""
    peak = float(np.abs(s).max(initial=0.0))
    if not math.isfinite(peak):
        return Size(math.inf)
    if peak == 0.0:
        return Size()
    unit = float(_power_of_two(np.array([peak]))[0])
    z = s / unit
    return Size(unit, float(z @ z))


def merge_sizes(a: Size, b: Size) -> Size:
    """The size of both blocks together."""
    unit = max(a.unit, b.unit)
    if unit == 0.0 or math.isinf(unit):
        return Size(unit)
    return Size(unit, a.total * (a.unit / unit) ** 2 + b.total * (b.unit / unit) ** 2)


def _power_of_two(peak: FloatArray) -> FloatArray:
    """The largest power of two that is at most ``peak``, or the smallest unit."""
    return np.asarray(np.maximum(np.ldexp(1.0, np.frexp(peak)[1] - 1), _SMALLEST_UNIT))
