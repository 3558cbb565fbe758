"""The score that engines and verbs share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sobolev_novelty.scoring import PARSIMONY, base_score, expected_error, nmse


@given(st.integers(0, 10**6), st.floats(-100.0, 100.0), st.floats(0.1, 100.0))
def test_the_normalised_error_does_not_depend_on_units(seed: int, shift: float, scale: float) -> None:
    rng = np.random.default_rng(seed)
    y, prediction = rng.normal(size=(2, 30))
    expected = np.sum((y - prediction) ** 2) / np.sum((y - y.mean()) ** 2)
    np.testing.assert_allclose(nmse(y, prediction), expected, rtol=1e-12)
    np.testing.assert_allclose(nmse(scale * y + shift, scale * prediction + shift), expected, rtol=1e-6)


def test_the_mean_has_normalised_error_one() -> None:
    y = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(nmse(y, np.full(3, 3.0)), 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_prediction_out_of_range_has_infinite_error_and_score_zero(bad: float) -> None:
    error = nmse(np.arange(3.0), np.array([0.0, bad, 1.0]))
    assert error == np.inf
    assert base_score(error, 3) == 0.0


def test_a_constant_target_is_matched_or_not() -> None:
    assert nmse(np.ones(4), np.ones(4)) == 0.0
    assert nmse(np.ones(4), np.zeros(4)) == np.inf


def test_weights_are_repetitions() -> None:
    y, prediction = np.array([0.0, 1.0, 3.0]), np.array([0.5, 1.0, 2.0])
    weights = np.array([1.0, 3.0, 2.0])
    repeats = weights.astype(int)
    np.testing.assert_allclose(
        nmse(y, prediction, weights), nmse(np.repeat(y, repeats), np.repeat(prediction, repeats))
    )


@given(st.floats(0.0, 1e6), st.integers(0, 200))
def test_a_node_costs_a_factor_and_error_lowers_the_score(error: float, complexity: int) -> None:
    score = base_score(error, complexity)
    assert 0.0 < score <= 1.0
    np.testing.assert_allclose(base_score(error, complexity + 1), PARSIMONY * score)
    assert base_score(error + 1.0, complexity) < score


@given(st.floats(0.0, 1e6), st.integers(1, 300), st.integers(2, 10_000))
def test_the_error_to_expect_is_not_below_the_error_seen_and_falls_with_rows(
    error: float, complexity: int, n_samples: int
) -> None:
    expected = expected_error(error, complexity, n_samples)
    assert error <= expected <= 100.0 * error * (1.0 + 1e-12)
    assert expected_error(error, complexity, n_samples + 1) <= expected
    assert expected_error(error, complexity + 1, n_samples) >= expected


def test_on_many_rows_the_error_to_expect_is_the_error_seen() -> None:
    np.testing.assert_allclose(expected_error(0.3, 20, 10**6), 0.3, rtol=1e-4)
