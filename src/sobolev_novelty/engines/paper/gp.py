"""The paper's genetic backbone and its Sobolev-guided variant (Sec. 4.2, Appendix D.1), small and plain.

For measuring what the Sobolev signal does; to find equations use :class:`~sobolev_novelty.engines.genetic.Genetic`. A
genome is the expression tree itself: subtree crossover, subtree, point and hoist mutation, tournaments on R_base,
elitism. The loop fits the coefficients of the top-level sum and the constants inside, once, and nothing else is done to
a candidate (``as_found``).

Two additions, each alone or both together, which is the paper's SN-GP. ``structural`` proposes products, quotients,
trigonometric combinations and radicals of inputs, alone or added to one of the best. ``guidance`` breeds more children
than are fitted and keeps first those whose terms are distinct, maintains the archive of terms, and extends the best
expressions from it: by what explains the residual, and by what is novel beside the terms already there.

``is_control`` puts random numbers in the place of every novelty: as many candidates, chosen blindly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.core.parameters import COUNT, FLAG, declared, whole
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.metric.batch import conditional_novelty, novelties
from sobolev_novelty.metric.guidance import TermArchive
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
from sobolev_novelty.search.propose.pursuit import explained_shares, finite_columns
from sobolev_novelty.search.propose.screening import SCREEN_ROWS, lowest_novelties, screened, summands
from sobolev_novelty.search.propose.swapping import Swaps

#: Depths of the first population, half of it full trees, half grown ones.
DEPTHS = (1, 2, 3, 4)
#: Share of leaves that are constants, and their spread.
CONSTANT_SHARE, CONSTANT_SPREAD = 0.2, 2.0
#: Shares of crossover, subtree, point and hoist mutation.
CROSSOVER, SUBTREE, POINT, HOIST = 0.6, 0.2, 0.1, 0.1
_SUMS = np.cumsum([CROSSOVER, SUBTREE, POINT, HOIST])
_KINDS = tuple((_SUMS / _SUMS[-1]).tolist())
#: Children bred for each one that is fitted, where they are screened.
BRED = 2
#: Expressions whose terms are offered to the archive, and that are extended from it, in each generation.
N_DONORS, N_EXTENDED = 20, 4
#: Terms taken from each of the two rankings.
N_RANKED = 3
#: Structural proposals of each generation.
N_STRUCTURAL = 20


@dataclass(slots=True)
class PaperState(State):
    """The population and, with guidance, the archive."""

    problem: Problem
    unary: tuple[Operator, ...]
    binary: tuple[Operator, ...]
    compared: Sample
    compared_y: FloatArray
    archive: TermArchive
    population: list[Candidate] = field(default_factory=list)
    generation: int = 0


@declared(
    population_size=whole(2),
    n_offspring=COUNT,
    tournament_size=COUNT,
    structural=FLAG,
    is_control=FLAG,
    guidance=GUIDANCE,
)
class PaperGP(Engine[PaperState]):
    """Genetic programming on expression trees, as the paper has it.

    ``population_size``, ``n_offspring``: candidates kept, and children fitted in each generation.
    ``tournament_size``: candidates among which a parent is the best.
    ``structural``: whether structural proposals are made as well.
    ``is_control``: whether random numbers replace every novelty.
    ``guidance``: {"default"}, SobolevGuidance or None, by default what ``novelty=`` of the regressor says; None for
    none. Screening, archive and extensions; ``order``, ``tau`` and ``archive_capacity`` of it are used. Without an
    archive (capacity 0) screening is left.

    >>> PaperGP(population_size=50).structural
    False
    """

    as_found = True

    def __init__(
        self,
        *,
        population_size: int = 200,
        n_offspring: int = 200,
        tournament_size: int = 5,
        structural: bool = False,
        is_control: bool = False,
        guidance: Guidance = "default",
    ) -> None:
        self.population_size = population_size
        self.n_offspring = n_offspring
        self.tournament_size = tournament_size
        self.structural = structural
        self.is_control = is_control
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> PaperState:
        """The state before the first round."""
        rows = np.sort(rng.permutation(problem.sample.n_samples)[:SCREEN_ROWS])
        known = [OPERATORS[name] for name in problem.operators]
        guidance = self.signal or SobolevGuidance()
        return PaperState(
            problem=problem,
            unary=tuple(op for op in known if op.arity == 1),
            binary=tuple(op for op in known if op.arity == 2),
            compared=problem.sample.rows(rows),
            compared_y=problem.y[rows],
            archive=TermArchive(max(1, guidance.archive_capacity), order=guidance.order),
        )

    def propose(self, state: PaperState, rng: np.random.Generator) -> list[Expression]:
        """Forms to be fitted next."""
        if not state.population:
            return [_first_tree(state, k, rng) for k in range(self.population_size)]
        forms = self._children(state, rng)
        if self.structural:
            forms += self._structural(state, rng)
        if self.signal is not None and self.signal.archive_capacity > 0:
            is_swapping = self.signal.swaps != "none"
            forms += (self._swapped if is_swapping else self._extensions)(state, self.signal, rng)
        return [form for form in dict.fromkeys(forms) if form.complexity <= state.problem.max_complexity]

    def observe(self, state: PaperState, scored: list[Candidate]) -> PaperState:
        """Take the scored candidates of the last round into account."""
        distinct = {c.expression: c for c in [*state.population, *scored] if math.isfinite(c.nmse)}
        ranked = sorted(distinct.values(), key=lambda c: (*c.rank, -c.complexity), reverse=True)
        state.population = ranked[: self.population_size]
        state.generation += 1
        return state

    # --- the backbone

    def _children(self, state: PaperState, rng: np.random.Generator) -> list[Expression]:
        """The generation's children; with guidance the more distinct half of twice as many (Sec. 4.2)."""
        guidance = self.signal
        screens = "none" if guidance is None else guidance.screens
        n_bred = self.n_offspring if screens == "none" else BRED * self.n_offspring
        children = [self._child(state, rng) for _ in range(n_bred)]
        if guidance is None or screens == "none":
            return children
        if screens == "count":
            return sorted(children, key=lambda child: len(summands(child)))[: self.n_offspring]
        if self.is_control:
            return [children[int(i)] for i in rng.permutation(n_bred)[: self.n_offspring]]
        state.n_novelty_calls += n_bred
        lowest = lowest_novelties([summands(child) for child in children], state.compared, guidance.geometry)
        return screened(children, lowest, self.n_offspring, tau=guidance.tau)

    def _child(self, state: PaperState, rng: np.random.Generator) -> Expression:
        """A child no larger than allowed; where none comes about, a new tree."""
        for _ in range(5):
            mother = self._parent(state, rng)
            spot = int(rng.integers(len(mother)))
            kind = bisect_right(_KINDS, rng.random())  # what rng.choice with these shares does, and draws
            if kind == 0:
                father = self._parent(state, rng)
                child = mother.replace(spot, father.subtree(int(rng.integers(len(father)))))
            elif kind == 1:
                child = mother.replace(spot, _tree(state, int(rng.integers(0, 4)), rng, is_full=False))
            elif kind == 2:
                child = _with_new_token(mother, spot, state, rng)
            else:
                branch = mother.subtree(spot)
                child = mother.replace(spot, branch.subtree(int(rng.integers(len(branch)))))
            if child.complexity <= state.problem.max_complexity and child.variables:
                return child
        return _tree(state, DEPTHS[-1], rng, is_full=False)

    def _parent(self, state: PaperState, rng: np.random.Generator) -> Expression:
        """The best of a random few; the population is sorted, so the smallest index."""
        best: int = min(rng.integers(0, len(state.population), self.tournament_size).tolist())
        return state.population[best].form

    # --- the paper's additions

    def _structural(self, state: PaperState, rng: np.random.Generator) -> list[Expression]:
        """Products, quotients, trigonometric combinations and radicals of inputs, half of them added to a parent."""
        allowed = frozenset(state.problem.operators)
        forms = []
        for _ in range(N_STRUCTURAL):
            shape = STRUCTURES[int(rng.integers(len(STRUCTURES)))]
            form = shape(*(Expression.of(str(rng.choice(state.problem.sample.names))) for _ in range(3)))
            if form.variables and {token.name for token in form.tokens if isinstance(token, Operator)} <= allowed:
                is_alone = rng.random() < 0.5 or "add" not in allowed
                forms.append(form if is_alone else Expression.of("add", self._parent(state, rng), form))
        return forms

    def _extensions(self, state: PaperState, guidance: SobolevGuidance, rng: np.random.Generator) -> list[Expression]:
        """The best expressions with a term of the archive added, by two rankings, each once (Appendix D.1)."""
        offered = [term for c in state.population[:N_DONORS] for term in summands(c.form) if term.variables]
        self._keep(state, offered, rng)
        terms = state.archive.terms
        if not terms or "add" not in state.problem.operators:
            return []
        values = finite_columns(terms, state.compared)
        forms = []
        for candidate in state.population[:N_EXTENDED]:
            own = summands(candidate.form)
            gain = explained_shares(
                values, state.compared_y - finite_columns([candidate.expression], state.compared)[:, 0]
            )
            if self.is_control:
                distance = rng.random(len(terms))
            else:
                distance = conditional_novelty(terms, own, state.compared, order=guidance.order)
                state.n_novelty_calls += 1
            first = [np.argsort(-np.nan_to_num(ranking), kind="stable")[:N_RANKED] for ranking in (gain, distance)]
            chosen = dict.fromkeys(int(j) for j in np.concatenate(first))
            forms += [Expression.of("add", candidate.form, terms[j]) for j in chosen]
        return forms

    def _swapped(self, state: PaperState, guidance: SobolevGuidance, rng: np.random.Generator) -> list[Expression]:
        """The best expressions with fitted terms of the archive in the place of the one they need least."""
        donors = [c.expression for c in state.population[:N_DONORS]]
        offered = dict.fromkeys(term for e in donors for term in split_form(e).terms if term.variables)
        swaps = Swaps(state.archive, state.compared, state.compared_y, guidance.swaps, guidance.deletes)
        swaps.keep(offered, rng)
        found = novelties(donors[:N_EXTENDED], state.compared, order=guidance.order)
        state.n_novelty_calls += len(found)
        forms = [respelled(form, state.problem.operators) for own in found for form in swaps.of(own, rng)]
        return [form for form in forms if form is not None]

    def _keep(self, state: PaperState, offered: Sequence[Expression], rng: np.random.Generator) -> None:
        """Old and new terms, by their residual outside the span of those kept; of the control, at random."""
        if not self.is_control:
            state.archive.update(offered, state.compared)
            state.n_novelty_calls += 1
            return
        pool = list(dict.fromkeys([*state.archive.terms, *offered]))
        values = derivatives(pool, state.compared, 0)[:, 0]
        pool = [term for term, own in zip(pool, values, strict=True) if np.isfinite(own).all()]
        state.archive.terms = [pool[int(i)] for i in rng.permutation(len(pool))[: state.archive.capacity]]


def _of(name: str, *operands: Expression | float) -> Expression:
    return Expression.of(name, *operands)


#: The kinds of Appendix D.1, of three inputs (not all of which every kind uses).
STRUCTURES: tuple[Callable[[Expression, Expression, Expression], Expression], ...] = (
    lambda a, b, c: _of("mul", a, b),
    lambda a, b, c: _of("mul", _of("mul", a, b), c),
    lambda a, b, c: _of("div", a, b),
    lambda a, b, c: _of("div", _of("mul", a, b), c),
    lambda a, b, c: _of("div", a, _of("mul", b, c)),
    lambda a, b, c: _of("div", a, _of("add", b, c)),
    lambda a, b, c: _of("div", a, _of("sub", b, c)),
    lambda a, b, c: _of("div", a, _of("add", 1.0, b)),
    lambda a, b, c: _of("sin", _of("mul", 1.0, a)),
    lambda a, b, c: _of("cos", _of("mul", 1.0, a)),
    lambda a, b, c: _of("mul", a, _of("sin", b)),
    lambda a, b, c: _of("mul", a, _of("cos", b)),
    lambda a, b, c: _of("mul", _of("sin", a), _of("cos", b)),
    lambda a, b, c: _of("sqrt", _of("mul", a, b)),
    lambda a, b, c: _of("sqrt", _of("div", a, b)),
    lambda a, b, c: _of("sqrt", _of("add", _of("mul", a, a), _of("mul", b, b))),
    lambda a, b, c: _of("div", a, _of("sqrt", _of("sub", 1.0, _of("mul", b, b)))),
)


def _first_tree(state: PaperState, k: int, rng: np.random.Generator) -> Expression:
    """Ramped half and half; one that is too large gives way to an input."""
    tree = _tree(state, DEPTHS[k % len(DEPTHS)], rng, is_full=k // len(DEPTHS) % 2 == 0)
    return tree if tree.complexity <= state.problem.max_complexity else _input(state, rng)


def _tree(state: PaperState, depth: int, rng: np.random.Generator, *, is_full: bool) -> Expression:
    """A random tree of at most this depth that contains an input."""
    operators = state.unary + state.binary
    if depth == 0 or not operators or (not is_full and rng.random() < 0.2):
        return _input(state, rng)
    op = operators[int(rng.integers(len(operators)))]
    first = _tree(state, depth - 1, rng, is_full=is_full)
    if op.arity == 1:
        return Expression.of(op, first)
    is_constant = rng.random() < CONSTANT_SHARE
    second = _constant(rng) if is_constant else _tree(state, depth - 1, rng, is_full=is_full)
    return Expression.of(op, second, first) if rng.random() < 0.5 else Expression.of(op, first, second)


def _input(state: PaperState, rng: np.random.Generator) -> Expression:
    names = state.problem.sample.names
    return Expression.of(names[int(rng.integers(len(names)))])


def _constant(rng: np.random.Generator) -> Expression:
    return Expression.of(float(np.round(rng.normal(0.0, CONSTANT_SPREAD), 2)) or 1.0)


def _with_new_token(form: Expression, spot: int, state: PaperState, rng: np.random.Generator) -> Expression:
    token = form.tokens[spot]
    if not isinstance(token, Operator):
        return form.replace(spot, _constant(rng) if rng.random() < CONSTANT_SHARE else _input(state, rng))
    choices = state.unary if token.arity == 1 else state.binary
    other = choices[int(rng.integers(len(choices)))]
    return Expression._trusted((*form.tokens[:spot], other, *form.tokens[spot + 1 :]))
