r"""Sums of a few terms out of many, found with a beam so wide that greed hardly matters.

Terms that resemble each other (functions of one input, or of inputs that lie on a curve) lead a narrow beam astray: the
one that explains most need not belong to the law. What any sum leaves of the target follows from inner products, so
hundreds of sums are extended at once.

A term may have a constant inside that runs over a grid. Between two points of the grid it moves along its derivative by
that constant, so a sum is judged with both: by what a fit of its constants would leave, up to second order.

Notation
--------
``U``  terms of unit length on the rows;  ``V`` their derivatives by the constant inside, of unit length, or zero
``t``  the target, of unit length;  ``S`` the rows of U and V that belong to a sum;  ``L`` the Cholesky factor of S Sᵀ
``A = L⁻¹ S [U, V]ᵀ``  what the sum shares with every term;  ``a = L⁻¹ S t``;  ``1 - Σ a²`` what it leaves of the target
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose.pursuit import Combination

Places = npt.NDArray[np.intp]

#: Terms of which a sum leaves less than this share (of the squared length) add nothing that could be trusted.
_MIN_NEW = 1e-10
#: Added to squared lengths, so that columns that depend on each other do no harm: a thousand times their rounding.
_DEPENDENT = 1e-12
#: Best sums of each size whose terms are exchanged one by one, and how often at most: the beam may have lost a law.
_N_SWAPPED, _MAX_SWAPS = 25, 6
#: Numbers that are worked on together.
_BLOCK = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Values of terms on some rows."""

    values: FloatArray  # shape (n_terms, n_rows): all finite, none zero
    #: ndarray of the same shape, or with no rows: derivatives by the constant inside; zero for a term without one.
    #: Empty where no term has one.
    slopes: FloatArray
    kinds: Places  # shape (n_terms,): terms of one kind differ in that constant only, and stand one after the other

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class WideBeam:
    """How wide the search is."""

    beam: int = 600  # sums of each size that are extended
    branch: int = 24  # kinds of terms by which each of them is extended
    keep: int = 4  # sums of each size that are returned, all of different kinds

    def search(self, terms: Terms, target: FloatArray, *, n_terms: int, exact: float) -> list[Combination]:
        """The best sums of 1 to ``n_terms`` terms, of each size; it stops at a size with an exact one.

        ``exact``: share of the target's variance below which a sum counts as exact.
        """
        spread = float(np.sum((target - target.mean()) ** 2))
        energy = float(target @ target)
        if not (0.0 < spread < np.inf and 0.0 < energy < np.inf and len(terms)):
            return []
        t = target / np.sqrt(energy)
        columns = np.concatenate([_unit(terms.values), _unit(terms.slopes)])
        inner = columns @ t
        found: list[Combination] = []
        sums = np.empty((1, 0), dtype=np.intp)
        for _ in range(n_terms):
            extended = self._extended(sums, columns, inner, terms.kinds)
            sums = extended.best_of_kinds(terms.kinds, self.beam)
            if not len(sums):  # the terms together span less than that
                break
            for _ in range(_MAX_SWAPS if sums.shape[1] > 2 else 0):
                some = sums[:_N_SWAPPED]
                shorter = np.concatenate([np.delete(some, k, axis=1) for k in range(some.shape[1])])
                again = self._extended(np.unique(shorter, axis=0), columns, inner, terms.kinds)
                extended = again.and_those_of(extended, len(terms))
                before, sums = sums, extended.best_of_kinds(terms.kinds, self.beam)
                if np.array_equal(sums[:_N_SWAPPED], before[:_N_SWAPPED]):
                    break
            # Inner products lose half of the digits: the order among the best follows from the columns themselves.
            exactly = {tuple(s): _left(columns, tuple(s), len(terms), t) for s in sums[: 4 * self.keep].tolist()}
            best = sorted(exactly, key=lambda places: (exactly[places], places))[: self.keep]
            found += [Combination(places, exactly[places] * energy / spread) for places in best]
            if exactly[best[0]] * energy / spread <= exact:
                break
        return found

    def _extended(self, sums: Places, columns: FloatArray, inner: FloatArray, kinds: Places) -> Sums:
        """Every sum with the best term of each of the kinds that leave least, and what they leave."""
        n, size = len(kinds), sums.shape[1]
        own = np.einsum("ij,ij->i", columns[:n], columns[n:]) if len(columns) > n else None
        starts = np.flatnonzero(np.diff(kinds, prepend=kinds[0] - 1))
        n_best = min(len(starts) if size == 0 else self.branch, len(starts))
        step = max(1, _BLOCK // (len(columns) * (2 * size + 1)))
        used = np.unique(sums)  # the same terms are met again and again
        members = used if own is None else np.concatenate([used, used + n])
        gram = columns[members] @ columns.T
        extended = []
        for some in (sums[k : k + step] for k in range(0, len(sums), step)):
            rows = np.searchsorted(used, some)
            if own is not None:
                rows = np.hstack([rows, rows + len(used)])
            left = _what_is_left(members[rows], rows, gram, inner, own)
            least, best = _least_of_groups(left, starts)
            top = np.argpartition(least, n_best - 1, axis=1)[:, :n_best]
            further, what_is_left = np.take_along_axis(best, top, axis=1), np.take_along_axis(least, top, axis=1)
            of, place = np.nonzero(what_is_left < np.inf)
            longer = np.column_stack([some[of], further[of, place]])
            extended.append(Sums(np.sort(longer, axis=1), what_is_left[of, place]))
        return _each_once(extended, n)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of one size, and the share of the target's energy that each leaves."""

    places: Places  # shape (n_sums, size): the terms of each, in order
    left: FloatArray  # shape (n_sums,)

    def and_those_of(self, other: Sums, n_terms: int) -> Sums:
        """These, and what the other ones have beside them."""
        return _each_once([self, other], n_terms)

    def best_of_kinds(self, kinds: Places, n: int) -> Places:
        """The best sums, one of every combination of kinds: neighbours on a grid are one idea."""
        order = np.lexsort((*self.places.T[::-1], self.left))
        of_kinds = np.sort(kinds[self.places[order]], axis=1)
        return self.places[order[_first_of_each(of_kinds, int(kinds.max()) + 1)[:n]]]


def _each_once(parts: Sequence[Sums], n_terms: int) -> Sums:
    """All sums, one part after the other; of equal ones the first."""
    places = np.concatenate([part.places for part in parts])
    first = _first_of_each(places, n_terms)
    return Sums(places[first], np.concatenate([part.left for part in parts])[first])


def _first_of_each(rows: Places, n: int) -> Places:
    """Where rows of numbers below ``n`` stand for the first time, in order."""
    keys: Places = rows
    if n ** rows.shape[1] < np.iinfo(np.int64).max:  # one number each, which is sorted faster
        keys = rows @ n ** np.arange(rows.shape[1])
    return np.asarray(np.sort(np.unique(keys, axis=0, return_index=True)[1]))


def _least_of_groups(values: FloatArray, starts: Places) -> tuple[FloatArray, Places]:
    """The least value of every row in each group of columns, and the column where it stands first."""
    least = np.minimum.reduceat(values, starts, axis=1)
    n = values.shape[1]
    if len(starts) == n:
        return least, np.broadcast_to(np.arange(n), values.shape)
    is_least = values == np.repeat(least, np.diff(starts, append=n), axis=1)
    return least, np.minimum.reduceat(np.where(is_least, np.arange(n), n), starts, axis=1)


def _unit(values: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
    return np.asarray(values / np.where(lengths > 0.0, lengths, 1.0)[:, None])


def _what_is_left(
    members: Places, rows: Places, gram: FloatArray, inner: FloatArray, own: FloatArray | None
) -> FloatArray:
    """Share of the target's energy that each sum leaves with each further term and its slope: (n_sums, n_terms).

    ``members``: shape (n_sums, size or 2 size), columns of each sum.
    ``rows``: ndarray of the same shape, where they are among the rows of ``gram``.
    ``inner``: shape (n_columns,), inner products of the columns with the target.
    ``own``: shape (n_terms,) or None, those of the terms with their slopes.
    """
    n, size = len(inner if own is None else own), members.shape[1]
    chosen = gram[rows[:, :, None], members[:, None, :]]
    # The slope of a term that has none is a column of zeros: it stands for itself and touches nothing. Others may
    # depend on each other.
    chosen += np.eye(size) * np.where(np.einsum("sii->si", chosen) > 0.0, _DEPENDENT, 1.0)[:, :, None]
    inverse = np.linalg.inv(np.linalg.cholesky(chosen))
    a = np.einsum("sij,sj->si", inverse, inner[members])
    A = inverse @ gram[rows]
    fresh = 1.0 - np.einsum("skn,skn->sn", A, A)
    shared = inner - np.einsum("sk,skn->sn", a, A)
    left = 1.0 - np.einsum("sk,sk->s", a, a)[:, None] - shared[:, :n] ** 2 / np.maximum(fresh[:, :n], _MIN_NEW)
    if own is not None:
        both = (own - np.einsum("skn,skn->sn", A[:, :, :n], A[:, :, n:])) / np.maximum(fresh[:, :n], _MIN_NEW)
        slope = fresh[:, n:] - both**2 * fresh[:, :n]
        along = shared[:, n:] - both * shared[:, :n]
        left -= np.where(slope > _MIN_NEW, along**2 / np.maximum(slope, _MIN_NEW), 0.0)
    left[fresh[:, :n] < _MIN_NEW] = np.inf
    return np.asarray(left)


def _left(columns: FloatArray, places: tuple[int, ...], n: int, t: FloatArray) -> float:
    chosen = columns[[*places, *(j + n for j in places if j + n < len(columns))]]
    Q = np.linalg.qr(chosen[chosen.any(axis=1)].T)[0]
    residual = t - Q @ (Q.T @ t)
    residual -= Q @ (Q.T @ residual)
    return float(residual @ residual)
