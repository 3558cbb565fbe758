"""Products, sums and powers as expressions, and the same in the operators that are allowed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from algebra_cases import NAMES, POSITIVE, REWRITTEN, allowed_operators, assert_same_function, operators_of, values
from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import Writer, power, product, raised, respelled, weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS
from strategies import expressions, small_constants

BASES = tuple(parse(text) for text in ("x0", "x1", "x2", "x0 + x1", "exp(x2)", "sin(x0)"))
exponents = st.integers(-12, 12).map(lambda k: k / 2.0)
factors = st.lists(st.tuples(st.sampled_from(BASES), exponents), max_size=4, unique_by=lambda pair: pair[0])


@given(st.sampled_from(BASES), st.integers(1, 24).map(lambda k: k / 2.0))
def test_a_power_has_the_value_of_the_power(base: Expression, exponent: float) -> None:
    np.testing.assert_allclose(values(raised(base, exponent)), values(base) ** exponent, rtol=1e-9)


@given(factors)
def test_a_product_has_the_value_of_the_product_and_no_more_nodes_than_factor_by_factor(
    given_factors: list[tuple[Expression, float]],
) -> None:
    written = product(given_factors)
    expected = np.prod([values(base) ** k for base, k in given_factors], axis=0) * np.ones(POSITIVE.n_samples)
    np.testing.assert_allclose(values(written), expected, rtol=1e-8)
    one_by_one = sum(len(raised(base, abs(k))) + 2 for base, k in given_factors if k)
    assert len(written) <= max(one_by_one, 1)


@given(st.lists(st.tuples(small_constants, st.sampled_from([*BASES, Expression.of(1.0)])), max_size=4))
def test_a_weighted_sum_has_the_value_of_the_sum(parts: list[tuple[float, Expression]]) -> None:
    expected = sum((c * values(e) for c, e in parts), np.zeros(POSITIVE.n_samples))
    np.testing.assert_allclose(values(weighted_sum(parts)), expected, rtol=1e-9, atol=1e-9)


@given(expressions(names=NAMES, operators=REWRITTEN, max_leaves=8), allowed_operators)
@settings(max_examples=300)
def test_what_is_respelled_uses_the_allowed_operators_and_is_the_same_function(
    expression: Expression, operators: tuple[str, ...]
) -> None:
    spelled = respelled(expression, operators)
    if spelled is None:
        assert not operators_of([expression]) <= set(operators)
        return
    assert operators_of([spelled]) <= set(operators)
    assert_same_function(spelled, expression)
    assert respelled(spelled, operators) == spelled


@given(expressions(names=NAMES, operators=("add", "sub", "mul", "div", "neg", "square", "cube", "inv"), max_leaves=8))
def test_polynomials_and_their_quotients_can_be_written_with_four_operators(expression: Expression) -> None:
    spelled = respelled(expression, ("add", "mul", "div"))
    assert spelled is not None
    assert_same_function(spelled, expression)


@given(factors, allowed_operators)
@settings(max_examples=200)
def test_a_product_in_allowed_operators_has_the_value_of_the_product(
    given_factors: list[tuple[Expression, float]], operators: tuple[str, ...]
) -> None:
    written = Writer(operators).product(Product(tuple(given_factors)))
    if written is None:
        return
    assert operators_of([written]) <= set(operators)
    expected = np.prod([values(base) ** k for base, k in given_factors], axis=0) * np.ones(POSITIVE.n_samples)
    np.testing.assert_allclose(values(written), expected, rtol=1e-8)


@given(factors)
def test_the_default_operators_can_write_any_product_of_half_integer_powers(
    given_factors: list[tuple[Expression, float]],
) -> None:
    assert Writer(DEFAULT_OPERATORS).product(Product(tuple(given_factors))) is not None


def test_products_are_written_with_few_nodes() -> None:
    x, y = Expression.of("x0"), Expression.of("x1")
    assert str(product([(x, 2.0), (y, 2.0)])) == "square(x0*x1)"
    assert str(product([(x, 0.5), (y, -0.5)])) == "sqrt(x0/x1)"
    assert str(product([(x, -1.0)])) == "inv(x0)"
    assert str(raised(x, 5.0)) == "x0**5"
    assert str(weighted_sum([(1.0, x), (-2.0, y), (3.0, Expression.of(1.0))])) == "x0 - 2*x1 + 3"
    assert weighted_sum([]).tokens == (0.0,)


def test_forms_are_respelled_in_the_allowed_operators() -> None:
    form = parse("square(x0)/x1**3 - inv(x2)")
    plain = respelled(form, ("add", "sub", "mul", "div"))
    assert plain is not None
    np.testing.assert_allclose(values(plain), values(form), rtol=1e-12)
    assert respelled(parse("sin(x0)"), ("add", "mul")) is None
    assert respelled(parse("x0**x1"), ("add", "mul")) is None


@pytest.mark.parametrize(
    ("exponent", "operators", "written"),
    [
        (5.0, DEFAULT_OPERATORS, "cube(x0)*square(x0)"),
        (0.25, DEFAULT_OPERATORS, "sqrt(sqrt(x0))"),
        (-2.0, ("div", "mul"), "1/(x0*x0)"),
        (-1.5, ("pow",), "x0**(-1.5)"),
        (2 / 3, DEFAULT_OPERATORS, "exp(0.6666666666666666*log(x0))"),
        (2 / 3, ("mul", "square"), None),
        (100.0, ("mul", "square"), None),
    ],
)
def test_powers_take_the_fewest_nodes(exponent: float, operators: tuple[str, ...], written: str | None) -> None:
    found = power(Expression.of("x0"), exponent, frozenset(operators))
    assert found is None if written is None else str(found) == written


def test_a_power_of_an_exponential_goes_into_it_where_that_is_shortest() -> None:
    assert str(power(parse("exp(x0)"), -3.0, frozenset({"exp", "mul"}))) == "exp(-3*x0)"
    assert str(power(parse("exp(x0)"), 2.0, frozenset({"exp", "mul", "square"}))) == "square(exp(x0))"


def test_products_are_equal_whatever_their_order_and_join_equal_bases() -> None:
    x, wave = parse("x0"), parse("sin(x1)")
    one, other = Product(((x, 1.0), (wave, 2.0))), Product(((wave, 2.0), (x, 1.0)))
    assert one == other
    assert hash(one) == hash(other)
    assert Product(((wave, 1.0),)).times(Product(((x, 1.0), (wave, 1.0)))).factors == ((x, 1.0), (wave, 2.0))
    assert one.times(Product(((x, -1.0), (wave, -2.0)))) == Product()
