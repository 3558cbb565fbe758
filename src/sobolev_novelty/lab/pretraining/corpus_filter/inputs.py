"""Where formulas of a corpus are judged: a sample with as many columns as a formula has variables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sobolev_novelty.core.geometry import MIN_ROWS
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.metric.guidance import MAX_FILTER_POINTS


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where formulas are judged.

    Parameters
    ----------
    n_rows, seed : int
    bounds : tuple of float, optional
        Uniform between these; standard normal without.
    table : Sample, optional
        Rows of a table. A formula then reads the columns that it names.
    """

    n_rows: int = MAX_FILTER_POINTS
    seed: int = 0
    bounds: tuple[float, float] | None = None
    table: Sample | None = None

    @classmethod
    def of(cls, text: str, *, n_rows: int = MAX_FILTER_POINTS, seed: int = 0) -> Inputs:
        """``normal``, ``uniform:LOW,HIGH`` or the path of a table.

        Examples
        --------
        >>> Inputs.of("uniform:1,5").bounds
        (1.0, 5.0)
        """
        if not MIN_ROWS <= n_rows <= MAX_FILTER_POINTS:
            raise ParameterError(f"'n_rows' must be {MIN_ROWS} to {MAX_FILTER_POINTS}. Got {n_rows}.")
        if text == "normal":
            return cls(n_rows, seed)
        kind, _, numbers = text.partition(":")
        if kind == "uniform":
            try:
                low, high = (float(number) for number in numbers.split(","))
            except ValueError:
                low = high = float("nan")
            if not low < high or not np.isfinite(high - low):
                raise ParameterError(f"'inputs' must be like uniform:1,5, the lower bound first. Got {text!r}.")
            return cls(n_rows, seed, (low, high))
        return cls(n_rows, seed, table=_drawn_rows(Path(text), n_rows, seed))

    def column(self, number: int) -> FloatArray:
        """Values of variable ``number`` of every formula."""
        rng = np.random.default_rng([self.seed, number])
        return rng.normal(size=self.n_rows) if self.bounds is None else rng.uniform(*self.bounds, size=self.n_rows)

    def sample(self, variables: tuple[str, ...]) -> Sample:
        """The sample of a formula with these variables, in this order; one column where there is none."""
        if self.table is not None:
            places = [self.table.names.index(name) for name in variables] or [0]
            return Sample(
                np.ascontiguousarray(self.table.X[places]), tuple(self.table.names[place] for place in places)
            )
        names = variables or ("x0",)
        return Sample(np.array([self.column(k) for k in range(len(names))]), names)


def _drawn_rows(path: Path, n_rows: int, seed: int) -> Sample:
    """Rows of a table without gaps: all, or this many of them drawn at random, in their order."""
    from sobolev_novelty.tables.files import read_table

    if not path.is_file():
        raise ParameterError(f"'inputs' must be normal, uniform:LOW,HIGH or the path of a table. Got '{path}'.")
    numbers = read_table(path).frame.select_dtypes("number")
    X = numbers.to_numpy(dtype=np.float64).T
    whole = np.flatnonzero(np.isfinite(X).all(axis=0))
    if len(X) == 0 or len(whole) < MIN_ROWS:
        raise DataError(f"'{path}' has {len(whole)} rows of numbers without gaps. At least {MIN_ROWS} are needed.")
    if len(whole) > n_rows:
        whole = np.sort(np.random.default_rng(seed).choice(whole, n_rows, replace=False))
    return Sample(np.ascontiguousarray(X[:, whole]), tuple(str(name) for name in numbers.columns))
