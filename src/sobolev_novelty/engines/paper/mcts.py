r"""The paper's tree-search backbone and its Sobolev-guided variant (Sec. 4.2, Appendix D.2), small and plain.

For measuring what the Sobolev signal does; to find equations use :class:`~sobolev_novelty.engines.mcts.MCTS`. After the
Symbolic Physics Learner (Sun et al. 2022): a node is a prefix of an expression in prefix order, a move appends one
production (an operator, an input, a constant). Each round *selects* by
:math:`\bar Q + c\sqrt{\ln N / n}` with rewards scaled by the largest so far, *expands* one production not yet tried,
*simulates* random completions, and *backpropagates* the largest of their rewards. After every ``n_rounds`` rounds the
best expressions become productions themselves and the tree starts anew (module transplantation). The loop fits the
coefficients of the top-level sum and the constants inside, once (``as_found``).

With guidance a round's candidates are reranked by R_SN, the best is fitted again without its weakest low-novelty term,
and R_SN of the one selected is backpropagated (Appendix D.2). ``orders_children`` also tries first those productions
whose term behaves differently from the terms already there (Sec. 4.2). ``is_control`` deals the novelties of a round
out at random among its terms.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.core.parameters import COUNT, FLAG, declared, number
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.tree import TreeNode
from sobolev_novelty.search.contract.engine import (
    GUIDANCE,
    Candidate,
    Engine,
    Guidance,
    Problem,
    SobolevGuidance,
    State,
)
from sobolev_novelty.search.propose.reranking import Reranker, by_reward
from sobolev_novelty.search.propose.screening import SCREEN_ROWS, lowest_novelties, summands

#: What a production that is a constant starts from; the fit moves it.
CONSTANT = 1.0
#: Shares of leaves and modules, functions and binary operators in a completion, by the places they open.
SHARES = {-1: 0.5, 0: 0.1, 1: 0.4}
#: Modules transplanted, and their size as a share of the largest expression.
N_MODULES, MODULE_SHARE = 5, 0.5
#: Rows on which candidates are reranked.
NOVELTY_ROWS = 400

Production = tuple[Token, ...]


@dataclass(slots=True, eq=False)
class Node(TreeNode):
    """A prefix with ``n_open`` places still open; complete when there is none."""

    tokens: tuple[Token, ...]
    n_open: int
    children: list[Node] = field(default_factory=list)
    untried: list[Production] | None = None
    is_done: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """The productions, and what every completion asks about them.

    ``ordered_needs``, ``growths``: in that order: what each needs, and the places it opens, less the one it fills.
    """

    productions: tuple[Production, ...]
    needs: tuple[int, ...]  # nodes that each adds at least: its own, and one for each place it opens
    ordered: tuple[Production, ...]  # those that need least first
    ordered_needs: tuple[int, ...]
    growths: tuple[int, ...]
    sums: tuple[float, ...]  # in that order: shares of a completion, added up

    @classmethod
    def of(cls, productions: Iterable[Production]) -> Grammar:
        """The grammar of these productions."""
        given = tuple(productions)
        ordered = sorted(given, key=_need)
        growths = [_growth(p) for p in ordered]
        kinds = [min(growth, 1) for growth in growths]
        sums = np.cumsum([SHARES[kind] / kinds.count(kind) for kind in kinds]).tolist()
        needs = tuple(_need(p) for p in given)
        return cls(given, needs, tuple(ordered), tuple(sorted(needs)), tuple(growths), tuple(sums))


@dataclass(slots=True)
class PaperTree(State):
    """The tree, the productions, and the round that waits for its rewards."""

    problem: Problem
    grammar: Grammar
    novelty_sample: Sample
    screened: Sample
    seed: int
    root: Node = field(default_factory=lambda: Node((), 1))
    largest: float = 1e-9
    round: int = 0
    elite: list[Candidate] = field(default_factory=list)
    leaf: Node | None = None
    trial: tuple[Candidate, float] | None = None  # what is tried without a term, and the best reward of its round

    @property
    def productions(self) -> tuple[Production, ...]:
        """What a move may append."""
        return self.grammar.productions


@declared(
    n_rollouts=COUNT,
    exploration=number(0.0),
    n_rounds=COUNT,
    orders_children=FLAG,
    is_control=FLAG,
    guidance=GUIDANCE,
)
class PaperMCTS(Engine[PaperTree]):
    """Tree search over a grammar, as the paper has it.

    ``n_rollouts``: random completions of each expansion.
    ``exploration``: c of the upper confidence bound.
    ``n_rounds``: rounds between two transplantations.
    ``orders_children``: whether productions are tried in the order of their novelty; needs guidance.
    ``is_control``: whether novelties are dealt out at random.
    ``guidance``: {"default"}, SobolevGuidance or None, by default what ``novelty=`` of the regressor says; None for
    none. Of its fields ``weight``, ``order``, ``tau`` and ``pool_size`` are used.

    >>> PaperMCTS(n_rollouts=10).exploration
    0.7
    """

    as_found = True

    def __init__(
        self,
        *,
        n_rollouts: int = 20,
        exploration: float = 0.7,
        n_rounds: int = 50,
        orders_children: bool = False,
        is_control: bool = False,
        guidance: Guidance = "default",
    ) -> None:
        self.n_rollouts = n_rollouts
        self.exploration = exploration
        self.n_rounds = n_rounds
        self.orders_children = orders_children
        self.is_control = is_control
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> PaperTree:
        """The state before the first round."""
        tokens: list[Token] = [*(OPERATORS[name] for name in problem.operators), *problem.sample.names, CONSTANT]
        rows = rng.permutation(problem.sample.n_samples)
        return PaperTree(
            problem=problem,
            grammar=Grammar.of((token,) for token in tokens),
            novelty_sample=problem.sample.rows(np.sort(rows[:NOVELTY_ROWS])),
            screened=problem.sample.rows(np.sort(rows[:SCREEN_ROWS])),
            seed=int(rng.integers(2**31)),
        )

    def propose(self, state: PaperTree, rng: np.random.Generator) -> list[Expression]:
        """Forms to be fitted next: completions of one new node."""
        self._settle(state, ())  # a trial that nobody fitted
        state.round += 1
        if state.root.is_done or state.round % self.n_rounds == 0:
            self._transplant(state)
        state.leaf = leaf = self._expanded(state, self._selected(state), rng)
        limit = state.problem.max_complexity
        n_rollouts = 1 if leaf.n_open == 0 else self.n_rollouts
        forms = (_completed(leaf, state.grammar, limit, rng) for _ in range(n_rollouts))
        return list(dict.fromkeys(forms))

    def observe(self, state: PaperTree, scored: list[Candidate]) -> PaperTree:
        """Take the scored candidates of the last round into account."""
        limit = MODULE_SHARE * state.problem.max_complexity
        modules = {c.expression: c for c in [*state.elite, *scored] if c.score > 0.0 and 1 < len(c.form) <= limit}
        state.elite = sorted(modules.values(), key=lambda c: c.rank, reverse=True)[:N_MODULES]
        if state.trial is not None:
            self._settle(state, scored)
        elif state.leaf is not None:
            self._judge(state, state.leaf, scored, self.signal)
        return state

    # --- the backbone

    def _selected(self, state: PaperTree) -> Node:
        """The first node on the way down that has a production left to try."""
        node = state.root
        while node.visits and node.n_open:
            if node.untried is None:
                node.untried = _fitting(node, state.grammar, state.problem.max_complexity)
            open_ones = [child for child in node.children if not child.is_done]
            if node.untried or not open_ones:
                return node
            bound = self.exploration * math.sqrt(math.log(node.visits))
            node = max(
                open_ones, key=lambda c: c.total / state.largest / max(c.visits, 1) + bound / math.sqrt(c.visits + 1e-9)
            )
        return node

    def _expanded(self, state: PaperTree, node: Node, rng: np.random.Generator) -> Node:
        """A new child, or the node itself before its first visit."""
        if not node.visits or not node.untried:
            return node
        if not node.children:
            node.untried = self._ordered(state, node, node.untried, rng)
        production = node.untried.pop(0)
        child = Node((*node.tokens, *production), node.n_open + _growth(production), parent=node)
        node.children.append(child)
        return child

    def _transplant(self, state: PaperTree) -> None:
        """The best of the smaller expressions become productions, and the tree starts anew."""
        single = [production for production in state.productions if len(production) == 1]
        state.grammar = Grammar.of([*single, *dict.fromkeys(c.form.tokens for c in state.elite)])
        state.root = Node((), 1)

    # --- the paper's additions

    def _ordered(
        self, state: PaperTree, node: Node, productions: list[Production], rng: np.random.Generator
    ) -> list[Production]:
        """In random order; or first those whose terms, open places filled with inputs, are the most distinct."""
        shuffled = [productions[int(i)] for i in rng.permutation(len(productions))]
        if self.signal is None or not self.orders_children:
            return shuffled
        names = state.problem.sample.names
        fill = [str(name) for name in rng.choice(names, state.problem.max_complexity)]
        forms = [_filled((*node.tokens, *p), node.n_open + _growth(p), fill) for p in shuffled]
        lowest = lowest_novelties([summands(form) for form in forms], state.screened, self.signal.geometry)
        if self.is_control:
            lowest = rng.permutation(lowest)
        state.n_novelty_calls += len(forms)
        return [shuffled[int(i)] for i in np.argsort(-lowest, kind="stable")]

    def _judge(
        self, state: PaperTree, leaf: Node, scored: Sequence[Candidate], guidance: SobolevGuidance | None
    ) -> None:
        """Backpropagate the best reward; with guidance rerank, and try the best one without its weakest term."""
        ranked = by_reward([c for c in scored if c.score > 0.0])
        if guidance is None or not ranked:
            self._backpropagate(state, leaf, ranked[0].reward if ranked else 0.0)
            return
        pool = ranked[: guidance.pool_size]
        judge = self._reranker(state, guidance)
        judge.look_at(pool)
        top = max(pool, key=judge.guided)
        shorter = judge.without_least_needed(top)
        state.n_novelty_calls += judge.n_calls
        form = None if shorter is None else respelled(shorter, state.problem.operators)
        if form is None:
            self._backpropagate(state, leaf, judge.guided(top))
        else:
            state.trial, state.trials = (top, judge.guided(top)), [form]

    def _settle(self, state: PaperTree, scored: Sequence[Candidate]) -> None:
        """Backpropagate the best R_SN, that of the shortened candidate included if its R_base did not drop (D.2)."""
        if state.trial is None or state.leaf is None or self.signal is None:
            return
        before, reward = state.trial
        judge = self._reranker(state, self.signal)
        rewards = [reward, *(judge.guided(after) for after in scored if after.rank >= before.rank)]
        state.n_novelty_calls += judge.n_calls
        self._backpropagate(state, state.leaf, max(rewards))
        state.trial, state.trials = None, []

    def _reranker(self, state: PaperTree, guidance: SobolevGuidance) -> Reranker:
        shuffle = np.random.default_rng([state.seed, state.round]) if self.is_control else None
        return Reranker(state.novelty_sample, guidance, shuffle)

    def _backpropagate(self, state: PaperTree, leaf: Node, reward: float) -> None:
        state.largest = max(state.largest, reward)
        leaf.is_done = leaf.n_open == 0
        leaf.count_visit()
        leaf.backpropagate(reward)
        for node in leaf.lineage():
            exhausted = node.untried == [] and all(child.is_done for child in node.children)
            node.is_done = node.is_done or exhausted
        state.leaf = None


def _growth(production: Production) -> int:
    """Places that a production opens, less the one it fills."""
    return sum(token.arity if isinstance(token, Operator) else 0 for token in production) - len(production)


def _need(production: Production) -> int:
    """Nodes that a production adds at least: its own, and one for each place it opens."""
    return len(production) + _growth(production)


def _fitting(node: Node, grammar: Grammar, limit: int) -> list[Production]:
    """Productions after which the expression can still be completed within the limit."""
    room = limit - len(node.tokens) - node.n_open
    return [p for p, need in zip(grammar.productions, grammar.needs, strict=True) if need <= room]


def _completed(node: Node, grammar: Grammar, limit: int, rng: np.random.Generator) -> Expression:
    """Random productions until no place is open: half of them leaves, a tenth functions, where there is room."""
    ordered, needs, growths, sums = grammar.ordered, grammar.ordered_needs, grammar.growths, grammar.sums
    tokens, n_open = list(node.tokens), node.n_open
    for draw in rng.random(limit).tolist():
        if not n_open:
            break
        n_fitting = bisect_right(needs, limit - len(tokens) - n_open)
        k = bisect_right(sums, draw * sums[n_fitting - 1], 0, n_fitting - 1)
        tokens += ordered[k]
        n_open += growths[k]
    return Expression._trusted(tuple(tokens))


def _filled(tokens: tuple[Token, ...], n_open: int, names: Sequence[str]) -> Expression:
    """The shortest completion, with inputs in the open places."""
    return Expression((*tokens, *names[:n_open]))
