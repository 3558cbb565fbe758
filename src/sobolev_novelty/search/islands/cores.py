"""How a search uses the cores and machines it is given: threads, islands in processes, islands on a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.operators import Operator, own_operators
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Engine, Problem
from sobolev_novelty.search.islands.dask_islands import n_workers, opened_on
from sobolev_novelty.search.islands.island import ProcessLink
from sobolev_novelty.search.islands.islands import Link, Spec, run_islands
from sobolev_novelty.search.loop.loop import Budget, SearchResult, run


@dataclass(frozen=True, slots=True)
class Cores:
    """What the user asked for.

    Parameters
    ----------
    n_jobs : int or None
        Cores; -1 for all, None for one.
    islands : int or None
        None for as many as there are cores, or workers of the cluster beside this process.
    client : dask.distributed.Client, optional

    Examples
    --------
    >>> Cores(3, None, None).n_threads, Cores(None, None, None).n_threads
    (3, 1)
    """

    n_jobs: int | None
    islands: int | None
    client: Any

    @property
    def n_threads(self) -> int:
        """Cores of this machine."""
        if self.n_jobs is None or self.n_jobs == 0:
            return 1
        return self.n_jobs if self.n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + self.n_jobs)

    def n_islands(self, engine: Engine[Any]) -> int:
        """How many searches of this engine run side by side."""
        if self.islands is not None:
            if self.islands < 1:
                raise ParameterError(f"'islands' must be at least 1, or None. Got {self.islands}.")
            return int(self.islands)
        if self.client is not None:
            return max(1, n_workers(self.client)) + 1
        return self.n_threads if engine.has_islands else 1

    def n_threads_of(self, engine: Engine[Any]) -> int:
        """Threads of each search."""
        return max(1, self.n_threads // self.n_islands(engine))

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
        n_islands, n_threads = self.n_islands(engine), self.n_threads_of(engine)
        own = own_operators_of(problem)
        if own and n_islands > 1:
            # A function need not be importable elsewhere, and nothing is ever unpickled to get it there.
            warnings.warn(
                f"The operator(s) {', '.join(own)} are registered in this process only: the search runs on one island, "
                f"not {n_islands}.",
                stacklevel=2,
            )
            n_islands, n_threads = 1, self.n_threads
        if n_islands == 1:
            return run(problem, engine, budget, rng, n_jobs=n_threads, state=state, **options)
        opened: Callable[[Spec], Link] = ProcessLink if self.client is None else opened_on(self.client)
        return run_islands(
            problem, engine, budget, rng, n_islands=n_islands, opened=opened, n_jobs=n_threads, **options
        )


def own_operators_of(problem: Problem) -> list[str]:
    """Names of the own operators that a search may meet."""
    tokens = {token for guess in problem.guesses for token in guess.tokens if isinstance(token, Operator)}
    return [row.name for row in own_operators() if row.name in problem.operators or row in tokens]
