"""Monte Carlo tree search over sets of tensor terms, plain or Sobolev-guided (Appendix D.2 with tensor targets).

A node is a set of terms, a move adds one term of the dictionary, a playout adds random terms up to the limit. Every set
that a playout passes is a complete candidate: its coefficients are fitted jointly and it is scored with the
accuracy–complexity score that all engines share. With guidance, each round's pool is reranked by R_SN, one weak term of
the best candidate may be deleted, and R_SN is what travels up the tree; the rule that selects nodes is the same.

The novelty of a term is taken against the other terms of its channel. In a plane flow T1, T2 and T3 are orthogonal at
every sample (up to the discrete divergence), so this *is* the novelty against all other terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.core.linear.projection import residuals_of_factor
from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import base_score
from sobolev_novelty.engines.tree import TreeNode
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.tensors import N_CHANNELS
from sobolev_novelty.lab.turbulence.solving.problem import ClosureProblem, Fit
from sobolev_novelty.metric.batch import novelty_penalty
from sobolev_novelty.metric.deletion import deletion_costs, least_needed
from sobolev_novelty.search.contract.engine import SobolevGuidance

TermSet = frozenset[int]


@dataclass(frozen=True, slots=True)
class TreeSearch:
    """Options of a search."""

    n_rounds: int = 2000  # rounds of selection, expansion, playouts and backpropagation
    n_playouts: int = 4  # playouts per round
    max_terms: int = 12  # terms of the largest candidate
    exploration: float = 0.05  # weight of the exploration term in the node-selection rule
    widening: float = 2.0  # a node visited n times has at most ``widening``·√n children
    parsimony: float = 0.9999  # price of one node of the coefficient functions in the score
    guidance: SobolevGuidance | None = None  # none gives the plain search

    def __post_init__(self) -> None:
        for name in ("n_rounds", "n_playouts", "max_terms"):
            if getattr(self, name) < 1:
                raise ParameterError(f"'{name}' must be at least 1. Got {getattr(self, name)}.")
        if not 0 < self.parsimony <= 1:
            raise ParameterError(f"'parsimony' must lie in (0, 1]. Got {self.parsimony}.")

    @property
    def name(self) -> str:
        """Short name, used in tables."""
        return "mcts" if self.guidance is None else "sn-mcts"


@dataclass(frozen=True, slots=True)
class ScoredSet:
    """A candidate: its terms, fit and scores; ``guided`` equals ``score`` without guidance."""

    terms: TermSet
    fit: Fit
    score: float
    guided: float


@dataclass(frozen=True, slots=True)
class TreeSearchResult:
    """The best candidate, its closure, and the best score after each round."""

    closure: Closure
    indices: list[int]
    best: ScoredSet
    history: tuple[float, ...]


@dataclass(slots=True)
class _Node(TreeNode):
    terms: TermSet
    best: float = field(default=-np.inf, kw_only=True)
    children: dict[int, _Node] = field(default_factory=dict)


class _Evaluator:
    """Fits and scores term sets, each once."""

    def __init__(self, problem: ClosureProblem, options: TreeSearch) -> None:
        self.problem = problem
        self.options = options
        self.seen: dict[TermSet, tuple[Fit, float]] = {}
        self.penalties: dict[TermSet, float] = {}
        self.node_counts = [term.complexity for term in problem.terms]

    def base(self, terms: TermSet) -> tuple[Fit, float]:
        """Joint fit and R_base; a coefficient, its product and the sum cost two nodes per term."""
        if terms not in self.seen:
            fit = self.problem.fit(sorted(terms))
            complexity = sum(self.node_counts[i] + 2 for i in terms)
            error = fit.mse / self.problem.variance
            score = base_score(error, complexity, np.inf, parsimony=self.options.parsimony)
            self.seen[terms] = (fit, score)
        return self.seen[terms]

    def novelties(self, terms: TermSet) -> tuple[list[int], FloatArray, FloatArray]:
        """Terms sorted, their novelties and signature lengths."""
        order = sorted(terms)
        nu, length = np.ones(len(order)), np.ones(len(order))
        channels = np.array([self.problem.terms[i].channel for i in order])
        for channel in np.unique(channels):
            mine = np.flatnonzero(channels == channel)
            columns = self.problem.channel_signatures(int(channel), [order[int(m)] for m in mine])
            found = residuals_of_factor(columns)
            nu[mine], length[mine] = found.nu, found.lengths
        return order, nu, length

    def scored(self, terms: TermSet) -> ScoredSet:
        """A candidate with R_base and, under guidance, R_SN (Eq. D.1)."""
        fit, score = self.base(terms)
        guidance = self.options.guidance
        if guidance is None:
            return ScoredSet(terms, fit, score, score)
        if terms not in self.penalties:
            self.penalties[terms] = guidance.weight * novelty_penalty(self.novelties(terms)[1], guidance.tau)
        return ScoredSet(terms, fit, score, score - self.penalties[terms])

    def slimmer(self, candidate: ScoredSet) -> TermSet | None:
        """The candidate without the term whose deletion costs least, where R_base does not fall (Appendix D.2)."""
        assert self.options.guidance is not None
        guidance = self.options.guidance.settled()
        if guidance.deletes == "none":
            return None
        order, nu, length = self.novelties(candidate.terms)
        least = least_needed(deletion_costs(candidate.fit.coefficients, nu, length, guidance.deletes, guidance.tau))
        if least is None:
            return None
        rest = candidate.terms - {order[least]}
        return rest if self.base(rest)[1] >= candidate.score else None


def tree_search(
    problem: ClosureProblem,
    options: TreeSearch,
    rng: np.random.Generator,
    on_progress: OnProgress = silent,
) -> TreeSearchResult:
    """Search for the term set with the best score."""
    evaluator = _Evaluator(problem, options)
    by_shape = _moves(problem)
    root = _Node(frozenset())
    champion: ScoredSet | None = None
    history = []
    for round_number in range(1, options.n_rounds + 1):
        leaf = _descend(root, options, by_shape, rng)
        pool = {leaf.terms} if leaf.terms else set()
        for _ in range(options.n_playouts):
            pool |= _playout(leaf.terms, options.max_terms, by_shape, rng)
        best = _best_of(pool, evaluator)
        leaf.count_visit()
        leaf.backpropagate(best.guided)
        if champion is None or best.guided > champion.guided:
            champion = best
        history.append(champion.guided)
        on_progress(Step(round_number, options.n_rounds, f"best score {champion.guided:.4f}"))
    assert champion is not None
    indices = sorted(champion.terms)
    closure = problem.closure(indices, options.name)
    return TreeSearchResult(closure, indices, champion, tuple(history))


def _best_of(pool: set[TermSet], evaluator: _Evaluator) -> ScoredSet:
    """Evaluate a pool; under guidance keep the best by R_base, rerank, try one deletion, rerank again."""
    by_score = sorted(pool, key=lambda terms: (-evaluator.base(terms)[1], sorted(terms)))
    guidance = evaluator.options.guidance
    if guidance is None:
        return evaluator.scored(by_score[0])
    kept: list[ScoredSet] = []
    for terms in by_score[: guidance.pool_size]:
        # The penalty is never negative: what follows in this order cannot win any more.
        if kept and evaluator.base(terms)[1] <= max(candidate.guided for candidate in kept):
            break
        kept.append(evaluator.scored(terms))
    top = max(kept, key=lambda candidate: candidate.guided)
    slim = evaluator.slimmer(top)
    if slim is not None:
        kept.append(evaluator.scored(slim))
    return max(kept, key=lambda candidate: candidate.guided)


def _moves(problem: ClosureProblem) -> list[list[list[int]]]:
    """Dictionary positions by channel and degree: a random move draws channel, degree and monomial in this order."""
    top = max(term.degree for term in problem.terms)
    table: list[list[list[int]]] = [[[] for _ in range(top + 1)] for _ in range(N_CHANNELS)]
    for index, term in enumerate(problem.terms):
        table[term.channel][term.degree].append(index)
    return [[degree for degree in channel if degree] for channel in table if any(channel)]


def _random_move(terms: TermSet, moves: list[list[list[int]]], rng: np.random.Generator) -> int:
    for _ in range(20):
        channel = moves[rng.integers(len(moves))]
        degree = channel[rng.integers(len(channel))]
        index = degree[rng.integers(len(degree))]
        if index not in terms:
            return index
    free = [i for channel in moves for degree in channel for i in degree if i not in terms]
    return free[rng.integers(len(free))]


def _descend(root: _Node, options: TreeSearch, moves: list[list[list[int]]], rng: np.random.Generator) -> _Node:
    """A new child of a node that may still grow, or a set that is full."""
    node = root
    while len(node.terms) < options.max_terms:
        if len(node.children) <= options.widening * np.sqrt(node.visits):
            move = _random_move(node.terms, moves, rng)
            if move not in node.children:
                node.children[move] = _Node(node.terms | {move}, parent=node)
                return node.children[move]
        n_above = node.visits
        node = max(node.children.values(), key=lambda child: _upper_bound(child, n_above, options))
    return node


def _upper_bound(child: _Node, n_parent: int, options: TreeSearch) -> float:
    if child.visits == 0:
        return np.inf
    return child.best + options.exploration * float(np.sqrt(np.log(max(n_parent, 2)) / child.visits))


def _playout(start: TermSet, max_terms: int, moves: list[list[list[int]]], rng: np.random.Generator) -> set[TermSet]:
    """All sets passed while random terms are added up to a random size."""
    if len(start) >= max_terms:
        return {start}
    size = int(rng.integers(len(start) + 1, max_terms + 1))
    passed: set[TermSet] = set()
    terms = start
    while len(terms) < size:
        terms = terms | {_random_move(terms, moves, rng)}
        passed.add(terms)
    return passed
