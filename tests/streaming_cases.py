"""Rows and comparisons that the tests of streaming share."""

from __future__ import annotations

from typing import Any

import numpy as np

import sobolev_novelty as sn

TOLERANCE = 1e-10


def rows_with_holes(seed: int, n: int = 400) -> Any:
    """Rows with constants, holes, infinities and large offsets, by seed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-2, 2, 3) + rng.choice([0.0, 1.0, 1e4], 3)
    if seed % 3 == 0:
        X[:, rng.integers(3)] = 1.25
    if seed % 2 == 0:
        X[rng.random((n, 3)) < 0.05] = rng.choice([np.nan, np.inf, -np.inf])
    return X


def lost_in_centring(whole: sn.NoveltyReport) -> float:
    """Digits of a term's variation that its rounded values no longer hold, where the intercept is taken out of them.

    Values of 1e12 that vary by 1e6 are rounded to 1e-10 of their variation, whatever is done with them afterwards.
    """
    columns = whole.source.columns if whole.geometry.is_free and whole.status is sn.Status.OK else None
    if columns is None or not columns.size:
        return 0.0
    spread = columns.std(axis=1)
    size = np.sqrt(np.mean(columns**2, axis=1))
    return float(3e-14 * np.max(size / np.where(spread > 1e-12 * size, spread, np.inf)))


def assert_same(streamed: sn.NoveltyReport, whole: sn.NoveltyReport) -> None:
    for name in ("labels", "terms", "status", "n_samples", "n_used", "dropped", "geometry", "names", "tau", "notes"):
        assert getattr(streamed, name) == getattr(whole, name), name
    assert streamed.expression == whole.expression and streamed.bootstrap is None
    np.testing.assert_array_equal(streamed.coefficients, whole.coefficients)
    np.testing.assert_array_equal(streamed.is_null, whole.is_null)
    tolerance = TOLERANCE + lost_in_centring(whole)
    np.testing.assert_allclose(streamed.nu, whole.nu, rtol=0, atol=tolerance)
    np.testing.assert_allclose(streamed.lengths, whole.lengths, rtol=TOLERANCE)
    size = np.abs(whole.coefficients) * whole.lengths
    assert np.all(np.isnan(size) | (np.abs(streamed.contribution - whole.contribution) <= tolerance * size))
    np.testing.assert_allclose(streamed.gram, whole.gram, rtol=0, atol=tolerance)
