"""Structural forms, cheapest ideas first, as a generator of batches for the loop to fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.search.contract.engine import Island, Problem
from sobolev_novelty.search.propose.structure.families import N_ROOTS, Schedule
from sobolev_novelty.search.propose.structure.family import Bench, Deal, Effort, Forms, Level, offered, solve
from sobolev_novelty.search.propose.structure.reductions import HARD, Interpolants, on_more_rows, reductions, root
from sobolev_novelty.search.propose.structure.relevance import relevant_inputs
from sobolev_novelty.search.propose.subproblem import Subproblem, Variable

#: Rows on which dictionaries are screened, and those of a noisy target: of tens of thousands of columns the best
#: explains a tenth of what is noise on 200 rows, a thirtieth on 600.
SCREEN_ROWS, NOISY_SCREEN_ROWS = 200, 600
#: Variables up to which reductions are tried, for a target that an interpolant knows little of and for one that it
#: knows well: their cost grows with the cube of the number, and noise hides which of them are true.
MAX_REDUCED_VARIABLES = (6, 9)
#: Above this error of the interpolant hypotheses are hardly told apart: the problem as it is comes first.
HOPELESS = 0.5
#: Variables up to which an interpolant on more rows is affordable.
MAX_DENSE_VARIABLES = 4
#: Above this error of the interpolant the target is noisy or varies fast, and structural forms may be in vain.
DOUBTFUL = 0.05
#: Inputs from which on those that do not matter are looked for.
MANY_INPUTS = 5
#: A positive target that goes down to this share of its largest value may have underflowed to zero, in this share of
#: the rows at most.
UNDERFLOW, MAX_UNDERFLOWN = 1e-60, 0.5


def structural_forms(problem: Problem, rng: np.random.Generator, schedule: Schedule | None = None) -> Forms:
    """Batches of forms for a problem, cheapest ideas first, without those whose numbers no float can hold."""
    batches = _batches(problem, rng, schedule or Schedule())
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
    inputs = _shuffled(problem, rng)
    with np.errstate(all="ignore"):
        is_so = bool(inputs.variables) and root(inputs).error > DOUBTFUL
        return is_so and (len(inputs.variables) < MANY_INPUTS or root(_relevant(inputs)).error > DOUBTFUL)


def _shuffled(problem: Problem, rng: np.random.Generator) -> Subproblem:
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
    return Subproblem(tuple(v for v in variables if np.ptp(v.values) > 0.0), problem.y[order])


def _underflows(y: FloatArray) -> bool:
    """Whether zeros stand for numbers too small for a float: exp(−u²) of a large u has no logarithm."""
    above = y[y > 0.0]
    is_possible = len(above) >= (1.0 - MAX_UNDERFLOWN) * len(y) and len(above) < len(y)
    return is_possible and bool((y >= 0.0).all()) and float(above.min()) < UNDERFLOW * float(above.max())


def _relevant(inputs: Subproblem) -> Subproblem:
    """The problem in the inputs that matter."""
    return replace(inputs, variables=tuple(relevant_inputs(inputs.variables, inputs.target)))


def _batches(problem: Problem, rng: np.random.Generator, schedule: Schedule) -> Forms:
    inputs = _shuffled(problem, rng)
    if not inputs.variables or not np.ptp(inputs.target) > 0.0:
        return
    effort = Effort(problem.operators, SCREEN_ROWS, problem.n_threads, Deal(Island()), schedule.rows)
    yield from _at_once(inputs, effort)
    every = _searched(inputs, problem.island, effort)
    relevant = _relevant(inputs) if len(inputs.variables) >= MANY_INPUTS else inputs
    if len(relevant.variables) == len(inputs.variables):
        yield from every
        return
    # Rows may know too little of an input that matters: all of them have their turn.
    yield from _at_once(relevant, effort)
    some = _searched(relevant, problem.island, effort)
    while True:
        yield from itertools.islice(some, schedule.n_relevant)
        batch = next(every, None)
        if batch is None:
            break
        yield batch
    yield from some


def _at_once(inputs: Subproblem, effort: Effort) -> Forms:
    return offered(Level.AT_ONCE, [Bench(p, effort) for p in inputs.undone(effort.operators)], effort)


def _searched(inputs: Subproblem, island: Island, each: Effort) -> Forms:
    """Forms in some of the inputs."""
    targets, interpolants = inputs.undone(each.operators), Interpolants()
    # Take turns between the outer functions: which of them untangles the problem is not known beforehand.
    roots = [root(target, interpolants) for target in targets[:N_ROOTS]]
    error = roots[0].error
    effort = replace(each, n_rows=NOISY_SCREEN_ROWS if error > DOUBTFUL else SCREEN_ROWS, deal=Deal(island))
    benches = [Bench(replace(target, error=error), effort) for target in targets]
    yield from offered(Level.INPUTS, benches, effort)
    if error > HARD and len(inputs.variables) <= MAX_DENSE_VARIABLES:
        roots[0] = on_more_rows(roots[0])
    if roots[0].error > HOPELESS:
        yield from solve(roots[0], effort)
    # What a root is reduced to takes as long to find as to solve: each island has roots of its own.
    own, among = island.part(len(roots))
    later = offered(Level.LATER, benches if island.number == island.of - 1 else (), effort)
    yield from _in_reduced_problems([roots[k] for k in own], later, replace(effort, deal=Deal(among)))


def _in_reduced_problems(roots: Sequence[Subproblem], later: Forms, effort: Effort) -> Forms:
    """Forms for reduced problems; after the first of them, which is solved in less time, those that come later."""
    for reduced in _in_turns([_explored(start, effort.operators) for start in roots]):
        if reduced is None:
            yield []
            continue
        yield from solve(reduced, effort)
        yield from later


def _in_turns(searches: list[Iterator[Subproblem | None]]) -> Iterator[Subproblem | None]:
    """One reduced problem of each search after the other, until all have ended; None where one needed a step more."""
    while searches:
        for explored in list(searches):
            for reduced in explored:
                yield reduced
                if reduced is not None:
                    break
            else:
                searches.remove(explored)


def _explored(start: Subproblem, operators: Sequence[str], *, width: int = 2) -> Iterator[Subproblem | None]:
    """Reduced problems worth solving: the most reduced first, then back up to the start.

    ``None`` says that work was done: a look at the clock is due.
    """
    levels = [[start]]
    seen = {start.key}
    is_affordable = len(start.variables) <= MAX_REDUCED_VARIABLES[start.error <= HARD]
    while is_affordable and levels[-1] and max(len(r.variables) for r in levels[-1]) > 1:
        offers: list[Subproblem] = []
        for reduced in levels[-1]:
            for offer in reductions(reduced, operators) if len(reduced.variables) > 1 else ():
                if offer is None:
                    yield None
                elif offer.error <= 1.3 * reduced.error:
                    offers.append(offer)
        offers.sort(key=lambda r: r.error)
        level: list[Subproblem] = []
        for offer in offers:
            if offer.key not in seen and len(level) < width:
                seen.add(offer.key)
                level.append(offer)
        levels.append(level)
    for level in reversed(levels):
        yield from level
