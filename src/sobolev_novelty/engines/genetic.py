"""Genetic programming on sums of terms (Appendix D.1), plain and Sobolev-guided.

A genome is a tuple of terms; the loop fits coefficients and inner constants. Each generation proposes offspring
(crossover and mutation of parents chosen by tournaments on R_base, or from the best of each complexity), shorter
spellings of the best and their relatives; the loop adds a batch of structural forms. Only offspring use the signal.

With guidance a child whose terms are not all distinct (ν > τ among themselves, on a few rows, without a look at the
target) is bred again before anything is fitted, once. Every third generation the best expressions are
also tried without their weakest low-novelty term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import COUNT, SHARE, declared, whole
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.engines.variation import Genome, Vocabulary, as_form, checked, crossed, mutated, random_genome
from sobolev_novelty.metric.batch import novelties
from sobolev_novelty.metric.deletion import without_least_needed
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
from sobolev_novelty.search.loop.front import distinct, layers
from sobolev_novelty.search.propose.neighbours import Best, nearby
from sobolev_novelty.search.propose.screening import SCREEN_ROWS, lowest_novelties
from sobolev_novelty.search.propose.structure.families import STRUCTURAL, Schedule
from sobolev_novelty.search.propose.swapping import Swaps

#: Rows on which terms are compared.
COMPARED_ROWS = 200
#: Best expressions that are tried without their weakest term.
N_PRUNED = 4
#: Best expressions whose fitted terms are offered to the archive, where guidance swaps.
N_DONORS = 20
#: Best expressions for which shorter spellings are sought.
N_REWRITTEN = 5
#: Best expressions by description whose relatives are tried.
N_RELATED = 4
#: Best of each complexity that are parents as well.
N_LAYERS = 2


@dataclass(slots=True)
class Signal:
    """What guidance remembers."""

    guidance: SobolevGuidance
    swaps: Swaps
    diagnosed: set[Expression] = field(default_factory=set)


@dataclass(slots=True)
class GeneticState(State):
    """The population, the rows on which terms are compared, and what comes beside offspring.

    ``population`` has the best scores, ``accurate`` the best of each complexity; both are parents.
    """

    problem: Problem
    vocabulary: Vocabulary
    compared: Sample
    screened: Sample
    signal: Signal | None
    population: list[Candidate] = field(default_factory=list)
    accurate: list[Candidate] = field(default_factory=list)
    rewritten: set[Expression] = field(default_factory=set)
    related: set[Expression] = field(default_factory=set)
    genomes: dict[Expression, Genome] = field(default_factory=dict)
    generation: int = 0

    def forget_errors(self) -> None:
        """The population comes back fitted to other rows."""
        self.population, self.accurate = [], []
        self.rewritten.clear()
        self.related.clear()


@declared(
    population_size=whole(2),
    n_offspring=COUNT,
    tournament_size=COUNT,
    crossover=SHARE,
    max_term_size=COUNT,
    structural=STRUCTURAL,
    guidance=GUIDANCE,
)
class Genetic(Engine[GeneticState]):
    """Genetic programming on sums of terms.

    Parameters
    ----------
    population_size : int
        Half as many candidates are kept from one generation to the next by their score, beside the two best of each
        complexity.
    n_offspring : int
        Crossovers and mutations proposed in each generation.
    tournament_size : int
        Candidates among which a parent is the best.
    crossover : float
        Share of the offspring that has two parents.
    max_terms, max_term_size : int
        Limits of a genome.
    structural : bool, str or Schedule
        Which structural forms are proposed beside: all, none, families by name ("power laws, sums", or "-fast waves"
        for all others), or a :class:`~sobolev_novelty.search.propose.structure.families.Schedule`.
    guidance : {"default"}, SobolevGuidance or None
        By default what ``novelty=`` of the regressor says; None for none.

    Examples
    --------
    >>> Genetic(population_size=100).guidance
    'default'
    """

    def __init__(
        self,
        *,
        population_size: int = 200,
        n_offspring: int = 120,
        tournament_size: int = 5,
        crossover: float = 0.4,
        max_terms: int = 6,
        max_term_size: int = 25,
        structural: bool | str | Schedule = True,
        guidance: Guidance = "default",
    ) -> None:
        self.population_size = population_size
        self.n_offspring = n_offspring
        self.tournament_size = tournament_size
        self.crossover = crossover
        self.max_terms = max_terms
        self.max_term_size = max_term_size
        self.structural = structural
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> GeneticState:
        """The state before the first round."""
        sample = problem.sample
        rows = np.sort(rng.permutation(sample.n_samples)[:COMPARED_ROWS])
        compared, y = sample.rows(rows), np.ascontiguousarray(problem.y[rows])
        return GeneticState(
            problem=problem,
            vocabulary=Vocabulary.of(
                sample.names, _variable_weights(problem), problem.drawn_operators, self.max_terms, self.max_term_size
            ),
            signal=None if self.signal is None else Signal(self.signal, _swaps(self.signal, compared, y)),
            compared=compared,
            screened=sample.rows(rows[:: max(1, len(rows) // SCREEN_ROWS)]),
        )

    def propose(self, state: GeneticState, rng: np.random.Generator) -> list[Expression]:
        """Forms to be fitted next."""
        forms = self._rewritten(state) + self._related(state)
        forms += [as_form(genome) for genome in self._offspring(state, rng)]
        if state.signal is not None and self._is_turn_of_guidance(state):
            if state.signal.guidance.deletes != "none":
                forms += self._pruned(state, state.signal)
            if state.signal.guidance.swaps != "none":
                forms += self._swapped(state, state.signal, rng)
        limit, allowed = state.problem.max_complexity, frozenset(state.problem.operators)
        spelled = dict.fromkeys(respelled(form, allowed) for form in forms)
        return [form for form in spelled if form is not None and form.complexity <= limit]

    def observe(self, state: GeneticState, scored: list[Candidate]) -> GeneticState:
        """Take the scored candidates of the last round into account."""
        pool = {c.expression: c for c in [*state.population, *state.accurate, *scored] if math.isfinite(c.nmse)}
        # Exact ones first, as in the final choice: a short approximation may have the larger score. Sorting is stable:
        # of equals the one found first stays in front.
        ranked = sorted(pool.values(), key=lambda c: (*c.rank, -c.complexity), reverse=True)
        state.population = distinct(ranked, self.population_size // 2)
        state.accurate = layers(pool.values(), N_LAYERS)
        kept = {c.expression for c in [*state.population, *state.accurate]}
        state.genomes = {e: genome for e, genome in state.genomes.items() if e in kept}
        state.generation += 1
        return state

    def _is_turn_of_guidance(self, state: GeneticState) -> bool:
        """Every third generation: the best change slowly, and the signal must not take the time of the search."""
        return state.generation % 3 == 0

    def _pruned(self, state: GeneticState, signal: Signal) -> list[Expression]:
        """The best expressions without their weakest low-novelty term, for the loop to refit; each tried once."""
        best = dict.fromkeys(candidate.expression for candidate in state.population[:N_PRUNED])
        fresh = [expression for expression in best if expression not in signal.diagnosed]
        signal.diagnosed.update(fresh)
        state.n_novelty_calls += len(fresh)
        found = novelties(fresh, state.compared, order=signal.guidance.order)
        guidance = signal.guidance
        shorter = (without_least_needed(own, state.compared, guidance.deletes, guidance.tau) for own in found)
        return [form for form in shorter if form is not None]

    def _swapped(self, state: GeneticState, signal: Signal, rng: np.random.Generator) -> list[Expression]:
        """The best expressions with terms of the archive in the place of the one they need least."""
        guidance = signal.guidance
        donors = [c.expression for c in state.population[:N_DONORS]]
        offered = dict.fromkeys(term for e in donors for term in split_form(e).terms if term.variables)
        signal.swaps.keep(offered, rng)
        found = novelties(donors[:N_PRUNED], state.compared, order=guidance.order)
        state.n_novelty_calls += len(found)
        return [form for own in found for form in signal.swaps.of(own, rng)]

    def _offspring(self, state: GeneticState, rng: np.random.Generator) -> list[Genome]:
        if not state.population:
            return [random_genome(state.vocabulary, rng) for _ in range(self.population_size)]
        # While structural forms come, they get most of the time.
        is_shared = state.beside is not None and state.beside.is_turn
        n = self.n_offspring // 3 if is_shared else self.n_offspring
        if state.signal is None or state.signal.guidance.screens == "none":
            return [self._child(state, rng) for _ in range(n)]
        guidance = state.signal.guidance
        qualified: list[Genome] = []
        others: list[Genome] = []
        for _ in range(guidance.n_bred):
            children = [self._child(state, rng) for _ in range(n - len(qualified))]
            for child, passes in zip(children, self._passing(state, children, guidance), strict=True):
                (qualified if passes else others).append(child)
        return (qualified + others)[:n]

    def _passing(self, state: GeneticState, children: list[Genome], guidance: SobolevGuidance) -> list[bool]:
        """Whether all terms of a child qualify; of the control, whether it has no more terms than most."""
        if guidance.screens == "count":
            counts = [len(child) for child in children]
            return [bool(count <= np.median(counts)) for count in counts]
        state.n_novelty_calls += len(children)
        lowest = lowest_novelties(children, state.screened, guidance.geometry)
        return [nu > guidance.tau for nu in lowest.tolist()]

    def _child(self, state: GeneticState, rng: np.random.Generator) -> Genome:
        vocabulary = state.vocabulary
        child = self._parent(state, rng)
        if rng.random() < self.crossover:
            child = crossed(child, self._parent(state, rng), vocabulary, rng)
        else:
            for _ in range(1 + int(rng.random() < 0.3)):
                child = mutated(child, vocabulary, rng)
        # Where children outgrow the limits, fresh blood keeps the search going.
        return checked(child, vocabulary) or random_genome(vocabulary, rng)

    def _parent(self, state: GeneticState, rng: np.random.Generator) -> Genome:
        """The best of a random few; the population is sorted, so the smallest index."""
        if rng.random() < 0.5:
            return _genome(state, state.accurate[int(rng.integers(len(state.accurate)))])
        best = min(rng.integers(0, len(state.population), self.tournament_size).tolist())
        return _genome(state, state.population[best])

    def _rewritten(self, state: GeneticState) -> list[Expression]:
        """Shorter spellings of the best, each tried once: factored, divided out, without parts that are only rounding.

        The very best in each generation, some more in every third: most of them are overtaken before it would matter.
        """
        best = state.population[: N_REWRITTEN if state.generation % 3 == 0 else 1]
        fresh = [c.expression for c in best if c.expression not in state.rewritten]
        state.rewritten.update(fresh)
        return [form for expression in fresh for form in nearby(expression, state.compared, Best.SCORE)]

    def _related(self, state: GeneticState) -> list[Expression]:
        """The best by description with an operator less, and what they may have been meant as.

        Each is tried once, every third generation. A law with a wave of noise beside it stays what it is until somebody
        takes the wave away.
        """
        if state.generation % 3:
            return []
        n, d = len(state.problem.y), len(state.problem.sample.names)
        best = sorted(state.accurate, key=lambda c: c.nats(n, d))[:N_RELATED]
        fresh = [c.expression for c in best if c.expression not in state.related]
        state.related.update(fresh)
        return [form for expression in fresh for form in nearby(expression, state.compared, Best.DESCRIPTION)]


def _swaps(guidance: SobolevGuidance, sample: Sample, y: FloatArray) -> Swaps:
    archive = TermArchive(max(1, guidance.archive_capacity), order=guidance.order)
    return Swaps(archive, sample, y, guidance.swaps, guidance.deletes)


def _genome(state: GeneticState, candidate: Candidate) -> Genome:
    """The terms of a candidate, split once."""
    genome = state.genomes.get(candidate.expression)
    if genome is None:
        genome = state.genomes[candidate.expression] = split_form(candidate.expression).terms
    return genome


def _variable_weights(problem: Problem) -> Sequence[float]:
    """Variables that go with the target are drawn more often; none is ever left out."""
    ranks = np.argsort(np.argsort(problem.sample.X, axis=1), axis=1).astype(float)
    target = np.argsort(np.argsort(problem.y)).astype(float)
    with np.errstate(all="ignore"):
        correlation = np.nan_to_num(np.abs(np.corrcoef(np.vstack([ranks, target]))[-1, :-1]))
    return [float(0.3 + c) for c in correlation]
