"""One engine's best fits as the guesses of another: a network proposes, evolution takes it from there.

The search begins by itself. Most laws are found in its first seconds, and then nobody is asked; a law that is not gets
the other engine's fits as visitors, as islands send each other theirs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.score import EXACT_NMSE
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Deadline, Problem
from sobolev_novelty.search.contract.registry import check_installed, engine_class, engine_names
from sobolev_novelty.search.loop.loop import Budget, Callback, SearchProgress, SearchResult, run

#: Fits that are handed over, and the share of a budget that finding them may take. An engine's import comes on top.
N_SEEDS = 20
BUDGET_SHARE = 0.2
#: Share of a budget that the search has for itself first.
PATIENCE = 0.2


def seeding_engine(guesses: Any) -> str | None:
    """The engine that ``guesses`` names; None where they are equations."""
    if not isinstance(guesses, str):
        return None
    if guesses not in engine_names():
        raise ParameterError(
            f"'guesses' must be a list of equations, or the name of an engine ({', '.join(engine_names())}). "
            f"Got '{guesses}'."
        )
    check_installed(guesses)  # now, and not when a part of the search is done
    return guesses


@dataclass(slots=True, eq=False)
class Seeder:
    """Asks an engine for its best fits, once, when a search has found no exact one in its first fifth.

    Called by the loop after each round (:data:`~sobolev_novelty.search.loop.loop.Visitors`).

    >>> from sobolev_novelty.core.rows import Rows
    >>> from sobolev_novelty.core.sample import as_sample
    >>> from sobolev_novelty.engines.genetic import Genetic
    >>> x = np.linspace(1.0, 2.0, 64)
    >>> problem = Problem(Rows(as_sample(x), 3.0 * x**2))
    >>> rng = np.random.default_rng(0)
    >>> seeder = Seeder("mcts", problem, Budget(max_evaluations=1000), rng)
    >>> seeder.added_to(run(problem, Genetic(), seeder.rest, rng, visitors=seeder)).stop.sentence
    "The fit is exact up to rounding. 'mcts' was not asked for guesses."
    """

    engine: str
    problem: Problem
    budget: Budget  # that of the search and of the seeding together
    rng: np.random.Generator
    n_jobs: int = 1
    #: Those of the search: while the other engine works they are told how far the search had come, and may end it.
    callbacks: Sequence[Callback] = ()
    guesses: tuple[Expression, ...] | None = None
    n_evaluations: int = 0
    seconds: float = 0.0
    end: Deadline = field(init=False)
    begin: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.end = Deadline.after(self.budget.seconds, self.budget.clock)
        self.begin = self.end.sooner(PATIENCE)

    @property
    def rest(self) -> Budget:
        """What is left for the search; its seconds go on while the other engine works."""
        limit = self.budget.max_evaluations
        return self.budget if limit is None else replace(self.budget, max_evaluations=max(1, limit - self._limit))

    @property
    def _limit(self) -> int:
        return max(1, int(BUDGET_SHARE * (self.budget.max_evaluations or 0)))

    def __call__(self, progress: SearchProgress) -> tuple[Expression, ...]:
        """The guesses when they are due; nothing before and after that."""
        if self.guesses is not None or not self._is_due(progress):
            return ()
        begin = time.monotonic()
        # This may import torch: a second that no share of a short budget would leave room for.
        proposer = engine_class(self.engine)()
        share = replace(
            self.budget,
            max_evaluations=None if self.budget.max_evaluations is None else self._limit,
            seconds=None if self.budget.seconds is None else BUDGET_SHARE * self.budget.seconds,
        )
        told = [lambda _: any([callback(progress) for callback in self.callbacks])]
        found = run(
            self.problem, proposer, share, self.rng, n_jobs=self.n_jobs, callbacks=told, deadline=self.end
        )  # fmt: skip
        if found.is_interrupted:
            raise KeyboardInterrupt  # it was meant for the search
        ranked = sorted(found.front, key=lambda candidate: candidate.rank, reverse=True)
        best = dict.fromkeys(candidate.expression for candidate in (*ranked, *found.leaders))
        self.guesses, self.n_evaluations = tuple(best)[:N_SEEDS], found.n_evaluations
        self.seconds = time.monotonic() - begin
        return self.guesses

    def _is_due(self, progress: SearchProgress) -> bool:
        if any(candidate.nmse < EXACT_NMSE for candidate in progress.front):
            return False
        by_count = progress.total is not None and progress.n_evaluations >= PATIENCE * progress.total
        return by_count or self.begin.is_over

    def added_to(self, result: SearchResult) -> SearchResult:
        """The search's result with what seeding took."""
        if self.guesses is None:
            return replace(result, stop=result.stop.and_also(f"'{self.engine}' was not asked for guesses."))
        cost = f"for {self.n_evaluations} evaluations and {self.seconds:.1f} s"
        return replace(
            result,
            n_evaluations=result.n_evaluations + self.n_evaluations,
            stop=result.stop.and_also(f"Guesses from '{self.engine}': {len(self.guesses)}, {cost}."),
        )
