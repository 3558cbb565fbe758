r"""Sparse combinations of many columns: matching pursuit, with a beam or one column at a time.

Notation
--------
``t``  the target;  ``Q`` an orthonormal basis of the columns chosen so far, shape (k, n_rows);  ``r = t - Qᵀ Q t`` the
residual;  *energy* is a squared length
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.evaluation import derivatives
from sobolev_novelty.expression import Expression
from sobolev_novelty.kernels import MIN_FRESH, LazyColumns, UnitColumns, offers, unit_columns

#: Columns that keep less than this share of their length outside the chosen ones add nothing.
_MIN_NEW = 1e-7
#: Rounds of exchange at most; each takes the best swap of one column.
_MAX_SWAPS = 12
#: Relative error below which a screened combination counts as exact.
EXACT = 1e-18


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """What columns span, and what they leave of a target.

    ``directions`` are the rows of ``basis``, one array each: spans that grew from one another share them.
    """

    basis: FloatArray
    residual: FloatArray
    energy: float
    directions: tuple[FloatArray, ...] = ()

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
        basis = np.concatenate([self.basis, q[None]])
        return Span(basis, residual, float(residual @ residual), (*self.directions, q))


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
        gains = self.inner(self.span.residual) ** 2 / np.maximum(self.rest, MIN_FRESH)
        gains[self.rest < MIN_FRESH] = 0.0
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
class _Node:
    columns: tuple[int, ...]
    span: Span

    @property
    def energy(self) -> float:
        return self.span.energy


@dataclass(frozen=True, slots=True, eq=False)
class _Visited:
    """The nodes of one pursuit and what was offered to them: exchange comes back to many of them."""

    C: UnitColumns
    n_threads: int
    nodes: dict[tuple[int, ...], _Node] = field(default_factory=dict)
    offers: dict[tuple[int, ...], tuple[list[int], list[float]]] = field(default_factory=dict)

    def beyond(self, node: _Node, places: Sequence[int]) -> _Node:
        """The node with columns added, one after the other."""
        for j in places:
            columns = (*node.columns, j)
            known = self.nodes.get(columns)
            if known is None:
                q = node.span.direction(self.C.unit(j))
                known = self.nodes[columns] = _Node(columns, node.span if q is None else node.span.plus(q))
            node = known
        return node

    def best(self, frontier: list[_Node], beam: int) -> list[tuple[list[int], list[float]]]:
        """For each node columns that would take most of its residual energy, and which shares; its own among them."""
        n_top = beam + max(len(node.columns) for node in frontier)
        new = [node for node in frontier if len(self.offers.get(node.columns, ((),))[0]) < n_top]
        if new:
            found = _offers(new, self.C, n_top, self.n_threads)
            self.offers.update((node.columns, offer) for node, offer in zip(new, found, strict=True))
        return [self.offers[node.columns] for node in frontier]


def pursue(
    columns: FloatArray | LazyColumns | UnitColumns,
    target: FloatArray,
    *,
    n_terms: int,
    beam: int = 12,
    start: Sequence[int] = (),
    exact: float = 1e-18,
    keep: int = 3,
    n_exchanged: int = 2,
    n_threads: int = 1,
) -> list[Combination]:
    """The best combinations of 1 to ``n_terms`` columns, found with a beam; stops at the first depth with an exact one.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows), LazyColumns or UnitColumns
        Need not be normalised; columns that are zero or not finite are never chosen. For several targets scale them
        once (:func:`sobolev_novelty.kernels.unit_columns`).
    start : sequence of int
        Columns that every combination contains, for free.
    exact : float
        NMSE below which a combination counts as exact.
    keep : int
        Combinations returned for each depth.
    n_exchanged : int
        Best combinations of each depth that are improved by swapping columns.
    n_threads : int
        Threads; the result does not depend on it.
    """
    spread = float(np.sum((target - target.mean()) ** 2))
    if not spread > 0.0 or not np.isfinite(spread):
        return []
    C = columns if isinstance(columns, UnitColumns) else unit_columns(columns, n_threads=n_threads)
    visited = _Visited(C, n_threads)
    root = visited.beyond(_Node((), Span.of(target)), [int(j) for j in start if C.is_usable(j)])
    frontier = [root]
    found = [Combination(root.columns, root.energy / spread)] if root.columns else []
    for _ in range(n_terms):
        frontier = _grow(frontier, visited, beam)
        if not frontier:
            break
        nodes = [_exchanged(node, root, visited, exact * spread) for node in frontier[:n_exchanged]]
        nodes = sorted([*nodes, *frontier[:keep]], key=lambda node: node.energy)
        found.extend(Combination(node.columns, node.energy / spread) for node in nodes[:keep])
        if nodes[0].energy / spread < exact:
            break
    return found


def _exchanged(node: _Node, root: _Node, visited: _Visited, enough: float) -> _Node:
    """The node after swapping single columns as long as that helps: what greed took first need not belong there."""
    for _ in range(_MAX_SWAPS):
        chosen = node.columns[len(root.columns) :]
        if len(chosen) < 2 or node.energy <= enough:
            return node
        shorter = [visited.beyond(root, chosen[:i] + chosen[i + 1 :]) for i in range(len(chosen))]
        best = _grow(shorter, visited, 1)
        if not best or not best[0].energy < node.energy * (1.0 - 1e-6):
            return node
        node = best[0]
    return node


def _grow(frontier: list[_Node], visited: _Visited, beam: int) -> list[_Node]:
    """The best extensions of all nodes by one column."""
    known: dict[frozenset[int], tuple[float, int, int]] = {}
    for place, (node, (columns, gains)) in enumerate(zip(frontier, visited.best(frontier, beam), strict=True)):
        fresh = [(j, gain) for j, gain in zip(columns, gains, strict=True) if gain > 0.0 and j not in node.columns]
        for j, gain in fresh[:beam]:
            members = frozenset((*node.columns, j))
            left = node.energy * (1.0 - gain)
            if members not in known or left < known[members][0]:
                known[members] = (left, place, j)
    best = sorted(known.values())[:beam]
    nodes = [visited.beyond(frontier[place], (j,)) for _, place, j in best]
    return sorted(nodes, key=lambda node: node.energy)


def _offers(nodes: list[_Node], C: UnitColumns, n_top: int, n_threads: int) -> list[tuple[list[int], list[float]]]:
    """The kernel's offers; directions that nodes share are multiplied once."""
    rows: list[FloatArray] = []
    places: dict[int, int] = {}
    members: list[int] = []
    offsets = [0]
    for node in nodes:
        members.append(len(rows))
        rows.append(node.span.residual / max(math.sqrt(node.energy), 1e-300))
        for q in node.span.directions:
            place = places.setdefault(id(q), len(rows))
            if place == len(rows):
                rows.append(q)
            members.append(place)
        offsets.append(len(members))
    columns, gains = offers(C, rows, members, offsets, n_top=n_top, n_threads=n_threads)
    return list(zip(columns.tolist(), gains.tolist(), strict=True))


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


def promising(found: Sequence[Combination], keep: int = 4) -> list[Combination]:
    """The combinations with the smallest errors; where none is exact also the best two of every size.

    On noisy rows a further column always explains a little more, and the law would be passed over for longer sums.
    """
    ranked = sorted(found, key=lambda c: c.nmse)
    if not ranked or ranked[0].nmse <= EXACT:
        return ranked[:keep]
    taken = ranked[:keep]
    for size in {len(c.columns) for c in ranked}:
        taken += [c for c in ranked if len(c.columns) == size][:2]
    return list(dict.fromkeys(taken))
