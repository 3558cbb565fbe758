r"""Monte Carlo tree search over partial expressions, plain and Sobolev-guided (Appendix D.2).

A node is a partial expression with one hole (:mod:`~sobolev_novelty.search.partial_expressions`). *Selection* walks
down by the upper confidence bound, *expansion* adds an outer function, a factor or a term, *simulation* completes the
expression several times over with terms that come near to what the hole must equal, and *backpropagation* hands the
reward up. Many rollouts make one round; their forms are fitted together.

The reward is R_base of the best completion. With guidance, the round's at most ``pool_size`` best candidates by R_base
are reranked by R_SN, the top one is proposed again without its weakest low-novelty term (the loop refits it; it counts
only if R_base does not drop), R_SN is what is backpropagated, and new child nodes are tried in the order of what their
term adds to the behaviour of those already there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.algebra.outer import OUTERS
from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import ONE, Writer
from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.expression import Expression
from sobolev_novelty.guidance import novelty_penalty
from sobolev_novelty.operators import Operator
from sobolev_novelty.report import NoveltyReport, conditional_novelty, novelty
from sobolev_novelty.search.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.forms import split_form
from sobolev_novelty.search.partial_expressions import Hole, Partial, Step, open_hole, power_laws, write_form
from sobolev_novelty.search.term_library import Library, make_library
from sobolev_novelty.signatures import Status
from sobolev_novelty.terms import sum_of_terms

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
class Node:
    """A partial expression in the tree."""

    partial: Partial
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    untried: list[Partial] | None = None
    visits: int = 0
    total: float = 0.0
    best: float = 0.0

    @property
    def value(self) -> float:
        """Half the mean, half the best of the rewards below."""
        return 0.5 * self.total / max(self.visits, 1) + 0.5 * self.best


@dataclass(slots=True)
class TreeState(State):
    """Tree, library and what was proposed last."""

    problem: Problem | None = None
    root: Node | None = None
    library: Library | None = None
    writer: Writer | None = None
    products: dict[Expression, Product] = field(default_factory=dict)
    y: FloatArray = field(default_factory=lambda: np.zeros(0))
    holes: dict[tuple[Step, ...], Hole | None] = field(default_factory=dict)
    pending: list[tuple[Node, list[Expression]]] = field(default_factory=list)
    trial: tuple[Expression, Node, Candidate] | None = None
    elite: list[Candidate] = field(default_factory=list)
    novelty_sample: Sample | None = None


class MCTS(Engine):
    """Tree search over partial expressions.

    Parameters
    ----------
    guidance : SobolevGuidance, optional
        The Sobolev signal; ``order=0`` in it is the ablation of Appendix F.
    exploration : float
        Weight of the exploration term of the upper confidence bound.
    n_rollouts : int
        Rollouts a round; their forms are fitted in one call.
    max_terms : int
        Terms of the innermost sum at most.
    max_steps : int
        Outer functions and factors around it at most.
    widening : float
        A node with n visits has at most 1 + widening · √n children.

    Examples
    --------
    >>> MCTS(exploration=0.2).get_params()["exploration"]
    0.2
    """

    def __init__(
        self,
        guidance: SobolevGuidance | None = None,
        *,
        exploration: float = 0.1,
        n_rollouts: int = 16,
        max_terms: int = 6,
        max_steps: int = 4,
        widening: float = 2.0,
    ) -> None:
        self.guidance = guidance
        self.exploration = exploration
        self.n_rollouts = n_rollouts
        self.max_terms = max_terms
        self.max_steps = max_steps
        self.widening = widening

    def start(self, problem: Problem, rng: np.random.Generator) -> TreeState:
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

    def propose(self, state: State, rng: np.random.Generator) -> list[Expression]:
        assert isinstance(state, TreeState)
        assert state.root is not None
        state.pending = []
        proposals: list[Expression] = [] if state.trial is None else [state.trial[0]]
        for _ in range(self.n_rollouts):
            node = self._descend(state, state.root)
            forms = self._simulate(state, node, rng)
            state.pending.append((node, forms))
            proposals += forms
        return proposals or [Expression.of(1.0)]

    def observe(self, state: State, scored: list[Candidate]) -> State:
        assert isinstance(state, TreeState)
        by_form = {candidate.form: candidate for candidate in scored}
        if self.guidance is None:
            for node, forms in state.pending:
                _backpropagate(node, max((by_form[form].score for form in forms if form in by_form), default=0.0))
        else:
            self._observe_guided(state, by_form, self.guidance)
        self._learn(state, scored)
        return state

    # --- selection and expansion

    def _descend(self, state: TreeState, node: Node) -> Node:
        while True:
            if node.visits and node.untried is None:
                node.untried = self._children(state, node.partial)
            if node.untried and len(node.children) < 1 + self.widening * math.sqrt(node.visits):
                child = Node(node.untried.pop(0), node)
                node.children.append(child)
                return _visited(child)
            if not node.children:
                return _visited(node)
            bound = self.exploration * math.sqrt(math.log(node.visits + 1.0))
            node = max(node.children, key=lambda child: child.value + bound / math.sqrt(child.visits + 1e-9))

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
        if self.guidance is None or not given or state.novelty_sample is None:
            return np.ones(len(terms))
        state.n_novelty_calls += 1
        nu = conditional_novelty(terms, list(given), state.novelty_sample, order=self.guidance.order)
        return np.nan_to_num(np.minimum(1.0, nu / self.guidance.tau), nan=1.0)

    def _steps(self, state: TreeState, partial: Partial, hole: Hole) -> list[Step]:
        assert state.writer is not None
        last = partial.steps[-1] if partial.steps else None
        steps: list[Step] = []
        if not isinstance(last, str) or last.startswith(("exp", "inverse")):
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
            assert state.library is not None
            assert state.writer is not None
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
        limit = 60 if state.problem is None else state.problem.max_complexity
        return [form for form in dict.fromkeys(forms) if form is not None and form.complexity <= limit]

    def _power_laws(self, state: TreeState, partial: Partial, hole: Hole) -> Iterable[Expression | None]:
        for product in dict.fromkeys(power_laws(hole)):
            if product.factors:
                yield self._written(state, partial, hole, product)

    def _written(self, state: TreeState, partial: Partial, hole: Hole, product: Product) -> Expression | None:
        assert state.writer is not None
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
        assert state.writer is not None
        if not partial.terms:
            return None
        b = hole.coefficients(partial.terms)
        return None if b is None else write_form(partial, b.tolist(), state.products, state.writer)

    # --- guidance and memory

    def _observe_guided(
        self, state: TreeState, by_form: dict[Expression, Candidate], guidance: SobolevGuidance
    ) -> None:
        """Rerank the round's pool by R_SN, backpropagate, and set up the delete-and-refit trial (Appendix D.2)."""
        self._settle_trial(state, by_form, guidance)
        ordered = sorted(by_form.values(), key=lambda c: -c.score)
        pool = {c.form for c in ordered[: guidance.pool_size]}
        top: tuple[float, Node, Candidate, NoveltyReport] | None = None
        for node, forms in state.pending:
            ranked = sorted((by_form[f] for f in forms if f in by_form), key=lambda c: -c.score)
            found = self._select(state, [c for c in ranked if c.form in pool and c.score > 0.0], guidance)
            if found is None:
                # Outside the pool no novelty is computed: the full penalty stands for it.
                _backpropagate(node, max(ranked[0].score - guidance.weight, 0.0) if ranked else 0.0)
                continue
            reward, candidate, report = found
            _backpropagate(node, reward)
            if report is not None and (top is None or reward > top[0]):
                top = (reward, node, candidate, report)
        if top is not None:
            assert state.writer is not None
            reduced = _without_weakest(top[3], state.writer)
            state.trial = None if reduced is None else (reduced, top[1], top[2])

    def _select(
        self, state: TreeState, ranked: Sequence[Candidate], guidance: SobolevGuidance
    ) -> tuple[float, Candidate, NoveltyReport | None] | None:
        """The candidate with the largest R_SN, of candidates sorted by R_base.

        The penalty is never negative: once R_base falls to the best R_SN, the rest need not be looked at.
        """
        best: tuple[float, Candidate, NoveltyReport | None] | None = None
        for candidate in ranked:
            if best is not None and candidate.score <= best[0]:
                break
            penalty, report = self._penalty(state, candidate)
            guided = candidate.score - guidance.weight * penalty
            if best is None or guided > best[0]:
                best = (guided, candidate, report)
        return best

    def _settle_trial(self, state: TreeState, by_form: dict[Expression, Candidate], guidance: SobolevGuidance) -> None:
        """The shortened form counts only if its R_base did not drop."""
        if state.trial is None:
            return
        form, node, before = state.trial
        after = by_form.get(form)
        if after is not None and after.score >= before.score:
            _backpropagate(node, after.score - guidance.weight * self._penalty(state, after)[0])
        state.trial = None

    def _penalty(self, state: TreeState, candidate: Candidate) -> tuple[float, NoveltyReport | None]:
        """Mean squared shortfall of the novelties, 1 where they cannot be computed; and the report."""
        assert self.guidance is not None
        assert state.novelty_sample is not None
        state.n_novelty_calls += 1
        report = novelty(candidate.expression, state.novelty_sample, order=self.guidance.order, tau=self.guidance.tau)
        if report.status is not Status.OK:
            return 1.0, None
        return novelty_penalty(report.nu, self.guidance.tau), report

    def _learn(self, state: TreeState, scored: Sequence[Candidate]) -> None:
        """Terms of the best candidates join the library."""
        assert state.library is not None
        pool = {c.expression: c for c in [*state.elite, *scored] if c.score > 0.0}
        state.elite = sorted(pool.values(), key=lambda c: -c.score)[:N_TEACHERS]
        state.library.learn(
            term for c in state.elite for term in split_form(c.expression).terms if 1 < term.complexity <= 20
        )


def _visited(node: Node) -> Node:
    """Count the visit at once, so that the other rollouts of the round spread out."""
    above: Node | None = node
    while above is not None:
        above.visits += 1
        above = above.parent
    return node


def _backpropagate(node: Node | None, reward: float) -> None:
    while node is not None:
        node.total += reward
        node.best = max(node.best, reward)
        node = node.parent


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
    assert state.library is not None
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


def _without_weakest(report: NoveltyReport, writer: Writer) -> Expression | None:
    """The expression without its low-novelty term of smallest independent contribution; None where all are novel."""
    low = np.flatnonzero(report.nu < report.tau)
    if len(low) == 0 or report.terms is None or len(report.terms) < 2:
        return None
    weakest = min(low, key=lambda i: float(report.contribution[i]))
    return writer.written(sum_of_terms([term for i, term in enumerate(report.terms) if i != weakest]))
