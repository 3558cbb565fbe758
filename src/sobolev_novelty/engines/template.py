"""The search for the unknown functions of a template: evolution of one sum of terms for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from sobolev_novelty.algebra.writing import ONE, respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.variation import Genome, Vocabulary, checked, crossed, mutated, random_genome
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Candidate, Engine, Guidance, Problem, State
from sobolev_novelty.search.fit.forms import split_form
from sobolev_novelty.search.loop.front import distinct
from sobolev_novelty.search.problem.template import Template
from sobolev_novelty.search.propose import vocabulary as words

POPULATION_SIZE, N_OFFSPRING, TOURNAMENT_SIZE = 150, 150, 5
#: Limits of one function.
MAX_TERMS, MAX_TERM_SIZE = 4, 15
#: Combinations of first functions in the first round.
MAX_FIRST = 800
CROSSOVER = 0.4
#: Share of children whose parent is begun again from other constants.
RESTARTED = 0.1

#: One genome for each call of the template.
Genomes = dict[str, Genome]


@dataclass(slots=True)
class TemplateState(State):
    """The population, and which functions a form was made of."""

    problem: Problem
    vocabularies: dict[str, Vocabulary]
    linear: set[str]
    made_of: dict[Expression, Genomes] = field(default_factory=dict)
    population: list[tuple[Candidate, Genomes]] = field(default_factory=list)
    is_started: bool = False


class TemplateEngine(Engine[TemplateState]):
    """Genetic programming on the unknown functions of a template.

    ``guidance``: not used, because the terms of different functions do not compete.
    """

    def __init__(self, *, guidance: Guidance = "default") -> None:
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> TemplateState:
        """The state before the first round."""
        template = _template(problem)
        vocabularies = {
            place: Vocabulary.of(
                [f"arg{k}" for k in range(len(call.arguments))], [1.0] * len(call.arguments), problem.drawn_operators,
                MAX_TERMS, MAX_TERM_SIZE,
            )
            for place, call in template.calls.items()
        }  # fmt: skip
        return TemplateState(problem=problem, vocabularies=vocabularies, linear=template.linear_calls())

    def propose(self, state: TemplateState, rng: np.random.Generator) -> list[Expression]:
        """Forms to be fitted next."""
        if state.is_started and state.population:
            offspring = [self._child(state, rng) for _ in range(N_OFFSPRING)]
        else:
            offspring = _first(state, rng)
        state.is_started = True
        template, problem = _template(state.problem), state.problem
        allowed = frozenset((*problem.operators, *template.operators, "add", "mul"))
        forms = []
        for genomes in offspring:
            form = respelled(template.form(genomes, lambda: _starting_value(rng)), allowed)
            if form is not None and problem.control.complexity(form) <= problem.max_complexity:
                state.made_of.setdefault(form, genomes)
                forms.append(form)
        return forms or [Expression.of(1.0)]

    def observe(self, state: TemplateState, scored: list[Candidate]) -> TemplateState:
        """Take the scored candidates of the last round into account."""
        template = _template(state.problem)
        pool = {c.expression: (c, genomes) for c, genomes in state.population}
        for candidate in scored:
            genomes = state.made_of.get(candidate.form)
            if genomes is not None and np.isfinite(candidate.nmse):
                pool.setdefault(candidate.expression, (candidate, _with_fitted(template, candidate, genomes)))
        ranked = sorted((c for c, _ in pool.values()), key=lambda c: (*c.rank, -c.complexity), reverse=True)
        state.population = [pool[c.expression] for c in distinct(ranked, POPULATION_SIZE)]
        state.made_of = {}
        return state

    def _child(self, state: TemplateState, rng: np.random.Generator) -> Genomes:
        child, other = dict(self._parent(state, rng)), self._parent(state, rng)
        if rng.random() < RESTARTED:
            return child
        place = list(child)[int(rng.integers(len(child)))]
        vocabulary = state.vocabularies[place]
        if rng.random() < CROSSOVER:
            new = other[place] if rng.random() < 0.5 else crossed(child[place], other[place], vocabulary, rng)
        else:
            new = mutated(child[place], vocabulary, rng)
        child[place] = checked(new, vocabulary) or random_genome(vocabulary, rng)
        return child

    def _parent(self, state: TemplateState, rng: np.random.Generator) -> Genomes:
        """The best of a random few; the population is sorted, so the smallest index."""
        best = int(rng.integers(0, len(state.population), TOURNAMENT_SIZE).min())
        return state.population[best][1]


def _template(problem: Problem) -> Template:
    template = problem.control.template
    if template is None:
        raise ParameterError("'template' is missing: this engine fills in a template. Give one, or another engine.")
    return template


def _starting_value(rng: np.random.Generator) -> float:
    """Of order one, of either sign, and never 1, which would be written away."""
    return float(np.round(rng.choice([1.0, 1.0, -1.0]) * 2.0 ** rng.uniform(-1.5, 1.5), 2)) + 0.003


def _first(state: TemplateState, rng: np.random.Generator) -> list[Genomes]:
    """Simple functions in all combinations, or in some; and random ones."""
    libraries = [_library(vocabulary, state.problem.operators) for vocabulary in state.vocabularies.values()]
    places = list(state.vocabularies)
    n = int(np.prod([float(len(library)) for library in libraries]))
    if n <= MAX_FIRST:
        found = [dict(zip(places, chosen, strict=True)) for chosen in product(*libraries)]
    else:
        found = [
            {place: library[int(rng.integers(len(library)))] for place, library in zip(places, libraries, strict=True)}
            for _ in range(MAX_FIRST)
        ]
    found += [{place: random_genome(v, rng) for place, v in state.vocabularies.items()} for _ in range(100)]
    return found


def _library(vocabulary: Vocabulary, operators: tuple[str, ...]) -> list[Genome]:
    inputs = [Expression.of(name) for name in vocabulary.names]
    terms = list(inputs)
    for e in inputs:
        terms += [Expression.of(op, e) for op in words.FIRST if op in operators]
        scaled = [Expression.of("mul", c, e) for c in words.TEMPLATE_SCALES]
        terms += [Expression.of(op, s) for op in words.SCALED if op in operators for s in scaled]
    for k, a in enumerate(inputs):
        terms += [Expression.of("mul", a, b) for b in inputs[k + 1 :]]
        terms += [Expression.of("div", a, b) for b in inputs if b != a and "div" in operators]
    return [(term, ONE) for term in terms]


def _with_fitted(template: Template, candidate: Candidate, genomes: Genomes) -> Genomes:
    """The functions with their fitted constants, where each has inputs of its own and stands alone in the sum."""
    inputs = {place: call.arguments for place, call in template.calls.items()}
    owners: dict[str, str] = {}
    for place, arguments in inputs.items():
        for argument in arguments:
            name = argument.head
            if not isinstance(name, str) or name in owners or not template.is_linear:
                return genomes
            owners[name] = place
    back = {argument.head: f"arg{k}" for arguments in inputs.values() for k, argument in enumerate(arguments)}
    found: dict[str, list[Expression]] = {place: [] for place in inputs}
    for term in split_form(candidate.expression).terms:
        own = {owners[name] for name in term.variables if name in owners}
        if len(own) == 1:
            found[own.pop()].append(term.rename({str(name): argument for name, argument in back.items()}))
    return {place: tuple(found[place]) + ((ONE,) if ONE in genomes[place] else ()) or (ONE,) for place in genomes}


def template_engine(guesses: object) -> TemplateEngine:
    """The engine of a search with a template; guesses are refused, because they need not have its shape."""
    if guesses is not None:
        raise ParameterError("'guesses' cannot be combined with 'template'. Leave one of them out.")
    return TemplateEngine()
