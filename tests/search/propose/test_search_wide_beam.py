"""Sums of a few terms out of many that resemble each other."""

from __future__ import annotations

import numpy as np

from sobolev_novelty.search.propose.pursuit import pursue
from sobolev_novelty.search.propose.wide_beam import Terms, WideBeam


def plain(values: np.ndarray) -> Terms:
    return Terms(values, values[:0], np.arange(len(values)))


def alike() -> np.ndarray:
    """Forty functions of one input that all look like straight lines."""
    x = np.linspace(0.5, 1.5, 60)
    powers = np.array([x ** (k / 8) for k in range(1, 25)])
    waves = np.array([np.sin(k / 8 * x) for k in range(1, 17)])
    return np.vstack([powers, waves])


def test_finds_the_law_where_a_narrow_beam_goes_astray():
    values = alike()
    target = values[3] - 0.5 * values[30] + 0.2 * values[20]
    found = WideBeam().search(plain(values), target, n_terms=3, exact=1e-18)
    assert found[-4].columns == (3, 20, 30)
    assert found[-4].nmse < 1e-24
    assert (3, 20, 30) not in {tuple(sorted(c.columns)) for c in pursue(values, target, n_terms=3)[0]}


def test_stops_at_the_size_that_is_exact():
    values = alike()
    found = WideBeam(keep=2).search(plain(values), 2.0 * values[5] + values[33], n_terms=5, exact=1e-18)
    assert [len(c.columns) for c in found] == [1, 1, 2, 2]


def test_one_sum_of_every_combination_of_kinds():
    """Neighbours on a grid are one idea; what the slope makes up for is not held against them."""
    x = np.linspace(0.0, 2.0, 80)
    grid = np.geomspace(0.2, 5.0, 20)
    values = np.vstack([x, x**2, np.exp(-np.outer(grid, x))])
    slopes = np.vstack([np.zeros((2, 80)), -x * np.exp(-np.outer(grid, x))])
    terms = Terms(values, slopes, np.array([0, 1, *[2] * 20]))
    target = x - 3.0 * np.exp(-1.234 * x)  # between two points of the grid
    found = WideBeam(keep=10).search(terms, target, n_terms=2, exact=1e-18)
    pairs = [c for c in found if len(c.columns) == 2]
    assert len(pairs) <= 4  # of three kinds, one of them with itself
    assert pairs[0].columns[0] == 0
    assert abs(grid[pairs[0].columns[1] - 2] / 1.234 - 1.0) < 0.1
    assert pairs[0].nmse < 1e-6


def test_a_target_without_spread_or_no_terms():
    values = alike()
    assert WideBeam().search(plain(values), np.ones(60), n_terms=2, exact=1e-18) == []
    assert WideBeam().search(plain(values[:0]), values[0], n_terms=2, exact=1e-18) == []


def test_equal_columns_do_not_stand_together():
    values = alike()[[0, 0, 5, 5, 9]]
    found = WideBeam().search(plain(values), values[0] + values[2], n_terms=3, exact=0.0)
    assert all(len({j // 2 for j in c.columns}) == len(c.columns) for c in found)


def test_terms_that_span_less_than_the_size_asked_for():
    """Two levels of an input leave two independent terms: there is no third one, and nothing to swap."""
    x = np.tile([0.0, 1.0], 20)
    values = np.stack([np.ones(40), x, x**2, 1.0 - x, np.exp(x)])
    target = np.random.default_rng(0).normal(size=40)
    found = WideBeam().search(plain(values), target, n_terms=5, exact=1e-18)
    assert {len(c.columns) for c in found} == {1, 2}
