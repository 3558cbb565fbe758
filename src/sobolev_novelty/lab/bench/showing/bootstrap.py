r"""Paired bootstrap and sign-flip test: how certain a difference between two methods is.

Notation
--------
``a, b``  scores of two methods on the same tasks, shape (n_tasks,)
``d``     :math:`\bar b - \bar a`, or the relative change :math:`\bar b / \bar a - 1`

Tasks are resampled together for both methods, so that the spread between tasks, which is far larger than the difference
between methods, cancels. An interval may rest on a few tasks with large differences; the sign-flip test asks how often
random signs of the differences would give a mean as far from zero, and the number of tasks that differ is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, ParameterError

#: With fewer tasks that differ an interval says too little.
MIN_TASKS = 10
#: A difference whose sign-flip test gives no less is not clear.
MAX_P = 0.05
#: Scores nearer to each other than this differ by rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of means with its interval.

    ``n_tasks``, ``n_differ``: tasks, and those on which the two methods differ.
    """

    value: float
    lower: float
    upper: float
    n_tasks: int
    n_differ: int
    p: float  # of the sign-flip test, two-sided

    @property
    def is_clear(self) -> bool:
        """Whether ten tasks or more differ, the interval excludes zero, and so does the sign-flip test."""
        return self.n_differ >= MIN_TASKS and (self.lower > 0.0 or self.upper < 0.0) and self.p < MAX_P


def sign_flip_p(differences: FloatArray, *, n_flips: int = 10_000, seed: int = 0) -> float:
    """Share of random sign patterns whose mean difference is as far from zero as the one found, itself counted.

    If a method is as good as the other, each task's difference is as likely to be positive as negative; nothing else
    is assumed. Two-sided.
    """
    d = differences[np.abs(differences) > ROUNDING]
    if len(d) == 0:
        return 1.0
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, size=(n_flips, len(d)), dtype=np.int8) * 2 - 1
    found = abs(float(d.sum()))
    as_far = np.abs(signs @ d) >= found * (1.0 - 1e-12)
    return float((1 + np.count_nonzero(as_far)) / (1 + n_flips))


def paired_difference(
    a: FloatArray,
    b: FloatArray,
    *,
    relative: bool = False,
    level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Difference:
    """Mean of ``b`` minus mean of ``a``, with a bootstrap interval over tasks and a sign-flip test.

    ``a``, ``b``: shape (n_tasks,), scores of the two methods on the same tasks, in the same order.
    ``relative``: give the change of the mean as a share of the mean of ``a``.
    ``level``: share of the resamples inside the interval.
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
    n_differ = int(np.count_nonzero(np.abs(b - a) > ROUNDING))
    return Difference(value, float(lower), float(upper), len(a), n_differ, sign_flip_p(b - a, seed=seed))
