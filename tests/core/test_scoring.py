"""The score that engines and verbs share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.core.score import (
    PARSIMONY,
    base_score,
    choice_rank,
    expected_error,
    merged_rows,
    n_distinct_rows,
    nmse,
)


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
    assert base_score(error, 3, 100) == 0.0


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
    score = base_score(error, complexity, np.inf)
    assert 0.0 < score <= 1.0
    np.testing.assert_allclose(base_score(error, complexity + 1, np.inf), PARSIMONY * score)
    assert base_score(error + 1.0, complexity, np.inf) < score
    assert base_score(error, complexity, 300) == base_score(expected_error(error, complexity, 300), complexity, np.inf)


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


def test_a_weight_of_two_and_a_row_given_twice_are_one_row_of_the_same_joint_weight() -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    y = X.sum(axis=1)
    weights = np.array([1.0, 2.0, 1.0, 0.0, 3.0, 1.0])
    repeated = np.repeat(np.arange(6), weights.astype(int))
    np.random.default_rng(1).shuffle(repeated)
    for left, right in zip(merged_rows(X, y, weights), merged_rows(X[repeated], y[repeated]), strict=True):
        assert left is not None
        assert right is not None
        np.testing.assert_allclose(left, right, rtol=1e-14)


def levels(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (n_rows, 2)).astype(float)
    return X, (X.sum(axis=1) + rng.integers(0, 2, n_rows) > 2).astype(float)


@pytest.mark.parametrize("times", [1, 3])
def test_rows_of_a_table_of_levels_are_counted_as_often_as_they_were_given(times: int) -> None:
    X, y = levels(400)
    found = merged_rows(np.tile(X, (times, 1)), np.tile(y, times))
    assert len(found[1]) == n_distinct_rows(np.tile(X, (times, 1)), np.tile(y, times)) == 400
    assert found[2] is None
    order = np.lexsort(np.column_stack([X, y]).T[::-1])
    np.testing.assert_array_equal(found[0], X[order])
    np.testing.assert_array_equal(found[1], y[order])


def test_whole_weights_of_a_table_of_levels_are_rows_given_as_often() -> None:
    X, y = levels(400)
    weights = np.random.default_rng(1).integers(1, 4, 400).astype(float)
    repeated = np.repeat(np.arange(400), weights.astype(int))
    for left, right in zip(merged_rows(X, y, weights), merged_rows(X[repeated], y[repeated]), strict=True):
        np.testing.assert_array_equal(left, right)
    assert merged_rows(X, y, weights + 0.5)[2] is not None  # how well each is known, not how often it came


def test_a_row_of_a_measured_table_that_was_given_often_is_one_row() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    rows = np.r_[np.arange(40), np.zeros(60, dtype=int)]
    assert n_distinct_rows(X[rows], X[rows, 0]) == len(merged_rows(X[rows], X[rows, 0])[1]) == 40


def test_equal_weights_are_no_weights() -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    assert merged_rows(X, X[:, 0], np.full(6, 7.0))[2] is None


@given(st.integers(1, 5), st.booleans())
def test_a_table_given_several_times_has_the_rows_of_one(times: int, is_rounded: bool) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[3, 0] = np.nan
    y = np.round(X[:, 1]) if is_rounded else X[:, 1]
    assert n_distinct_rows(np.tile(X, (times, 1)), np.tile(y, times)) == 30


def test_an_exact_fit_is_not_given_up_for_a_shorter_approximation() -> None:
    exact, longer, rough = (1e-26, 12), (1e-27, 13), (1e-9, 5)
    ranked = sorted((exact, longer, rough), key=lambda c: choice_rank(c[0], base_score(*c, 100)), reverse=True)
    assert ranked == [exact, longer, rough]
