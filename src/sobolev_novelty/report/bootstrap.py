"""How far novelties move when the rows are drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.geometry import Signatures
from sobolev_novelty.core.linear.projection import residuals
from sobolev_novelty.core.progress import OnProgress, tracked
from sobolev_novelty.core.sample import FloatArray

#: Share of the resampled novelties that the interval holds.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Spread of the novelties over resampled rows.

    ``lower``, ``upper``: shape (n_terms,), bounds of the interval that holds ``level`` of the resampled novelties.
    """

    lower: FloatArray
    upper: FloatArray
    stability: FloatArray  # shape (n_terms,): share of the resamples in which the verdict is the reported one
    level: float
    n_resamples: int


def resampled(
    found: Signatures,
    qualified: npt.NDArray[np.bool_],
    rng: np.random.Generator,
    *,
    tau: float,
    is_free: bool,
    n_resamples: int,
    on_progress: OnProgress,
) -> Bootstrap:
    """Novelties of whole samples drawn with replacement."""
    n, m = found.n_used, found.Psi.shape[1]
    # (blocks, samples, components, terms): a resample picks whole samples.
    cube = found.Psi.reshape(found.n_blocks, n, -1, m)
    resamples = tracked(range(n_resamples), on_progress, "resampling")
    draws = np.array([residuals(_drawn(cube, rng, is_free).reshape(-1, m)).nu for _ in resamples])
    lower, upper = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    stability = np.mean((draws > tau) == qualified, axis=0)
    return Bootstrap(lower, upper, stability, LEVEL, n_resamples)


def _drawn(cube: FloatArray, rng: np.random.Generator, is_free: bool) -> FloatArray:
    n = cube.shape[1]
    picked = cube[:, rng.integers(0, n, n)]
    if is_free:
        picked[0] -= picked[0].mean(axis=0)
    return picked
