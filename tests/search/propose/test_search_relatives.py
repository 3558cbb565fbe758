"""Equations that begin alike."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import split_form
from sobolev_novelty.search.propose.neighbours import relatives


@pytest.mark.parametrize(
    ("found", "meant"),
    [
        ("0.6*(x0*(square(x1/x2) + 1.7))", "x0/sqrt(1 - (x1/x2)**2)"),
        ("3*(x0/(3.1 - x1/x2))", "x0/sqrt(1 - (x1/x2)**2)"),
        ("x0/cos(x1/x2 - 0.01)", "x0/sqrt(1 - (x1/x2)**2)"),
        ("-1.75*(x2*log(1 - 0.58*(x0*x1)))", "x2*(x0*x1)/(1 - 0.5*(x0*x1))"),
        ("6.3*(x0/x1) - 0.44", "1/(exp(x1/x0) - 1)"),
        ("x0*(square(x2) + 0.5*square(x1))", "x0*x2**2/sqrt(1 - x1**2/x2**2)"),
        ("exp(-0.3*x0)", "1/(1 + 0.3*x0)"),
    ],
)
def test_what_was_meant_is_among_the_relatives_up_to_its_numbers(found: str, meant: str) -> None:
    X = np.random.default_rng(0).uniform([0.1, 0.1, 0.6], [0.4, 0.4, 0.9], (200, 3))
    y = evaluate(parse(meant), X)

    fitter = Fitter(Rows.of(X, y))

    def is_meant(form: Expression) -> bool:
        with np.errstate(all="ignore"):
            return fitter.fit([split_form(form)], 60)[0].nmse < 1e-12

    assert not is_meant(parse(found))
    assert any(is_meant(form) for form in relatives(parse(found)))


@pytest.mark.parametrize("text", ["x0*(1 + 0.5*x1)", "x0/sqrt(2 + x1)", "x0*exp(0.7*x1)", "square(3 - x1)*x0"])
def test_relatives_have_the_same_slope_where_the_argument_vanishes(text: str) -> None:
    X = np.array([[1.3, 0.0], [1.3, 1e-4]])
    expression = parse(text)
    value, there = evaluate(expression, X)
    same = [form for form in relatives(expression) if "square(x1)" not in str(form) and "inv(exp(" not in str(form)]
    assert len(same) >= 5
    for form in same:
        own, beside = evaluate(form, X)
        assert beside / own - 1.0 == pytest.approx(there / value - 1.0, rel=1e-3), str(form)


def test_an_expression_is_not_its_own_relative_and_phases_are_left_alone() -> None:
    for text in ("x0*(1 + x1)", "cos(x0 + 2)*x1", "x0", "x0*x1"):
        assert parse(text) not in relatives(parse(text))
    assert not any("cos(inv" in str(form) or "cos(sqrt" in str(form) for form in relatives(parse("cos(x0 + 2)*x1")))
    assert relatives(parse("x0*x1")) == []


@pytest.mark.parametrize("text", ["x0*(1e-320 + x1)", "x0*(1 + 1e300*x1)", "exp(1e-300*x0)", "cos(1e200*x0)"])
def test_numbers_that_are_accidents_of_a_fit_have_no_relatives(text: str) -> None:
    assert relatives(parse(text)) == []
