"""Derivatives of measured curves."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.dynamics.differentiation import smooth
from sobolev_novelty.dynamics.trajectories import Trajectory


def _curve(t: np.ndarray, noise: float, seed: int = 0) -> Trajectory:
    x = np.column_stack([np.sin(2.0 * t), np.exp(-0.3 * t)])
    return Trajectory(t, x + noise * np.random.default_rng(seed).standard_normal(x.shape), ("a", "b"))


def _error(rates: np.ndarray, t: np.ndarray) -> float:
    truth = np.column_stack([2.0 * np.cos(2.0 * t), -0.3 * np.exp(-0.3 * t)])
    return float(np.sqrt(np.mean((rates - truth) ** 2)))


@pytest.mark.parametrize("method", ["spline", "local", "finite"])
def test_rates_of_exact_data_are_right(method: str) -> None:
    t = np.linspace(0.0, 6.0, 400)
    assert _error(smooth(_curve(t, 0.0), method).rates, t) < {"spline": 1e-5, "local": 1e-4, "finite": 1e-3}[method]


@pytest.mark.parametrize("spacing", ["equal", "random"])
@pytest.mark.parametrize("method", ["spline", "local"])
def test_smoothing_chosen_by_cross_validation_beats_differences(method: str, spacing: str) -> None:
    t = np.linspace(0.0, 6.0, 400)
    if spacing == "random":
        t = np.sort(np.random.default_rng(1).uniform(0.0, 6.0, 400))
    measured = _curve(t, 0.02)
    assert _error(smooth(measured, method).rates, t) < 0.1 * _error(smooth(measured, "finite").rates, t)


@pytest.mark.parametrize("method", ["spline", "local"])
def test_the_noise_is_estimated(method: str) -> None:
    curve = smooth(_curve(np.linspace(0.0, 6.0, 400), 0.02), method)
    np.testing.assert_allclose(curve.noise, 0.02, rtol=0.15)
    assert curve.trust.max() == 1.0 and curve.trust[0].max() < 0.5  # ends are known worse


def test_states_between_the_points_follow_the_curve() -> None:
    t = np.linspace(0.0, 6.0, 100)
    curve = smooth(_curve(t, 0.0))
    middle = 0.5 * (t[1:] + t[:-1])
    np.testing.assert_allclose(curve.at(middle)[:, 0], np.sin(2.0 * middle), atol=5e-5)


def test_few_points_and_long_records_are_smoothed_too() -> None:
    few, many = np.linspace(0.0, 1.0, 8), np.linspace(0.0, 6.0, 5000)
    assert _error(smooth(_curve(few, 0.0)).rates, few) < 0.05
    assert _error(smooth(_curve(many, 0.01)).rates, many) < 0.02


def test_a_method_of_pysindy_can_be_given() -> None:
    pysindy = pytest.importorskip("pysindy", reason="PySINDy is not installed")
    t = np.linspace(0.0, 6.0, 400)
    curve = smooth(_curve(t, 0.01), pysindy.SmoothedFiniteDifference())
    assert _error(curve.rates, t) < 0.3
    assert curve.strength == ("by the caller's method",) * 2
