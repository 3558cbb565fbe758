"""What a family of forms is, and the pieces of work that a problem is solved in.

A family says when it applies, and gives batches of forms for the loop to fit and judge. All of them stand in one table,
:data:`~sobolev_novelty.search.propose.structure.families.FAMILIES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.search.contract.engine import Island
from sobolev_novelty.search.propose.structure.dictionaries import (
    LazyDictionary,
    additive_dictionary,
    algebraic_factors,
)
from sobolev_novelty.search.propose.subproblem import Subproblem

#: Batches of forms, one for each turn.
Forms = Iterator[list[Expression]]


class Level(Enum):
    """What a family is tried on, in the order of a search."""

    AT_ONCE = "the inputs, before anything else"
    INPUTS = "the inputs"
    REDUCED = "a reduced problem"
    LATER = "the inputs, after the first reduced problem"


class Deal:
    """Deals the pieces of work out among islands, one after the other: each of them asks in the same order."""

    def __init__(self, island: Island) -> None:
        self._island = island
        self._n = 0

    def is_own(self) -> bool:
        """Whether the next piece is for this island."""
        self._n += 1
        return self._island.shares(self._n - 1)


@dataclass(frozen=True, slots=True)
class Effort:
    """What forms may be made of and what finding them may take."""

    operators: tuple[str, ...]
    n_rows: int  # rows on which dictionaries are screened
    n_threads: int
    #: Islands share the pieces of each problem out, so that it is solved the sooner: this is what takes the time.
    deal: Deal
    families: tuple[Family, ...]  # those that are switched on, in their order


@dataclass(frozen=True, eq=False)
class Bench:
    """A problem on its rows, and the columns that several families look at, each made once."""

    problem: Subproblem
    effort: Effort

    @cached_property
    def inner(self) -> Subproblem:
        """The problem by itself: forms for it are written into the original one when they are offered."""
        return replace(self.problem, steps=())

    @cached_property
    def few(self) -> Subproblem:
        """The same on the rows on which dictionaries are screened."""
        return self.inner.first(self.effort.n_rows)

    @cached_property
    def undone(self) -> list[Subproblem]:
        """That, and with every outer function undone."""
        return self.few.undone(self.effort.operators)

    @cached_property
    def algebraic(self) -> LazyDictionary:
        """Sums and differences of two monomials."""
        return algebraic_factors(self.few.variables)

    @cached_property
    def additive(self) -> LazyDictionary:
        """The largest dictionary for sums."""
        return additive_dictionary(self.few.variables, self.effort.operators)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A row of the table.

    ``columns``, ``selection``: what is written down, and how few of it are chosen, for people.
    """

    name: str
    level: Level
    columns: str
    selection: str
    forms: Callable[[Bench], Forms]  # batches of forms for a problem on the bench
    inputs: int | None = None  # variables up to which it applies
    #: (float, float): of the interpolant of the target: above the first, and not above the second.
    error: tuple[float, float] | None = None
    needs: tuple[str, ...] = ()  # operators without which no form can be written
    #: (int, int or None): from which to which of the target as it is and with each outer function undone, in the order
    #: of the vocabulary.
    targets: tuple[int, int | None] = (0, 1)
    shares_itself: bool = False  # whether islands share it out in pieces of its own, or each needs it whole
    tasks: str = ""  # benchmark tasks that were at hand when it was written, where it was written for some

    def applies(self, problem: Subproblem, effort: Effort) -> bool:
        """Whether it is worth a try."""
        low, high = self.error or (-math.inf, math.inf)
        is_told = self.error is None or low < problem.error <= high
        is_small = self.inputs is None or len(problem.variables) <= self.inputs
        return is_told and is_small and set(self.needs) <= set(effort.operators)

    @property
    def when(self) -> str:
        """When it applies, in words."""
        said = [] if self.inputs is None else ["one input" if self.inputs == 1 else f"up to {self.inputs} inputs"]
        if self.error is not None:
            low, high = self.error
            said.append(f"error above {low:g}" if math.isinf(high) else f"error up to {high:g}")
        return ", ".join([*said, *self.needs]) or "always"


def offered(level: Level, benches: Sequence[Bench], effort: Effort) -> Forms:
    """The forms of the families of one level, for the problems that they are tried on, dealt out one by one."""
    for family in effort.families:
        for bench in benches[slice(*family.targets)] if family.level is level else ():
            if family.applies(bench.problem, effort) and (family.shares_itself or effort.deal.is_own()):
                for batch in family.forms(bench):
                    yield bench.problem.written(batch)


def solve(problem: Subproblem, effort: Effort) -> Forms:
    """Forms for one reduced problem, cheap and exact ones first."""
    if np.ptp(problem.target) > 1e-12 * np.abs(problem.target).max():
        yield from offered(Level.REDUCED, [Bench(problem, effort)], effort)
    else:
        yield problem.written([Expression.of(float(problem.target.mean()))])
