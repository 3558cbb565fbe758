"""The compiled kernel behind the interface of :mod:`~sobolev_novelty.kernels.numpy_kernel`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.geometry import CONSTANT_SHARE, MIN_ROWS, Geometry, n_derivative_rows
from sobolev_novelty.core.linear.projection import (
    GRAM_IS_ENOUGH,
    LARGE_WEIGHT,
    NEAR,
    PRICES,
    RELATION,
    ROUNDING,
    SAME,
    SPACING,
    SPAN_TOLERANCE,
)
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import KernelError
from sobolev_novelty.kernels.backend import level
from sobolev_novelty.kernels.columns import JOINS, JoinedColumns, LazyColumns
from sobolev_novelty.kernels.numpy_kernel import Fits
from sobolev_novelty.kernels.numpy_novelty import Novelties, no_novelties
from sobolev_novelty.kernels.numpy_pursuit import MIN_FRESH, Lineage, SingleArray, UnitColumns, no_offers
from sobolev_novelty.kernels.program import OffsetArray, Programs

#: What novelty is, in the order of `Rules` in kernel.h.
RULES = np.array(
    [GRAM_IS_ENOUGH, SAME, NEAR, RELATION, ROUNDING, SPAN_TOLERANCE, SPACING, LARGE_WEIGHT, CONSTANT_SHARE, *PRICES]
)

#: Columns side by side in a panel, as in kernel.h.
PANEL = 32

BoolArray = npt.NDArray[np.bool_]


def derivatives(
    module: ModuleType, programs: Programs, X: FloatArray, order: int, out: FloatArray | None, n_threads: int
) -> FloatArray:
    """Values and derivatives of all programs, (n_programs, rows of this order, N), into ``out`` where it is given."""
    if out is None:
        out = np.empty((programs.n_programs, n_derivative_rows(X.shape[0], order), X.shape[1]))
    _call(module.derivatives, _arrays(programs), X, order, out, n_threads, level())
    return out


def jacobians(module: ModuleType, programs: Programs, X: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Values (n_programs, N) and their derivatives with respect to the constants (n_constants, N)."""
    values = np.empty((programs.n_programs, X.shape[1]))
    jacobian = np.empty((len(programs.constants), X.shape[1]))
    _call(module.jacobians, _arrays(programs), X, values, jacobian, n_threads, level())
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
    """Least squares for sums of terms: :func:`~sobolev_novelty.kernels.numpy_kernel.fit`, compiled."""
    n_candidates = len(term_offsets) - 1
    coefficients = np.zeros(programs.n_programs)
    constants = np.array(programs.constants, dtype=np.float64)
    loss = np.full(n_candidates, np.inf)
    status = np.zeros(n_candidates, dtype=np.int32)
    outputs = (coefficients, constants, loss, status)
    _call(module.fit, _arrays(programs), term_offsets, free, X, y, weights, n_iterations, *outputs, n_threads, level())
    return Fits(coefficients, constants, loss, status)


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
    """Novelty of the terms of every list: :mod:`~sobolev_novelty.kernels.numpy_novelty`, compiled."""
    found, places = no_novelties(offsets, with_triangles=with_triangles)
    outputs = (found.nu, found.lengths, found.rows, found.status, found.triangles, places)
    _call(
        module.novelties, _arrays(programs), members, offsets, X, factors, geometry.order, geometry.is_free, MIN_ROWS,
        RULES, *outputs, n_threads, level(),
    )  # fmt: skip
    return found


def unit_columns(module: ModuleType, columns: LazyColumns, n_threads: int) -> UnitColumns:
    """Columns scaled to unit length, in the panels of pursuit.c."""
    n_columns, n_rows = columns.shape
    lengths = np.empty(n_columns)
    panels = np.empty((-(-n_columns // PANEL), n_rows, PANEL), dtype=np.float32)
    panels[-1:] = 0.0  # the last one need not be full
    for start, part in columns.placed():
        _scale(module, part, start, lengths, panels, n_threads)
    return UnitColumns(columns, lengths, panels)


def joined_lengths(module: ModuleType, columns: JoinedColumns, n_threads: int) -> FloatArray:
    """Lengths of columns that are not written down."""
    lengths = np.empty(len(columns))
    _scale(module, columns, 0, lengths, None, n_threads)
    return lengths


def _scale(
    module: ModuleType, part: JoinedColumns, begin: int, lengths: FloatArray, panels: SingleArray | None, n_threads: int
) -> None:
    matrices = (np.ascontiguousarray(matrix, dtype=np.float64) for matrix in (part.left, part.right))
    places = (np.ascontiguousarray(index, dtype=np.int64) for index in (part.first, part.second))
    how = JOINS.index(part.how)
    _call(module.unit_columns, *matrices, *places, how, part.is_log, begin, lengths, panels, n_threads, level())


def offers(
    module: ModuleType,
    columns: UnitColumns,
    directions: SingleArray,
    members: OffsetArray,
    offsets: OffsetArray,
    lineage: Lineage,
    n_top: int,
    n_threads: int,
) -> tuple[OffsetArray, SingleArray]:
    """The columns that would explain most: :func:`~sobolev_novelty.kernels.numpy_pursuit.offers`, compiled."""
    found = no_offers(len(offsets) - 1, n_top)
    kept = (lineage.parents, lineage.slots, lineage.weights, lineage.standings)
    nodes = (columns.single, len(columns.lengths), directions, members, offsets, *kept)
    _call(module.offers, *nodes, MIN_FRESH, *found, n_threads, level())
    return found


def _arrays(programs: Programs) -> tuple[Any, ...]:
    return (
        np.ascontiguousarray(programs.codes, dtype=np.int32),
        np.ascontiguousarray(programs.offsets, dtype=np.int64),
        np.ascontiguousarray(programs.constants, dtype=np.float64),
        np.ascontiguousarray(programs.constant_offsets, dtype=np.int64),
    )


def _call(function: Any, *arguments: Any) -> None:
    try:
        function(*arguments)
    except ValueError as error:
        raise KernelError(str(error)) from error
