"""Turning points between the rows: what waves hide is counted, what is only steep hides nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sobolev_novelty as sn
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.report.resolution.turning_points import are_resolved, hidden_turns, wave_turns

DOSES = np.repeat(0.5 * 2.0 ** np.arange(8), 5)
INHIBITOR = np.tile([0.0, 1.0, 5.0, 20.0], 10)


def turns_by_brute_force(text: str, low: float, high: float) -> int:
    u = np.linspace(low, high, 400_001)
    steps = np.diff(parse(text)(x0=u))
    signs = np.sign(steps[np.isfinite(steps) & (steps != 0.0)])
    return int(np.count_nonzero(np.diff(signs)))


@pytest.mark.parametrize("text", ["cos(x0)", "sin(0.3*x0 + 1)", "tan(0.2*x0)", "1/tan(0.2*x0 + 0.1)"])
def test_turns_between_levels_are_those_of_a_fine_path(text: str) -> None:
    (found,) = wave_turns([parse(text)], as_sample(DOSES))[0]
    total = turns_by_brute_force(text, 0.5, 64.0)
    assert total - 2 <= found.shown + found.hidden <= total


def test_waves_on_levels_are_unresolved_and_steep_curves_are_not() -> None:
    sample = as_sample(np.column_stack([DOSES, INHIBITOR]))
    hide = ["cos(x0)", "cos(0.58*exp(x1))", "x0*cos(x0)", "sin(1e6*x0)", "tan(3*x0)"]
    show = ["1/(1 + (x0/5)**4)", "1/(1 + exp(-30*(x0 - 3)))", "x0**3", "1/(x0 + 0.01)", "exp(x1)", "sin(0.02*x0)"]
    assert not are_resolved([parse(text) for text in hide], sample).any()
    assert are_resolved([parse(text) for text in show], sample).all()
    assert all(hidden_turns(parse(text), sample) > 3 for text in hide)
    assert all(hidden_turns(parse(text), sample) == 0 for text in show)


def test_the_word_on_levels_follows_the_turns_and_not_the_slopes() -> None:
    dose = np.repeat([0.1, 0.3, 1.0, 3.0, 10.0, 100.0], 8)
    logistic = sn.novelty("5/(1 + (x0/1.5)**3.2) + 1", dose)
    assert logistic.verdicts[0].distinct == "yes"
    wave = sn.novelty("2*cos(x0) + 0.1*x0", DOSES)
    assert [v.distinct for v in wave.verdicts] == ["unresolved", "yes"]


def test_a_product_of_levels_and_a_dense_input_hides_nothing() -> None:
    rng = np.random.default_rng(0)
    sample = as_sample(np.column_stack([rng.integers(1, 5, 200), rng.uniform(0.0, 6.0, 200)]))
    assert hidden_turns(parse("sin(x0*x1)"), sample) == 0
    assert hidden_turns(parse("sin(7*x0)*x1"), sample) > 0


@given(n=st.integers(12, 400), seed=st.integers(0, 2**32 - 1), gap=st.floats(0.05, 0.8))
@settings(max_examples=40)
def test_slow_waves_are_resolved_wherever_the_rows_lie(n: int, seed: int, gap: float) -> None:
    x = np.random.default_rng(seed).uniform(0.0, 1.0, n)
    wave = parse(f"sin({gap * n:.6g}*x0 + 0.3)")
    assert are_resolved([wave], as_sample(x)).all()
    assert are_resolved([wave], as_sample(np.linspace(0.0, 1.0, n))).all()


@given(n=st.integers(12, 400), seed=st.integers(0, 2**32 - 1), gap=st.floats(6.6, 1e5))
@settings(max_examples=40)
def test_fast_waves_are_not(n: int, seed: int, gap: float) -> None:
    x = np.random.default_rng(seed).uniform(0.0, 1.0, n)
    wave = parse(f"sin({gap * n:.6g}*x0 + 0.3)")
    assert not are_resolved([wave], as_sample(x)).any()
    assert not are_resolved([wave], as_sample(np.linspace(0.0, 1.0, n))).any()


def test_order_copies_and_rows_that_are_not_finite_change_nothing() -> None:
    rng = np.random.default_rng(1)
    wave = parse("cos(x0) + sin(3*x0)")
    expected = wave_turns([wave], as_sample(DOSES))
    shuffled = rng.permutation(np.r_[DOSES, DOSES * (1.0 + 1e-14), np.nan, np.inf])
    assert wave_turns([wave], as_sample(shuffled)) == expected
    assert hidden_turns(wave, as_sample(np.full(40, 3.0))) == 0
    assert hidden_turns(parse("x0 + 1"), as_sample(DOSES)) == 0


def test_own_operators_are_looked_at_by_their_values() -> None:
    sn.register_operator("ripple", lambda a: np.sin(3.0 * a) + 0.1 * a)
    sn.register_operator("steep", lambda a: 1.0 / (1.0 + np.exp(-40.0 * (a - 3.0))))
    try:
        ripple, steep = parse("ripple(x0)"), parse("steep(x0)")
        assert hidden_turns(ripple, as_sample(DOSES)) > 10 and hidden_turns(steep, as_sample(DOSES)) == 0
        assert hidden_turns(ripple, as_sample(np.linspace(0.0, 10.0, 2000))) == 0
    finally:
        sn.unregister_operator("ripple")
        sn.unregister_operator("steep")


def test_fifty_candidates_take_milliseconds() -> None:
    sample = as_sample(np.random.default_rng(2).normal(size=(2000, 2)))
    candidates = [parse(f"sin({k + 1}*x0)*exp(x1) + cos(x0*x1 + {k})") for k in range(50)]
    started = time.perf_counter()
    wave_turns(candidates, sample)
    assert time.perf_counter() - started < 0.5  # about 0.01 on a quiet machine
