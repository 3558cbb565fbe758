r"""Sparse combinations of many columns: matching pursuit, with a beam or one column at a time.

Notation
--------
``t``  the target;  ``Q`` an orthonormal basis of the columns chosen so far, shape (k, n_rows);  ``r = t - Qᵀ Q t`` the
residual;  *energy* is a squared length
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.evaluation import derivatives
from sobolev_novelty.expression import Expression

#: Columns that keep less than this share of their length outside the chosen ones add nothing.
_MIN_NEW = 1e-7
#: Columns that keep less than this share of their energy outside the chosen ones are not told apart in single
#: precision.
_MIN_FRESH = 1e-5
#: Rounds of exchange at most; each takes the best swap of one column.
_MAX_SWAPS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """What columns span, and what they leave of a target."""

    basis: FloatArray
    residual: FloatArray
    energy: float

    @classmethod
    def of(cls, target: FloatArray) -> Span:
        """Nothing chosen yet."""
        return cls(np.zeros((0, len(target))), target, float(target @ target))

    def direction(self, column: FloatArray) -> FloatArray | None:
        """Unit vector of the part of a column outside the span; None where there is none."""
        length = math.sqrt(float(column @ column))
        if not 0.0 < length < math.inf:
            return None
        q: FloatArray = column / length
        if len(self.basis) == 0:
            return q
        for _ in range(2):  # twice, so that rounding leaves no component in the basis
            q -= (self.basis @ q) @ self.basis
        left = math.sqrt(float(q @ q))
        return q / left if left >= _MIN_NEW else None

    def plus(self, q: FloatArray) -> Span:
        """The span with a direction added."""
        residual = self.residual - q * float(q @ self.residual)
        return Span(np.concatenate([self.basis, q[None]]), residual, float(residual @ residual))


@dataclass(slots=True)
class Pursuit:
    """Matching pursuit one column at a time, where the caller picks.

    Parameters
    ----------
    inner : callable
        Vector -> its inner products with all columns, each column scaled to unit length.
    rest : ndarray of shape (n_columns,)
        Energy of each column outside the span.
    """

    inner: Callable[[FloatArray], FloatArray]
    span: Span
    rest: FloatArray

    @classmethod
    def start(cls, target: FloatArray, n_columns: int, inner: Callable[[FloatArray], FloatArray]) -> Pursuit:
        """Begin with nothing chosen; the target is scaled to unit length."""
        target = target / np.max(np.abs(target))  # squares of what follows neither overflow nor vanish
        return cls(inner, Span.of(target / np.linalg.norm(target)), np.ones(n_columns, dtype=np.float32))

    @property
    def unexplained(self) -> float:
        """Share of the target's energy that is left."""
        return self.span.energy

    def gains(self) -> FloatArray:
        """Share of the target's energy that each column would explain in addition."""
        gains = self.inner(self.span.residual) ** 2 / np.maximum(self.rest, _MIN_FRESH)
        gains[self.rest < _MIN_FRESH] = 0.0
        return np.asarray(gains)

    def best(self, n: int) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Places and gains of the ``n`` columns that would explain most, best first; none that explains nothing."""
        gains = self.gains()
        top = np.argpartition(-gains, min(n, len(gains)) - 1)[:n]
        top = top[np.lexsort((top, -gains[top]))]
        top = top[gains[top] > 0.0]
        return top, gains[top]

    def add(self, column: FloatArray) -> None:
        """Take a column into the span."""
        q = self.span.direction(column)
        if q is not None:
            self.span = self.span.plus(q)
            self.rest = self.rest - self.inner(q) ** 2


@dataclass(frozen=True, slots=True)
class Combination:
    """Chosen columns and what they leave: ``nmse`` relative to the target's variance."""

    columns: tuple[int, ...]
    nmse: float


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """All columns scaled to unit length, in double and single precision, and which of them may be chosen."""

    unit: FloatArray
    single: npt.NDArray[np.float32]
    usable: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, columns: FloatArray) -> _Columns:
        lengths = np.sqrt(np.einsum("ij,ij->i", columns, columns))
        usable = np.isfinite(lengths) & (lengths > 0.0)
        unit = np.where(usable[:, None], columns, 0.0) / np.where(usable, lengths, 1.0)[:, None]
        return cls(unit, unit.astype(np.float32), usable)


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    columns: tuple[int, ...]
    span: Span

    @property
    def energy(self) -> float:
        return self.span.energy

    def with_columns(self, places: Sequence[int], C: _Columns) -> _Node:
        columns, span = self.columns, self.span
        for j in places:
            q = span.direction(C.unit[j])
            columns, span = (*columns, j), span if q is None else span.plus(q)
        return _Node(columns, span)


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
    spread = float(np.sum((target - target.mean()) ** 2))
    if not spread > 0.0 or not np.isfinite(spread):
        return []
    C = _Columns.of(columns)
    root = _Node((), Span.of(target)).with_columns([int(j) for j in start if C.usable[j]], C)
    frontier = [root]
    found = [Combination(root.columns, root.energy / spread)] if root.columns else []
    for _ in range(n_terms):
        frontier = _grow(frontier, C, beam)
        if not frontier:
            break
        nodes = [_exchanged(node, root, C, exact * spread) for node in frontier[:n_exchanged]]
        nodes = sorted([*nodes, *frontier[:keep]], key=lambda node: node.energy)
        found.extend(Combination(node.columns, node.energy / spread) for node in nodes[:keep])
        if nodes[0].energy / spread < exact:
            break
    return found


def _exchanged(node: _Node, root: _Node, C: _Columns, enough: float) -> _Node:
    """The node after swapping single columns as long as that helps: what greed took first need not belong there."""
    for _ in range(_MAX_SWAPS):
        chosen = node.columns[len(root.columns) :]
        if len(chosen) < 2 or node.energy <= enough:
            return node
        shorter = [root.with_columns(chosen[:i] + chosen[i + 1 :], C) for i in range(len(chosen))]
        best = _grow(shorter, C, 1)
        if not best or not best[0].energy < node.energy * (1.0 - 1e-6):
            return node
        node = best[0]
    return node


def _grow(frontier: list[_Node], C: _Columns, beam: int) -> list[_Node]:
    """The best extensions of all nodes by one column."""
    offers: dict[frozenset[int], tuple[float, int, int]] = {}
    for place, (node, gain) in enumerate(zip(frontier, _gains(frontier, C), strict=True)):
        gain[~C.usable] = -1.0
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
    nodes = [frontier[place].with_columns((j,), C) for _, place, j in best]
    return sorted(nodes, key=lambda node: node.energy)


def _gains(frontier: list[_Node], C: _Columns) -> Iterator[FloatArray]:
    """Share of each node's residual energy that each column would take away.

    Ranking needs no more than single precision, and one product for all nodes is several times faster than one for
    each.
    """
    spans = [node.span for node in frontier]
    directions = [np.vstack([span.residual[None] / max(np.sqrt(span.energy), 1e-300), span.basis]) for span in spans]
    along = C.single @ np.concatenate(directions).T.astype(np.float32)
    start = 0
    for part in directions:
        inner = along[:, start : start + len(part)]
        start += len(part)
        fresh = 1.0 - np.einsum("ij,ij->i", inner[:, 1:], inner[:, 1:])
        yield np.where(fresh > _MIN_FRESH, inner[:, 0] ** 2 / np.maximum(fresh, _MIN_FRESH), 0.0)


def least_squares(columns: FloatArray, target: FloatArray, rcond: float | None = None) -> FloatArray:
    """Coefficients of the target on a few columns, shape (n_columns, n_rows)."""
    lengths = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    lengths[lengths == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq((columns / lengths[:, None]).T, target, rcond=rcond)[0] / lengths)


def finite_columns(terms: Sequence[Expression], sample: Sample) -> FloatArray:
    """Values of terms as columns, shape (n_rows, n_terms); entries that are not finite are 0."""
    return np.nan_to_num(derivatives(list(terms), sample, 0)[:, 0].T, nan=0.0, posinf=0.0, neginf=0.0)


def explained_shares(columns: FloatArray, residual: FloatArray) -> FloatArray:
    """Cosine between each column, shape (n_rows, n_columns), and the residual, squared.

    Examples
    --------
    >>> explained_shares(np.array([[1.0, 0.0], [1.0, 3.0]]), np.array([0.0, 2.0])).round(3)
    array([0.5, 1. ])
    """
    lengths = np.linalg.norm(columns, axis=0) * max(float(np.linalg.norm(residual)), 1e-300)
    return np.asarray((columns.T @ residual / np.where(lengths == 0.0, np.inf, lengths)) ** 2)
