r"""Where inputs lie on a curve or a surface: its dimension, and its directions at each row.

Notation
--------
``Z``     standardized inputs of distinct rows;  ``d`` their columns
``k``     neighbours of a row, 4 d;  ``C`` covariance of their differences from it, with eigenvalues λ₁ ≥ … ≥ λ_d
``q``     dimension: how many λ_j/λ₁ are, in the median over rows, above :data:`FLAT`
``frame`` the first q eigenvectors at a row: its tangent space

A gradient says what a formula does in every direction of its inputs. Where the rows lie on a curve, most of these
directions lead away from all data. Projected on the tangent space it says only what the rows can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray, Sample

#: Neighbours of a row, for each column.
NEIGHBOURS = 4
#: A direction whose variance among neighbours is below this share of the largest is across the data.
FLAT = 0.02
#: Rows at which directions are found, and rows among which neighbours are sought, at most.
MAX_CENTRES, MAX_ROWS = 500, 5000
#: Neighbours are near only where they are no more than this share of the rows.
NEAR = 0.1
#: A column with no more distinct values than this share of the rows is discrete: it has no neighbours to speak of.
DISCRETE = 0.1
#: Columns, and numbers, that are worked on together where there are more.
MAX_COLUMNS, MAX_TOGETHER = 500, 1 << 18
#: Eigenvalues of all inputs below this share of the largest are an exact linear relation.
EXACT = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The dimension of the inputs, and the directions of the data at some of their rows.

    ``n_columns``, ``dimension``: columns, and the dimension of the rows: discrete columns count in full.
    """

    n_columns: int
    dimension: int
    rows: npt.NDArray[np.intp]  # int ndarray of shape (n_centres,): rows at which directions are known
    directions: FloatArray  # shape (n_centres, q, n_features): orthonormal, in standardized inputs
    discrete: npt.NDArray[np.intp]  # columns that are directions of their own, at every row

    def along(self, slopes: FloatArray, columns: Sequence[int]) -> FloatArray:
        """Slopes along the data, (n_terms, n_directions, n_centres), without discrete columns that are not given.

        ``slopes``: shape (n_terms, len(columns), n_samples), along these standardized inputs; those along all others
        are zero.
        """
        here = np.ascontiguousarray(slopes[:, :, self.rows].transpose(2, 1, 0))  # rows × columns × terms
        is_all = len(columns) == self.directions.shape[2]
        along = (self.directions if is_all else self.directions[:, :, columns]) @ here
        return np.concatenate([along, here[:, np.isin(columns, self.discrete)]], axis=1).transpose(2, 1, 0)

    @property
    def is_lower(self) -> bool:
        """Whether the rows have a lower dimension than their columns."""
        return self.dimension < self.n_columns

    @property
    def sentence(self) -> str:
        """The dimension in words; empty where it is that of the columns."""
        if not self.is_lower:
            return ""
        shape = {0: "a point", 1: "a curve", 2: "a surface"}.get(self.dimension, f"{self.dimension} dimensions")
        return (
            f"The {self.n_columns} inputs lie on {shape}: the rows do not say what the equation does beside it, so "
            "that 'distinct' takes slopes along it only."
        )


def tangent_frame(sample: Sample, n_centres: int = MAX_CENTRES) -> Frame:
    """Directions of the data, from the neighbours of up to ``n_centres`` rows; rows that are equal share theirs."""
    n_centres = min(n_centres, sample.n_samples)
    known = sample.memo.get(("frame", n_centres))
    if not isinstance(known, Frame):
        known = sample.memo[("frame", n_centres)] = _tangent_frame(sample, n_centres)
    return known


def _tangent_frame(sample: Sample, n_centres: int) -> Frame:
    scales = sample.scales()
    live = np.flatnonzero(scales > 0.0)
    is_finite = np.isfinite(sample.X).all(axis=0, where=(scales > 0.0)[:, None])
    rows = _spread_out(np.flatnonzero(is_finite), MAX_ROWS)
    Z, copy_of = _distinct_rows((sample.X[np.ix_(live, rows)] / scales[live, None]).T)
    n_values = _n_distinct_values(Z)
    smooth, others = np.flatnonzero(n_values > DISCRETE * len(Z)), np.flatnonzero(n_values <= DISCRETE * len(Z))
    chosen = _spread_out(np.arange(len(rows)), n_centres)
    centres, place = np.unique(copy_of[chosen], return_inverse=True)
    values, vectors = _local(Z[:, smooth] if len(others) else Z, centres)
    q = int((np.median(values / values[:, :1], axis=0) > FLAT).sum()) if values.size else 0
    directions = vectors[:, :q]
    if len(smooth) < sample.n_features:
        directions = np.zeros((len(vectors), q, sample.n_features))
        directions[:, :, live[smooth]] = vectors[:, :q]
    if len(vectors) == 1:  # one set of directions for all rows: a copy for each would take the memory of all tables
        shared = np.broadcast_to(directions, (len(chosen), *directions.shape[1:]))
        return Frame(len(live), q + len(others), rows[chosen], shared, live[others])
    return Frame(len(live), q + len(others), rows[chosen], directions[place], live[others])


def _distinct_rows(table: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """The distinct rows in lexical order, and which of them each row is."""
    n, d = table.shape
    first, rank = np.arange(min(n, 1)), np.zeros(n, dtype=np.intp)
    for start in range(0, d, MAX_COLUMNS):
        # Rows are ordered by their first columns, then by the next; further ones matter only where some are equal.
        first, rank = _ranked(np.column_stack([rank, table[:, start : start + MAX_COLUMNS]]))
        if len(first) == n:
            break
    return table[first], rank


def _ranked(table: FloatArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Where each distinct row is first, in lexical order, and which of them each row is."""
    # As bytes that have the order of the numbers: NumPy's way, a structure with a field for each column, is slow.
    bits = np.ascontiguousarray(table + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    bits ^= (bits >> 63) | np.iinfo(np.int64).min
    keys = bits.astype(">i8").view(np.dtype((np.void, 8 * table.shape[1])))
    _, first, rank = np.unique(keys, return_index=True, return_inverse=True)
    return first, rank.reshape(-1)


def _n_distinct_values(Z: FloatArray) -> npt.NDArray[np.intp]:
    """Of each column."""
    parts = np.array_split(Z, 1 + Z.size // MAX_TOGETHER, axis=1)
    return np.concatenate([1 + np.count_nonzero(np.diff(np.sort(part, axis=0), axis=0), axis=0) for part in parts])


def frame_of(sample: Sample, coordinates: str) -> Frame:
    """The directions along which ``coordinates`` take slopes: "tangent" or "path"."""
    return path_frame(sample) if coordinates == "path" else tangent_frame(sample, MAX_ROWS)


def path_frame(sample: Sample) -> Frame:
    """Directions from row to row, for rows in the order of a time: one at each row with finite neighbours."""
    scales = sample.scales()
    Z = (sample.X / np.where(scales > 0.0, scales, 1.0)[:, None]).T
    n = len(Z)
    step = Z[np.minimum(np.arange(n) + 1, n - 1)] - Z[np.maximum(np.arange(n) - 1, 0)]
    length = np.linalg.norm(step, axis=1)
    rows = np.flatnonzero(np.isfinite(length) & (length > 0.0))
    directions = (step[rows] / length[rows, None])[:, None]
    return Frame(int((scales > 0.0).sum()), 1, rows, directions, np.zeros(0, dtype=np.intp))


def _spread_out(rows: npt.NDArray[np.intp], at_most: int) -> npt.NDArray[np.intp]:
    """Evenly spaced ones of the rows, in their order."""
    return rows if len(rows) <= at_most else rows[np.linspace(0, len(rows) - 1, at_most).astype(np.intp)]


def _local(Z: FloatArray, centres: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (largest first) and eigenvectors of the neighbours' differences at each centre.

    Of one centre only, where they are the same for all.
    """
    n, d = Z.shape
    if d == 0 or len(centres) == 0:
        return np.zeros((len(centres), d)), np.zeros((len(centres), d, d))
    k = NEIGHBOURS * d
    if d == 1 or k > NEAR * n:  # too few rows to be near each other: only relations that hold everywhere
        values, vectors = _eigen(_centred_square(Z)[None]) if d <= n else _eigen_of_few(Z)
        return np.where(values > EXACT * values[:, :1], 1.0, 0.0), vectors
    from scipy.spatial import cKDTree

    near = np.asarray(cKDTree(Z).query(Z[centres], k + 1)[1])[:, 1:]
    differences = Z[near] - Z[centres][:, None]
    return _eigen(differences.transpose(0, 2, 1) @ differences)


def _centred_square(Z: FloatArray) -> FloatArray:
    centred = Z - Z.mean(axis=0)
    return np.asarray(centred.T @ centred)


def _eigen(C: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(C)
    return np.maximum(values[:, ::-1], 0.0), vectors[:, :, ::-1].transpose(0, 2, 1)


def _eigen_of_few(Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for all n rows, each against their mean, and more columns: n eigenvalues, the others are zero."""
    n, d = Z.shape
    bounds = np.linspace(0, d, 2 + Z.size // MAX_TOGETHER).astype(np.intp).tolist()
    parts = [slice(*ends) for ends in pairwise(bounds)]
    R = np.zeros((0, n))
    for part in parts:
        R = np.asarray(np.linalg.qr(np.vstack([R, (Z[:, part] - Z[:, part].mean(axis=0)).T]), mode="r"))
    _, singular, W = np.linalg.svd(R)
    values = np.square(singular)
    W = W[values > EXACT * values[0]]
    vectors = np.empty((len(W), d))
    for part in parts:
        vectors[:, part] = W @ (Z[:, part] - Z[:, part].mean(axis=0)) / singular[: len(W), None]
    return values[None], vectors[None]
