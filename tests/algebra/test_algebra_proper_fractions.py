"""Quotients of sums, divided out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sobolev_novelty.algebra.proper_fractions import with_proper_fractions
from sobolev_novelty.algebra.writing import weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse

X = np.random.default_rng(0).uniform(0.5, 2.0, (50, 2))
MONOMIALS = [parse(text) for text in ("1", "x0", "x1", "x0**2", "x0*x1", "x0**3", "sin(x1)", "x1**2*x0")]
SUMS = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from(MONOMIALS)), min_size=1, max_size=4, unique_by=lambda p: p[1]
)


def _sum(parts: list[tuple[int, Expression]]) -> Expression:
    return weighted_sum([(float(c), e) for c, e in parts])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(x0**2 + x0 + x1)/(x0 + 1)", "x0 + x1/(x0 + 1)"),
        ("sin(x1)*((x0**2 - 1)/(x0 - 1))", "sin(x1)*(x0 + 1)"),
        ("(x0 + x1)/(x1 + x0)", "1"),
        ("x0/(x1 + 2)", "x0/(x1 + 2)"),
        ("(x0 + x1)/(x0 - x1)", "(x0 + x1)/(x0 - x1)"),
        ("exp((x0*x1 + x1)/(x0 + 1))", "exp(x1)"),
    ],
)
def test_what_divides_out_is_divided_out_where_that_is_shorter(text: str, expected: str) -> None:
    assert str(with_proper_fractions(parse(text))) == expected


@given(SUMS, SUMS, SUMS)
@settings(max_examples=200, deadline=None)
def test_values_stay_and_nodes_never_grow(
    quotient: list[tuple[int, Expression]],
    divisor: list[tuple[int, Expression]],
    rest: list[tuple[int, Expression]],
) -> None:
    product = weighted_sum([(float(a * b), Expression.of("mul", e, f)) for a, e in quotient for b, f in divisor])
    above = Expression.of("add", product, _sum(rest))
    whole = Expression.of("div", above, _sum(divisor))
    divided = with_proper_fractions(whole)
    assert len(divided) <= len(whole)
    np.testing.assert_allclose(evaluate(divided, X), evaluate(whole, X), rtol=1e-9)
