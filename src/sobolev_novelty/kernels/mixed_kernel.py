"""Populations of which some programs hold own operators: those in NumPy, all others compiled.

The compiled kernel knows the opcodes of the table alone. A candidate goes to NumPy as a whole where one of its programs
must.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.geometry import Geometry, n_derivative_rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import KernelError
from sobolev_novelty.kernels import native_kernel, numpy_kernel, numpy_novelty
from sobolev_novelty.kernels.native_kernel import BoolArray
from sobolev_novelty.kernels.numpy_kernel import Fits
from sobolev_novelty.kernels.numpy_novelty import Novelties, no_novelties
from sobolev_novelty.kernels.program import OffsetArray, Programs, select


def derivatives(
    module: ModuleType, programs: Programs, X: FloatArray, order: int, out: FloatArray | None, n_threads: int
) -> FloatArray:
    """Values and derivatives: :func:`~sobolev_novelty.kernels.numpy_kernel.derivatives`."""
    shape = (programs.n_programs, n_derivative_rows(X.shape[0], order), X.shape[1])
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or out.dtype != np.float64:
        raise KernelError("'out' has the wrong shape.")
    fast, slow = _parts(_holding(programs.codes < 0, programs.offsets))
    if len(fast):
        out[fast] = native_kernel.derivatives(module, select(programs, fast), X, order, None, n_threads)
    out[slow] = numpy_kernel.derivatives(select(programs, slow), X, order)
    return out


def jacobians(module: ModuleType, programs: Programs, X: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Values and their derivatives along the constants: :func:`~sobolev_novelty.kernels.numpy_kernel.jacobians`."""
    values = np.empty((programs.n_programs, X.shape[1]))
    jacobian = np.empty((len(programs.constants), X.shape[1]))
    fast, slow = _parts(_holding(programs.codes < 0, programs.offsets))
    if len(fast):
        rows = _places(programs.constant_offsets, fast)
        values[fast], jacobian[rows] = native_kernel.jacobians(module, select(programs, fast), X, n_threads)
    rows = _places(programs.constant_offsets, slow)
    values[slow], jacobian[rows] = numpy_kernel.jacobians(select(programs, slow), X)
    return values, jacobian


def fit(
    module: ModuleType,
    programs: Programs,
    term_offsets: OffsetArray,
    free: BoolArray,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    n_iterations: int,
    n_threads: int,
) -> Fits:
    """Least squares for sums of terms: :func:`~sobolev_novelty.kernels.numpy_kernel.fit`."""
    n_candidates = len(term_offsets) - 1
    found = Fits(
        np.zeros(programs.n_programs),
        np.array(programs.constants, dtype=np.float64),
        np.full(n_candidates, np.inf),
        np.zeros(n_candidates, dtype=np.int32),
    )
    own = _holding(programs.codes < 0, programs.offsets)
    for candidates, is_compiled in zip(_parts(_holding(own, term_offsets)), (True, False), strict=True):
        terms = _places(term_offsets, candidates)
        constants = _places(programs.constant_offsets, terms)
        chosen, offsets = select(programs, terms), _joined(term_offsets, candidates)
        part = (
            native_kernel.fit(module, chosen, offsets, free[constants], X, y, weights, n_iterations, n_threads)
            if is_compiled
            else numpy_kernel.fit(chosen, offsets, free[constants], X, y, weights, n_iterations=n_iterations)
        )
        found.coefficients[terms], found.constants[constants] = part.coefficients, part.constants
        found.loss[candidates], found.status[candidates] = part.loss, part.status
    return found


def novelties(
    module: ModuleType,
    programs: Programs,
    members: OffsetArray,
    offsets: OffsetArray,
    X: FloatArray,
    factors: FloatArray,
    geometry: Geometry,
    with_triangles: bool,
    n_threads: int,
) -> Novelties:
    """Novelty of the terms of every list: :mod:`~sobolev_novelty.kernels.numpy_novelty`."""
    found, places = no_novelties(offsets, with_triangles=with_triangles)
    own = _holding(programs.codes < 0, programs.offsets)
    for candidates, is_compiled in zip(_parts(_holding(own[members], offsets)), (True, False), strict=True):
        chosen = _places(offsets, candidates)
        used, index = np.unique(members[chosen], return_inverse=True)
        arguments = (select(programs, used), index.astype(np.int64), _joined(offsets, candidates), X, factors, geometry)
        part = (
            native_kernel.novelties(module, *arguments, with_triangles, n_threads)
            if is_compiled
            else numpy_novelty.novelties(*arguments, with_triangles)
        )
        found.nu[chosen], found.lengths[chosen] = part.nu, part.lengths
        found.rows[candidates], found.status[candidates] = part.rows, part.status
        if found.triangles is not None:
            found.triangles[_places(places, candidates)] = part.triangles
    return found


def _holding(marks: npt.NDArray[Any], offsets: OffsetArray) -> BoolArray:
    """Which of the stretches between offsets hold a mark."""
    counts = np.concatenate([[0], np.cumsum(marks)])
    return np.asarray(counts[offsets[1:]] > counts[offsets[:-1]])


def _parts(own: BoolArray) -> tuple[OffsetArray, OffsetArray]:
    """Indices of those the compiled kernel can have, and of the others."""
    return np.flatnonzero(~own).astype(np.int64), np.flatnonzero(own).astype(np.int64)


def _places(offsets: OffsetArray, chosen: OffsetArray) -> OffsetArray:
    """All places within the chosen stretches."""
    stretches = [np.arange(offsets[i], offsets[i + 1], dtype=np.int64) for i in chosen]
    return np.concatenate(stretches) if stretches else np.zeros(0, dtype=np.int64)


def _joined(offsets: OffsetArray, chosen: OffsetArray) -> OffsetArray:
    """Offsets of the chosen stretches, put one after the other."""
    return np.concatenate([[0], np.cumsum(np.diff(offsets)[chosen])]).astype(np.int64)
