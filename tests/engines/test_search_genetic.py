"""The genetic engine: variation, guidance, and what it finds."""

from __future__ import annotations

import pickle

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.engines.genetic import Genetic, GeneticState
from sobolev_novelty.engines.variation import (
    Vocabulary,
    as_form,
    checked,
    crossed,
    mutated,
    random_genome,
    random_tree,
)
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS, Candidate, Problem, SobolevGuidance
from sobolev_novelty.search.loop.loop import Budget, run
from sobolev_novelty.search.propose.screening import lowest_novelties

X = np.random.default_rng(3).uniform(0.5, 3.0, (150, 2))
VOCABULARY = Vocabulary.of(("x0", "x1"), (1.0, 2.0), DEFAULT_OPERATORS, max_terms=4, max_term_size=20)


def test_random_trees_have_about_the_size_asked_for_and_contain_a_variable() -> None:
    rng = np.random.default_rng(0)
    for size in range(1, 15):
        tree = random_tree(VOCABULARY, rng, size)
        assert tree.variables
        assert tree.complexity <= size + 2


def test_variation_gives_valid_genomes() -> None:
    rng = np.random.default_rng(1)
    genome = random_genome(VOCABULARY, rng)
    for _ in range(500):
        other = random_genome(VOCABULARY, rng)
        child = checked(crossed(genome, other, VOCABULARY, rng), VOCABULARY)
        child = checked(mutated(child or other, VOCABULARY, rng), VOCABULARY)
        if child is None:
            continue
        assert 1 <= len(child) <= 4 and len(set(child)) == len(child)
        assert set(as_form(child).variables) <= {"x0", "x1"}
        genome = child


def test_genomes_that_are_too_large_or_without_variables_are_refused() -> None:
    assert checked((Expression.of(1.0),), VOCABULARY) is None
    long = as_form(tuple(Expression.of("x0") for _ in range(15)))
    assert checked((long,), VOCABULARY) is None


def test_the_plain_backbone_makes_no_novelty_calls_and_the_guided_one_does() -> None:
    y = evaluate(parse("sin(x0)*x1 + x0/(1 + x1*x1*exp(x0))"), X)
    problem = Problem(Rows(as_sample(X), y))
    budget = Budget(max_evaluations=600)
    plain = run(problem, Genetic(), budget, np.random.default_rng(0))
    guided = run(problem, Genetic(guidance=SobolevGuidance()), budget, np.random.default_rng(0))
    assert plain.n_novelty_calls == 0
    assert guided.n_novelty_calls > 0


def test_a_law_is_found_without_structural_forms() -> None:
    y = evaluate(parse("2*x0*x1 + sin(x0)"), X)
    result = run(
        Problem(Rows(as_sample(X), y)),
        Genetic(structural=False),
        Budget(max_evaluations=20_000),
        np.random.default_rng(0),
    )
    assert result.best is not None
    assert result.best.nmse < 1e-3


def test_a_pickled_state_goes_on_as_the_original() -> None:
    y = evaluate(parse("x0*x1/(x0 + x1)"), X)
    problem = Problem(Rows(as_sample(X), y))
    engine = Genetic(population_size=20, n_offspring=10)
    state = engine.start(problem, np.random.default_rng(0))
    for _ in range(3):
        engine.propose(state, np.random.default_rng(1))
    copy = pickle.loads(pickle.dumps(state))
    ours, theirs = np.random.default_rng(2), np.random.default_rng(2)
    assert engine.propose(state, ours) == engine.propose(copy, theirs)


def with_population(target: str, *forms: str, n_bred: int = 2) -> tuple[Genetic, GeneticState]:
    """A guided engine whose population is these forms, best first."""
    engine = Genetic(structural=False, population_size=20, n_offspring=40, guidance=SobolevGuidance(n_bred=n_bred))
    state = engine.start(Problem(Rows(as_sample(X), evaluate(parse(target), X))), np.random.default_rng(0))
    candidates = [Candidate(parse(f), parse(f), 0.5, 0.9 - 0.01 * k) for k, f in enumerate(forms)]
    return engine, engine.observe(state, candidates)


def test_the_best_are_tried_without_their_weakest_term_once() -> None:
    engine, state = with_population("x0", "2*x0 + 0.01*sin(0.1*x0)", "x0 + cos(3*x1)")
    assert state.signal is not None
    assert [str(form) for form in engine._pruned(state, state.signal)] == ["2*x0"]
    assert engine._pruned(state, state.signal) == []


def test_children_whose_terms_repeat_each_other_are_bred_again() -> None:
    shares, counts = [], []
    for n_bred in (1, 2):
        engine, state = with_population(
            "x0 + sin(3*x1)", "x0 + sin(x0) + 1", "x1 + x1*x1 + sqrt(x1)", "exp(x0) + x0", n_bred=n_bred
        )
        children = engine._offspring(state, np.random.default_rng(1))
        shares.append(float(np.mean(lowest_novelties(children, state.screened) > TAU_ID)))
        counts.append(len(children))
    assert shares[1] > shares[0] + 0.1
    assert counts == [40, 40]


def test_screening_sees_no_target() -> None:
    children = []
    for target in ("x0", "sin(3*x1)"):
        engine, state = with_population(target, "x0 + sin(x0) + 1", "x1 + sqrt(x1)")
        state.vocabulary = VOCABULARY  # how often a variable is drawn depends on the target, with or without the signal
        children.append(engine._offspring(state, np.random.default_rng(1)))
    assert children[0] == children[1]


def test_a_population_holds_different_equations() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (300, 3))
    y = X[:, 0] / np.sqrt(1.0 - 0.1 * X[:, 1] ** 2 / X[:, 2]) + 0.2 * rng.normal(size=300)
    problem = Problem(Rows(as_sample(X), y))
    result = run(problem, Genetic(population_size=60, structural=False), Budget(max_evaluations=3000), rng)
    population, layered = result.state.population, result.state.accurate
    assert len(population) == 30
    assert len({f"{c.nmse:.5e}" for c in population}) == 30
    sizes = [c.complexity for c in layered]
    assert sizes == sorted(sizes)
    assert max(sizes.count(size) for size in sizes) <= 2
    first = [min(c.nmse for c in layered if c.complexity == size) for size in sorted(set(sizes))]
    assert first == sorted(first, reverse=True)
