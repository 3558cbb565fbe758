"""Novelty of every term of many candidates on one sample (Eqs. 1 and 2): the definition, in NumPy.

The rules are those of :mod:`~sobolev_novelty.core.geometry` (which rows and derivatives) and
:mod:`~sobolev_novelty.core.linear.projection` (what is left of a term beside the others); here they are applied to
programs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.geometry import STATUSES, Geometry, Signatures, Status, stacked
from sobolev_novelty.core.linear.projection import factor, residuals, unit_columns
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.numpy_kernel import derivatives
from sobolev_novelty.kernels.program import IntArray, OffsetArray, Programs, select


@dataclass(frozen=True, slots=True, eq=False)
class Novelties:
    """Novelty of every term of every candidate."""

    nu: FloatArray  # shape (n_members,): in the order of the members; NaN where the status is not OK
    lengths: FloatArray  # shape (n_members,): ‖Ψ(φ_i)‖, without 1/σ_s; 0 for a null term
    rows: OffsetArray  # int64, shape (n_candidates,): samples where everything is finite
    status: IntArray  # int32, shape (n_candidates,): places in :data:`~sobolev_novelty.core.geometry.STATUSES`
    #: The m × m normalised triangular factors of all candidates in a row, where they were asked for; novelties are then
    #: left out.
    triangles: FloatArray | None = None

    def status_of(self, candidate: int) -> Status:
        """The status of one candidate."""
        return STATUSES[int(self.status[candidate])]


def no_novelties(offsets: OffsetArray, *, with_triangles: bool = False) -> tuple[Novelties, OffsetArray]:
    """Arrays to be filled in, and where each candidate's triangular factor begins."""
    n_members, n_candidates = int(offsets[-1]), len(offsets) - 1
    places = np.concatenate([[0], np.cumsum(np.diff(offsets) ** 2)]).astype(np.int64)
    empty = Novelties(
        np.full(n_members, np.nan),
        np.full(n_members, np.nan),
        np.zeros(n_candidates, dtype=np.int64),
        np.full(n_candidates, Status.NO_TERMS.code, dtype=np.int32),
        np.full(int(places[-1]), np.nan) if with_triangles else None,
    )
    return empty, places


def novelties(
    programs: Programs,
    members: OffsetArray,
    offsets: OffsetArray,
    X: FloatArray,
    factors: FloatArray,
    geometry: Geometry,
    with_triangles: bool,
) -> Novelties:
    """Candidate ``c`` has the terms ``members[offsets[c]:offsets[c + 1]]``, which are indices of programs."""
    found, places = no_novelties(offsets, with_triangles=with_triangles)
    for c in range(len(offsets) - 1):
        own = slice(int(offsets[c]), int(offsets[c + 1]))
        rows = derivatives(select(programs, members[own]), X, geometry.order)
        fill_in(found, c, own, places, stacked(rows, factors, is_free=geometry.is_free))
    return found


def fill_in(found: Novelties, c: int, own: slice, places: OffsetArray, signatures: Signatures) -> None:
    """Put what the signatures of candidate ``c`` say, whose members are ``own``, into ``found``."""
    found.rows[c] = signatures.n_used
    found.status[c] = signatures.status.code
    if signatures.status is not Status.OK:
        return
    if found.triangles is None:
        result = residuals(signatures.Psi)
        found.nu[own], found.lengths[own] = result.nu, result.lengths
        return
    unit, found.lengths[own] = unit_columns(signatures.Psi)
    R = np.zeros((unit.shape[1], unit.shape[1]))
    R[: min(unit.shape)] = factor(unit)
    found.triangles[places[c] : places[c + 1]] = R.ravel()
