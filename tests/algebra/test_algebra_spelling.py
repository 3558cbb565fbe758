"""Other spellings, the same values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from sobolev_novelty.algebra.spelling import spelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS, Candidate
from sobolev_novelty.search.model.finish import TrainingTable
from strategies import expressions

X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 4)) * [1.0, 0.4, 1.0, 1.0]
NAMES = ("x0", "x1", "x2", "x3")
TABLE = TrainingTable(Rows.of(X, X[:, 0], None, NAMES), 60, True)


def written(text: str | Expression, table: TrainingTable = TABLE) -> Expression:
    e = parse(text) if isinstance(text, str) else text
    return table.as_written(Candidate(e, e, 0.1, 0.5), DEFAULT_OPERATORS).expression


@pytest.mark.parametrize(
    ("fitted", "expected"),
    [
        ("3*exp(2*x0)/(exp(2*x0) + exp(x0))", "3/(1 + exp(-x0))"),
        ("3*exp(0.7*x0 + 1)/(exp(0.7*x0 + 1) + 2*exp(0.2*x0))", "3/(1 + 2*exp(-0.5*x0 - 1))"),
        ("x0/x0*x0", "x0"),
        ("2.3*x0 + 2.3*x1 - 2.3*x2 + 1", "2.3*(x0 + x1 - x2) + 1"),
        ("-2*(1 - x0)", "2*(x0 - 1)"),
        ("x0 - -3*x1", "x0 + 3*x1"),
        ("x0**0.5", "sqrt(x0)"),
        ("sqrt(x0**2) - cos(x1)/x0", "x0 - cos(x1)/x0"),
        ("exp(x0)*exp(x1)", "exp(x0 + x1)"),
        ("0.3333333333333333*x0", "x0/3"),
        ("x1*x0*(0.2385*sqrt(x2))/x2", "0.2385*(x1*x0/sqrt(x2))"),
        ("x2*(x1*(3*x0))", "3*(x2*x1*x0)"),
        ("x2*(x1*(3*x0)) + x1*(2*x3)", "x1*(3*(x2*x0) + 2*x3)"),
        ("x2*(x0 - x1*x3)/sqrt(x2**2 - x1**2)", "(x0 - x1*x3)/sqrt(1 - square(x1/x2))"),
        ("x0*x2**3/sqrt(x2**2 - x1**2)", "x0*square(x2)/sqrt(1 - square(x1/x2))"),
        ("sqrt(x0*(x0/x2 - 2*cos(x1))/x2 + 1)*x2", "sqrt(x0*(x0 - 2*(cos(x1)*x2)) + square(x2))"),
    ],
)
def test_equations_are_written_as_people_write_them(fitted: str, expected: str) -> None:
    found = written(fitted)
    np.testing.assert_allclose(evaluate(found, X), evaluate(parse(fitted), X), rtol=1e-12)
    assert found.complexity == parse(expected).complexity
    assert sum(c < 0.0 for c in found.constants) == sum(c < 0.0 for c in parse(expected).constants)
    np.testing.assert_allclose(evaluate(parse(expected), X), evaluate(parse(fitted), X), rtol=1e-12)


@settings(max_examples=60)
@given(expressions(max_leaves=12))
def test_what_is_written_has_the_values_of_what_was_fitted(e: Expression) -> None:
    e = e.rename({name: NAMES[k % 4] for k, name in enumerate(e.variables)})
    with np.errstate(all="ignore"):
        before = evaluate(e, X)
        found = written(e)
        after = evaluate(found, X)
    if np.isfinite(before).all():
        assert np.abs(after - before).max() <= 1e-12 * np.abs(before).max()
    else:
        assert found == e


def test_a_root_of_a_square_stays_where_the_input_has_either_sign() -> None:
    either = X - 1.3
    table = TrainingTable(Rows.of(either, either[:, 0], None, NAMES), 60, True)
    assert "sqrt" in str(written("sqrt(x0**2) + x1", table))


def test_only_allowed_operators_are_written() -> None:
    e = parse("x0*x0 + x1")
    found = TABLE.as_written(Candidate(e, e, 0.1, 0.5), ("add", "mul")).expression
    assert {getattr(token, "name", "") for token in found.tokens} <= {"add", "mul", ""}


def test_sympy_agrees() -> None:
    sympy = pytest.importorskip("sympy")
    from sobolev_novelty.language.convert import to_sympy

    for text in ("3*exp(2*x0)/(exp(2*x0) + exp(x0))", "2.5*x0 + 2.5*x1 + 2.5*x2", "x0/x1/(x2/x3)"):
        assert sympy.simplify(to_sympy(parse(text)) - to_sympy(written(text))) == 0


def test_a_spelling_that_does_not_agree_is_not_taken() -> None:
    e = parse("x0/x0*x0")
    assert spelled(e, lambda other: False) == e


def test_phases_are_small_even_when_time_is_over():
    e = parse("2.5*sin(x0 - 11629.25) + exp(1.5*log(x1))")
    late = spelled(e, lambda _: True, {"x1"}, lambda: True)
    assert max(abs(c) for c in late.constants) < 4.0
    assert "log" in str(late)
    assert "log" not in str(spelled(e, lambda _: True, {"x1"}))


@pytest.mark.parametrize(
    "text", ["sqrt(-2*(x0*(-0.7*x1)))", "(x0*sqrt(-2*(x0*(-0.7*x1))) + 1)/x0", "1e150*sqrt(x0 + 1e-300*x1)/1e150"]
)
def test_numbers_without_a_real_power_end_no_fit(text: str) -> None:
    e = parse(text)
    np.testing.assert_allclose(evaluate(written(e), X), evaluate(e, X), rtol=1e-12)
