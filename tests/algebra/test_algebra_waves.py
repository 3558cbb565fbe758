"""Phases, signs and powers of exponentials as people write them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.algebra.spelling import spelled
from sobolev_novelty.algebra.waves import with_plain_waves, with_small_phases
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import Form

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
        ("cos(3*x0 + 7)", "cos(3*x0 + 0.7168146928204135)"),
        ("cos(5.490246182177113*(x0 - 63313958428077.75))", "cos(5.490246182177113*(x0 - 0.2988472142595417))"),
        ("cos((x0 - 100)/4)", "cos((x0 + 0.5309649148733836)/4)"),
        ("sin(3*x0 - 2*(x1 - 50))", "sin(3*x0 - 2*(x1 + 0.2654824574366918))"),
        ("tan(x0 + 100)", "tan(x0 - 0.5309649148733836)"),
        ("tan(x0 + 7.853981633974483)", "-cot(x0)"),
        ("cos(x0 + 1e308)", "cos(x0)"),
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
    st.sampled_from(["sin", "cos", "tan", "cot"]),
    st.floats(-1e300, 1e300), st.floats(-1e6, 1e6).filter(lambda k: abs(k) > 1e-6), st.booleans(),
)  # fmt: skip
def test_a_phase_is_always_within_one_period(name: str, shift: float, factor: float, is_divided: bool):
    inner = Expression.of("sub", "x0", shift)
    inner = Expression.of("div", inner, factor) if is_divided else Expression.of("mul", factor, inner)
    weight = Fraction(1) / Fraction(factor) if is_divided else Fraction(factor)
    period = math.pi * (2 if name in ("sin", "cos") else 1)
    for rewrite in (with_small_phases, with_plain_waves):
        after = rewrite(Expression.of(name, inner))
        shifts = [c for c in after.constants if c != factor and c != abs(factor)]
        assert all(abs(Fraction(c) * weight) <= period * (0.5 + 1e-12) for c in shifts), str(after)


def test_a_fit_that_went_astray_comes_back_with_its_phase_in_one_period():
    x = np.random.default_rng(0).uniform(-1.0, 1.0, 200)
    y = 2.0 * np.cos(5.49 * (x - 0.3)) + 0.1 * np.random.default_rng(1).normal(size=200)
    fitter = Fitter(Rows(as_sample(x[:, None], ["x0"]), y))
    term = parse("cos(5.490246182177113*(x0 - 63313958428077.75))")
    start = Form((term,), (True,) * 2)
    for n_iterations in (0, 1, 8):
        found = fitter.fit([start], n_iterations)[0]
        factor, shift = found.terms[0].constants
        assert abs(factor * shift) <= math.pi * (1.0 + 1e-12)
        residual = y - found.coefficients @ fitter.values(found.terms)
        assert found.nmse == pytest.approx(float(np.sum(residual**2)) / fitter.rows.total, rel=1e-9)


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
