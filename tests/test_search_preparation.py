"""From the user's table to the search, and back to all rows."""

from __future__ import annotations

import numpy as np

from sobolev_novelty.parsing import parse
from sobolev_novelty.search.final_fit import BLOCK_ROWS, polished, relative_error
from sobolev_novelty.search.preparation import MAX_COLUMNS, MAX_ROWS, chosen_columns, merged_rows, prepare

RNG = np.random.default_rng


def test_a_weight_of_two_and_a_row_given_twice_are_the_same_problem() -> None:
    X = RNG(0).normal(size=(6, 2))
    y = X.sum(axis=1)
    weights = np.array([1.0, 2.0, 1.0, 0.0, 3.0, 1.0])
    repeated = np.repeat(np.arange(6), weights.astype(int))
    RNG(1).shuffle(repeated)
    for left, right in zip(merged_rows(X, y, weights), merged_rows(X[repeated], y[repeated], None), strict=True):
        assert left is not None
        assert right is not None
        np.testing.assert_allclose(left, right, rtol=1e-14)


def test_equal_weights_are_no_weights() -> None:
    X = RNG(0).normal(size=(6, 2))
    assert merged_rows(X, X[:, 0], np.full(6, 7.0))[2] is None


def test_long_tables_are_sampled() -> None:
    X = RNG(0).normal(size=(3 * MAX_ROWS, 2))
    prepared = prepare(X, X[:, 0], None, RNG(0))
    assert prepared.sample.n_samples == MAX_ROWS
    assert not prepared.is_complete


def test_wide_tables_keep_the_columns_that_matter_and_drop_constant_ones() -> None:
    X = RNG(0).normal(size=(400, 60))
    X[:, 3] = 1.0
    y = np.sin(3.0 * X[:, 10]) + X[:, 40] * X[:, 41] + X[:, 7]
    chosen = chosen_columns(X, y)
    assert len(chosen) == MAX_COLUMNS
    assert {7, 10, 40, 41} <= set(chosen.tolist())
    assert chosen_columns(X[:, :5], y).tolist() == [0, 1, 2, 4]
    np.testing.assert_array_equal(chosen, chosen_columns(X, y))


def test_polishing_fits_inner_constants_to_all_blocks() -> None:
    X = RNG(0).uniform(0.5, 2.0, (2 * BLOCK_ROWS + 17, 2))
    y = 1.5 * np.exp(-0.8 * X[:, 0]) + 0.2 * X[:, 1]
    start = parse("1.3*exp(-0.7*x0) + 0.25*x1")
    result = polished(start, X, y, None, ("x0", "x1"))
    assert relative_error(result, X, y, None, ("x0", "x1")) < 1e-18


def test_polishing_never_makes_it_worse() -> None:
    X = RNG(0).uniform(0.5, 2.0, (200, 1))
    y = RNG(1).normal(size=200)
    start = parse("0.01*sin(40*x0) + 0.1")
    before = relative_error(start, X, y, None, ("x0",))
    assert relative_error(polished(start, X, y, None, ("x0",)), X, y, None, ("x0",)) <= before


def test_polishing_heeds_weights() -> None:
    X = np.linspace(1.0, 2.0, 50)[:, None]
    y = np.where(np.arange(50) < 25, X[:, 0], 9.0)
    weights = (np.arange(50) < 25).astype(float)
    assert str(polished(parse("1.1*x0"), X, y, weights, ("x0",)).variables) == "('x0',)"
    assert relative_error(polished(parse("1.1*x0"), X, y, weights, ("x0",)), X, y, weights, ("x0",)) < 1e-25
