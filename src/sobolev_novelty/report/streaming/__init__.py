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

from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.parameters import CHUNKS, checked
from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.errors import DataError, require
from sobolev_novelty.report.reporting import NoveltyReport
from sobolev_novelty.report.streaming.accumulator import NoveltyAccumulator

#: Accumulators that one task of the tree reduction merges.
FAN_IN = 8


def novelty_of_dask(equation: Any, X: Any, names: Sequence[str] | None, **options: Any) -> NoveltyReport:
    """The report on a Dask array or DataFrame, whose blocks are read where they are."""
    return _accumulate_dask(NoveltyAccumulator(equation, names, **options), X).report()


@checked(chunks=CHUNKS)
def novelty_of_chunks(
    equation: Any,
    chunks: Iterable[Any],
    *,
    names: Sequence[str] | None = None,
    order: int = 1,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0),
    coordinates: str = "standardized",
    intercept: str = "term",
    tau: float = TAU_ID,
    on_progress: OnProgress = silent,
) -> NoveltyReport:
    """Sobolev Novelty of every term on rows that come in chunks, in one pass and with the memory of one chunk.

    Parameters
    ----------
    equation, names, order, weights, coordinates, intercept, tau
        See :func:`sobolev_novelty.novelty`.
    chunks : iterable of arrays or DataFrames
        For example ``pandas.read_csv(path, chunksize=100_000)``.
    on_progress : callable
        Told after each chunk how many rows have been seen (:class:`sobolev_novelty.core.progress.Progress`).

    Examples
    --------
    >>> import numpy as np
    >>> novelty_of_chunks("x0 + sin(x0)", np.split(np.linspace(-1, 1, 300)[:, None], 3)).nu.round(3).tolist()
    [0.123, 0.123]
    """
    found = NoveltyAccumulator(
        equation, names, order=order, weights=weights, coordinates=coordinates, intercept=intercept, tau=tau
    )
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


__all__ = ["FAN_IN", "NoveltyAccumulator", "novelty_of_chunks", "novelty_of_dask"]
