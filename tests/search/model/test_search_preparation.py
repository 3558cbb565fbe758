"""From the user's table to the search, and back to all rows."""

from __future__ import annotations

import numpy as np

from sobolev_novelty.core.rows import Rows
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.final_fit import BLOCK_ROWS, polished, relative_error, with_known_digits
from sobolev_novelty.search.model.preparation import MAX_COLUMNS, MAX_MORE_ROWS, MAX_ROWS, chosen_columns, prepare

RNG = np.random.default_rng


def test_long_tables_are_sampled() -> None:
    X = RNG(0).normal(size=(3 * MAX_ROWS, 2))
    prepared = prepare(Rows.of(X, X[:, 0]), RNG(0))
    assert len(prepared.rows) == MAX_ROWS
    assert not prepared.is_complete
    assert prepared.n_rows == 3 * MAX_ROWS
    twice = prepare(Rows.of(np.tile(X, (2, 1)), np.tile(X[:, 0], 2)), RNG(0))
    assert twice.n_rows == 3 * MAX_ROWS
    np.testing.assert_array_equal(twice.rows.X, prepared.rows.X)


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
    result = polished(start, Rows.of(X, y))[0]
    assert relative_error(result, Rows.of(X, y)) < 1e-18


def test_polishing_never_makes_it_worse() -> None:
    X = RNG(0).uniform(0.5, 2.0, (200, 1))
    y = RNG(1).normal(size=200)
    start = parse("0.01*sin(40*x0) + 0.1")
    before = relative_error(start, Rows.of(X, y))
    assert relative_error(polished(start, Rows.of(X, y))[0], Rows.of(X, y)) <= before


def test_polishing_heeds_weights() -> None:
    X = np.linspace(1.0, 2.0, 50)[:, None]
    y = np.where(np.arange(50) < 25, X[:, 0], 9.0)
    weights = (np.arange(50) < 25).astype(float)
    assert str(polished(parse("1.1*x0"), Rows.of(X, y, weights))[0].variables) == "('x0',)"
    assert relative_error(polished(parse("1.1*x0"), Rows.of(X, y, weights))[0], Rows.of(X, y, weights)) < 1e-25


def test_long_tables_keep_further_rows_for_the_second_half_of_a_search() -> None:
    X = RNG(0).normal(size=(2 * MAX_MORE_ROWS, 2)) * [1.0, 1e6]
    y = X[:, 0] + X[:, 1]
    prepared = prepare(Rows.of(X, y, np.linspace(1.0, 2.0, len(y))), RNG(0))
    more = prepared.more_rows
    assert more is not None
    assert len(more) == MAX_MORE_ROWS
    assert set(prepared.rows.y.tolist()) <= set(more.y.tolist())
    # Both are in the same units.
    scale = np.max(np.abs(prepared.rows.sample.X), axis=1) / np.max(np.abs(more.sample.X), axis=1)
    assert ((scale > 0.5) & (scale <= 1.0)).all()
    assert more.weights is not None
    assert prepare(Rows.of(X[:100], y[:100]), RNG(0)).more is None


def test_a_number_without_effect_keeps_its_digits() -> None:
    X = np.linspace(1.0, 2.0, 50)[:, None]
    y = 3.0 + 0.1 * np.cos(40.0 * X[:, 0])
    for text in ("3.00123456 + 1e-170*exp(0.123456789*x0)", "3.00123456 + 0*exp(0.123456789*x0)"):
        found = with_known_digits(parse(text), Rows.of(X, y), n_rows=50)
        assert 0.123456789 in found.constants
        assert 3.001 in found.constants  # its standard error is 0.0101
