"""Novelty beyond memory and beyond one machine: rows in blocks, and Dask arrays and DataFrames.

>>> import numpy as np
>>> blocks = (np.linspace(k, k + 1, 100)[:, None] for k in range(5))
>>> novelty_of_chunks("x0 + cos(3*x0)", blocks).n_samples
500
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from sobolev_novelty import report
from sobolev_novelty.data import is_dask
from sobolev_novelty.errors import DataError, ParameterError, require
from sobolev_novelty.progress import OnProgress, Step, silent
from sobolev_novelty.projection import TAU_ID
from sobolev_novelty.report import NoveltyReport
from sobolev_novelty.streaming.accumulator import NoveltyAccumulator

#: Accumulators that one task of the tree reduction merges.
FAN_IN = 8


def novelty(
    equation: Any,
    X: Any,
    *,
    names: Sequence[str] | None = None,
    order: int = 1,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0),
    coordinates: str = "standardized",
    tau: float = TAU_ID,
    n_bootstrap: int = 0,
    random_state: int | np.random.Generator | None = None,
    on_progress: OnProgress = silent,
) -> NoveltyReport:
    """Sobolev Novelty of every term of an equation on the observed inputs.

    Parameters
    ----------
    equation : str, Expression, SymPy expression, or a list of them
        An equation is split into its additive terms; a list is taken as the terms themselves (a :class:`Term` brings
        its coefficient).
    X : array of shape (n_samples, n_features) or DataFrame, of NumPy, pandas or Dask
        The observed inputs. No target is needed. A Dask collection is read block by block where its blocks are; the
        work runs on the active Dask scheduler or cluster.
    names : sequence of str, optional
        Feature names; by default the DataFrame's columns, or ``x0, x1, …``.
    order : {0, 1, 2}
        Highest derivative in the signature; 1 is the paper's.
    weights : tuple of float
        λ₀, λ₁ and λ₂.
    coordinates : {"standardized", "raw"}
        Whether derivatives are along standardized inputs.
    tau : float
        Threshold of the verdict; 1/√10 by default.
    n_bootstrap : int
        Resamples of the rows for intervals; 0 for none. Needs the rows in memory, so not with Dask.
    random_state : int or Generator, optional
        Seed of the bootstrap.
    on_progress : callable
        Told how many resamples are done (:class:`sobolev_novelty.progress.Progress`).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> report = novelty("2.1*sin(x0) + 0.3*x0 - 0.05*x0**3", X)
    >>> report.qualified.tolist()
    [False, False, False]
    >>> novelty("x0 + cos(3*x0)", X).nu.round(3).tolist()
    [1.0, 1.0]
    """
    if not is_dask(X):
        return report.novelty(
            equation, X, names=names, order=order, weights=weights, coordinates=coordinates, tau=tau,
            n_bootstrap=n_bootstrap, random_state=random_state,
            on_progress=on_progress,
        )  # fmt: skip
    if n_bootstrap:
        raise ParameterError(
            f"'n_bootstrap' must be 0 for a Dask collection: resampling needs the rows in memory. Got {n_bootstrap}. "
            "Give a part that fits in memory, X.compute()."
        )
    empty = NoveltyAccumulator(
        equation, names, order=order, weights=weights, coordinates=coordinates, tau=tau
    )  # fmt: skip
    return _accumulate_dask(empty, X).report()


def novelty_of_chunks(
    equation: Any,
    chunks: Iterable[Any],
    *,
    names: Sequence[str] | None = None,
    order: int = 1,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0),
    coordinates: str = "standardized",
    tau: float = TAU_ID,
    on_progress: OnProgress = silent,
) -> NoveltyReport:
    """Sobolev Novelty of every term on rows that come in chunks, in one pass and with the memory of one chunk.

    Parameters
    ----------
    equation, names, order, weights, coordinates, tau
        See :func:`novelty`.
    chunks : iterable of arrays or DataFrames
        For example ``pandas.read_csv(path, chunksize=100_000)``.
    on_progress : callable
        Told after each chunk how many rows have been seen (:class:`sobolev_novelty.progress.Progress`).

    Examples
    --------
    >>> import numpy as np
    >>> novelty_of_chunks("x0 + sin(x0)", np.split(np.linspace(-1, 1, 300)[:, None], 3)).nu.round(3).tolist()
    [0.123, 0.123]
    """
    found = NoveltyAccumulator(equation, names, order=order, weights=weights, coordinates=coordinates, tau=tau)
    for chunk in chunks:
        found.update(chunk)
        on_progress(Step(found.n_samples, note="rows"))
    return found.report()


def _accumulate_dask(empty: NoveltyAccumulator, X: Any) -> NoveltyAccumulator:
    """One accumulator per block, merged in a tree: only accumulators travel between machines, never rows."""
    delayed = require("dask", extra="dask").delayed
    # The tree has a fixed shape, so the answer does not depend on which worker does what, or does it twice.
    of_block, merged = delayed(partial(_of_block, empty.to_bytes())), delayed(_merged)
    level = [of_block(block) for block in _blocks(X)]
    while len(level) > 1:
        level = [merged(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    result = level[0].compute()
    assert isinstance(result, NoveltyAccumulator)
    return result


def _blocks(X: Any) -> list[Any]:
    """The row blocks of a Dask collection, as delayed values."""
    if not hasattr(X, "chunks"):  # DataFrame, Series
        return list(X.to_delayed())
    if X.ndim not in (1, 2):
        raise DataError(f"'X' must have two dimensions, samples × features. Got {X.ndim}: shape {X.shape}.")
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return list(X.to_delayed().ravel())


def _of_block(empty: bytes, block: Any) -> NoveltyAccumulator:
    return NoveltyAccumulator.from_bytes(empty).update(block)


def _merged(accumulators: list[NoveltyAccumulator]) -> NoveltyAccumulator:
    return reduce(NoveltyAccumulator.merge, accumulators)


__all__ = ["FAN_IN", "NoveltyAccumulator", "novelty", "novelty_of_chunks"]
