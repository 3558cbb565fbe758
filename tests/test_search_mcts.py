"""The tree search: what it writes, undoes, finds, and what guidance changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import Writer, power
from sobolev_novelty.data import Sample
from sobolev_novelty.evaluation import evaluate
from sobolev_novelty.expression import Expression
from sobolev_novelty.parsing import parse
from sobolev_novelty.search.engine import DEFAULT_OPERATORS, Candidate, Problem, SobolevGuidance
from sobolev_novelty.search.loop import Budget, SearchResult, run
from sobolev_novelty.search.mcts import MCTS, Node, TreeState
from sobolev_novelty.search.partial_expressions import Partial, open_hole, power_laws, write_form
from sobolev_novelty.search.term_library import make_library

OPERATORS = tuple(name for name in DEFAULT_OPERATORS if name != "arccos")
X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 120))
SAMPLE = Sample(X, ("x0", "x1", "x2"))
WRITER = Writer(OPERATORS)


def search(y: np.ndarray, n: int = 1500, guidance: SobolevGuidance | None = None, **options: object) -> SearchResult:
    problem = Problem(SAMPLE, y, **options)  # type: ignore[arg-type]
    return run(problem, MCTS(guidance), Budget(max_evaluations=n), np.random.default_rng(0))


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.5, 1.5, 2.5])
@pytest.mark.parametrize("operators", [OPERATORS, ("mul", "sqrt"), ("pow",), ("square", "mul", "pow")])
def test_powers_are_written_with_what_is_allowed(exponent: float, operators: tuple[str, ...]) -> None:
    written = power(Expression.of("x0"), exponent, frozenset(operators))
    assert written is not None
    np.testing.assert_allclose(evaluate(written, X[:1].T), X[0] ** exponent, rtol=1e-12)


def test_a_hole_asks_for_what_is_left() -> None:
    library = make_library(SAMPLE, WRITER, np.random.default_rng(0))
    y = X[0] / np.sqrt(X[1] ** 2 + 3.0 * X[2])
    steps = (Product(((parse("x0"), 1.0),)), "inverse sqrt")
    hole = open_hole(steps, y, library, WRITER)
    assert hole is not None
    np.testing.assert_allclose(hole.t, X[1] ** 2 + 3.0 * X[2], rtol=1e-10)
    terms = (parse("square(x1)"), parse("x2"))
    form = write_form(Partial(steps, terms), hole.coefficients(terms), {}, WRITER)  # type: ignore[arg-type]
    assert form is not None
    np.testing.assert_allclose(evaluate(form, SAMPLE), y, rtol=1e-10)


def test_a_hole_that_cannot_be_undone_is_none() -> None:
    library = make_library(SAMPLE, WRITER, np.random.default_rng(0))
    assert open_hole(("sqrt",), X[0] - 1.0, library, WRITER) is None


def test_a_power_law_is_read_off_logarithms() -> None:
    library = make_library(SAMPLE, WRITER, np.random.default_rng(0))
    hole = open_hole((), 3.0 * X[0] ** 2 / np.sqrt(X[2]), library, WRITER)
    assert hole is not None
    every, sure = power_laws(hole)
    assert every == sure == Product(((parse("x0"), 2.0), (parse("x2"), -0.5)))


def test_a_pursuit_explains_more_with_each_term() -> None:
    library = make_library(SAMPLE, WRITER, np.random.default_rng(0))
    hole = open_hole((), np.exp(X[0]) * X[1] + X[2], library, WRITER)
    assert hole is not None
    pursuit = hole.pursuit()
    left = [pursuit.unexplained]
    for _ in range(4):
        pursuit.add(hole.column(int(pursuit.best(1)[0][0])))
        left.append(pursuit.unexplained)
    assert all(a > b for a, b in pairwise(left))


@pytest.mark.parametrize(
    "target",
    [
        "x0*x1/x2",
        "x0/sqrt(1 - square(x1/4))",
        "x0*x1 + x1*x2 + x0*x2",
        "sqrt(square(x0) + square(x1))",
        "x2*exp(-x0*x1)",
        "0.5 - 0.5*cos(9*x0*x1)",
        "1/(exp(x0/x1) - 1)",
    ],
)
@pytest.mark.parametrize("guidance", [None, SobolevGuidance()], ids=["plain", "guided"])
def test_laws_of_several_kinds_are_found_exactly(target: str, guidance: SobolevGuidance | None) -> None:
    best = search(evaluate(target, SAMPLE), 3000, guidance).best
    assert best is not None
    assert best.nmse < 1e-15


def test_the_ablation_uses_values_only_and_counts_its_calls() -> None:
    y = np.log(X[0]) * np.sin(X[1] + X[2]) + X[2] ** 2.5
    full, values_only = search(y, 600, SobolevGuidance()), search(y, 600, SobolevGuidance(order=0))
    assert full.n_novelty_calls > 0
    assert values_only.n_novelty_calls > 0


def test_an_accepted_deletion_is_backpropagated_and_a_worse_one_is_not() -> None:
    engine = MCTS(SobolevGuidance(), n_rollouts=2)
    rng = np.random.default_rng(0)
    state = engine.start(Problem(SAMPLE, X[0]), rng)
    engine.propose(state, rng)
    slim, full = parse("sin(x0)"), parse("sin(x0) + 0.001*x0")
    for score, expected in ((0.95, 0.95), (0.5, 0.0)):
        node = Node(Partial())
        state.trial = (slim, node, Candidate(full, full, 1e-3, 0.9))
        state.pending = []
        observed = engine.observe(state, [Candidate(slim, slim, 1e-3, score)])
        assert isinstance(observed, TreeState)
        assert node.best == expected
        assert observed.trial is None


def test_a_redundant_top_candidate_is_proposed_again_without_its_weakest_term() -> None:
    engine = MCTS(SobolevGuidance(), n_rollouts=1)
    rng = np.random.default_rng(0)
    state = engine.start(Problem(SAMPLE, X[0]), rng)
    form = parse("2*x0 + 0.01*sin(0.1*x0)")
    state.pending = [(Node(Partial()), [form])]
    engine.observe(state, [Candidate(form, form, 1e-4, 0.9)])
    assert state.trial is not None
    assert str(state.trial[0]) == "2*x0"
    assert engine.propose(state, rng)[0] == state.trial[0]


def test_r_sn_not_r_base_is_backpropagated_with_guidance() -> None:
    engine = MCTS(SobolevGuidance(), n_rollouts=1)
    state = engine.start(Problem(SAMPLE, X[0]), np.random.default_rng(0))
    twins, novel = parse("x0 + sin(0.1*x0)"), parse("x0 + cos(5*x1)")
    node = Node(Partial())
    state.pending = [(node, [twins, novel])]
    engine.observe(state, [Candidate(twins, twins, 1e-4, 0.9), Candidate(novel, novel, 1e-4, 0.899)])
    np.testing.assert_allclose(node.best, 0.899, atol=1e-12)
