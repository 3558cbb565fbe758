"""The paper's tree-search backbone: the tree, the rewards, and what each arm adds."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.engines.paper.mcts import Node, PaperMCTS, PaperTree
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import Candidate, Problem, SobolevGuidance
from sobolev_novelty.search.loop.loop import Budget, run
from sobolev_novelty.search.propose.reranking import Reranker
from sobolev_novelty.search.propose.screening import lowest_novelties, summands

X = np.random.default_rng(3).uniform(0.5, 3.0, (150, 2))
OPERATORS = ("add", "sub", "mul", "div", "sqrt", "exp", "log", "sin", "cos")
PROBLEM = Problem(
    Rows(as_sample(X), np.sin(X[:, 0]) * X[:, 1] + X[:, 0] ** 2.2), operators=OPERATORS, max_complexity=20
)
TWINS, NOVEL = parse("x0 + sin(0.1*x0)"), parse("x0 + cos(5*x1)")


def grown(engine: PaperMCTS, n_rounds: int = 60) -> PaperTree:
    rng = np.random.default_rng(0)
    state = engine.start(PROBLEM, rng)
    for _ in range(n_rounds):
        forms = engine.propose(state, rng)
        engine.observe(state, [Candidate(form, form, 0.5, 0.3 + 0.01 * len(form)) for form in forms])
    return state


def nodes_of(root: Node) -> list[Node]:
    nodes = [root]
    for node in nodes:
        nodes += node.children
    return nodes


def observed(engine: PaperMCTS, *candidates: Candidate) -> tuple[PaperTree, Node]:
    """The state after a round whose completions were these."""
    state = engine.start(PROBLEM, np.random.default_rng(0))
    state.leaf = leaf = Node((), 1)
    engine.observe(state, list(candidates))
    return state, leaf


def test_completions_are_whole_expressions_within_the_limit() -> None:
    rng = np.random.default_rng(0)
    engine = PaperMCTS(n_rollouts=50)
    state = engine.start(PROBLEM, rng)
    for _ in range(10):
        forms = engine.propose(state, rng)
        assert all(1 <= form.complexity <= PROBLEM.max_complexity for form in forms)
        engine.observe(state, [Candidate(form, form, 0.5, 0.5) for form in forms])


@pytest.mark.parametrize("guidance", [None, SobolevGuidance()], ids=["plain", "guided"])
def test_every_round_is_one_visit_with_one_reward(guidance: SobolevGuidance | None) -> None:
    state = grown(PaperMCTS(n_rollouts=4, n_rounds=1000, guidance=guidance))
    assert state.root.visits in (59, 60)  # a last trial may be open
    for node in nodes_of(state.root):
        assert node.total <= node.visits
        assert sum(child.visits for child in node.children) <= node.visits


def test_rewards_near_the_best_are_selected_more_often() -> None:
    state = grown(PaperMCTS(n_rollouts=4, n_rounds=1000, exploration=0.01), 200)
    children = sorted(state.root.children, key=lambda c: c.total / c.visits)
    assert children[-1].visits > children[0].visits


def test_a_complete_expression_is_not_selected_again() -> None:
    state = grown(PaperMCTS(n_rollouts=2, n_rounds=1000), 300)
    complete = [node for node in nodes_of(state.root) if node.n_open == 0]
    assert complete
    assert all(node.visits == 1 and node.is_done for node in complete)


def test_the_best_expressions_become_productions_and_the_tree_starts_anew() -> None:
    state = grown(PaperMCTS(n_rollouts=4, n_rounds=30), 31)
    modules = [p for p in state.productions if len(p) > 1]
    assert 0 < len(modules) <= 5
    assert state.root.visits < 5
    assert all(Expression(module).complexity <= PROBLEM.max_complexity / 2 for module in modules)


def test_r_sn_is_backpropagated_with_guidance_and_r_base_without() -> None:
    candidates = Candidate(TWINS, TWINS, 1e-4, 0.9), Candidate(NOVEL, NOVEL, 1e-4, 0.899)
    _, leaf = observed(PaperMCTS(), *candidates)
    assert leaf.total == 0.9
    _, leaf = observed(PaperMCTS(guidance=SobolevGuidance()), *candidates)
    np.testing.assert_allclose(leaf.total, 0.899, atol=1e-9)


@pytest.mark.parametrize(("after", "expected"), [(0.95, 0.95), (0.5, 0.89)])
def test_a_deletion_is_settled_in_its_round_and_counts_if_r_base_does_not_drop(after: float, expected: float) -> None:
    engine = PaperMCTS(guidance=SobolevGuidance())
    state, leaf = observed(engine, Candidate(TWINS, TWINS, 1e-4, 0.9))
    assert leaf.visits == 0 and len(state.trials) == 1
    slim = state.trials[0]
    assert len(summands(slim)) == 1
    engine.observe(state, [Candidate(slim, slim, 1e-4, after)])
    np.testing.assert_allclose(leaf.total, expected, atol=2e-3)
    assert leaf.visits == 1 and not state.trials


def test_the_pool_is_limited() -> None:
    state, _ = observed(
        PaperMCTS(guidance=SobolevGuidance(pool_size=1)),
        Candidate(NOVEL, NOVEL, 1e-4, 0.9),
        Candidate(TWINS, TWINS, 1e-4, 0.8),
    )
    assert state.n_novelty_calls == 1


def test_productions_are_tried_in_the_order_of_novelty_where_asked() -> None:
    plus, x0 = next(op for op in PROBLEM.operators if op == "add"), "x0"
    firsts = []
    for orders in (False, True):
        engine = PaperMCTS(orders_children=orders, guidance=SobolevGuidance())
        state = engine.start(PROBLEM, np.random.default_rng(0))
        tokens = (*Expression.of(plus, x0, x0).tokens[:2],)  # x0 + …
        node = Node(tokens, 1, visits=1)
        order = engine._ordered(state, node, list(state.productions), np.random.default_rng(1))
        assert sorted(map(str, order)) == sorted(map(str, state.productions))
        same = [k for k, p in enumerate(order) if p == ("x0",)]
        firsts.append(same[0])
        if orders:
            n_last = len(order) - 1
            assert same[0] >= n_last - 4  # x0 + x0 says nothing new, as do one or two more
            complete = [p for p in order if len(p) == 1 and not isinstance(p[0], Operator)]
            lowest = lowest_novelties([summands(Expression((*tokens, *p))) for p in complete], state.screened)
            assert (np.diff(lowest) <= 1e-12).all()
            assert (lowest < TAU_ID).any()


def test_the_control_deals_the_same_novelties_out_at_random() -> None:
    candidates = [Candidate(TWINS, TWINS, 0.1, 0.9), Candidate(NOVEL, NOVEL, 0.1, 0.9)]
    true = Reranker(as_sample(X), SobolevGuidance())
    control = Reranker(as_sample(X), SobolevGuidance(), np.random.default_rng(0))
    for judge in (true, control):
        judge.look_at(candidates)
    values = [np.concatenate([judge.known[e].nu for e in (TWINS, NOVEL)]) for judge in (true, control)]
    np.testing.assert_allclose(np.sort(values[0]), np.sort(values[1]))
    assert not np.allclose(values[0], values[1])


@pytest.mark.parametrize(
    "options", [{}, {"guidance": SobolevGuidance(order=0)}, {"guidance": SobolevGuidance(), "is_control": True}]
)
def test_all_arms_stay_within_the_same_number_of_evaluations(options: dict[str, object]) -> None:
    engine = PaperMCTS(n_rollouts=5, **options)  # type: ignore[arg-type]
    result = run(PROBLEM, engine, Budget(max_evaluations=300), np.random.default_rng(0))
    assert result.n_evaluations == 300
    assert (result.n_novelty_calls > 0) is ("guidance" in options)
