"""Phases, signs and powers of exponentials as people write them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.algebra.spelling import spelled
from sobolev_novelty.algebra.waves import with_plain_waves
from sobolev_novelty.evaluation import evaluate
from sobolev_novelty.expression import Expression
from sobolev_novelty.parsing import parse

X = np.random.default_rng(0).uniform(0.2, 3.0, (60, 3))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("sin(x0 + 3.141592653589793)", "-sin(x0)"),
        ("x1*sin(x0 - 1.5707963267948966)", "-(x1*cos(x0))"),
        ("2*cos(x0 + 1.5707963267948966) + x1", "-2*sin(x0) + x1"),
        ("x1 + cos(x0 + 3.141592653589793)", "x1 - cos(x0)"),
        ("x1 - cos(x0 - 3.141592653589793)", "x1 + cos(x0)"),
        ("sin(-0.5*x0)", "-sin(0.5*x0)"),
        ("cos(-x0)", "cos(x0)"),
        ("sin(3.141592653589793 - x0)", "sin(x0)"),
        ("cos(3*x0 + 7)", "cos(3*x0 + 0.7168146928204138)"),
        ("sin(x0 + 1)", "sin(x0 + 1)"),
        ("sin(7)*x0", "sin(7)*x0"),
        ("square(exp(0.5*x0))", "exp(x0)"),
        ("inv(exp(-x0))", "exp(x0)"),
        ("cube(exp(x0))", "exp(3*x0)"),
    ],
)
def test_spellings(text: str, written: str):
    assert str(with_plain_waves(parse(text))) == str(parse(written))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0.5*sin(12.566370614359172*(x1*(x0/x2) + 2.375)) + 0.5", "square(sin(6.283185307179586*(x1*x0/x2)))"),
        ("3 - 3*cos(2*x0)", "6*square(sin(x0))"),
        ("2*cos(2*x0) + 2", "4*square(cos(x0))"),
    ],
)
def test_half_angles(text: str, written: str):
    e = parse(text)
    before = evaluate(e, X)
    found = spelled(e, lambda s: bool(np.allclose(evaluate(s, X), before, rtol=0, atol=1e-12)), {"x0", "x1", "x2"})
    assert str(found) == str(parse(written))


@given(
    st.sampled_from(["sin", "cos"]), st.sampled_from(["sin", "cos"]),
    st.floats(-40.0, 40.0), st.integers(-9, 9), st.floats(-5.0, 5.0).filter(lambda k: abs(k) > 1e-3),
)  # fmt: skip
def test_values_stay(outer: str, name: str, phase: float, quarters: int, factor: float):
    whole = phase if quarters == 0 else quarters * math.pi / 2
    inner = Expression.of(name, Expression.of("add", Expression.of("mul", factor, "x0"), whole))
    e = Expression.of("mul", "x1", Expression.of(outer, Expression.of("sub", whole, inner)))
    np.testing.assert_allclose(evaluate(with_plain_waves(e), X), evaluate(e, X), rtol=0, atol=1e-12)
    assert with_plain_waves(e).complexity <= e.complexity + 2
