"""The terms from which the tree search draws: their values, the operators they are written with, and learning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from algebra_cases import POSITIVE, SIGNED, allowed_operators, operators_of, values
from sobolev_novelty.algebra.writing import Writer
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS
from sobolev_novelty.search.propose.term_library import MAX_LEARNED, Library, atoms_of, make_library, periodic_atoms

WRITER = Writer(DEFAULT_OPERATORS)


def _library(sample: Sample = POSITIVE, writer: Writer = WRITER, **options: int) -> Library:
    return make_library(sample, writer, np.random.default_rng(0), **options)


@pytest.mark.parametrize("sample", [POSITIVE, SIGNED])
def test_the_stored_values_are_those_of_the_terms_finite_and_scaled_to_one(sample: Sample) -> None:
    library = _library(sample)
    for i in range(0, len(library), 37):
        np.testing.assert_allclose(library.exact[i], values(library.expressions[i], sample), rtol=1e-12)
    assert np.isfinite(library.exact).all()
    np.testing.assert_allclose(np.abs(library.U).max(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(library.squares, library.U**2)


def test_the_constant_comes_first_and_no_term_comes_twice() -> None:
    library = _library()
    assert library.expressions[0].tokens == (1.0,)
    assert len(set(library.expressions)) == len(library)


def test_a_product_and_its_expression_are_the_same_function() -> None:
    library = _library()
    for i in range(0, len(library), 53):
        product = library.products[i]
        assert product is not None
        written = WRITER.product(product)
        assert written is not None
        np.testing.assert_allclose(values(written), library.exact[i], rtol=1e-10)


@given(allowed_operators)
@settings(max_examples=25)
def test_terms_are_written_with_the_allowed_operators_alone(operators: tuple[str, ...]) -> None:
    library = _library(writer=Writer(operators), max_terms=300)
    assert operators_of(library.expressions) <= set(operators)
    assert operators_of(atoms_of(("x0", "x1"), Writer(operators))) <= set(operators)


def test_roots_and_reciprocals_are_left_out_where_an_input_passes_through_zero() -> None:
    crossing = Sample(np.linspace(-1.0, 1.0, 101)[None], ("x0",))
    assert np.isfinite(_library(crossing).exact).all()
    assert "inv(x0)" not in {str(e) for e in _library(crossing).expressions}


def test_the_cap_is_kept() -> None:
    assert len(_library(max_terms=200)) <= 200


def test_values_of_foreign_terms_are_computed_and_of_own_ones_looked_up() -> None:
    library = _library()
    terms = [library.expressions[5], parse("sin(x0*x1*x2) + 2")]
    np.testing.assert_allclose(library.values(terms), [values(term) for term in terms], rtol=1e-12)


def test_learned_terms_join_once_and_the_oldest_give_way() -> None:
    library = _library(max_terms=100)
    n_given = len(library)
    first = parse("sin(3.25*x0)")
    library.learn([first, first, parse("log(x0 - 100)"), Expression.of(7.0)])
    assert len(library) == n_given + 1
    assert library.expressions[-1] == first
    version = library.version
    library.learn([first])
    assert library.version == version
    library.learn(Expression.of("sin", Expression.of("mul", 1.005 + k / 100.0, "x1")) for k in range(MAX_LEARNED))
    assert len(library) == n_given + MAX_LEARNED
    assert first not in library.expressions
    np.testing.assert_allclose(library.values(library.expressions[-3:]), library.exact[-3:])
    assert len(library.U) == len(library.squares) == len(library.exact) == len(library.products) == len(library)


def test_an_oscillation_of_the_target_joins_the_atoms() -> None:
    sample = Sample(np.random.default_rng(3).uniform(0.5, 2.0, (2, 400)), ("x0", "x1"))
    frequency = 9.0
    y = 1.0 + 0.5 * np.cos(frequency * sample.X[0] * sample.X[1])
    monomials = [p for p in _library(sample).products if p is not None]
    best = periodic_atoms(sample, y, monomials, WRITER)[0]
    assert best.variables == ("x0", "x1")
    assert abs(best.constants[0] - frequency) < 0.05 * frequency
    assert periodic_atoms(sample, y, monomials, Writer(("mul",))) == []
    assert periodic_atoms(sample, np.ones_like(y), monomials, WRITER) == []
