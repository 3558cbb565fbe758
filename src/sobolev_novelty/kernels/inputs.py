"""What the kernels accept: checks and conversions before any of them runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.operators import BY_OPCODE
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, KernelError, ParameterError
from sobolev_novelty.kernels.program import (
    CONSTANT,
    FIRST_VARIABLE,
    MAX_PROGRAM_LENGTH,
    OffsetArray,
    Programs,
)


def as_samples(X: npt.ArrayLike) -> FloatArray:
    """``X`` as contiguous float64 of shape (n_features, n_samples)."""
    array = _as_float(X, "X")
    if array.ndim != 2:
        raise DataError(f"'X' must have 2 dimensions (features, samples). Got {array.ndim}.")
    return array


def as_vector(values: npt.ArrayLike, name: str, length: int) -> FloatArray:
    """``values`` as contiguous float64 of shape (length,)."""
    array = _as_float(values, name)
    if array.shape != (length,):
        raise DataError(f"'{name}' must have shape ({length},). Got {array.shape}.")
    return array


def as_offsets(values: npt.ArrayLike, name: str, last: int) -> OffsetArray:
    """``values`` as int64 that ascend from 0 to ``last``."""
    array = np.ascontiguousarray(values, dtype=np.int64)
    if array.ndim != 1 or len(array) < 1 or array[0] != 0 or array[-1] != last or (array[1:] < array[:-1]).any():
        raise KernelError(f"'{name}' must ascend from 0 to {last}. Got {np.array2string(array, threshold=8)}.")
    return array


def check_threads(n_threads: int) -> int:
    """The number of threads as a plain ``int``; refuse anything but a positive whole number."""
    if not isinstance(n_threads, int | np.integer) or n_threads < 1:
        raise ParameterError(f"'n_threads' must be a whole number of at least 1. Got {n_threads}.")
    return int(n_threads)


def check_programs(programs: Programs, n_features: int) -> None:
    """Refuse what is not a tree over known operators, columns and constants (the C kernel has its own check)."""
    codes, offsets, constant_offsets = programs.codes, programs.offsets, programs.constant_offsets
    if len(offsets) < 1 or len(offsets) != len(constant_offsets):
        raise KernelError("'offsets' and 'constant_offsets' must have the same length, at least 1.")
    as_offsets(offsets, "offsets", len(codes))
    as_offsets(constant_offsets, "constant_offsets", len(programs.constants))
    for i in range(programs.n_programs):
        problem = _problem(
            codes[offsets[i] : offsets[i + 1]].tolist(), n_features, int(constant_offsets[i + 1] - constant_offsets[i])
        )
        if problem:
            raise KernelError(f"Program {i} {problem}.")


def _problem(code: list[int], n_features: int, n_constants: int) -> str:
    if len(code) > MAX_PROGRAM_LENGTH:
        return f"is longer than the limit of {MAX_PROGRAM_LENGTH} nodes. Simplify it first"
    open_operands = 1
    for token in code:
        if open_operands == 0:
            return "holds more than one tree"
        if token >= FIRST_VARIABLE + n_features:
            return "refers to a column that X does not have"
        is_leaf = token >= FIRST_VARIABLE or token == CONSTANT
        if not is_leaf and token not in BY_OPCODE:
            return "holds an unknown operator"
        open_operands += (0 if is_leaf else BY_OPCODE[token].arity) - 1
    if open_operands:
        return "ends early: operands are missing"
    return "" if code.count(CONSTANT) == n_constants else "has a different number of constants than its offsets say"


def _as_float(values: Any, name: str) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise DataError(f"'{name}' must hold real numbers. Got dtype {array.dtype}.")
    # Memory that came over a network need not lie where a double may.
    return np.require(array, dtype=np.float64, requirements=["C", "A"])
