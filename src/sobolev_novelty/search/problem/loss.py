r"""What a search minimises: squared errors, a robust loss by name, or a function of the user's own.

Every loss is turned into an error relative to that of the best constant, so that the score, the front and the choice
mean the same for all of them: 0 is a perfect fit, 1 a constant.

Notation
--------
``p``  prediction;  ``r = p − y``  residual;  ``w = ℓ′(r)/r``  weight of a row in iteratively reweighted least squares
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError, SobolevError

#: The target and a prediction -> one value per row, or their mean.
LossFunction = Callable[[FloatArray, FloatArray], Any]

NAMED = ("squared", "absolute", "huber")
#: Where Huber's loss turns from squares to absolute values, in robust standard deviations of the target.
HUBER_SHARE = 0.1
#: Residuals below this share of the median one weigh no more than it: the weight 1/|r| has no bound.
SMALLEST_RESIDUAL = 1e-3
#: Step of a difference quotient, as a share of the residuals' size.
STEP = 1e-4


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss.

    >>> Loss("absolute").mean(np.array([1.0, 2.0]), np.array([1.5, 2.0]), None)
    0.25
    """

    name: str = "squared"  # {"squared", "absolute", "huber", "own"}
    function: LossFunction | None = None  # the user's own

    @classmethod
    def of(cls, loss: Any) -> Loss:
        """The loss that a user named or gave."""
        if callable(loss):
            return cls("own", loss)
        if not isinstance(loss, str) or loss not in NAMED:
            raise ParameterError(
                f"'loss' must be one of {', '.join(NAMED)}, or a function of the target and the prediction. "
                f"Got {loss!r}."
            )
        return cls(loss)

    @property
    def is_squared(self) -> bool:
        """Whether least squares are all there is to do."""
        return self.name == "squared"

    def values(self, y: FloatArray, p: FloatArray, scale: float = math.nan) -> FloatArray:
        """One value per row, or one alone where a function gives the mean.

        ``scale``: where Huber's loss turns linear; by default :func:`huber_scale` of the target.
        """
        if self.function is not None:
            return _checked(self.function, y, p)
        r = np.abs(p - y)
        if self.name == "absolute":
            return r
        if self.name == "huber":
            d = huber_scale(y) if math.isnan(scale) else scale
            return np.where(r <= d, 0.5 * r**2, d * (r - 0.5 * d))
        return r**2

    def mean(self, y: FloatArray, p: FloatArray, weights: FloatArray | None, scale: float = math.nan) -> float:
        """The weighted mean over the rows; infinite where it is not finite."""
        with np.errstate(all="ignore"):
            if not np.isfinite(p).all():
                return math.inf
            values = self.values(y, p, scale)
            found = float(values.mean() if weights is None or values.ndim == 0 else np.average(values, weights=weights))
        return found if math.isfinite(found) else math.inf

    def row_weights(self, y: FloatArray, p: FloatArray, scale: float = math.nan) -> FloatArray | None:
        """Weights with which least squares go downhill in this loss; None where a function gives no value per row."""
        r = p - y
        size = np.abs(r)
        least = max(SMALLEST_RESIDUAL * float(np.median(size)), 1e-12 * float(np.max(size)), 1e-300)
        if self.name == "absolute":
            return np.asarray(1.0 / np.maximum(size, least))
        if self.name == "huber":
            d = huber_scale(y) if math.isnan(scale) else scale
            return np.asarray(np.minimum(1.0, d / np.maximum(size, 1e-300)))
        if self.function is None:
            return None
        h = STEP * max(float(np.median(size)), least)
        with np.errstate(all="ignore"):
            above, below = self.values(y, p + h), self.values(y, p - h)
            if above.ndim == 0:
                return None
            w = (above - below) / (2.0 * h) / np.where(size > least, r, np.copysign(least, r))
        w = np.where(np.isfinite(w) & (w > 0.0), w, 0.0)
        return w / w.max() if (w > 0.0).sum() > 1 else None


LEAST_SQUARES = Loss()


def huber_scale(y: FloatArray) -> float:
    """Where Huber's loss turns linear: a tenth of the target's robust standard deviation."""
    spread = 1.4826 * float(np.median(np.abs(y - np.median(y))))
    return HUBER_SHARE * (spread or float(np.std(y)) or 1.0)


def _checked(function: LossFunction, y: FloatArray, p: FloatArray) -> FloatArray:
    try:
        found = np.asarray(function(y.copy(), p.copy()), dtype=np.float64)  # it may write to what it gets
    except SobolevError:
        raise
    except Exception as error:  # whatever the user's own function may raise
        raise ParameterError(
            f"'loss' failed with {type(error).__name__}: {error}. It gets two arrays, the target and the prediction."
        ) from error
    if found.shape not in ((), (len(y),)):
        raise ParameterError(
            f"'loss' must return one value per row, {len(y)} of them, or their mean. Got the shape {found.shape}."
        )
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Rating:
    """A loss on rows, relative to that of the best constant.

    ``least``, ``total``: the loss of a perfect prediction, and by how much that of the best constant is above it.
    """

    loss: Loss
    rows: Rows
    scale: float  # of Huber's loss
    least: float
    total: float
    degree: float = 2.0  # the power of the residual with which it grows: 1 for absolute values

    @classmethod
    def of(cls, loss: Loss, rows: Rows) -> Rating | None:
        """The rating on these rows; None for squared errors, which a fit knows already, and for a constant target."""
        y, weights = rows.y, rows.weights
        if loss.is_squared or np.ptp(y) == 0.0:
            return None
        from scipy.optimize import minimize_scalar  # not with the module: islands must start fast

        scale = huber_scale(y)

        def at(constant: float) -> float:
            return loss.mean(y, np.full(len(y), constant), weights, scale)

        least = loss.mean(y, y, weights, scale)
        least = least if math.isfinite(least) else 0.0
        found = minimize_scalar(at, bounds=(float(y.min()), float(y.max())), method="bounded")
        best = min(float(found.fun), at(float(np.average(y, weights=weights))), at(float(np.median(y))))
        if not math.isfinite(best) or best <= least:
            raise ParameterError(
                f"'loss' must be finite and smallest where the prediction is the target. Got {best:g} for a constant "
                f"and {least:g} for the target itself. Check the order of its arguments: loss(y, prediction)."
            )
        return cls(loss, rows, scale, least, best - least, _degree(loss, y, weights, scale, least))

    def mean(self, p: FloatArray) -> float:
        """The loss itself."""
        return self.loss.mean(self.rows.y, p, self.rows.weights, self.scale)

    def error(self, p: FloatArray) -> float:
        """What stands in the place of the relative squared error: a loss of another degree is raised to be like it."""
        return float(max(0.0, (self.mean(p) - self.least) / self.total) ** (2.0 / self.degree))


def _degree(loss: Loss, y: FloatArray, weights: FloatArray | None, scale: float, least: float) -> float:
    """How a loss grows between one and two standard deviations of the target; Huber's is squared where rows are met."""
    if loss.name == "huber":
        return 2.0
    far = float(np.std(y))
    once, twice = (loss.mean(y, y + k * far, weights, scale) - least for k in (1.0, 2.0))
    if not 0.0 < once < twice < math.inf:
        return 2.0
    return min(max(math.log2(twice / once), 0.5), 4.0)
