"""How a search uses the cores and machines it is given: threads, islands in processes, islands on a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.operators import Operator, own_operators
from sobolev_novelty.core.parameters import CORES, COUNT, NOTHING, Kind, checked_class
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Engine, Problem
from sobolev_novelty.search.islands.dask_islands import n_workers, opened_on
from sobolev_novelty.search.islands.island import ProcessLink
from sobolev_novelty.search.islands.islands import Link, Spec, run_islands
from sobolev_novelty.search.loop.loop import Budget, SearchResult, run

CLIENT = Kind(
    "a dask.distributed.Client",
    lambda v: not isinstance(v, type) and callable(getattr(v, "scheduler_info", None)),
)


@checked_class(number=CORES | NOTHING, threads=COUNT, client=CLIENT | NOTHING)
@dataclass(frozen=True, slots=True)
class Islands:
    """Searches side by side, processes that tell each other what they found; their number changes the result.

    With a budget in evaluations the same seed and the same number give the same result.

    Parameters
    ----------
    number : int, optional
        -1 for as many as there are cores; by default as many, or with a cluster one more than it has workers: one
        island stays in this process.
    threads : int
        Of each island. They do not change the result.
    client : dask.distributed.Client, optional
        The islands run on its cluster.

    Examples
    --------
    >>> Islands(4)
    Islands(number=4, threads=1, client=None)
    """

    number: int | None = None
    threads: int = 1
    client: Any = None

    def __deepcopy__(self, memo: object) -> Islands:
        return self  # a connection is not copied


@dataclass(frozen=True, slots=True)
class Cores:
    """How a search is spread: threads of each search, which do not change the result, and searches side by side.

    >>> Cores.of(3), Cores.of(Islands(4))
    (Cores(n_threads=3, n_islands=1, client=None), Cores(n_threads=1, n_islands=4, client=None))
    """

    n_threads: int = 1
    n_islands: int = 1
    client: Any = None

    @classmethod
    def of(cls, parallel: int | Islands | None, *, is_own_loss: bool = False) -> Cores:
        """What the user asked for; one island where the loss is a function, which other processes need not have."""
        if not isinstance(parallel, Islands):
            return cls(_cores(1 if parallel is None else parallel))
        if is_own_loss and (parallel.client is not None or parallel.number != 1):
            raise ParameterError(
                "'loss' is a function of this process, so there can be one island only. Give a number of cores as "
                f"'parallel', or a loss by name. Got {parallel}."
            )
        if parallel.number is None and parallel.client is not None:
            return cls(int(parallel.threads), max(1, n_workers(parallel.client)) + 1, parallel.client)
        return cls(int(parallel.threads), _cores(parallel.number or -1), parallel.client)

    def search(
        self,
        problem: Problem,
        engine: Engine[Any],
        budget: Budget,
        rng: np.random.Generator,
        *,
        state: Any = None,
        **options: Any,
    ) -> SearchResult:
        """:func:`~sobolev_novelty.search.loop.loop.run` on one island or on several, with its options."""
        n_islands, n_threads = self.n_islands, self.n_threads
        own = own_operators_of(problem)
        if own and n_islands > 1:
            # A function need not be importable elsewhere, and nothing is ever unpickled to get it there.
            warnings.warn(
                f"The operator(s) {', '.join(own)} are registered in this process only: the search runs on one island, "
                f"not {n_islands}.",
                stacklevel=2,
            )
            n_islands, n_threads = 1, n_islands * n_threads
        if n_islands == 1:
            return run(problem, engine, budget, rng, n_jobs=n_threads, state=state, **options)
        opened: Callable[[Spec], Link] = ProcessLink if self.client is None else opened_on(self.client)
        return run_islands(
            problem, engine, budget, rng, n_islands=n_islands, opened=opened, n_jobs=n_threads, **options
        )


def _cores(number: int) -> int:
    """Cores of this machine, where they are counted from all of them."""
    return int(number) if number > 0 else max(1, (os.cpu_count() or 1) + 1 + int(number))


def own_operators_of(problem: Problem) -> list[str]:
    """Names of the own operators that a search may meet."""
    tokens = {token for guess in problem.guesses for token in guess.tokens if isinstance(token, Operator)}
    return [row.name for row in own_operators() if row.name in problem.operators or row in tokens]
