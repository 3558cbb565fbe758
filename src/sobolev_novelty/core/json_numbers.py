"""Numbers as JSON can hold them: what is not finite becomes ``None``, and ``None`` becomes ``nan`` again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


def json_number(value: float) -> float | None:
    """A plain float; None where it is not finite.

    >>> json_number(2), json_number(float("inf"))
    (2.0, None)
    """
    return float(value) if math.isfinite(value) else None


def json_value(value: Any) -> Any:
    """Numbers, also in a tuple, by :func:`json_number`; all else as it is."""
    if isinstance(value, tuple):
        return [json_number(part) for part in value]
    return json_number(value) if isinstance(value, float) else value


def json_rows(matrix: npt.NDArray[np.float64]) -> list[list[float | None]]:
    """A matrix, row by row."""
    return [[json_number(value) for value in row] for row in matrix.tolist()]


def floats(values: Iterable[float | None]) -> npt.NDArray[np.float64]:
    """An array, ``nan`` for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
