"""Structural forms beside an engine: the loop asks for a batch before each round, whatever the engine is."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.search.contract.engine import Deadline, Problem
from sobolev_novelty.search.propose.structure.families import Schedule
from sobolev_novelty.search.propose.structure.family import Forms
from sobolev_novelty.search.propose.structure.proposals import is_doubtful, structural_forms

#: Where the target may be noise, later batches have a turn in every third round.
RARELY = 3


@dataclass(slots=True)
class Beside:
    """Batches of structural forms, one for each round.

    A copy or a pickle starts over and skips what was handed out, so the state of a search stays plain data.

    ``n_rounds``, ``n_taken``: rounds and batches so far.
    """

    problem: Problem
    schedule: Schedule
    seed: int  # of the order in which rows are looked at
    #: Whether the target may be nothing but noise: later batches, which are less promising, then come rarely.
    may_wait: bool
    n_rounds: int = 0
    n_taken: int = 0
    is_exhausted: bool = False
    _batches: Forms | None = field(default=None, repr=False)
    _worker: ThreadPoolExecutor | None = field(default=None, repr=False)
    _under_way: Future[list[Expression] | None] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, problem: Problem, asked: Any, rng: np.random.Generator) -> Beside | None:
        """What an engine's option ``structural`` asks for; None where it asks for nothing."""
        schedule = Schedule.of(asked)
        if schedule is None:
            return None
        own = int(rng.integers(2**31))
        # Islands share structural forms out, so they must look at the same rows.
        seed = own if problem.island.seed is None else problem.island.seed
        return cls(problem, schedule, seed, is_doubtful(problem, np.random.default_rng(seed)))

    @property
    def is_turn(self) -> bool:
        """Whether there is a batch in this round: always at first, then in every third where the target may be noise.

        How the engine fares does not enter: with guidance it fares better, and laws would be missed for it.
        """
        is_early = self.n_taken < self.schedule.n_first
        return not self.is_exhausted and (is_early or not self.may_wait or self.n_rounds % RARELY == 0)

    def next(self, deadline: Deadline) -> list[Expression]:
        """Forms for this round, in the allowed operators; none where it is not their turn or the time is over."""
        limit, allowed = self.problem.max_complexity, frozenset(self.problem.operators)
        spelled = dict.fromkeys(respelled(form, allowed) for form in (self._batch(deadline) if self.is_turn else ()))
        return [form for form in spelled if form is not None and form.complexity <= limit]

    def _batch(self, deadline: Deadline) -> list[Expression]:
        """The next batch; empty when there is nothing more, or when the time is over before it is ready.

        A batch cannot be interrupted and may take a second on a busy machine: with a deadline a thread works on it, and
        a batch that is late is handed out by a search that goes on from here.
        """
        if self._batches is None:
            self._batches = structural_forms(self.problem, np.random.default_rng(self.seed), self.schedule)
            for _ in range(self.n_taken):
                next(self._batches, None)
        if deadline.remaining == math.inf:
            batch = next(self._batches, None) if self._under_way is None else self._under_way.result()
        else:
            self._worker = self._worker or ThreadPoolExecutor(1, "structural forms")
            self._under_way = self._under_way or self._worker.submit(next, self._batches, None)
            try:
                batch = self._under_way.result(deadline.remaining)
            except TimeoutError:
                return []
        self._under_way = None
        self.is_exhausted = batch is None
        self.n_taken += 1
        return batch or []

    def __getstate__(self) -> tuple[Any, ...]:
        return self.problem, self.schedule, self.seed, self.may_wait, self.n_rounds, self.n_taken, self.is_exhausted

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.problem, self.schedule, self.seed, self.may_wait, self.n_rounds, self.n_taken, self.is_exhausted = state
        self._batches = self._worker = self._under_way = None
