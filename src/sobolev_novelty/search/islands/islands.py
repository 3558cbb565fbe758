"""Islands: several searches side by side, in processes of their own, that tell each other what they found.

This process is the first island; the others are processes (:mod:`~sobolev_novelty.search.islands.island`) or Dask
tasks. After every :data:`EXCHANGE` evaluations an island reports its front and gets the best of the others, which its
engine observes like the user's guesses. Structural proposals are dealt out, so that no two islands work through the
same ones.

With a budget in evaluations the islands wait for each other at every exchange: data, seed and the number of islands
decide the result, not the machine. With a budget in seconds they do not wait. An island that dies is started again
from the front of its last report.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.score import EXACT_NMSE
from sobolev_novelty.search.contract.engine import Candidate, Deadline, Engine, Island, Problem
from sobolev_novelty.search.loop.front import ParetoFront, select
from sobolev_novelty.search.loop.loop import Budget, Callback, SearchProgress, SearchResult, Visitors, run
from sobolev_novelty.search.loop.stop import StopReason

#: Evaluations of an island between two exchanges.
EXCHANGE = 400
#: Candidates an island gets from the others at an exchange.
N_MIGRANTS = 6
#: Times an island is started again before it is given up.
MAX_RESTARTS = 3


@dataclass(frozen=True, slots=True)
class Spec:
    """What an island needs to begin."""

    problem: Problem
    engine: Engine[Any]
    budget: Budget
    seed: int


@dataclass(frozen=True, slots=True)
class Report:
    """What an island tells: at an exchange, or with ``result`` at its end."""

    front: ParetoFront
    n_evaluations: int
    n_novelty_calls: int
    result: SearchResult | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the island ended because it found an exact fit."""
        return self.result is not None and any(c.nmse < EXACT_NMSE for c in self.front)


@dataclass(frozen=True, slots=True)
class Reply:
    """What it is told: forms of the others, and whether to end."""

    migrants: tuple[Expression, ...] = ()
    must_end: bool = False


class Link(Protocol):
    """The way to an island elsewhere."""

    def receive(self, *, wait: bool) -> Report | None:
        """Its next report; without ``wait`` None where there is none yet. EOFError, with why, where it is gone."""

    def send(self, reply: Reply) -> None:
        """Answer its last report. Raises OSError where it is gone."""

    def close(self) -> None:
        """End it."""


def serve(spec: Spec, report: Callable[[Report], None], answer: Callable[[], Reply]) -> None:
    """An island elsewhere: search, report at exchanges, and report the result."""
    told = [0]

    def exchange(progress: SearchProgress) -> Sequence[Expression] | None:
        if progress.n_evaluations - told[0] < EXCHANGE:
            return ()
        told[0] = progress.n_evaluations
        report(Report(progress.front, progress.n_evaluations, progress.n_novelty_calls))
        reply = answer()
        return None if reply.must_end else reply.migrants

    result = run(spec.problem, spec.engine, spec.budget, np.random.default_rng(spec.seed), visitors=exchange)
    report(Report(result.front, result.n_evaluations, result.n_novelty_calls, result))


@dataclass(slots=True)
class _Island:
    """The first island's book on another one."""

    spec: Spec
    link: Link
    last: Report = field(default_factory=lambda: Report(ParetoFront(), 0, 0))
    front: ParetoFront = field(default_factory=ParetoFront)  # of all its reports, earlier lives included
    is_waiting: bool = False  # it has reported and was not answered
    n_restarts: int = 0
    n_lost: int = 0  # evaluations of its earlier lives

    def hear(self, report: Report) -> None:
        if report.n_evaluations < self.last.n_evaluations:  # it was begun again by somebody else
            self.n_lost += self.last.n_evaluations
        self.last = report
        self.front = self.front.including_all(report.front)
        self.is_waiting = report.result is None

    @property
    def is_over(self) -> bool:
        return self.last.result is not None or self.n_restarts > MAX_RESTARTS


class Archipelago:
    """The first island's side of the exchange.

    ``specs``: of the islands elsewhere.
    ``opened``: starts an island and returns the link to it.
    ``is_synchronous``: whether islands wait for each other.
    """

    def __init__(self, specs: Sequence[Spec], opened: Callable[[Spec], Link], *, is_synchronous: bool) -> None:
        self._opened = opened
        self._is_synchronous = is_synchronous
        self._told = 0
        self._sent: set[Expression] = set()
        self._islands = [_Island(spec, opened(spec)) for spec in specs]

    def close(self) -> None:
        """End all islands elsewhere."""
        for island in self._islands:
            island.link.close()

    @property
    def reports(self) -> list[Report]:
        """The last report of each island elsewhere."""
        return [island.last for island in self._islands]

    @property
    def fronts(self) -> list[ParetoFront]:
        """All that each island elsewhere has reported."""
        return [island.front for island in self._islands]

    @property
    def n_evaluations(self) -> int:
        """Of all islands elsewhere, lost ones included."""
        return sum(island.last.n_evaluations + island.n_lost for island in self._islands)

    def exchange(self, progress: SearchProgress) -> Sequence[Expression] | None:
        """What the first island hears after a round; None ends it."""
        if progress.n_evaluations - self._told < EXCHANGE:
            if not self._is_synchronous:
                self._listen(wait=False)
                self._answer(progress.front, must_end=False)
            return None if self._is_exact_elsewhere() else ()
        self._told = progress.n_evaluations
        self._listen(wait=self._is_synchronous)
        is_exact = self._is_exact_elsewhere()
        self._answer(progress.front, must_end=is_exact)
        if is_exact:
            return None
        fresh = self._best_of(self.fronts)
        migrants = tuple(form for form in fresh if form not in self._sent)
        self._sent.update(migrants)
        return migrants

    def finish(self, own: ParetoFront, *, is_exact: bool) -> None:
        """Bring the others to their end after the first island's; with a budget in evaluations wait for theirs."""
        while self._is_synchronous and any(not island.is_over for island in self._islands):
            self._listen(wait=True)
            self._answer(own, must_end=is_exact or self._is_exact_elsewhere())
        if not self._is_synchronous:
            self._listen(wait=False)

    def _is_exact_elsewhere(self) -> bool:
        return any(report.is_exact for report in self.reports)

    def _listen(self, *, wait: bool) -> None:
        for island in self._islands:
            while not island.is_over and not island.is_waiting:
                try:
                    report = island.link.receive(wait=wait)
                except EOFError as error:
                    self._restart(island, str(error))
                    continue
                if report is None:
                    break
                island.hear(report)

    def _answer(self, own: ParetoFront, *, must_end: bool) -> None:
        for island in self._islands:
            if not island.is_waiting or island.is_over:
                continue
            try:
                island.link.send(Reply(self._best_of([own, *self.fronts]), must_end))
                island.is_waiting = False
            except OSError as error:
                self._restart(island, str(error))

    def _restart(self, island: _Island, reason: str) -> None:
        """A new island in the place of one that died, from the front of its last report."""
        island.link.close()
        island.n_restarts += 1
        island.is_waiting = False
        island.n_lost += island.last.n_evaluations
        island.last = Report(ParetoFront(), 0, 0)
        if island.is_over:
            warnings.warn(
                f"An island of the search died {island.n_restarts} times and was given up; the others go on. "
                f"The last time: {reason}.",
                stacklevel=2,
            )
            return
        guesses = (*island.spec.problem.guesses, *(c.expression for c in island.front))
        seed = island.spec.seed + 1_000_003 * island.n_restarts
        spec = replace(island.spec, problem=replace(island.spec.problem, guesses=guesses), seed=seed)
        try:
            island.link = self._opened(spec)
        except OSError as error:
            self._restart(island, str(error))

    @staticmethod
    def _best_of(fronts: Iterable[ParetoFront]) -> tuple[Expression, ...]:
        candidates = (candidate for front in fronts for candidate in front)
        best = heapq.nlargest(2 * N_MIGRANTS, candidates, key=lambda candidate: candidate.rank)
        return tuple(dict.fromkeys(candidate.expression for candidate in best))[:N_MIGRANTS]


def run_islands(
    problem: Problem,
    engine: Engine[Any],
    budget: Budget,
    rng: np.random.Generator,
    *,
    n_islands: int,
    opened: Callable[[Spec], Link],
    n_jobs: int = 1,
    callbacks: Sequence[Callback] = (),
    visitors: Visitors | None = None,
    deadline: Deadline | None = None,
) -> SearchResult:
    """Search on several islands; the arguments of :func:`~sobolev_novelty.search.loop.loop.run`, and where islands run.

    ``n_islands``: this process's own one included.
    ``opened``: starts an island elsewhere: :class:`~sobolev_novelty.search.islands.island.ProcessLink`, or one of a
    cluster.
    """
    shares = _shares(budget, n_islands)
    *seeds, common = rng.integers(0, 2**62, n_islands + 1).tolist()
    parts = [replace(problem, island=Island(k, n_islands, common)) for k in range(n_islands)]
    specs = [Spec(parts[k], engine, shares[k], seeds[k]) for k in range(1, n_islands)]
    islands = Archipelago(specs, opened, is_synchronous=budget.max_evaluations is not None)

    def of_all(callback: Callback) -> Callback:
        return lambda progress: callback(_together(progress, islands, budget))

    def exchanged(progress: SearchProgress) -> Sequence[Expression] | None:
        forms = islands.exchange(progress)
        return forms if forms is None or visitors is None else [*forms, *(visitors(progress) or ())]

    try:
        result = run(
            parts[0], engine, shares[0], np.random.default_rng(seeds[0]), n_jobs=n_jobs,
            callbacks=[of_all(callback) for callback in callbacks], visitors=exchanged, deadline=deadline,
        )  # fmt: skip
        if not result.stop.reason.is_by_user:
            with contextlib.suppress(KeyboardInterrupt):
                islands.finish(result.front, is_exact=any(c.nmse < EXACT_NMSE for c in result.front))
        return _merged(result, islands, budget)
    finally:
        islands.close()


def _shares(budget: Budget, n: int) -> list[Budget]:
    if budget.max_evaluations is None:
        return [budget] * n
    each, left = divmod(max(budget.max_evaluations, n), n)
    return [replace(budget, max_evaluations=each + (k < left)) for k in range(n)]


def _together(progress: SearchProgress, islands: Archipelago, budget: Budget) -> SearchProgress:
    front = progress.front.including_all(c for front in islands.fronts for c in front)
    return SearchProgress(
        front,
        progress.n_evaluations + islands.n_evaluations,
        progress.n_novelty_calls + sum(report.n_novelty_calls for report in islands.reports),
        progress.seconds,
        budget.max_evaluations,
    )


def _merged(own: SearchResult, islands: Archipelago, budget: Budget) -> SearchResult:
    found = [report.result for report in islands.reports if report.result is not None]
    front = own.front.including_all(c for front in islands.fronts for c in front)
    leaders = sorted((c for result in (own, *found) for c in result.leaders), key=lambda c: c.rank, reverse=True)
    stop = own.stop
    if stop.reason is StopReason.EVALUATIONS:  # its share of them
        stop = stop.reason.with_details(budget.max_evaluations)
    exact = next((report.result.stop for report in islands.reports if report.result and report.is_exact), None)
    best = select(own.front)
    if exact is not None and (best is None or best.nmse >= EXACT_NMSE):
        stop = exact
    return SearchResult(
        front,
        own.n_evaluations + islands.n_evaluations,
        own.n_novelty_calls + sum(report.n_novelty_calls for report in islands.reports),
        own.seconds,
        stop,
        _distinct(leaders),
        {**own.counts, "islands": len(islands.reports) + 1},
    )


def _distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """One candidate for each expression, the first."""
    kept: dict[Expression, Candidate] = {}
    for candidate in candidates:
        if math.isfinite(candidate.nmse):
            kept.setdefault(candidate.expression, candidate)
    return tuple(kept.values())
