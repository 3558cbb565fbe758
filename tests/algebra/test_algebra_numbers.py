"""Simple numbers near a given one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.algebra.numbers import nearest_simple


@given(st.floats(-1e3, 1e3), st.floats(1e-6, 0.1), st.booleans())
def test_what_is_found_is_simple_within_the_tolerance_and_stays(value: float, tolerance: float, relative: bool) -> None:
    found = nearest_simple(value, tolerance, is_relative=relative)
    if found is None:
        return
    assert abs(found - value) <= tolerance * (abs(value) if relative else 1.0)
    assert any(math.isclose(found * d, round(found * d), abs_tol=1e-9) for d in (1, 2, 3, 4))
    np.testing.assert_allclose(nearest_simple(found, 1e-9), found, rtol=1e-15)


@given(st.integers(-50, 50), st.integers(1, 12), st.sampled_from([1.0, math.pi, 1.0 / math.pi]))
def test_a_multiple_of_a_base_is_found(numerator: int, denominator: int, base: float) -> None:
    value = numerator / denominator * base
    found = nearest_simple(
        value * (1.0 + 1e-12), 1e-9, bases=(1.0, math.pi, 1.0 / math.pi), denominators=range(1, 13), is_relative=True
    )
    assert found is not None
    np.testing.assert_allclose(found, value, rtol=1e-11)


@pytest.mark.parametrize(("value", "expected"), [(3.1416, math.pi), (3.1428, 22 / 7), (0.49997, 0.5)])
def test_the_nearest_wins_not_the_first(value: float, expected: float) -> None:
    found = nearest_simple(value, 1e-3, bases=(1.0, math.pi), denominators=range(1, 13), is_relative=True)
    assert found == expected


def test_nothing_is_found_beyond_the_tolerance_or_the_largest_fraction() -> None:
    assert nearest_simple(0.41, 1e-3) is None
    assert nearest_simple(1234567.2, 1e-3, is_relative=True) is None
    assert nearest_simple(0.01, 0.02) == 0.0
    assert nearest_simple(0.01, 0.02, is_relative=True) is None


@pytest.mark.parametrize(("value", "simple"), [(0.4999, 0.5), (-1.334, -4 / 3), (0.41, None)])
def test_simple_fractions_are_recognised(value: float, simple: float | None) -> None:
    found = nearest_simple(value, 2e-3)
    assert found == simple if simple is None else found == pytest.approx(simple)
