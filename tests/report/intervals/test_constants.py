"""Which numbers of an equation a fit may change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.report.intervals.constants import parametrised, parametrised_terms
from strategies import expressions


@pytest.mark.parametrize(
    ("equation", "values"),
    [
        ("3*x0 + 2", [3.0, 2.0]),
        ("x0 - 2*x1", [1.0, -2.0]),
        ("-x0", [-1.0]),
        ("x0**2 + x0**-0.5 + x0**1.37", [1.0, 1.0, 1.0, 1.37]),
        ("100/(1 + 99*exp(-0.3*x0))", [100.0, 99.0, -0.3]),
        ("495/x0 - 450", [495.0, -450.0]),
        ("3*x0/(4*pi*x1)", [3.0]),
        ("sin(2*pi*x0)", [1.0, 2.0 * np.pi]),
        ("2*exp(-0.7*x0)*cos(3*x0 + 0.2)", [2.0, -0.7, 3.0, 0.2]),
    ],
)
def test_coefficients_and_inner_numbers_are_constants_and_structure_is_not(equation: str, values: list[float]) -> None:
    np.testing.assert_allclose(parametrised(parse(equation)).theta, values)


@given(expressions())
def test_the_equation_at_its_own_constants_is_the_equation(e: Expression) -> None:
    whole = parametrised(e)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 6))
    names = [f"x{k}" for k in range(6)]
    if set(e.variables) <= set(names):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(evaluate(whole.at(whole.theta), X), evaluate(e, X), rtol=1e-9)
    assert len(whole.half_widths([None] * len(whole.theta))) == len(whole.at(whole.theta).constants)


def test_equal_numbers_inside_different_terms_are_one_constant() -> None:
    terms = [parse("sin(0.7*x0)"), parse("x1*sin(0.7*x0)"), parse("1")]
    whole = parametrised_terms([2.0, 3.0, 4.0], terms)
    assert whole.theta.tolist() == [2.0, 3.0, 4.0, 0.7]
