"""Structural forms, cheapest ideas first, as a generator of batches for the loop to fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from sobolev_novelty.algebra.numbers import nearest_simple
from sobolev_novelty.algebra.writing import scaled, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.search.contract.engine import Problem
from sobolev_novelty.search.propose.structure.dictionaries import Variable
from sobolev_novelty.search.propose.structure.exact_relations import quotients, sums, variants
from sobolev_novelty.search.propose.structure.interactions import interactions
from sobolev_novelty.search.propose.structure.periodogram import waves
from sobolev_novelty.search.propose.structure.power_laws import log_linear_laws, offset_power_law, power_law, power_laws
from sobolev_novelty.search.propose.structure.reductions import (
    HARD,
    Interpolants,
    Reduced,
    Wrap,
    on_more_rows,
    reductions,
    root,
)
from sobolev_novelty.search.propose.structure.relevance import relevant_inputs
from sobolev_novelty.search.propose.structure.small_sums import small_sums
from sobolev_novelty.search.propose.structure.solving import (
    FAMILY_ROWS,
    Deal,
    Effort,
    first_rows,
    monomial_sums,
    solve,
    undone,
)

#: Rows on which dictionaries are screened, and those of a noisy target: of tens of thousands of columns the best
#: explains a tenth of what is noise on 200 rows, a thirtieth on 600.
SCREEN_ROWS, NOISY_SCREEN_ROWS = 200, 600
#: Rows on which interactions are looked for.
INTERACTION_ROWS = 1000
#: Variables up to which reductions are tried, for a target that an interpolant knows little of and for one that it
#: knows well: their cost grows with the cube of the number, and noise hides which of them are true.
MAX_REDUCED_VARIABLES = (6, 9)
#: Above this error of the interpolant hypotheses are hardly told apart: the problem as it is comes first.
HOPELESS = 0.5
#: Variables up to which an interpolant on more rows is affordable.
MAX_DENSE_VARIABLES = 4
#: Above this error of the interpolant the target is noisy or varies fast, and structural forms may be in vain.
DOUBTFUL = 0.05
#: Below this error the target is without noise worth speaking of: small corrections to a law can be seen.
CLEAN = 0.01
#: Inputs from which on those that do not matter are looked for, and batches of forms in those that do for each in all.
MANY_INPUTS, N_RELEVANT_TURNS = 5, 2
#: A positive target that goes down to this share of its largest value may have underflowed to zero, in this share of
#: the rows at most.
UNDERFLOW, MAX_UNDERFLOWN = 1e-60, 0.5
#: How near the factor of a power law is to a whole or half number, relative to it, where only a correction is missing.
SIMPLE_FACTOR = 0.01


def structural_forms(problem: Problem, rng: np.random.Generator) -> Iterator[list[Expression]]:
    """Batches of forms for a problem, cheapest ideas first, without those whose numbers no float can hold."""
    batches = _batches(problem, rng)
    while True:
        try:
            # Screening meets poles and overflows all the time; what is not finite is left out where it counts.
            with np.errstate(all="ignore"):
                batch = next(batches, None)
        except ExpressionError:
            return
        if batch is None:
            return
        yield batch


def is_doubtful(problem: Problem, rng: np.random.Generator) -> bool:
    """Whether an interpolant on a few rows knows the target badly: structure may be there, or only noise."""
    variables, y = _shuffled(problem, rng)
    with np.errstate(all="ignore"):
        is_so = bool(variables) and root(variables, y, lambda e: e).error > DOUBTFUL
        if is_so and len(variables) >= MANY_INPUTS:
            return root(relevant_inputs(variables, y), y, lambda e: e).error > DOUBTFUL
    return is_so


def _shuffled(problem: Problem, rng: np.random.Generator) -> tuple[list[Variable], FloatArray]:
    """Variables that vary, and the target, in random order: screening looks at the first rows only."""
    order = rng.permutation(problem.sample.n_samples)
    if problem.weights is not None:
        # Heavy rows first, as if they were drawn by their weight without being put back (Efraimidis and Spirakis).
        with np.errstate(all="ignore"):
            keys = -np.log(rng.random(len(order))) / problem.weights
        order = np.argsort(keys, kind="stable")
    if _underflows(problem.y):
        order = order[problem.y[order] > 0.0]
    rows = zip(problem.sample.names, problem.sample.X, strict=True)
    variables = [Variable(Expression.of(name), np.ascontiguousarray(row[order])) for name, row in rows]
    return [v for v in variables if np.ptp(v.values) > 0.0], problem.y[order]


def _underflows(y: FloatArray) -> bool:
    """Whether zeros stand for numbers too small for a float: exp(−u²) of a large u has no logarithm."""
    above = y[y > 0.0]
    is_possible = len(above) >= (1.0 - MAX_UNDERFLOWN) * len(y) and len(above) < len(y)
    return is_possible and bool((y >= 0.0).all()) and float(above.min()) < UNDERFLOW * float(above.max())


def _batches(problem: Problem, rng: np.random.Generator) -> Iterator[list[Expression]]:
    informative, y = _shuffled(problem, rng)
    if not informative or not np.ptp(y) > 0.0:
        return
    yield from _power_laws(informative, y, problem)
    every = _searched(informative, y, problem)
    relevant = relevant_inputs(informative, y) if len(informative) >= MANY_INPUTS else informative
    if len(relevant) == len(informative):
        yield from every
        return
    # Rows may know too little of an input that matters: all of them have their turn.
    yield from _power_laws(relevant, y, problem)
    some = _searched(relevant, y, problem)
    while True:
        yield from itertools.islice(some, N_RELEVANT_TURNS)
        batch = next(every, None)
        if batch is None:
            break
        yield batch
    yield from some


def _power_laws(variables: Sequence[Variable], y: FloatArray, problem: Problem) -> Iterator[list[Expression]]:
    if {"exp", "log", "add", "mul"} <= set(problem.operators):
        yield writable(lambda law: law, log_linear_laws(variables, y))
    for wrap, t in undone(y, problem.operators):
        yield writable(wrap, power_law(variables, t) + offset_power_law(variables, t))


def _searched(informative: Sequence[Variable], y: FloatArray, problem: Problem) -> Iterator[list[Expression]]:
    """Forms in some of the inputs."""
    targets = undone(y, problem.operators)
    # Take turns between the outer functions: which of them untangles the problem is not known beforehand.
    interpolants = Interpolants()
    roots = [root(informative, t, wrap, interpolants) for wrap, t in targets[:4]]
    n_rows = NOISY_SCREEN_ROWS if roots[0].error > DOUBTFUL else SCREEN_ROWS
    effort = Effort(problem.operators, n_rows, problem.n_threads, Deal(problem.island))
    if roots[0].error <= CLEAN:
        yield from _corrections(informative, y, effort)
        # The others are roots of their own.
        yield from _quotients(informative, targets[len(roots) :] if len(informative) <= 3 else (), effort)
    yield from _sums(informative, targets, effort)
    if roots[0].error > CLEAN and effort.deal.is_own():
        yield interactions(first_rows(informative, INTERACTION_ROWS), y[:INTERACTION_ROWS], problem.operators)
    if roots[0].error > HARD and effort.deal.is_own():
        yield waves(first_rows(informative, NOISY_SCREEN_ROWS), y[:NOISY_SCREEN_ROWS], problem.operators)
    if roots[0].error > HARD and len(informative) <= MAX_DENSE_VARIABLES:
        roots[0] = on_more_rows(roots[0])
    if roots[0].error > HOPELESS:
        yield from solve(roots[0], effort)
    elementary = small_sums(first_rows(informative, n_rows), y[:n_rows], problem.operators)
    # What a root is reduced to takes as long to find as to solve: each island has roots of its own.
    own, island = problem.island.part(len(roots))
    is_last = problem.island.number == problem.island.of - 1
    yield from _in_reduced_problems(
        [roots[k] for k in own], elementary if is_last else iter(()), replace(effort, deal=Deal(island))
    )


def _quotients(
    variables: Sequence[Variable], targets: Iterable[tuple[Wrap, FloatArray]], effort: Effort
) -> Iterator[list[Expression]]:
    for wrap, t in targets:
        if effort.deal.is_own():
            changed = variants(first_rows(variables, FAMILY_ROWS), effort.operators)
            yield writable(wrap, (form for some in changed for form in quotients(some, t[:FAMILY_ROWS])))


def _sums(
    variables: Sequence[Variable], targets: Iterable[tuple[Wrap, FloatArray]], effort: Effort
) -> Iterator[list[Expression]]:
    for wrap, t in targets:
        if effort.deal.is_own():
            yield writable(wrap, sums(first_rows(variables, FAMILY_ROWS), t[:FAMILY_ROWS], effort.operators))
            yield writable(wrap, monomial_sums(variables, t, effort))


def _in_reduced_problems(
    roots: Sequence[Reduced], elementary: Iterator[list[Expression]], effort: Effort
) -> Iterator[list[Expression]]:
    """Forms for reduced problems; after the first of them, which is solved in less time, sums of elementary terms."""
    for reduced in _in_turns([_explored(start, effort.operators) for start in roots]):
        if reduced is None:
            yield []
            continue
        yield from solve(reduced, effort)
        yield from elementary


def _in_turns(searches: list[Iterator[Reduced | None]]) -> Iterator[Reduced | None]:
    """One reduced problem of each search after the other, until all have ended; None where one needed a step more."""
    while searches:
        for explored in list(searches):
            for reduced in explored:
                yield reduced
                if reduced is not None:
                    break
            else:
                searches.remove(explored)


def _explored(start: Reduced, operators: Sequence[str], *, width: int = 2) -> Iterator[Reduced | None]:
    """Reduced problems worth solving: the most reduced first, then back up to the start.

    ``None`` says that work was done: a look at the clock is due.
    """
    levels = [[start]]
    seen = {start.key}
    is_affordable = len(start.variables) <= MAX_REDUCED_VARIABLES[start.error <= HARD]
    while is_affordable and levels[-1] and max(len(r.variables) for r in levels[-1]) > 1:
        offers: list[Reduced] = []
        for reduced in levels[-1]:
            for offer in reductions(reduced, operators) if len(reduced.variables) > 1 else ():
                if offer is None:
                    yield None
                elif offer.error <= 1.3 * reduced.error:
                    offers.append(offer)
        offers.sort(key=lambda r: r.error)
        level: list[Reduced] = []
        for offer in offers:
            if offer.key not in seen and len(level) < width:
                seen.add(offer.key)
                level.append(offer)
        levels.append(level)
    for level in reversed(levels):
        yield from level


def _corrections(variables: Sequence[Variable], t: FloatArray, effort: Effort) -> Iterator[list[Expression]]:
    """A power law with a simple factor, plus forms for what it leaves: the large term hides a small correction."""
    for _, monomial in power_laws(variables, t):
        factor = nearest_simple(
            float(np.median(t / monomial.values)), SIMPLE_FACTOR, denominators=(1, 2), is_relative=True
        )
        if factor is None:
            continue
        law = scaled(factor, monomial.expression)
        rest = root(variables, t - factor * monomial.values, partial(Expression.of, "add", law))
        yield from solve(rest, effort)
