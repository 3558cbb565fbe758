r"""Sparse combinations of many columns: matching pursuit with a beam.

Notation
--------
``C``  columns, (n_columns, n_rows), scaled to unit length;  ``t`` the target;  ``Q`` an orthonormal basis of the
columns chosen so far
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray

Single = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

#: Columns that keep less than this share of their length outside the chosen ones add nothing.
_MIN_NEW = 1e-7
#: Columns that keep less than this share of their energy outside the chosen ones are not told apart in single
#: precision.
_MIN_FRESH = 1e-5


@dataclass(frozen=True, slots=True)
class Combination:
    """Chosen columns and what they leave: ``nmse`` relative to the target's variance."""

    columns: tuple[int, ...]
    nmse: float


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    columns: tuple[int, ...]
    basis: FloatArray  # (k, n_rows)
    residual: FloatArray
    energy: float
    target: FloatArray


def pursue(
    columns: FloatArray,
    target: FloatArray,
    *,
    n_terms: int,
    beam: int = 12,
    start: Sequence[int] = (),
    exact: float = 1e-18,
    keep: int = 3,
    n_exchanged: int = 2,
) -> list[Combination]:
    """The best combinations of 1 to ``n_terms`` columns, found with a beam; stops at the first depth with an exact one.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
        Need not be normalised; columns that are zero or not finite are never chosen.
    start : sequence of int
        Columns that every combination contains, for free.
    exact : float
        NMSE below which a combination counts as exact.
    keep : int
        Combinations returned for each depth.
    n_exchanged : int
        Best combinations of each depth that are improved by swapping columns.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    usable = np.isfinite(lengths) & (lengths > 0.0)
    C = np.where(usable[:, None], columns, 0.0) / np.where(usable, lengths, 1.0)[:, None]
    spread = float(np.sum((target - target.mean()) ** 2))
    if not spread > 0.0 or not np.isfinite(spread):
        return []
    root = _Node((), np.zeros((0, len(target))), target.copy(), float(target @ target), target)
    for j in start:
        if usable[j]:
            root = _extended(root, int(j), C)
    frontier = [root]
    single = C.astype(np.float32)
    found = [Combination(root.columns, root.energy / spread)] if root.columns else []
    for _ in range(n_terms):
        frontier = _grow(frontier, C, single, usable, beam)
        if not frontier:
            break
        nodes = [
            _exchanged(node, C, single, usable, len(root.columns), exact * spread) for node in frontier[:n_exchanged]
        ]
        nodes = sorted([*nodes, *frontier[:keep]], key=lambda node: node.energy)
        found.extend(Combination(node.columns, node.energy / spread) for node in nodes[:keep])
        if nodes[0].energy / spread < exact:
            break
    return found


#: Rounds of exchange at most; each takes the best swap of one column.
_MAX_SWAPS = 12


def _exchanged(  # noqa: PLR0917
    node: _Node, C: FloatArray, single: Single, usable: Mask, n_fixed: int, enough: float
) -> _Node:
    """The node after swapping single columns as long as that helps: what greed took first need not belong there."""
    for _ in range(_MAX_SWAPS):
        if len(node.columns) - n_fixed < 2 or node.energy <= enough:
            return node
        shorter = [_built(node.columns[:i] + node.columns[i + 1 :], C, node) for i in range(n_fixed, len(node.columns))]
        best = _grow(shorter, C, single, usable, 1)
        if not best or not best[0].energy < node.energy * (1.0 - 1e-6):
            return node
        node = best[0]
    return node


def _built(columns: tuple[int, ...], C: FloatArray, like: _Node) -> _Node:
    target = like.target
    node = _Node((), np.zeros((0, len(target))), target, float(target @ target), target)
    for j in columns:
        node = _extended(node, j, C)
    return node


def _grow(frontier: list[_Node], C: FloatArray, single: Single, usable: Mask, beam: int) -> list[_Node]:
    """The best extensions of all nodes by one column."""
    offers: dict[frozenset[int], tuple[float, int, int]] = {}
    for place, (node, gain) in enumerate(zip(frontier, _gains(frontier, single), strict=True)):
        gain[~usable] = -1.0
        gain[list(node.columns)] = -1.0
        count = min(beam, len(gain))
        for j in np.argpartition(-gain, count - 1)[:count]:
            if gain[j] <= 0.0:
                continue
            members = frozenset((*node.columns, int(j)))
            left = node.energy * (1.0 - float(gain[j]))
            if members not in offers or left < offers[members][0]:
                offers[members] = (left, place, int(j))
    best = sorted(offers.values())[:beam]
    nodes = [_extended(frontier[place], j, C) for _, place, j in best]
    return sorted(nodes, key=lambda node: node.energy)


def _gains(frontier: list[_Node], single: Single) -> Iterator[FloatArray]:
    """Share of each node's residual energy that each column would take away.

    Ranking needs no more than single precision, and one product for all nodes is several times faster than one for
    each.
    """
    directions = [np.vstack([node.residual[None] / max(np.sqrt(node.energy), 1e-300), node.basis]) for node in frontier]
    along = single @ np.concatenate(directions).T.astype(np.float32)
    start = 0
    for part in directions:
        inner = along[:, start : start + len(part)]
        start += len(part)
        fresh = 1.0 - np.einsum("ij,ij->i", inner[:, 1:], inner[:, 1:])
        yield np.where(fresh > _MIN_FRESH, inner[:, 0] ** 2 / np.maximum(fresh, _MIN_FRESH), 0.0)


def _extended(node: _Node, j: int, C: FloatArray) -> _Node:
    direction = C[j].copy()
    for _ in range(2):  # twice, so that rounding leaves no component in the basis
        direction -= node.basis.T @ (node.basis @ direction)
    length = float(np.linalg.norm(direction))
    if length < _MIN_NEW:
        return _Node((*node.columns, j), node.basis, node.residual, node.energy, node.target)
    direction /= length
    residual = node.residual - direction * float(direction @ node.residual)
    basis = np.vstack([node.basis, direction])
    residual -= basis.T @ (basis @ residual)
    return _Node((*node.columns, j), basis, residual, float(residual @ residual), node.target)


def coefficients(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Least squares of the target on a few columns (rows of ``columns``)."""
    lengths = np.linalg.norm(columns, axis=1)
    lengths[lengths == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq((columns / lengths[:, None]).T, target, rcond=None)[0] / lengths)
