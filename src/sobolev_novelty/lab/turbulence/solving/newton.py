"""Newton's method with a sparse LU for the mean-flow equations.

The unknowns are ordered by nested dissection of the mesh, cells as units: on 28,800 unknowns the factorisation takes a
third of the time COLAMD needs. The row that holds the mean velocity is dense; it stays out of the factorisation and is
restored by its Schur complement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.lab.turbulence.solving.momentum import MomentumSystem

IntArray = npt.NDArray[np.intp]

#: Cells the stencil reaches along a mesh line: separators are this wide.
STENCIL = 2
LEAF = 16
#: Pivots smaller than this share of the column's largest entry leave the diagonal.
PIVOT = 1e-3


@dataclass(frozen=True, slots=True)
class State:
    """Velocity and pressure of all cells, stacked, and the driving force."""

    w: FloatArray
    force: float


@dataclass(frozen=True, slots=True)
class NewtonOutcome:
    """Where Newton's iteration ended."""

    state: State
    residual: float
    n_steps: int
    is_converged: bool


def nested_dissection(shape: tuple[int, int]) -> IntArray:
    """Cells of a mesh (rows, columns), periodic along columns, in an order that keeps LU factors small."""
    cell = np.arange(shape[0] * shape[1]).reshape(shape)
    if shape[1] < 4 * STENCIL:
        return cell.ravel().astype(np.intp)
    half = shape[1] // 2
    cuts = np.r_[0:STENCIL, half : half + STENCIL]
    parts = [_dissect(cell[:, STENCIL:half]), _dissect(cell[:, half + STENCIL :]), cell[:, cuts].T.ravel()]
    return np.concatenate(parts).astype(np.intp)


def _dissect(block: npt.NDArray[np.intp]) -> IntArray:
    rows, columns = block.shape
    if block.size <= LEAF or max(rows, columns) <= STENCIL + 1:
        return block.T.ravel()
    if columns < rows:
        block = block.T
        columns = rows
    cut = (columns - STENCIL) // 2
    return np.concatenate(
        [_dissect(block[:, :cut]), _dissect(block[:, cut + STENCIL :]), block[:, cut : cut + STENCIL].T.ravel()]
    )


class Factorisation:
    """LU of a Jacobian with one pressure held fixed (it is known up to a constant).

    ``matrix``: csr_array of shape (3n, 3n).
    ``order``: shape (n,), cell order from :func:`nested_dissection`.
    """

    def __init__(self, matrix: sp.csr_array, order: IntArray) -> None:
        n = len(order)
        self._permutation = np.stack([order, n + order, 2 * n + order], axis=1).ravel()
        permuted = matrix[self._permutation][:, self._permutation]
        row = 1.0 / abs(permuted).max(axis=1).toarray().ravel()
        # The last pressure in the order: its row only touches what is eliminated at the end.
        pinned = 3 * n - 1
        row[pinned] = 0.0
        permuted = sp.csr_array(sp.diags_array(row) @ permuted)
        permuted = permuted + sp.csr_array(([1.0], ([pinned], [pinned])), shape=permuted.shape)
        column = 1.0 / abs(permuted).max(axis=0).toarray().ravel()
        self._row, self._column = row, column
        self._lu = sla.splu(
            sp.csc_array(permuted @ sp.diags_array(column)),
            permc_spec="NATURAL",
            diag_pivot_thresh=PIVOT,
            options={"SymmetricMode": True, "Equil": False},
        )

    def solve(self, right: FloatArray) -> FloatArray:
        """Solution of J x = right, up to a constant pressure."""
        x = np.empty_like(right)
        x[self._permutation] = self._column * self._lu.solve(self._row * right[self._permutation])
        return x


def newton(
    system: MomentumSystem,
    start: State,
    source: FloatArray,
    mean_velocity: float,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 12,
    on_progress: OnProgress = silent,
) -> NewtonOutcome:
    """Solve the equations for one source, from a nearby state.

    ``tolerance``: residual norm relative to the driving force.
    """
    order = nested_dissection(system.mesh.shape)
    n = system.mesh.n_cells
    mean_row = system.mean_row
    forcing = np.concatenate([system.forcing, np.zeros(2 * n)])
    w, force = start.w, start.force
    now = system.linearise(w, force, source)
    size = _size(system, now.residual, force, mean_velocity)
    for step in range(1, max_steps + 1):
        lu = Factorisation(system.jacobian(now), order)
        plain, driven = lu.solve(-now.residual), lu.solve(forcing)
        extra = float((mean_velocity - mean_row @ (w[:n] + plain[:n])) / (mean_row @ driven[:n]))
        direction = plain + extra * driven
        length = 1.0
        while True:
            trial = w + length * direction
            following = system.linearise(trial, force + length * extra, source)
            new_size = _size(system, following.residual, force + length * extra, mean_velocity)
            # The first step may raise the residual: it also brings the mean velocity to its value.
            if new_size < size * (1 - 1e-4 * length) or step == 1 or length < 0.05:
                break
            length *= 0.5
        w, force, now, size = trial, force + length * extra, following, new_size
        on_progress(Step(step, max_steps, f"residual {size:.1e}"))
        if not np.isfinite(size) or size > 1e6:
            return NewtonOutcome(State(w, force), float(size), step, False)
        if size < tolerance and abs(mean_row @ w[:n] - mean_velocity) < tolerance * abs(mean_velocity):
            return NewtonOutcome(State(w, force), float(size), step, True)
    return NewtonOutcome(State(w, force), float(size), max_steps, False)


def _size(system: MomentumSystem, residual: FloatArray, force: float, mean_velocity: float) -> float:
    """Residual norm relative to the driving force; continuity has the same unit times the mean velocity."""
    n = system.mesh.n_cells
    scale = max(abs(force), 1e-12) * float(np.linalg.norm(system.forcing))
    momentum = float(np.linalg.norm(residual[: 2 * n]))
    continuity = float(np.linalg.norm(residual[2 * n :]))
    return (momentum + abs(mean_velocity) * continuity) / scale
