"""The paper's genetic backbone: what is plain about it, and what each arm adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.engines.paper.gp import N_EXTENDED, N_RANKED, N_STRUCTURAL, STRUCTURES, PaperGP, PaperState
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import Candidate, Problem, SobolevGuidance
from sobolev_novelty.search.loop.loop import Budget, run
from sobolev_novelty.search.propose.screening import lowest_novelties, screened, summands

X = np.random.default_rng(3).uniform(0.5, 3.0, (150, 2))
OPERATORS = ("add", "sub", "mul", "div", "sqrt", "exp", "log", "sin", "cos")
PROBLEM = Problem(Rows(as_sample(X), evaluate(parse("sin(x0)*x1 + x0/(1 + x1*x1*exp(x0))"), X)), operators=OPERATORS)
GUIDANCE = SobolevGuidance()


def evolved(engine: PaperGP, n_generations: int = 3) -> PaperState:
    """A state after a few generations in which the tree with more terms scores higher."""
    rng = np.random.default_rng(0)
    state = engine.start(PROBLEM, rng)
    for _ in range(n_generations):
        forms = engine.propose(state, rng)
        engine.observe(state, [Candidate(form, form, 0.5, 0.01 * len(summands(form))) for form in forms])
    return state


def test_nothing_is_done_to_a_candidate_but_one_fit() -> None:
    y = 2.0 * X[:, 0]
    assert PaperGP.as_found
    problem = Problem(Rows(as_sample(X), y), operators=OPERATORS, guesses=(parse("x0 + x1 + 1"),))
    best = run(problem, PaperGP(population_size=4), Budget(max_evaluations=2), np.random.default_rng(0)).best
    assert best is not None
    assert best.complexity > 3  # the terms that vanish are still there


def test_the_plain_arm_breeds_as_many_children_as_are_fitted() -> None:
    engine = PaperGP(population_size=30, n_offspring=40)
    state = evolved(engine)
    assert len(engine._children(state, np.random.default_rng(1))) == 40
    assert state.n_novelty_calls == 0


@pytest.mark.parametrize("is_control", [False, True])
def test_sobolev_arm_and_control_propose_as_many_candidates(is_control: bool) -> None:
    engine = PaperGP(population_size=30, n_offspring=40, is_control=is_control, guidance=GUIDANCE)
    state = evolved(engine)
    rng = np.random.default_rng(1)
    assert len(engine._children(state, rng)) == 40
    extensions = engine._extensions(state, GUIDANCE, rng)
    assert N_EXTENDED * N_RANKED <= len(extensions) <= 2 * N_EXTENDED * N_RANKED
    assert (state.n_novelty_calls == 0) is is_control


def test_screened_children_have_more_distinct_terms_than_the_controls() -> None:
    shares = []
    for is_control in (True, False):
        engine = PaperGP(population_size=60, n_offspring=100, is_control=is_control, guidance=GUIDANCE)
        state = evolved(engine, n_generations=1)
        children = engine._children(state, np.random.default_rng(1))
        lowest = lowest_novelties([summands(child) for child in children], state.compared)
        shares.append(float(np.mean(lowest > TAU_ID)))
    assert shares[1] > shares[0] + 0.1


def test_structural_proposals_are_bounded_and_made_of_allowed_operators() -> None:
    engine = PaperGP(population_size=30, n_offspring=10, structural=True)
    state = evolved(engine)
    forms = engine._structural(state, np.random.default_rng(1))
    assert 0 < len(forms) <= N_STRUCTURAL
    names = {token.name for form in forms for token in form.tokens if isinstance(token, Operator)}
    assert names <= set(OPERATORS)
    a, b, c = (Expression.of(name) for name in ("x0", "x1", "x2"))
    kinds = {t.name for shape in STRUCTURES for t in shape(a, b, c).tokens if isinstance(t, Operator)}
    assert kinds == {"mul", "div", "add", "sub", "sin", "cos", "sqrt"}
    assert max(len(shape(a, b, c)) for shape in STRUCTURES) <= 9


def test_extensions_add_the_term_that_explains_the_residual_and_the_one_that_is_novel() -> None:
    engine = PaperGP(population_size=5, n_offspring=5, guidance=GUIDANCE)
    y = X[:, 0] + np.sin(3.0 * X[:, 1])
    state = engine.start(Problem(Rows(as_sample(X), y), operators=OPERATORS), np.random.default_rng(0))
    form = parse("x0")
    others = [parse("sin(3*x1)"), parse("x0*x0"), parse("exp(x1)")]
    population = [form, *others]
    state.population = [Candidate(f, f, 0.5, 0.9 - 0.1 * k) for k, f in enumerate(population)]
    forms = engine._extensions(state, GUIDANCE, np.random.default_rng(0))
    assert parse("x0 + sin(3*x1)") in forms
    assert all(f.head is forms[0].head and f.head.name == "add" for f in forms)  # type: ignore[union-attr]


def test_the_archive_of_the_control_keeps_terms_at_random() -> None:
    terms = [[], []]
    for k, is_control in enumerate((False, True)):
        guidance = SobolevGuidance(archive_capacity=3)
        engine = PaperGP(population_size=30, n_offspring=40, is_control=is_control, guidance=guidance)
        terms[k] = list(evolved(engine).archive.terms)  # type: ignore[arg-type]
    assert len(terms[0]) == len(terms[1]) == 3
    assert terms[0] != terms[1]


@pytest.mark.parametrize("is_control", [False, True])
def test_without_an_archive_screening_is_all_that_is_left(is_control: bool) -> None:
    guidance = SobolevGuidance(archive_capacity=0)
    engine = PaperGP(population_size=30, n_offspring=40, is_control=is_control, guidance=guidance)
    state = evolved(engine)
    assert state.archive.terms == []
    assert len(engine.propose(state, np.random.default_rng(1))) <= 40


def test_screening_keeps_the_order_within_each_kind() -> None:
    assert screened(["a", "b", "c"], np.array([0.0, 0.5, 0.9]), 3) == ["b", "c", "a"]
    assert screened(["a", "b", "c"], np.array([0.0, 0.0, 0.0]), 2) == ["a", "b"]


def test_novelty_that_cannot_be_computed_counts_as_none() -> None:
    few = as_sample(X[:8])
    assert lowest_novelties([[parse("x0"), parse("x1")], [parse("x0")]], few).tolist() == [0.0, 1.0]
    assert lowest_novelties([[parse("x0"), parse("log(0 - x1)")]], as_sample(X)).tolist() == [0.0]


def test_screening_does_not_depend_on_coefficients() -> None:
    sample: Any = as_sample(X)
    a, b = [parse("x0"), parse("sin(x0)")], [parse("3*x0"), parse("-0.1*sin(x0)")]
    np.testing.assert_allclose(lowest_novelties([a], sample), lowest_novelties([b], sample), rtol=1e-10)


def test_the_end_of_a_fit_leaves_the_equations_of_a_backbone_as_they_were_found() -> None:
    """No simple constants, no respelling, no straight line in between: the choice is the best rank of the front."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (200, 2))
    y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=200)
    model = sn.SymbolicRegressor(engine="paper_gp", budget=sn.Budget(max_evaluations=800), random_state=0).fit(X, y)
    found = [str(e) for e in model.equations_["expression"]]
    assert any("1.0" in text or "0.9" in text for text in found)
    assert model.equations_["score"].idxmax() == model.equations_["chosen"].idxmax()
