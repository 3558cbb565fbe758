"""Forms: what is fitted, and how fitted expressions are written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sobolev_novelty.algebra import canonical
from sobolev_novelty.algebra.canonical import assemble, tidy
from sobolev_novelty.algebra.writing import ONE
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.engines.variation import Vocabulary, as_form, mutated, random_genome
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS
from sobolev_novelty.search.fit.forms import free_constants, split_form

X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 3))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("x0 - 2*x1 + 3", ["x0", "x1", "1"]),
        ("2*(x0 + x1)", ["x0 + x1"]),
        ("-x0*3/x1", ["x0/x1"]),
        ("x0*(1/x1)", ["x0/x1"]),
        ("5/(2*x0)", ["1/x0"]),
        ("sqrt(4*x0 + 8*x1)", ["sqrt(x0 + 2*x1)"]),
        ("sqrt(1 - 4*x0**2)", ["sqrt(0.25 - x0**2)"]),
        ("exp(x0 + 1)", ["exp(x0)"]),
        ("inv(inv(x0))", ["x0"]),
        ("x0 + x0", ["x0"]),
    ],
)
def test_a_form_is_split_into_terms_without_their_numeric_factors(text: str, terms: list[str]) -> None:
    assert [str(term) for term in split_form(parse(text)).terms] == terms


def test_a_factor_one_inside_a_function_stays_free() -> None:
    form = split_form(parse("sin(1*x0)"))
    assert form.free == (True,)
    assert form.terms[0].constants == (1.0,)


def test_exponents_and_reciprocals_are_fixed() -> None:
    assert free_constants(parse("x0**3 + 1/(x0 + 2)")) == (False, False, True)
    assert free_constants(ONE) == (False,)


@pytest.mark.parametrize(
    "text",
    [
        "x0 - 2*x1 + 3*sin(2*x0 - x1)",
        "3*x0/(2 - 5*x1*x2)",
        "sqrt(3*x0 + 2)*exp(-0.5*x1 + 1) - 4",
        "(-2*x0 - 3*x1)**2/inv(x2)",
        "cube(-2*x0)*log(2*x1)",
        "-(x0 - x1)/(-x2)",
    ],
)
def test_tidying_does_not_change_values(text: str) -> None:
    expression = parse(text)
    np.testing.assert_allclose(evaluate(tidy(expression), X), evaluate(expression, X), rtol=1e-12)


@pytest.mark.parametrize("text", ["x0 - 2*x1 + 3*sin(2*x0 - x1)", "3*x0/(2 - 5*x1*x2)", "sqrt(3*x0 + 2) - 4"])
def test_the_terms_of_a_form_span_its_values(text: str) -> None:
    terms = split_form(parse(text)).terms
    values = np.array([evaluate(term, as_sample(X)) for term in terms]).T
    target = evaluate(parse(text), X)
    b = np.linalg.lstsq(values, target, rcond=None)[0]
    np.testing.assert_allclose(values @ b, target, rtol=1e-10)
    np.testing.assert_allclose(evaluate(assemble(terms, b.tolist()), X), target, rtol=1e-10)


def test_vanished_parts_are_not_printed() -> None:
    assert str(tidy(parse("0*x0 + sin(x1 + 0) - 1*x2"))) == "sin(x1) - x2"


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_looking_up_how_a_term_is_written_changes_nothing(seed: int) -> None:
    """Assembling must not depend on what was assembled before: a search is deterministic."""
    rng = np.random.default_rng(seed)
    vocabulary = Vocabulary.of(("x0", "x1"), (1.0, 1.0), DEFAULT_OPERATORS, 6, 25)
    for _ in range(5):
        genome = random_genome(vocabulary, rng)
        for _ in range(3):
            genome = mutated(genome, vocabulary, rng)
        try:
            terms = split_form(as_form(genome)).terms
        except ExpressionError:
            continue
        moved = [term.with_constants(rng.normal(0.0, 2.0, len(term.constants)).tolist()) for term in terms]
        weights = rng.normal(size=len(terms)).tolist()
        warm = assemble(moved, weights)
        canonical._summand.cache_clear()
        assert assemble(moved, weights) == warm
        assert assemble(moved, weights) == warm


def test_a_sum_of_thousands_of_terms_is_no_recursion() -> None:
    long = parse(" + ".join(f"x{k}" for k in range(3000)))
    assert tidy(long).complexity == long.complexity
