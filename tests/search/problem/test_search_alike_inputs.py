"""Inputs that rows cannot tell apart: functions of each other and curves, but no independent factor."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.search.problem.alike_inputs import alike_inputs

RNG = np.random.default_rng(0)
T = np.sort(RNG.uniform(0.5, 3.0, 120))


def test_near_duplicates_and_functions_of_each_other_cannot_be_told_apart() -> None:
    other = RNG.normal(size=120)
    assert alike_inputs(np.c_[T, other], ("t", "z")) == ()
    for twin in (T + 1e-3 * RNG.normal(size=120), T**3, -np.log(T)):
        (sentence,) = alike_inputs(np.c_[T, other, twin], ("t", "z", "u"))
        assert sentence == "On these rows u is a function of t: they cannot be told apart."


@pytest.mark.parametrize("digits", [2, 15])
def test_a_trajectory_is_seen_to_be_a_curve(digits: int) -> None:
    t = np.linspace(0.0, 6.0, 300)
    run = np.repeat([1.0, 2.0], 150)
    rows = np.round(np.c_[np.cos(t), np.sin(t), run], digits)
    (sentence,) = alike_inputs(rows[:, :2], ("p", "q"))
    assert sentence.startswith("The inputs p, q lie on a curve")
    assert alike_inputs(rows, ("p", "q", "run")) == (sentence,)


@pytest.mark.parametrize("n", [40, 120, 600, 3000])
@pytest.mark.parametrize("n_levels", [2, 3, 4, 6, 8])
def test_an_independent_factor_is_no_curve_however_few_levels_it_has(n: int, n_levels: int) -> None:
    rng = np.random.default_rng([n, n_levels])
    x, z = rng.uniform(0.0, 1.0, (2, n))
    factor, other = rng.integers(0, n_levels, n), rng.integers(0, 3, n)
    doses = 0.5 * 2.0**factor
    for columns in (
        (x, factor),
        (factor, other),
        (x, z, factor),
        (x, factor, other),
        (doses, other),
        (10 ** (3 * x), doses),
    ):
        assert alike_inputs(np.column_stack(columns), ("a", "b", "c")) == ()


def test_independent_inputs_over_decades_are_no_curve() -> None:
    wide, other = RNG.uniform(0.0, 4.0, (2, 500))
    assert alike_inputs(np.c_[10.0**wide, other], ("a", "b")) == ()
    (sentence,) = alike_inputs(np.c_[10.0**wide, wide], ("a", "b"))
    assert sentence.endswith("cannot be told apart.")
