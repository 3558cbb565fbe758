r"""Terms of which floats leave nothing but rounding: cos(x)² + sin(x)² − 1 is not 10⁻¹⁶ times something new.

Notation
--------
``v = f(a, b)``  value of a node;  ``e``  bound of its rounding error, :math:`\epsilon|v| + |f_a| e_a + |f_b| e_b`

The inputs are taken as they are: what they were rounded to is the sample.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import FloatArray, Sample

#: A term whose values vary by no more than this many bounds of their error is constant up to rounding.
ERRORS = 2.0
_EPSILON = float(np.finfo(np.float64).eps)


def is_rounding(expressions: Sequence[Expression], sample: Sample) -> npt.NDArray[np.bool_]:
    """Which expressions vary over the rows by no more than their rounding errors; true for constant ones."""
    return np.array([_is_rounding(expression, sample) for expression in expressions], dtype=bool)


def _is_rounding(expression: Expression, sample: Sample) -> bool:
    nothing = np.zeros(sample.n_samples)

    def leaf(token: float | str) -> tuple[FloatArray, FloatArray]:
        values = sample.X[sample.names.index(token)] if isinstance(token, str) else np.full(sample.n_samples, token)
        return values, nothing

    def node(op: Operator, operands: tuple[tuple[FloatArray, FloatArray], ...]) -> tuple[FloatArray, FloatArray]:
        values = [value for value, _ in operands]
        v = np.asarray(op.value(*values), dtype=np.float64)
        error = _EPSILON * np.abs(v)
        for slope, (_, before) in zip(op.first, operands, strict=True):
            if before.any():
                error = error + np.where(before > 0.0, np.abs(slope(*values, v)) * before, 0.0)
        return v, error

    with np.errstate(all="ignore"):
        values, errors = expression.fold(leaf, node)
        used = np.isfinite(values) & np.isfinite(errors)  # a slope that no float can hold says nothing
        return bool(used.any() and np.ptp(values[used]) <= ERRORS * 2.0 * np.max(errors[used]))
