"""The genetic engine's hands: random genomes, crossover and mutation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from algebra_cases import NAMES, operators_of, values
from sobolev_novelty.algebra.writing import ONE
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines import variation
from sobolev_novelty.engines.variation import (
    Genome,
    Vocabulary,
    as_form,
    checked,
    crossed,
    mutated,
    random_genome,
    random_tree,
)
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS

OPERATORS = ("add", "mul", "div", "sin", "exp", "square")
VOCABULARY = Vocabulary.of(NAMES, (1.0, 2.0, 1.0), OPERATORS, 4, 15)
seeds = st.integers(0, 10**6)


def _is_valid(genome: Genome) -> bool:
    return bool(genome) and all(Expression(term.tokens) == term for term in genome)


@given(seeds, st.integers(1, 12))
def test_a_random_tree_has_a_variable_about_the_size_asked_for_and_known_operators(seed: int, size: int) -> None:
    tree = random_tree(VOCABULARY, np.random.default_rng(seed), size)
    assert set(tree.variables) <= set(NAMES)
    assert tree.variables
    assert tree.complexity <= size + 1
    assert operators_of([tree]) <= set(OPERATORS)


def test_a_vocabulary_draws_variables_by_their_weights_and_never_a_sign() -> None:
    vocabulary = Vocabulary.of(("x0", "x1"), (1.0, 3.0), DEFAULT_OPERATORS, 4, 15)
    assert vocabulary.weights == (0.25, 0.75)
    assert "neg" not in {op.name for op in vocabulary.unary}
    rng = np.random.default_rng(0)
    drawn = [str(vocabulary.variable(rng)) for _ in range(400)]
    assert 240 < drawn.count("x1") < 360


def test_without_a_binary_operator_products_are_made() -> None:
    assert [op.name for op in Vocabulary.of(NAMES, (1, 1, 1), ("sin",), 4, 15).binary] == ["mul"]


@given(seeds)
def test_random_genomes_children_and_mutants_are_whole_expressions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mother, father = random_genome(VOCABULARY, rng), random_genome(VOCABULARY, rng)
    child = crossed(mother, father, VOCABULARY, rng)
    mutant = mutated(child, VOCABULARY, rng)
    assert all(_is_valid(genome) for genome in (mother, father, child, mutant))
    assert operators_of(mutant) <= set(OPERATORS)


@given(seeds)
def test_the_same_seed_gives_the_same_children(seed: int) -> None:
    first, second = (np.random.default_rng(seed) for _ in range(2))
    assert mutated(random_genome(VOCABULARY, first), VOCABULARY, first) == mutated(
        random_genome(VOCABULARY, second), VOCABULARY, second
    )


@given(seeds)
def test_a_child_consists_of_its_parents_terms_or_holds_one_graft(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mother, father = random_genome(VOCABULARY, rng), random_genome(VOCABULARY, rng)
    child = crossed(mother, father, VOCABULARY, rng)
    foreign = [term for term in child if term not in mother + father]
    assert len(foreign) <= 1


@pytest.mark.parametrize("change", variation._CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_every_change_of_a_single_offset_gives_a_genome(change: Callable[..., Genome]) -> None:
    for seed in range(30):
        assert _is_valid(change((ONE,), VOCABULARY, np.random.default_rng(seed)))


def test_a_checked_genome_has_no_repeats_a_variable_and_keeps_the_limits() -> None:
    x, y = parse("x0"), parse("sin(x1)")
    assert checked((x, y, x), VOCABULARY) == (x, y)
    assert checked((ONE,), VOCABULARY) is None
    assert checked((), VOCABULARY) is None
    assert checked(tuple(parse(f"x0**{k}") for k in range(5)), VOCABULARY) is None
    assert checked((parse("+".join(["x0"] * 9)),), VOCABULARY) is None


@given(seeds)
def test_a_form_is_the_sum_of_the_genome(seed: int) -> None:
    genome = random_genome(VOCABULARY, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        total = np.sum([values(term) for term in genome], axis=0)
    both = np.isfinite(total) & (np.abs(total) < 1e12)
    np.testing.assert_allclose(values(as_form(genome))[both], total[both], rtol=1e-9, atol=1e-9)
    assert as_form(genome).complexity == sum(len(term) for term in genome) + len(genome) - 1
