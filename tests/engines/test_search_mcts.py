"""The tree search: what it writes, undoes, finds, and what guidance changes."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import Writer, power
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.mcts import MCTS, Node, TreeState
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.batch import conditional_novelty
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS, Candidate, Problem, SobolevGuidance
from sobolev_novelty.search.loop.loop import Budget, SearchProgress, SearchResult, run
from sobolev_novelty.search.propose.partial_expressions import Partial, open_hole, power_laws, write_form
from sobolev_novelty.search.propose.term_library import make_library

OPERATORS = tuple(name for name in DEFAULT_OPERATORS if name != "arccos")
X = np.random.default_rng(0).uniform(0.5, 2.0, (3, 120))
SAMPLE = Sample(X, ("x0", "x1", "x2"))
WRITER = Writer(OPERATORS)


def search(y: np.ndarray, n: int = 1500, guidance: SobolevGuidance | None = None, **options: object) -> SearchResult:
    problem = Problem(Rows(SAMPLE, y), **options)  # type: ignore[arg-type]
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


def started(n_rollouts: int = 1) -> tuple[MCTS, TreeState]:
    engine = MCTS(SobolevGuidance(), n_rollouts=n_rollouts)
    return engine, engine.start(Problem(Rows(SAMPLE, X[0])), np.random.default_rng(0))


def visited_node() -> Node:
    return Node(Partial(), visits=1)


REDUNDANT, SLIM = parse("2*x0 + 0.01*sin(0.1*x0)"), parse("2*x0")


@pytest.mark.parametrize(("after", "is_better"), [(0.95, True), (0.5, False)])
def test_a_deletion_counts_if_r_base_does_not_drop_and_a_visit_gets_one_reward(after: float, is_better: bool) -> None:
    engine, state = started()
    node = visited_node()
    state.pending = [(node, [REDUNDANT])]
    engine.observe(state, [Candidate(REDUNDANT, REDUNDANT, 1e-4, 0.9)])
    assert state.trials == [SLIM]
    assert node.total == 0.0  # until the trial is settled
    engine.observe(state, [Candidate(SLIM, SLIM, 1e-4, after)])
    assert state.trial is None and state.trials == []
    assert node.total == node.best <= 1.0
    assert (node.total == after) is is_better
    assert node.visits == 1


def test_a_trial_that_nobody_fitted_leaves_the_reward_as_it_was() -> None:
    engine, state = started()
    node = visited_node()
    state.pending = [(node, [REDUNDANT])]
    engine.observe(state, [Candidate(REDUNDANT, REDUNDANT, 1e-4, 0.9)])
    engine.propose(state, np.random.default_rng(0))
    np.testing.assert_allclose(node.total, 0.89, atol=1e-3)  # its terms repeat each other: nearly the full penalty
    assert state.trial is None


class Watched(MCTS):
    """Shows its state to the test."""

    seen: ClassVar[list[TreeState]] = []
    n_trials: ClassVar[list[int]] = []

    def observe(self, state: TreeState, scored: list[Candidate]) -> TreeState:
        state = super().observe(state, scored)
        self.n_trials.append(len(state.trials))
        self.seen[:] = [state]
        return state


def test_the_loop_settles_a_deletion_in_its_own_round_and_no_mean_reward_exceeds_the_largest() -> None:
    y = X[0] ** 2 + 0.3 * np.sin(X[1] * X[2]) + 0.01 * np.random.default_rng(1).normal(size=X.shape[1])
    left_open: list[bool] = []

    def after_round(_: SearchProgress) -> None:
        left_open.append(Watched.seen[0].trial is not None)

    engine, budget = Watched(SobolevGuidance()), Budget(max_evaluations=1500)
    run(Problem(Rows(SAMPLE, y)), engine, budget, np.random.default_rng(0), callbacks=[after_round])
    assert sum(Watched.n_trials) > 0
    assert not any(left_open[:-1])  # the budget may end before the last one is fitted
    nodes = [Watched.seen[0].root]
    for node in nodes:
        nodes += node.children
        assert node.total <= node.visits
        assert node.best <= 1.0


def test_an_exact_law_is_worth_more_than_a_short_approximation() -> None:
    engine = MCTS(n_rollouts=1)
    state = engine.start(Problem(Rows(SAMPLE, X[0])), np.random.default_rng(0))
    short, law = parse("x0"), parse("x0 + sin(x1)*x2")
    node = visited_node()
    state.pending = [(node, [short, law])]
    engine.observe(state, [Candidate(short, short, 1e-12, 0.999), Candidate(law, law, 1e-25, 0.99)])
    assert node.best == 1.0


def test_novelty_is_computed_inside_the_pool_only() -> None:
    engine = MCTS(SobolevGuidance(pool_size=1), n_rollouts=1)
    state = engine.start(Problem(Rows(SAMPLE, X[0])), np.random.default_rng(0))
    first, second = parse("x0 + cos(5*x1)"), parse("x1 + cos(5*x2)")
    nodes = [visited_node(), visited_node()]
    state.pending = [(nodes[0], [first]), (nodes[1], [second])]
    engine.observe(state, [Candidate(first, first, 1e-4, 0.9), Candidate(second, second, 1e-4, 0.8)])
    assert state.n_novelty_calls == 1
    np.testing.assert_allclose([node.best for node in nodes], [0.9, 0.79], atol=1e-12)  # the full penalty outside


def test_children_that_repeat_the_given_terms_come_later_with_guidance() -> None:
    given = Partial((), (parse("x0"), Expression.of(1.0)))
    orders = []
    for engine in (MCTS(), MCTS(SobolevGuidance())):
        state = engine.start(Problem(Rows(SAMPLE, X[0] ** 1.3 + 0.01 * X[1])), np.random.default_rng(0))
        orders.append([child.terms[-1] for child in engine._children(state, given)])
    nu = conditional_novelty(orders[0], list(given.terms), SAMPLE)
    low = {term for term, own in zip(orders[0], nu, strict=True) if own < TAU_ID}
    assert sorted(map(str, orders[0])) == sorted(map(str, orders[1]))  # only the order differs
    assert low and len(low) < len(orders[0])
    plain, guided = (np.mean([order.index(term) for term in low]) for order in orders)
    assert guided > plain


def test_r_sn_not_r_base_is_backpropagated_with_guidance() -> None:
    engine = MCTS(SobolevGuidance(), n_rollouts=1)
    state = engine.start(Problem(Rows(SAMPLE, X[0])), np.random.default_rng(0))
    twins, novel = parse("x0 + sin(0.1*x0)"), parse("x0 + cos(5*x1)")
    node = Node(Partial())
    state.pending = [(node, [twins, novel])]
    engine.observe(state, [Candidate(twins, twins, 1e-4, 0.9), Candidate(novel, novel, 1e-4, 0.899)])
    np.testing.assert_allclose(node.best, 0.899, atol=1e-12)
