"""One engine's best fits as the guesses of another: a network proposes, evolution takes it from there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.engine import Deadline, Problem
from sobolev_novelty.search.loop import Budget, Callback, SearchResult, run
from sobolev_novelty.search.registry import ENGINES, engine_class

#: Fits that are handed over, and the share of a budget that finding them may take. An engine's import comes on top.
N_SEEDS = 20
BUDGET_SHARE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Seeding:
    """What the seeding engine gave.

    Parameters
    ----------
    engine : str
    guesses : tuple of Expression
    budget : Budget
        What is left for the search.
    n_evaluations : int
    seconds : float
        The import of the engine included.
    """

    engine: str
    guesses: tuple[Expression, ...]
    budget: Budget
    n_evaluations: int
    seconds: float

    def added_to(self, result: SearchResult) -> SearchResult:
        """The search's result with what seeding took."""
        cost = f"for {self.n_evaluations} evaluations and {self.seconds:.1f} s"
        note = f"Guesses from '{self.engine}': {len(self.guesses)}, {cost}."
        return replace(
            result,
            n_evaluations=result.n_evaluations + self.n_evaluations,
            seconds=result.seconds + self.seconds,
            stop_reason=f"{result.stop_reason} {note}",
        )


def seeding_engine(guesses: Any) -> str | None:
    """The engine that ``guesses`` names; None where they are equations."""
    if not isinstance(guesses, str):
        return None
    if guesses not in ENGINES:
        raise ParameterError(
            f"'guesses' must be a list of equations, or the name of an engine ({', '.join(ENGINES)}). Got '{guesses}'."
        )
    return guesses


def seed(
    problem: Problem,
    engine: str,
    budget: Budget,
    rng: np.random.Generator,
    *,
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
) -> Seeding:
    """Run an engine for a small share of the budget and keep its best fits.

    Examples
    --------
    >>> from sobolev_novelty.data import as_sample
    >>> x = np.linspace(1.0, 2.0, 64)
    >>> problem = Problem(as_sample(x), 3.0 * x**2)
    >>> found = seed(problem, "mcts", Budget(max_evaluations=1000), np.random.default_rng(0))
    >>> str(found.guesses[0]), found.budget.max_evaluations + found.n_evaluations
    ('3*square(x0)', 1000)
    """
    deadline = Deadline.after(budget.seconds, budget.clock)
    begin = time.monotonic()
    proposer = engine_class(
        engine
    )()  # this may import torch: a second that no share of a short budget would leave room for
    share = replace(
        budget,
        max_evaluations=None if budget.max_evaluations is None else max(1, int(BUDGET_SHARE * budget.max_evaluations)),
        seconds=None if budget.seconds is None else BUDGET_SHARE * budget.seconds,
    )
    found = run(problem, proposer, share, rng, n_jobs=n_jobs, callbacks=callbacks)
    ranked = sorted(found.front, key=lambda candidate: candidate.rank, reverse=True)
    best = dict.fromkeys(candidate.expression for candidate in (*ranked, *found.leaders))
    seconds = time.monotonic() - begin
    left = replace(
        budget,
        max_evaluations=None
        if budget.max_evaluations is None
        else max(1, budget.max_evaluations - found.n_evaluations),
        seconds=None if budget.seconds is None else max(0.01, round(deadline.remaining, 2)),
    )
    return Seeding(engine, tuple(best)[:N_SEEDS], left, found.n_evaluations, seconds)
