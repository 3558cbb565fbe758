"""Sparse combinations of columns: the span, the beam, and one column at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.search.propose.pursuit import Pursuit, Span, pursue

RNG = np.random.default_rng(5)


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_a_span_is_orthonormal_and_leaves_what_least_squares_leaves(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(k, 20)) * 10.0 ** rng.uniform(-8, 8, k)[:, None]
    target = rng.normal(size=20)
    span = Span.of(target)
    for column in columns:
        q = span.direction(column)
        assert q is not None
        span = span.plus(q)
    np.testing.assert_allclose(span.basis @ span.basis.T, np.eye(k), atol=1e-12)
    expected = target - least_squares(columns, target) @ columns
    np.testing.assert_allclose(span.residual, expected, atol=1e-9)
    np.testing.assert_allclose(span.energy, expected @ expected, rtol=1e-8, atol=1e-15)


def test_a_column_in_the_span_has_no_direction_nor_has_one_of_zeros_or_infinities() -> None:
    columns = RNG.normal(size=(2, 20))
    span = Span.of(RNG.normal(size=20))
    for column in columns:
        q = span.direction(column)
        assert q is not None
        span = span.plus(q)
    assert span.direction(2.0 * columns[0] - 1e6 * columns[1]) is None
    assert span.direction(np.zeros(20)) is None
    assert span.direction(np.full(20, np.inf)) is None


@given(st.integers(0, 10**6))
def test_one_column_at_a_time_takes_what_a_beam_of_one_takes_without_exchange(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(40, 60))
    target = rng.normal(size=60)
    unit = columns / np.linalg.norm(columns, axis=1)[:, None]
    pursuit = Pursuit.start(target, len(columns), lambda column: unit @ column)
    taken = []
    for _ in range(4):
        top, gains = pursuit.best(3)
        assert list(gains) == sorted(gains, reverse=True)
        before = pursuit.unexplained
        pursuit.add(columns[top[0]])
        np.testing.assert_allclose(before - pursuit.unexplained, gains[0], rtol=1e-4, atol=1e-9)
        taken.append(int(top[0]))
    greedy = pursue(columns, target, n_terms=4, beam=1, keep=1, n_exchanged=0)[0]
    assert [found.columns for found in greedy] == [tuple(taken[: n + 1]) for n in range(4)]


def test_pursuit_finds_the_columns_a_target_was_made_from() -> None:
    columns = RNG.normal(size=(500, 200))
    target = 2.0 * columns[7] - 0.5 * columns[33] + 0.1 * columns[400]
    best = min(pursue(columns, target, n_terms=4)[0], key=lambda c: c.nmse)
    assert set(best.columns) >= {7, 33, 400}
    assert best.nmse < 1e-18


def test_pursuit_never_takes_columns_that_are_zero_or_not_finite() -> None:
    columns = RNG.normal(size=(20, 50))
    columns[3] = 0.0
    columns[4, 10] = np.nan
    for combination in pursue(columns, RNG.normal(size=50), n_terms=3)[0]:
        assert not {3, 4} & set(combination.columns)


@given(st.lists(st.integers(0, 59), min_size=1, max_size=3, unique=True), st.integers(0, 10**6))
def test_pursuit_finds_any_planted_sparse_sum_among_random_columns(places: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(60, 40)) * 10.0 ** rng.uniform(-6, 6, 60)[:, None]
    weights = rng.uniform(0.5, 2.0, len(places)) * rng.choice([-1.0, 1.0], len(places))
    target = weights @ (columns[places] / np.linalg.norm(columns[places], axis=1)[:, None])
    best = min(pursue(columns, target, n_terms=4)[0], key=lambda c: c.nmse)
    assert set(best.columns) >= set(places)
    assert best.nmse < 1e-18
    np.testing.assert_allclose(least_squares(columns[list(best.columns)], target) @ columns[list(best.columns)], target)


def test_pursuit_keeps_the_columns_it_is_started_with() -> None:
    columns = RNG.normal(size=(30, 50))
    target = columns[3] + columns[11]
    for found in pursue(columns, target, n_terms=2, start=(7, 8))[0]:
        assert found.columns[:2] == (7, 8)


def test_targets_that_are_pursued_together_get_what_each_gets_alone() -> None:
    columns = RNG.normal(size=(400, 60)) + np.linspace(0.0, 3.0, 60)
    constant = np.ones(60)
    targets = [columns[k] + 0.5 * columns[3 * k + 7] + 0.1 * RNG.normal(size=60) for k in (1, 20, 80)]
    together = pursue(columns, targets[0], constant, *targets[1:], n_terms=4, start=(0,))
    assert together[1] == []
    for target, found in zip(targets, (together[0], *together[2:]), strict=True):
        assert found == pursue(columns, target, n_terms=4, start=(0,))[0]


def test_what_follows_from_ancestors_is_what_a_fresh_start_finds() -> None:
    """A target that few columns explain nearly whole: residuals shrink a thousandfold on the way."""
    columns = RNG.normal(size=(300, 80))
    target = 1000.0 * columns[5] + 30.0 * columns[9] + columns[11] + 0.03 * columns[200] + 1e-5 * RNG.normal(size=80)
    best = min(pursue(columns, target, n_terms=4)[0], key=lambda c: c.nmse)
    assert sorted(best.columns) == [5, 9, 11, 200]
