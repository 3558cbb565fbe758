"""Columns that are computed when somebody asks for them: many are screened, few are ever chosen.

Notation
--------
A matrix of columns has shape (n_columns, n_rows): a column is a row of the array.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.program import OffsetArray

#: How two columns are joined, in the order of kernel.h; the first leaves the left one as it is.
JOINS = ("left", "add", "sub", "mul")
_UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
#: A column that comes nearer to zero than this has no logarithm.
SMALLEST_SIZE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class JoinedColumns:
    """Column ``first[k]`` of one matrix, joined with column ``second[k]`` of another; or the logarithm of its size.

    Where a value is too near zero for a logarithm, or not finite, the whole column is zero.
    """

    how: str
    left: FloatArray
    right: FloatArray
    first: OffsetArray
    second: OffsetArray
    is_log: bool = False

    @classmethod
    def of(cls, values: FloatArray) -> JoinedColumns:
        """The columns of a matrix."""
        places = np.arange(len(values))
        return cls("left", values, values, places, places)

    def __len__(self) -> int:
        return len(self.first)

    def chosen(self, places: OffsetArray) -> JoinedColumns:
        """Some of them."""
        return replace(self, first=self.first[places], second=self.second[places])

    def values(self, n_rows: int | None = None) -> FloatArray:
        """All of them, on the first rows where their number is given."""
        return self._joined(self.left[self.first, :n_rows], self.right[self.second, :n_rows])

    def column(self, k: int) -> FloatArray:
        """One of them."""
        return self._joined(self.left[self.first[k]], self.right[self.second[k]])

    def _joined(self, left: FloatArray, right: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            values: FloatArray = left if self.how == "left" else _UFUNCS[self.how](left, right)
            return _logarithms(values) if self.is_log else values


def _logarithms(values: FloatArray) -> FloatArray:
    sizes = np.abs(values)
    fine = ((sizes > SMALLEST_SIZE) & (sizes < np.inf)).all(axis=-1, keepdims=True)
    return np.where(fine, np.log(np.where(fine, sizes, 1.0)), 0.0)


@dataclass(frozen=True, eq=False)
class LazyColumns:
    """Joined columns, one list of them after the other; indexed as a matrix is."""

    parts: tuple[JoinedColumns, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, self.parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of columns and of rows."""
        return len(self), int(self.parts[0].left.shape[1])

    def placed(self) -> Iterator[tuple[int, JoinedColumns]]:
        """The parts, each with the place of its first column."""
        return zip(self._starts, self.parts, strict=False)

    def __getitem__(self, places: int | slice | Sequence[int]) -> FloatArray:
        if isinstance(places, slice):
            return self._between(*places.indices(len(self))[:2])
        if isinstance(places, Sequence):
            return np.stack([self[j] for j in places])
        part = bisect_right(self._starts, places) - 1
        return self.parts[part].column(places - self._starts[part])

    def _between(self, begin: int, end: int) -> FloatArray:
        pieces = [(part, max(begin - start, 0), end - start) for start, part in self.placed()]
        return np.concatenate([part.chosen(np.arange(a, min(max(a, b), len(part)))).values() for part, a, b in pieces])

    def logarithms(self) -> tuple[JoinedColumns, ...]:
        """The same columns, of whose sizes the logarithms are taken."""
        return tuple(replace(part, is_log=True) for part in self.parts)


def lazily(values: FloatArray | LazyColumns) -> LazyColumns:
    """A matrix as columns that are asked for."""
    return values if isinstance(values, LazyColumns) else LazyColumns((JoinedColumns.of(values),))
