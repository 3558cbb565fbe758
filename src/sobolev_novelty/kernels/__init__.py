"""Programs -> values, derivatives, Jacobians, fits and novelties.

In C, and in the NumPy version that defines it and stands in for it.

The compiled kernel is used where it was built; ``SOBOLEV_KERNEL=numpy`` forces the other one, and :func:`backend`
says which is in use. Programs with operators that a user registered always take NumPy's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.geometry import DEFAULT_GEOMETRY, Geometry, check_order
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import DataError, KernelError, ParameterError
from sobolev_novelty.kernels import mixed_kernel, native_kernel, numpy_kernel, numpy_novelty, numpy_pursuit
from sobolev_novelty.kernels.backend import Backend, backend, native
from sobolev_novelty.kernels.columns import JoinedColumns, LazyColumns, lazily
from sobolev_novelty.kernels.inputs import as_offsets, as_samples, as_vector, check_programs, check_threads
from sobolev_novelty.kernels.numpy_kernel import Fits, FitStatus
from sobolev_novelty.kernels.numpy_novelty import Novelties, fill_in, no_novelties
from sobolev_novelty.kernels.numpy_pursuit import MIN_FRESH, Lineage, SingleArray, UnitColumns, no_standings
from sobolev_novelty.kernels.program import OffsetArray, Programs, compile_programs, unique, with_constants

__all__ = [
    "MIN_FRESH",
    "Backend",
    "FitStatus",
    "Fits",
    "JoinedColumns",
    "LazyColumns",
    "Lineage",
    "Novelties",
    "Programs",
    "SingleArray",
    "UnitColumns",
    "backend",
    "compile_programs",
    "derivatives",
    "fill_in",
    "fit",
    "jacobians",
    "joined_lengths",
    "lazily",
    "no_novelties",
    "no_standings",
    "novelties",
    "offers",
    "unit_columns",
    "with_constants",
]


def _holds_own(programs: Programs, X: FloatArray) -> bool:
    """Whether some programs hold own operators, which the compiled kernel cannot call; then all are checked here."""
    if programs.has_own:
        check_programs(programs, X.shape[0])
    return programs.has_own


def derivatives(
    programs: Programs, X: npt.ArrayLike, order: int = 0, *, out: FloatArray | None = None, n_threads: int = 1
) -> FloatArray:
    """Values and input derivatives of every program at every sample.

    ``X``: shape (n_features, n_samples), one row per feature.
    ``order``: {0, 1, 2}.
    ``out``: ndarray of the result's shape, where to put the result: in a loop, an array that is used again spares the
    system from finding fresh memory.

    Returns shape (n_programs, n_derivative_rows(n_features, order), n_samples): row 0 holds the values, the next ones
    the gradient, then the second derivatives of ``second_order_pairs(n_features)``.
    """
    X = as_samples(X)
    order, n_threads = check_order(order), check_threads(n_threads)
    module = native()
    if module is not None:
        compiled = mixed_kernel.derivatives if _holds_own(programs, X) else native_kernel.derivatives
        return compiled(module, programs, X, order, out, n_threads)
    check_programs(programs, X.shape[0])
    found = numpy_kernel.derivatives(programs, X, order)
    if out is None:
        return found
    if out.shape != found.shape or out.dtype != found.dtype:
        raise KernelError("'out' has the wrong shape.")
    out[...] = found
    return out


def jacobians(programs: Programs, X: npt.ArrayLike, *, n_threads: int = 1) -> tuple[FloatArray, FloatArray]:
    """Values of shape (n_programs, n_samples), and derivatives along every constant, (total_constants, n_samples)."""
    X = as_samples(X)
    n_threads = check_threads(n_threads)
    module = native()
    if module is not None:
        compiled = mixed_kernel.jacobians if _holds_own(programs, X) else native_kernel.jacobians
        return compiled(module, programs, X, n_threads)
    check_programs(programs, X.shape[0])
    return numpy_kernel.jacobians(programs, X)


def fit(
    programs: Programs,
    term_offsets: npt.ArrayLike,
    free: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    *,
    n_iterations: int = 8,
    n_threads: int = 1,
) -> Fits:
    """Least squares for a population of sums of terms; see :func:`sobolev_novelty.kernels.numpy_kernel.fit`."""
    X = as_samples(X)
    n_threads = check_threads(n_threads)
    if n_iterations < 0:
        raise ParameterError(f"'n_iterations' must not be negative. Got {n_iterations}.")
    offsets = as_offsets(term_offsets, "term_offsets", programs.n_programs)
    y = as_vector(y, "y", X.shape[1])
    if weights is not None:
        weights = as_vector(weights, "weights", X.shape[1])
        if not (np.isfinite(weights) & (weights >= 0.0)).all():
            raise DataError("'weights' must be finite and not negative.")
    free = np.ascontiguousarray(free, dtype=np.bool_)
    if free.shape != programs.constants.shape:
        raise DataError(f"'free' must have one entry per constant, {len(programs.constants)}. Got shape {free.shape}.")
    module = native()
    if module is not None:
        compiled = mixed_kernel.fit if _holds_own(programs, X) else native_kernel.fit
        return compiled(module, programs, offsets, free, X, y, weights, n_iterations, n_threads)
    check_programs(programs, X.shape[0])
    return numpy_kernel.fit(programs, offsets, free, X, y, weights, n_iterations=n_iterations)


def novelties(
    programs: Programs,
    offsets: npt.ArrayLike,
    X: npt.ArrayLike,
    *,
    members: npt.ArrayLike | None = None,
    geometry: Geometry = DEFAULT_GEOMETRY,
    scales: npt.ArrayLike | None = None,
    n_features: int | None = None,
    with_triangles: bool = False,
    n_threads: int = 1,
) -> Novelties:
    """Novelty of every term of every candidate on the same samples, in one call.

    Parameters
    ----------
    programs : Programs
        Term programs. Equal ones are evaluated once, however many candidates share them.
    offsets : array of shape (n_candidates + 1,)
        Candidate ``c`` has the terms ``members[offsets[c]:offsets[c + 1]]``.
    X : array of shape (n_features, n_samples)
    members : array of int, optional
        Indices of programs. Without it candidate ``c`` has the programs ``offsets[c]:offsets[c + 1]``.
    geometry : Geometry
        Order, weights and coordinates of the signature, and whether the intercept is free.
    scales : array of shape (n_features,), optional
        Factor of each derivative; by default what the geometry says of these inputs.
    n_features : int, optional
        d of Eq. 1, where ``X`` leaves out inputs that no term uses.
    with_triangles : bool
        Whether to return the normalised triangular factors instead of novelties.
    """
    X = as_samples(X)
    n_threads = check_threads(n_threads)
    if members is None:
        programs, index = unique(programs)
    else:
        index = np.ascontiguousarray(members, dtype=np.int64)
        if index.ndim != 1 or (len(index) and not 0 <= index.min() <= index.max() < programs.n_programs):
            raise DataError(f"'members' must be indices of the {programs.n_programs} programs.")
    starts = as_offsets(offsets, "offsets", len(index))
    if scales is None:
        scales = geometry.scales(Sample(X, ()))
    factors = geometry.block_factors(as_vector(scales, "scales", X.shape[0]), n_features)
    module = native()
    if module is not None:
        compiled = mixed_kernel.novelties if _holds_own(programs, X) else native_kernel.novelties
        return compiled(module, programs, index, starts, X, factors, geometry, with_triangles, n_threads)
    check_programs(programs, X.shape[0])
    return numpy_novelty.novelties(programs, index, starts, X, factors, geometry, with_triangles)


def unit_columns(values: npt.ArrayLike | LazyColumns, *, n_threads: int = 1) -> UnitColumns:
    """The columns of a matrix of shape (n_columns, n_rows), scaled to unit length for :func:`offers`."""
    lazy = values if isinstance(values, LazyColumns) else lazily(np.ascontiguousarray(values, dtype=np.float64))
    n_threads, module = check_threads(n_threads), native()
    if module is not None:
        return native_kernel.unit_columns(module, lazy, n_threads)
    return numpy_pursuit.unit_columns(lazy)


def joined_lengths(columns: JoinedColumns, *, n_threads: int = 1) -> FloatArray:
    """Lengths of columns that are not written down."""
    n_threads, module = check_threads(n_threads), native()
    if module is not None:
        return native_kernel.joined_lengths(module, columns, n_threads)
    return numpy_pursuit.joined_lengths(columns)


def offers(
    columns: UnitColumns,
    directions: npt.ArrayLike,
    members: npt.ArrayLike,
    offsets: npt.ArrayLike,
    *,
    n_top: int,
    lineage: Lineage | None = None,
    n_threads: int = 1,
) -> tuple[OffsetArray, SingleArray]:
    """The columns that would explain most; see :func:`sobolev_novelty.kernels.numpy_pursuit.offers`."""
    rows = np.ascontiguousarray(directions, dtype=np.float32)
    index = np.ascontiguousarray(members, dtype=np.int64)
    starts, n_threads = as_offsets(offsets, "offsets", len(index)), check_threads(n_threads)
    lineage = Lineage.none(columns, len(starts) - 1, len(index)) if lineage is None else lineage
    module = native()
    if module is not None:
        return native_kernel.offers(module, columns, rows, index, starts, lineage, n_top, n_threads)
    return numpy_pursuit.offers(columns, rows, index, starts, lineage, n_top)
