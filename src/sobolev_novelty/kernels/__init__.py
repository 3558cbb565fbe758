"""Programs -> values, derivatives, Jacobians and fits: one C file, and the NumPy version that defines it and stands in for it.

The compiled kernel is used where it was built; ``SOBOLEV_KERNEL=numpy`` forces the other one.
"""

from __future__ import annotations

from sobolev_novelty.kernels.numpy_kernel import (
    Fits,
    FitStatus,
    derivatives,
    fit,
    jacobians,
    n_derivative_rows,
    second_order_pairs,
)
from sobolev_novelty.kernels.program import FloatArray, Programs, compile_programs

__all__ = [
    "FitStatus",
    "Fits",
    "FloatArray",
    "Programs",
    "compile_programs",
    "derivatives",
    "fit",
    "jacobians",
    "n_derivative_rows",
    "second_order_pairs",
]
