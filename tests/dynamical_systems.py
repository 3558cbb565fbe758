"""Trajectories that tests fit: systems of our own, with noise where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_ivp

FloatArray = npt.NDArray[np.float64]


def trajectory(
    rates: Callable[[float, FloatArray], Sequence[float]],
    x0: Sequence[float],
    t: FloatArray,
    noise: float = 0.0,
    seed: int = 0,
) -> FloatArray:
    """States at times t, with Gaussian noise of a share of each state's root mean square."""
    x = solve_ivp(rates, (t[0], t[-1]), x0, t_eval=t, rtol=1e-10, atol=1e-12).y.T
    rng = np.random.default_rng(seed)
    return np.asarray(x + noise * np.sqrt(np.mean(x**2, axis=0)) * rng.standard_normal(x.shape))


def lorenz(_: float, x: FloatArray) -> list[float]:
    return [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]]


def predation(_: float, x: FloatArray) -> list[float]:
    return [1.3 * x[0] - 0.9 * x[0] * x[1], 0.7 * x[0] * x[1] - 1.1 * x[1]]


def growth(_: float, x: FloatArray) -> list[float]:
    return [0.8 * x[0] * (1.0 - x[0] / 7.3)]
