"""Matching pursuit over many columns: which of them would explain most, beside those already chosen.

Ranking needs no more than single precision. The compiled kernel keeps the columns in a layout of its own and repeats
what :func:`offers` says.

Notation
--------
A *node* is a residual and the orthonormal basis of its chosen columns: the rows ``members[offsets[c]:offsets[c + 1]]``
of ``directions``, the residual, scaled to unit length, first. Nodes share directions, so that each is multiplied once.

The *standing* of the columns at a node is their inner products with its residual and their energies outside its basis.
It follows from that of a node with some of the same directions: see :class:`Lineage`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.columns import JoinedColumns, LazyColumns
from sobolev_novelty.kernels.program import OffsetArray

SingleArray = npt.NDArray[np.float32]

#: Columns that keep less than this share of their energy outside the chosen ones are not told apart in single
#: precision.
MIN_FRESH = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class UnitColumns:
    """Columns, their lengths, and the columns scaled to unit length in single precision."""

    values: LazyColumns
    lengths: FloatArray  # shape (n_columns,)
    single: SingleArray  # in the layout of the kernel in use; zeros in place of a column that has no length

    def is_usable(self, j: int) -> bool:
        """Whether column ``j`` is finite and not zero."""
        return bool(0.0 < self.lengths[j] < np.inf)

    def unit(self, j: int) -> FloatArray:
        """Column ``j``, scaled to unit length."""
        return np.asarray(self.values[j] / self.lengths[j])


def unit_columns(columns: LazyColumns) -> UnitColumns:
    """The columns, scaled."""
    lengths, parts = np.empty(len(columns)), []
    for start, part in columns.placed():
        values = part.values()
        own = lengths[start : start + len(part)] = _lengths(values)
        with np.errstate(all="ignore"):
            factors = 1.0 / own
            single = (values * factors[:, None]).astype(np.float32)
        single[~(np.isfinite(own) & np.isfinite(factors))] = 0.0
        parts.append(single)
    return UnitColumns(columns, lengths, np.concatenate(parts))


def joined_lengths(columns: JoinedColumns) -> FloatArray:
    """Their lengths."""
    return _lengths(columns.values())


def _lengths(values: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", values, values)))


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """Standings kept from one call of :func:`offers` to the next, so that only new directions are multiplied."""

    #: int64, shape (n_nodes,): places of the standings that nodes begin with; -1 where there is none. With a parent,
    #: the members of a node are its new directions only, and the place of its residual among them may be -1: then it is
    #: the parent's times the first weight of the node, less the other members times theirs.
    parents: OffsetArray
    #: int64, shape (n_nodes,): where the standings of the nodes are written; -1 where they are not. No node of a call
    #: is another's parent.
    slots: OffsetArray
    weights: SingleArray  # float32, shape (n_members,)
    standings: SingleArray  # see :func:`no_standings`

    @classmethod
    def none(cls, columns: UnitColumns, n_nodes: int, n_members: int) -> Lineage:
        """Nothing is kept."""
        nowhere = np.full(n_nodes, -1, dtype=np.int64)
        return cls(nowhere, nowhere, np.zeros(n_members, dtype=np.float32), no_standings(columns, 0))


def no_standings(columns: UnitColumns, n: int) -> SingleArray:
    """Room for ``n`` standings, in the layout of the columns: two numbers for each of them."""
    shape = (2, len(columns.lengths)) if columns.single.ndim == 2 else (len(columns.single), 2, columns.single.shape[2])
    return np.empty((n, *shape), dtype=np.float32)


def offers(
    columns: UnitColumns,
    directions: SingleArray,
    members: OffsetArray,
    offsets: OffsetArray,
    lineage: Lineage,
    n_top: int,
) -> tuple[OffsetArray, SingleArray]:
    """The columns that would take most of each node's residual energy, the largest gain first.

    Returns ``places``: int64, shape (n_nodes, n_top): indices of columns, of equal gains the smaller one first; -1
    where no more columns gain anything.
    Returns ``gains``: float32 array of the same shape: shares of the residual's energy.
    """
    places, gains = no_offers(len(offsets) - 1, n_top)
    inner = columns.single @ directions.T
    for c, (parent, slot) in enumerate(zip(lineage.parents, lineage.slots, strict=True)):
        own = slice(offsets[c], offsets[c + 1])
        residual, weights = members[own][0], lineage.weights[own]
        new = inner[:, members[own][1:]]
        before, fresh = (np.float32(0.0), np.float32(1.0)) if parent < 0 else lineage.standings[parent]
        fresh = fresh - np.einsum("ij,ij->i", new, new)
        along = weights[0] * before - new @ weights[1:] if residual < 0 else inner[:, residual]
        if slot >= 0:
            lineage.standings[slot] = along, fresh
        gain = np.where(fresh > MIN_FRESH, along**2 / np.maximum(fresh, np.float32(MIN_FRESH)), np.float32(0.0))
        n = min(n_top, len(gain))
        worst = np.partition(gain, len(gain) - n)[len(gain) - n] if n else np.float32(0.0)
        above, equal = np.flatnonzero(gain > worst), np.flatnonzero(gain == worst)
        top = np.concatenate([above, equal[: n - len(above)]])
        top = top[np.lexsort((top, -gain[top]))]
        top = top[gain[top] > 0.0]
        places[c, : len(top)], gains[c, : len(top)] = top, gain[top]
    return places, gains


def no_offers(n_nodes: int, n_top: int) -> tuple[OffsetArray, SingleArray]:
    """Arrays to be filled in."""
    return np.full((n_nodes, n_top), -1, dtype=np.int64), np.zeros((n_nodes, n_top), dtype=np.float32)
