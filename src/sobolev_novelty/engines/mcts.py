r"""Monte Carlo tree search over partial expressions, plain and Sobolev-guided (Appendix D.2).

A node is a partial expression with one hole (:mod:`~sobolev_novelty.search.propose.partial_expressions`). *Selection*
walks down by the upper confidence bound, *expansion* adds an outer function, a factor or a term, *simulation* completes
the expression several times over with terms that come near to what the hole must equal, and *backpropagation* hands the
reward up. Many rollouts make one round; their forms are fitted together.

The reward is R_base of the best completion, or 1 if it is exact. With guidance, the round's at most ``pool_size`` best
candidates by R_base are reranked by R_SN, the top one is fitted again without its weakest low-novelty term (it counts
only if R_base does not drop), R_SN is what is backpropagated, once for each rollout, and new child nodes are tried in
the order of what their term adds to the behaviour of those already there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.algebra.outer import OUTERS
from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import ONE, Writer
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.parameters import COUNT, POSITIVE, declared, number
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.engines.tree import TreeNode
from sobolev_novelty.metric.batch import conditional_novelty
from sobolev_novelty.search.contract.engine import (
    GUIDANCE,
    Candidate,
    Engine,
    Guidance,
    Problem,
    SobolevGuidance,
    State,
)
from sobolev_novelty.search.fit.forms import split_form
from sobolev_novelty.search.propose.partial_expressions import Hole, Partial, Step, open_hole, power_laws, write_form
from sobolev_novelty.search.propose.reranking import Reranker, by_reward
from sobolev_novelty.search.propose.structure.families import STRUCTURAL, Schedule
from sobolev_novelty.search.propose.term_library import Library, make_library
from sobolev_novelty.search.propose.vocabulary import AROUND_OTHERS

#: Rows on which terms are screened, and on which novelty is computed.
SCREEN_ROWS = 300
NOVELTY_ROWS = 400
#: Holes whose view of the library is kept in memory.
MAX_HOLES = 24
#: Child terms considered at an expansion.
N_CHILD_TERMS = 24
#: Atoms considered as factors at an expansion, by gain; and twice as many sums or differences of two inputs.
N_FACTORS = 6
#: Endings tried at each stage of a rollout.
N_ENDINGS = 4
#: Candidates whose terms the library learns.
N_TEACHERS = 8


@dataclass(slots=True, eq=False)
class Node(TreeNode):
    """A partial expression in the tree."""

    partial: Partial
    children: list[Node] = field(default_factory=list)
    untried: list[Partial] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A deletion to be settled: the shortened form, the node it came from, what it was, and the reward of that."""

    form: Expression
    node: Node
    before: Candidate
    reward: float


@dataclass(slots=True)
class TreeState(State):
    """Tree, library and what was proposed last."""

    problem: Problem
    root: Node
    library: Library
    writer: Writer
    products: dict[Expression, Product]
    y: FloatArray
    novelty_sample: Sample
    holes: dict[tuple[Step, ...], Hole | None] = field(default_factory=dict)
    pending: list[tuple[Node, list[Expression]]] = field(default_factory=list)
    trial: Trial | None = None
    elite: list[Candidate] = field(default_factory=list)


@declared(
    exploration=number(0.0),
    n_rollouts=COUNT,
    max_steps=COUNT,
    widening=POSITIVE,
    structural=STRUCTURAL,
    guidance=GUIDANCE,
)
class MCTS(Engine[TreeState]):
    """Tree search over partial expressions.

    Parameters
    ----------
    guidance : {"default"}, SobolevGuidance or None
        By default what ``novelty=`` of the regressor says; None for none.
        The Sobolev signal; ``order=0`` in it is the ablation of Appendix F.
    exploration : float
        Weight of the exploration term of the upper confidence bound.
    n_rollouts : int
        Rollouts per round; their forms are fitted in one call.
    max_terms : int
        Terms of the innermost sum at most.
    max_steps : int
        Outer functions and factors around it at most.
    widening : float
        A node with n visits has at most 1 + widening · √n children.
    structural : bool, str or Schedule
        Structural forms that are proposed beside, as those of :class:`~sobolev_novelty.engines.genetic.Genetic`.

    Examples
    --------
    >>> MCTS(exploration=0.2).get_params()["exploration"]
    0.2
    """

    def __init__(
        self,
        guidance: Guidance = "default",
        *,
        exploration: float = 0.1,
        n_rollouts: int = 16,
        max_terms: int = 6,
        max_steps: int = 4,
        widening: float = 2.0,
        structural: bool | str | Schedule = False,
    ) -> None:
        self.guidance = guidance
        self.exploration = exploration
        self.n_rollouts = n_rollouts
        self.max_terms = max_terms
        self.max_steps = max_steps
        self.widening = widening
        self.structural = structural

    def start(self, problem: Problem, rng: np.random.Generator) -> TreeState:
        """The state before the first round."""
        rows = _spread(problem.sample.n_samples, SCREEN_ROWS, rng)
        sample = problem.sample.rows(rows)
        writer = Writer(problem.operators)
        y = np.ascontiguousarray(problem.y[rows])
        library = make_library(sample, writer, rng, y=y)
        known = {e: p for e, p in zip(library.expressions, library.products, strict=True) if p is not None}
        return TreeState(
            problem=problem,
            root=Node(Partial()),
            library=library,
            writer=writer,
            products=known,
            y=y,
            novelty_sample=problem.sample.rows(_spread(problem.sample.n_samples, NOVELTY_ROWS, rng)),
        )

    def propose(self, state: TreeState, rng: np.random.Generator) -> list[Expression]:
        """Forms to be fitted next."""
        if state.trial is not None:  # nobody fitted it
            self._settle_trial(state, state.trial, None)
        state.pending = []
        proposals: list[Expression] = []
        for _ in range(self.n_rollouts):
            node = self._descend(state, state.root)
            forms = self._simulate(state, node, rng)
            state.pending.append((node, forms))
            proposals += forms
        return proposals or [Expression.of(1.0)]

    def observe(self, state: TreeState, scored: list[Candidate]) -> TreeState:
        """Take the scored candidates of the last round into account."""
        by_form = {candidate.form: candidate for candidate in scored}
        if state.trial is not None:
            self._settle_trial(state, state.trial, by_form.get(state.trial.form))
        elif self.signal is None:
            for node, forms in state.pending:
                node.backpropagate(max((by_form[form].reward for form in forms if form in by_form), default=0.0))
        else:
            self._observe_guided(state, by_form, self.signal)
        self._learn(state, scored)
        return state

    # --- selection and expansion

    def _descend(self, state: TreeState, node: Node) -> Node:
        while True:
            if node.visits and node.untried is None:
                node.untried = self._children(state, node.partial)
            if node.untried and len(node.children) < 1 + self.widening * math.sqrt(node.visits):
                child = Node(node.untried.pop(0), parent=node)
                node.children.append(child)
                return _visited(child)
            if not node.children:
                return _visited(node)
            n_above = node.visits
            node = max(node.children, key=lambda child: child.promise(self.exploration, n_above))

    def _children(self, state: TreeState, partial: Partial) -> list[Partial]:
        """Successors, most promising first: steps inside and terms, by how well one more term would do."""
        hole = self._hole(state, partial.steps)
        if hole is None:
            return []
        ranked: list[tuple[float, Partial]] = []
        if not partial.terms and len(partial.steps) < self.max_steps:
            for step in self._steps(state, partial, hole):
                inner = self._hole(state, (*partial.steps, step))
                if inner is not None:
                    ranked.append((_unexplained_by_two(inner), partial.inside(step)))
        if len(partial.terms) < self.max_terms:
            pursuit = hole.pursuit(partial.terms)
            gains = pursuit.gains()
            top = np.argsort(-gains, kind="stable")[:N_CHILD_TERMS]
            left = pursuit.unexplained
            terms = [hole.library.expressions[i] for i in top]
            factors = self._complementarity(state, terms, partial.terms)
            scale = max(hole.pursuit((ONE,)).unexplained, 1e-300)
            ranked += [
                (max(left - float(gains[i]) * f, 0.0) / scale, partial.plus(term))
                for i, term, f in zip(top, terms, factors, strict=True)
            ]
        ranked.sort(key=lambda entry: entry[0])
        return [partial for _, partial in ranked]

    def _complementarity(self, state: TreeState, terms: list[Expression], given: Sequence[Expression]) -> FloatArray:
        """Factors of the gains: below 1 for terms that the given ones nearly rebuild in value and slope (Sec. 4.2)."""
        if self.signal is None or not given:
            return np.ones(len(terms))
        state.n_novelty_calls += 1
        nu = conditional_novelty(terms, list(given), state.novelty_sample, order=self.signal.order)
        return np.nan_to_num(np.minimum(1.0, nu / self.signal.tau), nan=1.0)

    def _steps(self, state: TreeState, partial: Partial, hole: Hole) -> list[Step]:
        last = partial.steps[-1] if partial.steps else None
        steps: list[Step] = []
        if not isinstance(last, str) or last in AROUND_OTHERS:
            steps += [
                name for name, outer in OUTERS.items() if outer.is_allowed(state.writer.operators) and name != last
            ]
        if not isinstance(last, Product):
            steps += _factors(state, hole)
        return steps

    def _hole(self, state: TreeState, steps: tuple[Step, ...]) -> Hole | None:
        if steps in state.holes:
            hole = state.holes.pop(steps)
        else:
            hole = open_hole(steps, state.y, state.library, state.writer)
        state.holes[steps] = hole  # most recently used last
        while len(state.holes) > MAX_HOLES:
            state.holes.pop(next(iter(state.holes)))
        return hole

    # --- simulation

    def _simulate(self, state: TreeState, node: Node, rng: np.random.Generator) -> list[Expression]:
        partial = node.partial
        hole = self._hole(state, partial.steps)
        if hole is None:
            return []
        forms: list[Expression | None] = []
        if not partial.terms:
            if len(partial.steps) < self.max_steps and node.visits > 1 and rng.random() < 0.5:
                steps = self._steps(state, partial, hole)
                further = partial.inside(steps[rng.integers(len(steps))]) if steps else partial
                inner = self._hole(state, further.steps)
                partial, hole = (partial, hole) if inner is None else (further, inner)
            forms += self._power_laws(state, partial, hole)
        forms += self._completions(state, partial, hole, rng, is_first=node.visits <= 1)
        limit = state.problem.max_complexity
        return [form for form in dict.fromkeys(forms) if form is not None and form.complexity <= limit]

    def _power_laws(self, state: TreeState, partial: Partial, hole: Hole) -> Iterable[Expression | None]:
        for product in dict.fromkeys(power_laws(hole)):
            if product.factors:
                yield self._written(state, partial, hole, product)

    def _written(self, state: TreeState, partial: Partial, hole: Hole, product: Product) -> Expression | None:
        term = state.writer.product(product)
        b = None if term is None else hole.coefficients([term])
        if term is None or b is None:
            return None
        return write_form(partial.plus(term), b.tolist(), {term: product}, state.writer)

    def _completions(
        self, state: TreeState, partial: Partial, hole: Hole, rng: np.random.Generator, *, is_first: bool
    ) -> list[Expression | None]:
        """One pursuit; every stage of it is a complete form. It ends with an exchange of terms.

        The first one of a node is greedy, the others are random.
        """
        forms: list[Expression | None] = [self._complete(state, partial, hole)]
        n_fixed = len(partial.terms)
        if n_fixed == 0 and (is_first or rng.random() < 0.5):
            partial = partial.plus(ONE)  # then what counts is correlation, not the angle
        pursuit = hole.pursuit(partial.terms)
        greed = 0.0 if is_first else (0.0, 2.0, 6.0)[rng.integers(3)]
        room = self.max_terms - len(partial.terms)
        for _ in range(min(3, room) if is_first else rng.integers(0 if n_fixed else 1, room + 1)):
            top, gains = pursuit.best(12)
            if len(top) == 0:
                break
            forms += [self._complete(state, partial.plus(hole.library.expressions[i]), hole) for i in top[:N_ENDINGS]]
            pick = int(top[_draw(gains, greed, rng)])
            pursuit.add(hole.column(pick))
            partial = partial.plus(hole.library.expressions[pick])
            forms.append(self._complete(state, partial, hole))
            if pursuit.unexplained < 1e-20:
                break
        return forms + self._exchanges(state, partial, n_fixed, hole)

    def _exchanges(self, state: TreeState, partial: Partial, n_fixed: int, hole: Hole) -> list[Expression | None]:
        """Each term of the rollout in turn gives way to the one that does best beside the others."""
        forms: list[Expression | None] = []
        terms = list(partial.terms)
        for j in range(n_fixed, len(terms)):
            if len(terms) < 2:
                break
            others = terms[:j] + terms[j + 1 :]
            top, _ = hole.pursuit(others).best(1)
            if len(top) == 0 or hole.library.expressions[top[0]] == terms[j]:
                continue
            terms[j] = hole.library.expressions[top[0]]
            forms.append(self._complete(state, Partial(partial.steps, tuple(terms)), hole))
        return forms

    def _complete(self, state: TreeState, partial: Partial, hole: Hole) -> Expression | None:
        if not partial.terms:
            return None
        b = hole.coefficients(partial.terms)
        return None if b is None else write_form(partial, b.tolist(), state.products, state.writer)

    # --- guidance and memory

    def _observe_guided(
        self, state: TreeState, by_form: dict[Expression, Candidate], guidance: SobolevGuidance
    ) -> None:
        """Rerank the round's pool by R_SN, backpropagate, and set up the delete-and-refit trial (Appendix D.2)."""
        judge = Reranker(state.novelty_sample, guidance)
        pool = {c.form for c in by_reward(list(by_form.values()))[: guidance.pool_size] if c.score > 0.0}
        ranked = [by_reward([by_form[f] for f in forms if f in by_form]) for _, forms in state.pending]
        offers = [[c for c in own if c.form in pool] for own in ranked]
        judge.look_at([own[0] for own in offers if own])
        # Outside the pool no novelty is computed: the full penalty stands for it.
        rewards = [max(own[0].reward - guidance.weight, 0.0) if own else 0.0 for own in ranked]
        top: tuple[int, Candidate] | None = None
        for i, offered in enumerate(offers):
            if offered:
                rewards[i], candidate = judge.best(offered)
                if top is None or rewards[i] > rewards[top[0]]:
                    top = (i, candidate)
        if top is not None:
            shorter = judge.without_least_needed(top[1])
            form = None if shorter is None else state.writer.written(shorter)
            if form is not None:
                state.trial = Trial(form, state.pending[top[0]][0], top[1], rewards[top[0]])
                state.trials = [form]
        state.n_novelty_calls += judge.n_calls
        for i, ((node, _), reward) in enumerate(zip(state.pending, rewards, strict=True)):
            if state.trial is None or top is None or i != top[0]:  # that of a trial waits until it is settled
                node.backpropagate(reward)
        state.pending = []

    def _settle_trial(self, state: TreeState, trial: Trial, after: Candidate | None) -> None:
        """Hand up the one reward of the visit: that of the shortened form if R_base did not drop."""
        reward = trial.reward
        if after is not None and after.rank >= trial.before.rank and self.signal is not None:
            judge = Reranker(state.novelty_sample, self.signal)
            reward = max(reward, judge.guided(after))
            state.n_novelty_calls += judge.n_calls
        trial.node.backpropagate(reward)
        state.trial, state.trials = None, []

    def _learn(self, state: TreeState, scored: Sequence[Candidate]) -> None:
        """Terms of the best candidates join the library."""
        pool = {c.expression: c for c in [*state.elite, *scored] if c.score > 0.0}
        state.elite = sorted(pool.values(), key=lambda c: c.rank, reverse=True)[:N_TEACHERS]
        state.library.learn(
            term for c in state.elite for term in split_form(c.expression).terms if 1 < term.complexity <= 20
        )


def _visited(node: Node) -> Node:
    """Count the visit at once, so that the other rollouts of the round spread out."""
    node.count_visit()
    return node


def _spread(n: int, n_rows: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.arange(n) if n <= n_rows else np.sort(rng.choice(n, n_rows, replace=False))


def _draw(gains: FloatArray, greed: float, rng: np.random.Generator) -> int:
    """A place in a list sorted by gain: the first for greed 0, otherwise with probability ∝ gain**greed."""
    if greed == 0.0:
        return 0
    weights = (gains / gains[0]) ** greed
    return int(rng.choice(len(gains), p=weights / weights.sum()))


def _unexplained_by_two(hole: Hole) -> float:
    """Share of the target's variance that the two best terms beside a constant leave."""
    pursuit = hole.pursuit((ONE,))
    total = max(pursuit.unexplained, 1e-300)
    for _ in range(2):
        top, _ = pursuit.best(1)
        if len(top):
            pursuit.add(hole.column(int(top[0])))
    return pursuit.unexplained / total


def _factors(state: TreeState, hole: Hole) -> list[Step]:
    """Products worth dividing out.

    What a power law is sure of, whole and one by one, and sums and differences of two inputs.
    """
    sure = power_laws(hole)[1].factors
    steps: list[Step] = [Product(sure)] if sure else []
    if len(sure) > 1:
        steps += [Product((power,)) for power in sure]
        steps += [Product(tuple(p for p in sure if p is not power)) for power in sure] if len(sure) > 2 else []
    library = state.library
    screened = hole.pursuit().gains()
    places = sorted(library.atoms, key=lambda i: -screened[i])
    atoms = [Product(((library.expressions[i], 1.0),)) for i in places]
    sums = [atom for atom, i in zip(atoms, places, strict=True) if _is_sum_of_two(library.expressions[i])]
    return list(dict.fromkeys([*steps, *atoms[:N_FACTORS], *sums[: 2 * N_FACTORS]]))


def _is_sum_of_two(atom: Expression) -> bool:
    """x0 + x1, x0 - x1, or one over it."""
    names = {token.name for token in atom.tokens if isinstance(token, Operator)}
    return bool(names & {"add", "sub"}) and names <= {"add", "sub", "inv", "div"} and len(atom.variables) == 2
