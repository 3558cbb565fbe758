"""The canonical writing of expressions and forms, on random expressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given

from algebra_cases import NAMES, POSITIVE, REWRITTEN, SIGNED, assert_same_function, values
from sobolev_novelty.algebra.canonical import assemble, canonical_terms, tidy
from sobolev_novelty.algebra.factoring import factored, flattened
from sobolev_novelty.algebra.proper_fractions import with_proper_fractions
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.forms import split_form
from strategies import expressions

random_expressions = expressions(names=NAMES, operators=REWRITTEN, max_leaves=10)


def _tidied(expression: Expression) -> Expression:
    try:
        return tidy(expression)
    except ExpressionError:  # numbers beyond the range of floats
        assume(False)
        raise


@given(random_expressions)
def test_tidying_keeps_the_function_and_grows_only_by_numbers_it_moves_out(expression: Expression) -> None:
    for sample in (POSITIVE, SIGNED):
        assert_same_function(_tidied(expression), expression, sample)
    n_reciprocals = [str(token) for token in expression.tokens].count("inv")  # 1/x has a node more
    # A number that moves out of one summand stands before the sum and in the other one: 1e-6*(1/x + 1000*x)**2.
    assert len(_tidied(expression)) <= len(expression) + n_reciprocals + 4 * len(expression.constants)


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("log(exp(x0*exp(-x1)))", "x0*exp(-x1)"),
        ("log(2*exp(3*x0 - x1))", f"3*x0 - x1 + {np.log(2.0)}"),
        ("x1*log(exp(x0))", "x1*x0"),
        ("log(x1*exp(x0))", "log(x1*exp(x0))"),
        ("log(-exp(x0))", "log(-exp(x0))"),
    ],
)
def test_a_logarithm_and_an_exponential_undo_each_other(text: str, tidied: str) -> None:
    assert str(tidy(parse(text))) == tidied


@given(random_expressions)
@example(parse("square(0.001 + (-0.001*(x0 + x0)))"))
def test_tidying_comes_to_rest(expression: Expression) -> None:
    once = _tidied(_tidied(expression))  # a number moved out may leave only a sign before a sum, which goes next
    twice = _tidied(once)
    assert [t for t in twice.tokens if not isinstance(t, float)] == [
        t for t in once.tokens if not isinstance(t, float)
    ], f"{once} became {twice}"
    np.testing.assert_allclose(twice.constants, once.constants, rtol=1e-12)


@given(random_expressions)
def test_the_terms_of_a_form_are_forms_of_one_term(expression: Expression) -> None:
    try:
        terms = split_form(expression).terms
    except ExpressionError:
        return
    for term in terms:
        again = split_form(Expression.of("mul", 3.0, term)).terms  # x0 + x1 is the term of 3*(x0 + x1)
        assert len(again) == 1, f"{term} became {again}"


@given(random_expressions)
def test_every_shorter_writing_is_the_same_function_and_not_longer(expression: Expression) -> None:
    for rewriting in (factored, flattened, with_proper_fractions):
        shorter = rewriting(expression)
        assert len(shorter) <= len(expression)
        assert_same_function(shorter, expression, share=0.9)
        assert len(rewriting(shorter)) <= len(shorter)


@given(expressions(names=NAMES, operators=("add", "sub", "mul", "square", "sin"), max_leaves=8))
def test_a_flattened_root_of_a_square_is_its_operand_for_positive_values(expression: Expression) -> None:
    squared = Expression.of("sqrt", Expression.of("square", expression))
    flat = flattened(squared, through_roots=True)
    before, after = values(squared), values(flat)
    both = np.isfinite(before) & np.isfinite(after) & (np.abs(before) < 1e8)
    np.testing.assert_allclose(np.abs(after[both]), before[both], rtol=1e-6, atol=1e-7)


def test_a_sum_whose_numbers_no_ratio_can_hold_is_left_as_it_is() -> None:
    term = parse("sqrt(1e-320*x0 + 3*x1)")
    assert str(assemble([term], [2.0])) == "2*sqrt(1e-320*x0 + 3*x1)"
    assert canonical_terms(term) == (term,)
