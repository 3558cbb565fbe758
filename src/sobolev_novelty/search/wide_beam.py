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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray
from sobolev_novelty.search.pursuit import Combination

Places = npt.NDArray[np.intp]
Sum = tuple[int, ...]

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
    """Values of terms on some rows.

    Parameters
    ----------
    values : ndarray of shape (n_terms, n_rows)
        All finite, none zero.
    slopes : ndarray of the same shape, or with no rows
        Derivatives by the constant inside; zero for a term without one. Empty where no term has one.
    kinds : ndarray of shape (n_terms,)
        Terms of one kind differ in that constant only, and stand one after the other.
    """

    values: FloatArray
    slopes: FloatArray
    kinds: Places

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class WideBeam:
    """How wide the search is.

    Parameters
    ----------
    beam : int
        Sums of each size that are extended.
    branch : int
        Kinds of terms by which each of them is extended.
    keep : int
        Sums of each size that are returned, all of different kinds.
    """

    beam: int = 600
    branch: int = 24
    keep: int = 4

    def search(self, terms: Terms, target: FloatArray, *, n_terms: int, exact: float) -> list[Combination]:
        """The best sums of 1 to ``n_terms`` terms, of each size; it stops at a size with an exact one.

        Parameters
        ----------
        exact : float
            Share of the target's variance below which a sum counts as exact.
        """
        spread = float(np.sum((target - target.mean()) ** 2))
        energy = float(target @ target)
        if not (0.0 < spread < np.inf and 0.0 < energy < np.inf and len(terms)):
            return []
        t = target / np.sqrt(energy)
        columns = np.concatenate([_unit(terms.values), _unit(terms.slopes)])
        inner = columns @ t
        found: list[Combination] = []
        sums: list[Sum] = [()]
        for _ in range(n_terms):
            left = self._extended(sums, columns, inner, terms.kinds)
            sums = _best_of_kinds(left, terms.kinds, self.beam)
            for _ in range(_MAX_SWAPS if sums and len(sums[0]) > 2 else 0):
                shorter = {places[:k] + places[k + 1 :] for places in sums[:_N_SWAPPED] for k in range(len(places))}
                left |= self._extended(sorted(shorter), columns, inner, terms.kinds)
                before, sums = sums, _best_of_kinds(left, terms.kinds, self.beam)
                if sums[:_N_SWAPPED] == before[:_N_SWAPPED]:
                    break
            if not sums:
                break
            # Inner products lose half of the digits: the order among the best follows from the columns themselves.
            exactly = {places: _left(columns, places, len(terms), t) for places in sums[: 4 * self.keep]}
            best = sorted(exactly, key=lambda places: (exactly[places], places))[: self.keep]
            found += [Combination(places, exactly[places] * energy / spread) for places in best]
            if exactly[best[0]] * energy / spread <= exact:
                break
        return found

    def _extended(self, sums: list[Sum], columns: FloatArray, inner: FloatArray, kinds: Places) -> dict[Sum, float]:
        """Every sum with the best term of each of the kinds that leave least, and what they leave."""
        n, size = len(kinds), len(sums[0])
        own = np.einsum("ij,ij->i", columns[:n], columns[n:]) if len(columns) > n else None
        starts = np.flatnonzero(np.diff(kinds, prepend=kinds[0] - 1))
        n_best = min(len(starts) if size == 0 else self.branch, len(starts))
        step = max(1, _BLOCK // (len(columns) * (2 * size + 1)))
        used = np.unique(np.array(sums, dtype=np.intp))  # the same terms are met again and again
        members = used if own is None else np.concatenate([used, used + n])
        gram = columns[members] @ columns.T
        extended: dict[Sum, float] = {}
        for some in (np.array(sums[k : k + step], dtype=np.intp) for k in range(0, len(sums), step)):
            rows = np.searchsorted(used, some)
            if own is not None:
                rows = np.hstack([rows, rows + len(used)])
            left = _what_is_left(members[rows], rows, gram, inner, own)
            least = np.minimum.reduceat(left, starts, axis=1)
            top = np.argpartition(least, n_best - 1, axis=1)[:, :n_best]
            for chosen, row, groups in zip(some.tolist(), left, top.tolist(), strict=True):
                for g in groups:
                    begin, end = starts[g], starts[g + 1] if g + 1 < len(starts) else n
                    j = int(begin + np.argmin(row[begin:end]))
                    if row[j] < np.inf:
                        extended.setdefault(tuple(sorted((*chosen, j))), float(row[j]))
        return extended


def _unit(values: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
    return np.asarray(values / np.where(lengths > 0.0, lengths, 1.0)[:, None])


def _best_of_kinds(left: dict[Sum, float], kinds: Places, n: int) -> list[Sum]:
    """The best sums, one of every combination of kinds: neighbours on a grid are one idea."""
    seen: set[Sum] = set()
    kept: list[Sum] = []
    for places in sorted(left, key=lambda places: (left[places], places)):
        kind = tuple(sorted(kinds[list(places)].tolist()))
        if kind not in seen:
            seen.add(kind)
            kept.append(places)
            if len(kept) == n:
                break
    return kept


def _what_is_left(
    members: Places, rows: Places, gram: FloatArray, inner: FloatArray, own: FloatArray | None
) -> FloatArray:
    """Share of the target's energy that each sum leaves with each further term and its slope: (n_sums, n_terms).

    Parameters
    ----------
    members : ndarray of shape (n_sums, size or 2 size)
        Columns of each sum.
    rows : ndarray of the same shape
        Where they are among the rows of ``gram``.
    inner : ndarray of shape (n_columns,)
        Inner products of the columns with the target.
    own : ndarray of shape (n_terms,) or None
        Those of the terms with their slopes.
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


def _left(columns: FloatArray, places: Sum, n: int, t: FloatArray) -> float:
    chosen = columns[[*places, *(j + n for j in places if j + n < len(columns))]]
    Q = np.linalg.qr(chosen[chosen.any(axis=1)].T)[0]
    residual = t - Q @ (Q.T @ t)
    residual -= Q @ (Q.T @ residual)
    return float(residual @ residual)
