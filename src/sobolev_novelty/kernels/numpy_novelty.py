r"""Novelty of every term of many candidates on one sample (Eqs. 1 and 2): the definition, in NumPy.

Notation
--------
``Psi``      signatures of one candidate, shape (p, m), without the common factor 1/σ_s; ``u_i`` its normalised columns
``factors``  one number per derivative row: √λ₀, √(λ₁/d) s_j, (√λ₂/d) s_j s_k (times √2 for j < k)
``s``        standard deviations of the inputs, so that derivatives are along standardized ones
``nu``       ν_i, the distance of u_i from the span of the other columns

A column with a component in the null space has ν = 0, the others are read from the pseudo-inverse; a column of zeros
has ν = 0 and takes no part in the others' span. Rows where some value or derivative of some term is not finite are
left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.kernels.numpy_kernel import derivatives, second_order_pairs
from sobolev_novelty.kernels.program import IntArray, OffsetArray, Programs, select

#: Fewer common finite rows than this give no novelty.
MIN_ROWS = 32
#: Singular values below this share of the largest span the null space.
RANK_TOLERANCE = 1e-12
#: A term is dependent when its null-space component exceeds this many times the rounding the range leaves in it,
#: RANK_TOLERANCE · s_max / s_min: the rule of projection.py.
NULL_COMPONENT = 10.0


class NoveltyStatus(IntEnum):
    """Why a candidate has novelties, or has none; ``sentence`` says it to a person."""

    OK = 0
    TOO_FEW_ROWS = 1
    NO_TERMS = 2

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    NoveltyStatus.OK: "Novelty was computed.",
    NoveltyStatus.TOO_FEW_ROWS: f"Fewer than {MIN_ROWS} rows have finite values and derivatives of all terms.",
    NoveltyStatus.NO_TERMS: "The candidate has no terms.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Novelties:
    """Novelty of every term of every candidate.

    Parameters
    ----------
    nu : float64 array of shape (n_members,)
        In the order of the members; NaN where the status is not OK.
    lengths : float64 array of shape (n_members,)
        ‖Ψ(φ_i)‖, without 1/σ_s; 0 for a null term.
    rows : int64 array of shape (n_candidates,)
        Samples where everything is finite.
    status : int32 array of shape (n_candidates,)
        :class:`NoveltyStatus` values.
    """

    nu: FloatArray
    lengths: FloatArray
    rows: OffsetArray
    status: IntArray


def block_factors(scales: FloatArray, weights: tuple[float, float, float], order: int) -> FloatArray:
    """Factor of each derivative row before the common 1/√n: values, gradient, second derivatives."""
    d = len(scales)
    s = scales.tolist()
    factors = [math.sqrt(weights[0])]
    if order >= 1:
        factors += [math.sqrt(weights[1] / d) * s_j for s_j in s]
    if order >= 2:
        factors += [
            math.sqrt(weights[2]) / d * s[j] * s[k] * (1.0 if j == k else math.sqrt(2.0))
            for j, k in second_order_pairs(d)
        ]
    return np.array(factors)


def standard_deviations(X: FloatArray) -> FloatArray:
    """Of each row of ``X``; NumPy's ``std`` takes longer than the kernel for small samples."""
    n = max(X.shape[1], 1)
    with np.errstate(all="ignore"):
        centred = X - (X.sum(axis=1) / n)[:, None]
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", centred, centred) / n))


def novelties(
    programs: Programs, members: OffsetArray, offsets: OffsetArray, X: FloatArray, factors: FloatArray, order: int
) -> Novelties:
    """Candidate ``c`` has the terms ``members[offsets[c]:offsets[c + 1]]``, which are indices of programs."""
    n_candidates = len(offsets) - 1
    nu = np.full(len(members), np.nan)
    lengths = np.full(len(members), np.nan)
    rows = np.zeros(n_candidates, dtype=np.int64)
    status = np.full(n_candidates, int(NoveltyStatus.NO_TERMS), dtype=np.int32)
    for c in range(n_candidates):
        own = slice(int(offsets[c]), int(offsets[c + 1]))
        if own.start == own.stop:
            continue
        jets = derivatives(select(programs, members[own]), X, order)  # (m, rows, N)
        finite = np.isfinite(jets).all(axis=(0, 1))
        rows[c] = int(finite.sum())
        if rows[c] < MIN_ROWS:
            status[c] = NoveltyStatus.TOO_FEW_ROWS
            continue
        Psi = (jets[:, :, finite] * factors[:, None]).reshape(len(jets), -1).T
        nu[own], lengths[own] = column_novelties(Psi)
        lengths[own] /= np.sqrt(rows[c])
        status[c] = NoveltyStatus.OK
    return Novelties(nu, lengths, rows, status)


def column_novelties(Psi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ν_i and ‖Ψ_i‖ of every column, from one singular value decomposition."""
    peak = np.abs(Psi).max(axis=0, initial=0.0)  # squares of 1e200 or 1e-200 leave the range of floats
    live = np.flatnonzero(peak > 0.0)
    lengths = np.zeros(Psi.shape[1])
    nu = np.zeros(Psi.shape[1])
    if len(live):
        U = Psi[:, live] / peak[live]
        norms = np.linalg.norm(U, axis=0)
        lengths[live] = norms * peak[live]
        # R of QR has the singular values and right vectors of U in m rows instead of p.
        _, s, Vt = np.linalg.svd(np.linalg.qr(U / norms, mode="r"), full_matrices=True)
        s = np.concatenate([s, np.zeros(len(live) - len(s))])
        in_range = s > RANK_TOLERANCE * s[0]
        null_component = np.sqrt(np.sum(Vt[~in_range] ** 2, axis=0))
        inverse_diagonal = np.sum((Vt[in_range] / s[in_range, None]) ** 2, axis=0)
        is_dependent = null_component > NULL_COMPONENT * RANK_TOLERANCE * s[0] / s[in_range].min()
        nu[live] = np.where(is_dependent, 0.0, np.minimum(1.0, 1.0 / np.sqrt(inverse_diagonal)))
    return nu, lengths
