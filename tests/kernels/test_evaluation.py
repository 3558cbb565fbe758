"""Expressions to numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sympy
from hypothesis import given, strategies as st

from reference import TERMS, inputs, reference_signature
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.errors import ExpressionError, ParameterError, ParseError
from sobolev_novelty.kernels.evaluate import as_expression, check_order, derivatives, evaluate


def test_an_equation_may_be_text_an_expression_a_number_or_sympy() -> None:
    expected = Expression.of("add", "x0", 1.0)
    assert as_expression("x0 + 1") == expected
    assert as_expression(expected) is expected
    assert as_expression(2) == Expression.of(2.0)
    np.testing.assert_array_equal(evaluate(sympy.Symbol("x0") + 1, [[1.0], [2.0]]), [2.0, 3.0])


def test_anything_else_is_refused() -> None:
    with pytest.raises(
        ParameterError, match="An equation must be text, an Expression, a SymPy object, .* Got builtins.dict."
    ):
        as_expression({})


def test_names_come_from_the_frame() -> None:
    np.testing.assert_array_equal(evaluate("mass*2", pd.DataFrame({"mass": [1.0, 2.0]})), [2.0, 4.0])
    with pytest.raises(ParseError, match="'weight' is not a known variable. Known: mass."):
        evaluate("weight*2", pd.DataFrame({"mass": [1.0]}))
    with pytest.raises(ExpressionError, match="Variable 'x1' is not a column of X. Its columns are: x0."):
        evaluate(Expression.of("x1"), [[1.0]])


def test_outside_the_domain_values_are_not_finite_and_nothing_is_raised() -> None:
    np.testing.assert_array_equal(evaluate("log(x0) + 1/x0", [[-1.0], [0.0], [1.0]]), [np.nan, np.nan, 1.0])


@pytest.mark.parametrize("order", [-1, 3, 1.5, None])
def test_other_orders_are_refused(order: object) -> None:
    with pytest.raises(ParameterError, match=f"'order' must be 0, 1 or 2. Got {order}."):
        check_order(order)  # type: ignore[arg-type]


@pytest.mark.parametrize("term", TERMS)
@given(seed=st.integers(0, 2**32 - 1))
def test_derivatives_agree_with_sympy(term: str, seed: int) -> None:
    X = inputs(seed, 8)
    rows = derivatives([as_expression(term)], as_sample(X), order=2)[0]
    n = len(X)
    expected = reference_signature(term, X, order=2, coordinates="raw") * np.sqrt(n)
    expected[n : 3 * n] *= np.sqrt(2.0)
    expected[3 * n :] *= 2.0
    value, d0, d1, d00, d01, d10, d11 = expected.reshape(7, n)
    np.testing.assert_allclose(d01, d10)
    np.testing.assert_allclose(rows, [value, d0, d1, d00, d01, d11], rtol=1e-9, atol=1e-9)
