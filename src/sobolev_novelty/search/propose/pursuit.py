r"""Sparse combinations of many columns: matching pursuit, with a beam or one column at a time.

Notation
--------
``t``  the target;  ``Q`` an orthonormal basis of the columns chosen so far, shape (k, n_rows);  ``r = t - Qᵀ Q t`` the
residual;  *energy* is a squared length
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels import (
    MIN_FRESH,
    LazyColumns,
    Lineage,
    UnitColumns,
    no_standings,
    offers,
    unit_columns,
)
from sobolev_novelty.kernels.evaluate import derivatives

#: Columns that keep less than this share of their length outside the chosen ones add nothing.
_MIN_NEW = 1e-7
#: The residual of a node follows from that of an ancestor until this has become so many times longer than it is: single
#: precision then still knows cosines to a few millionths.
_MAX_GROWTH = 30.0
#: Standings kept for one target at most: of 40,000 columns each takes a third of a megabyte.
_MAX_STANDINGS = 48
#: Rounds of exchange at most; each takes the best swap of one column.
_MAX_SWAPS = 12
#: Relative error below which a screened combination counts as exact.
EXACT = 1e-18


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """What columns span, and what they leave of a target.

    ``directions`` are the rows of ``basis``, one array each: spans that grew from one another share them. ``steps`` are
    the components of the target along them.
    """

    basis: FloatArray
    residual: FloatArray
    energy: float
    directions: tuple[FloatArray, ...] = ()
    steps: tuple[float, ...] = ()

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
        step = float(q @ self.residual)
        residual = self.residual - q * step
        basis = np.concatenate([self.basis, q[None]])
        return Span(basis, residual, float(residual @ residual), (*self.directions, q), (*self.steps, step))


@dataclass(slots=True)
class Pursuit:
    """Matching pursuit one column at a time, where the caller picks."""

    #: Vector -> its inner products with all columns, each column scaled to unit length.
    inner: Callable[[FloatArray], FloatArray]
    span: Span
    rest: FloatArray  # shape (n_columns,): energy of each column outside the span

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

    @property
    def length(self) -> float:
        return max(math.sqrt(self.energy), 1e-300)


@dataclass(frozen=True, slots=True, eq=False)
class _Standing:
    """Where the standing of all columns at a node is kept, and by how much rounding has grown in it."""

    node: _Node
    slot: int
    growth: float


#: Columns that would explain most beside a node, and the shares of its residual energy that they would take.
_Offer = tuple[list[int], list[float]]
_T = TypeVar("_T")
#: A pursuit that asks for the offers to some nodes, so many for each, and goes on when it has them.
_Asking = Generator[tuple[list[_Node], int], list[_Offer], _T]


@dataclass(slots=True, eq=False)
class _Visited:
    """The nodes of one pursuit and what was offered to them: exchange comes back to many of them."""

    C: UnitColumns
    nodes: dict[tuple[int, ...], _Node] = field(default_factory=dict)
    offers: dict[tuple[int, ...], _Offer] = field(default_factory=dict)
    standings: dict[tuple[int, ...], _Standing] = field(default_factory=dict)

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

    def best(self, frontier: list[_Node], beam: int) -> _Asking[list[_Offer]]:
        """For each node columns that would take most of its residual energy, and which shares; its own among them."""
        n_top = beam + max(len(node.columns) for node in frontier)
        new = {node.columns: node for node in frontier if len(self.offers.get(node.columns, ((),))[0]) < n_top}
        if new:
            found = yield list(new.values()), n_top
            self.offers.update(zip(new, found, strict=True))
        return [self.offers[node.columns] for node in frontier]

    def ancestor(self, node: _Node) -> _Standing | None:
        """The nearest one with a standing, the node itself perhaps."""
        for n in range(len(node.columns), -1, -1):
            found = self.standings.get(node.columns[:n])
            if found is not None:
                return found
        return None


class _Desk:
    """Asks the kernel for all pursuits over the same columns at once: it then goes through the columns once."""

    def __init__(self, C: UnitColumns, n_threads: int) -> None:
        self.C = C
        self.n_threads = n_threads
        self._room = no_standings(C, 16)
        self._n_used = 0

    def offers(self, asked: Sequence[tuple[_Visited, list[_Node]]], n_top: int) -> list[list[_Offer]]:
        """The kernel's offers; what ancestors stand for is not multiplied again, what nodes share only once."""
        rows: list[FloatArray] = []
        places: dict[int, int] = {}
        members: list[int] = []
        weights: list[float] = []
        offsets, parents, slots = [0], list[int](), list[int]()
        for visited, node in ((visited, node) for visited, nodes in asked for node in nodes):
            parent = visited.ancestor(node)
            growth = math.inf if parent is None else parent.growth * parent.node.length / node.length
            known = 0 if parent is None else len(parent.node.span.directions)
            if parent is None or growth > _MAX_GROWTH:
                growth = 1.0
                members.append(len(rows))
                rows.append(node.span.residual / node.length)
            else:
                members.append(-1)
            weights.append(1.0 if parent is None else parent.node.length / node.length)
            for q, step in zip(node.span.directions[known:], node.span.steps[known:], strict=True):
                place = places.setdefault(id(q), len(rows))
                if place == len(rows):
                    rows.append(q)
                members.append(place)
                weights.append(step / node.length)
            offsets.append(len(members))
            parents.append(-1 if parent is None else parent.slot)
            slots.append(self._kept(visited, node, growth))
        lineage = Lineage(np.array(parents), np.array(slots), np.array(weights, np.float32), self._room)
        directions = np.array(rows, dtype=np.float32).reshape(-1, self.C.values.shape[1])
        found = offers(self.C, directions, members, offsets, n_top=n_top, lineage=lineage, n_threads=self.n_threads)
        each = zip(*(array.tolist() for array in found), strict=True)
        return [list(islice(each, len(nodes))) for _, nodes in asked]

    def _kept(self, visited: _Visited, node: _Node, growth: float) -> int:
        """Where the standing of a node will be kept; -1 where it is known, or would be one too many."""
        if node.columns in visited.standings or len(visited.standings) >= _MAX_STANDINGS:
            return -1
        slot, self._n_used = self._n_used, self._n_used + 1
        visited.standings[node.columns] = _Standing(node, slot, growth)
        if self._n_used > len(self._room):
            self._room = np.concatenate([self._room, no_standings(self.C, len(self._room))])
        return slot


def pursue(
    columns: FloatArray | LazyColumns | UnitColumns,
    *targets: FloatArray,
    n_terms: int,
    beam: int = 12,
    start: Sequence[int] = (),
    exact: float = 1e-18,
    keep: int = 3,
    n_exchanged: int = 2,
    n_threads: int = 1,
) -> list[list[Combination]]:
    """The best combinations of 1 to ``n_terms`` columns for each target, found with a beam.

    Each stops at the first depth with an exact one.

    ``columns``: shape (n_columns, n_rows), LazyColumns or UnitColumns, need not be normalised; columns that are zero or
    not finite are never chosen. For several calls scale them once (:func:`sobolev_novelty.kernels.unit_columns`).
    ``start``: columns that every combination contains, for free.
    ``exact``: NMSE below which a combination counts as exact.
    ``keep``: combinations returned for each depth.
    ``n_exchanged``: best combinations of each depth that are improved by swapping columns.
    ``n_threads``: threads; the result does not depend on it, nor on the other targets.
    """
    C = columns if isinstance(columns, UnitColumns) else unit_columns(columns, n_threads=n_threads)
    desk = _Desk(C, n_threads)
    chosen = [int(j) for j in start if C.is_usable(j)]
    found: list[list[Combination]] = [[] for _ in targets]
    going: dict[int, tuple[_Visited, _Asking[list[Combination]]]] = {}
    for k, target in enumerate(targets):
        visited = _Visited(C)
        pursuit = _pursued(
            target, visited, chosen, n_terms=n_terms, beam=beam, exact=exact, keep=keep, n_exchanged=n_exchanged
        )
        going[k] = visited, pursuit
    answers: dict[int, list[_Offer] | None] = dict.fromkeys(going)
    while going:
        asked: dict[int, tuple[list[_Node], int]] = {}
        for k, (_, pursuit) in list(going.items()):
            try:
                answer = answers[k]
                asked[k] = next(pursuit) if answer is None else pursuit.send(answer)
            except StopIteration as end:
                found[k] = end.value
                del going[k]
        n_top = max((n for _, n in asked.values()), default=0)
        told = desk.offers([(going[k][0], nodes) for k, (nodes, _) in asked.items()], n_top) if asked else []
        answers = dict(zip(asked, told, strict=True))
    return found


def _pursued(
    target: FloatArray,
    visited: _Visited,
    start: list[int],
    *,
    n_terms: int,
    beam: int,
    exact: float,
    keep: int,
    n_exchanged: int,
) -> _Asking[list[Combination]]:
    spread = float(np.sum((target - target.mean()) ** 2))
    if not spread > 0.0 or not np.isfinite(spread):
        return []
    root = visited.beyond(_Node((), Span.of(target)), start)
    frontier = [root]
    found = [Combination(root.columns, root.energy / spread)] if root.columns else []
    for _ in range(n_terms):
        frontier = yield from _grown(frontier, visited, beam)
        if not frontier:
            break
        nodes = yield from _exchanged(frontier[:n_exchanged], root, visited, exact * spread)
        nodes = sorted([*nodes, *frontier[:keep]], key=lambda node: node.energy)
        found.extend(Combination(node.columns, node.energy / spread) for node in nodes[:keep])
        if nodes[0].energy / spread < exact:
            break
    return found


def _exchanged(nodes: list[_Node], root: _Node, visited: _Visited, enough: float) -> _Asking[list[_Node]]:
    """Nodes after swapping single columns as long as that helps: what greed took first need not belong there."""
    done: list[_Node] = []
    for _ in range(_MAX_SWAPS):
        shorter = {node: _one_less(node, root, visited) for node in nodes if node.energy > enough}
        shorter = {node: rest for node, rest in shorter.items() if len(rest) > 1}
        done += [node for node in nodes if node not in shorter]
        if not shorter:
            return done
        yield from visited.best(
            [rest for several in shorter.values() for rest in several], 1
        )  # for all of them at once
        nodes = []
        for node, several in shorter.items():
            best = yield from _grown(several, visited, 1)
            is_better = bool(best) and best[0].energy < node.energy * (1.0 - 1e-6)
            (nodes if is_better else done).append(best[0] if is_better else node)
    return done + nodes


def _one_less(node: _Node, root: _Node, visited: _Visited) -> list[_Node]:
    chosen = node.columns[len(root.columns) :]
    return [visited.beyond(root, chosen[:i] + chosen[i + 1 :]) for i in range(len(chosen))]


def _grown(frontier: list[_Node], visited: _Visited, beam: int) -> _Asking[list[_Node]]:
    """The best extensions of all nodes by one column."""
    known: dict[frozenset[int], tuple[float, int, int]] = {}
    offered = yield from visited.best(frontier, beam)
    for place, (node, (columns, gains)) in enumerate(zip(frontier, offered, strict=True)):
        fresh = [(j, gain) for j, gain in zip(columns, gains, strict=True) if gain > 0.0 and j not in node.columns]
        for j, gain in fresh[:beam]:
            members = frozenset((*node.columns, j))
            left = node.energy * (1.0 - gain)
            if members not in known or left < known[members][0]:
                known[members] = (left, place, j)
    best = sorted(known.values())[:beam]
    nodes = [visited.beyond(frontier[place], (j,)) for _, place, j in best]
    return sorted(nodes, key=lambda node: node.energy)


def finite_columns(terms: Sequence[Expression], sample: Sample) -> FloatArray:
    """Values of terms as columns, shape (n_rows, n_terms); entries that are not finite are 0."""
    return np.nan_to_num(derivatives(list(terms), sample, 0)[:, 0].T, nan=0.0, posinf=0.0, neginf=0.0)


def explained_shares(columns: FloatArray, residual: FloatArray) -> FloatArray:
    """Cosine between each column, shape (n_rows, n_columns), and the residual, squared.

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
