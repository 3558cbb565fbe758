r"""Paired bootstrap: how certain a difference between two methods is.

Notation
--------
``a, b``  scores of two methods on the same tasks, shape (n_tasks,)
``d``     :math:`\bar b - \bar a`, or the relative change :math:`\bar b / \bar a - 1`

Tasks are resampled together for both methods, so that the spread between tasks, which is far larger than the difference
between methods, cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import DataError, ParameterError

#: With fewer tasks an interval says too little.
MIN_TASKS = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of means with its interval.

    Parameters
    ----------
    value, lower, upper : float
    n_tasks : int
    """

    value: float
    lower: float
    upper: float
    n_tasks: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero, on ten tasks or more."""
        return self.n_tasks >= MIN_TASKS and (self.lower > 0.0 or self.upper < 0.0)


def paired_difference(
    a: FloatArray,
    b: FloatArray,
    *,
    relative: bool = False,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Difference:
    """Mean of ``b`` minus mean of ``a``, with a bootstrap interval over tasks.

    Parameters
    ----------
    a, b : ndarray of shape (n_tasks,)
        Scores of the two methods on the same tasks, in the same order.
    relative : bool
        Give the change of the mean as a share of the mean of ``a``.
    level : float
        Share of the resamples inside the interval.

    Examples
    --------
    >>> a = np.linspace(0.1, 0.9, 12)
    >>> d = paired_difference(a, a + 0.1)
    >>> round(d.value, 3), round(d.lower, 3), round(d.upper, 3), d.is_clear
    (0.1, 0.1, 0.1, True)
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise DataError(f"'a' and 'b' must be scores on the same tasks. Got shapes {a.shape} and {b.shape}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise DataError("'a' and 'b' must be finite. Count failures as 0 first.")
    if not 0.0 < level < 1.0:
        raise ParameterError(f"'level' must lie between 0 and 1. Got {level}.")
    rows = np.random.default_rng(seed).integers(0, len(a), size=(n_resamples, len(a)))
    mean_a, mean_b = a[rows].mean(axis=1), b[rows].mean(axis=1)
    if relative:
        with np.errstate(all="ignore"):
            value, resampled = float(b.mean() / a.mean() - 1.0), mean_b / mean_a - 1.0
    else:
        value, resampled = float(b.mean() - a.mean()), mean_b - mean_a
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(resampled[np.isfinite(resampled)], [tail, 1.0 - tail])
    return Difference(value, float(lower), float(upper), len(a))
