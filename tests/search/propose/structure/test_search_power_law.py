"""Power laws from logarithms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.search.propose.structure.power_laws import fit_power_law, simple_exponent

V = np.random.default_rng(0).uniform(0.3, 3.0, (3, 50)) * np.array([[1.0], [-1.0], [1.0]])


@given(st.lists(st.floats(-4.0, 4.0), min_size=3, max_size=3), st.floats(1e-3, 1e3))
def test_exponents_and_factor_are_found_whatever_the_signs(exponents: list[float], scale: float) -> None:
    t = -scale * np.prod(np.abs(V) ** np.array(exponents)[:, None], axis=0)
    found, factor, misfit = fit_power_law(V, t)
    np.testing.assert_allclose(found, exponents, atol=1e-9)
    np.testing.assert_allclose(factor, scale, rtol=1e-9)
    assert misfit < 1e-6 or np.log(np.abs(t)).std() < 1e-6


def test_what_is_not_a_power_law_has_a_large_misfit() -> None:
    assert fit_power_law(V, np.exp(np.sin(9.0 * V[0])))[2] > 0.5


@pytest.mark.parametrize(("k", "simple"), [(0.34, 1 / 3), (1.93, 2.0), (-0.6, -0.5), (0.26, 0.25), (0.0, 0.0)])
def test_an_exponent_is_a_simple_fraction_or_a_multiple_of_one_half(k: float, simple: float) -> None:
    assert simple_exponent(k) == simple
