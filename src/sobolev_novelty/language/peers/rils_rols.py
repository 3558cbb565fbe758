"""RILS-ROLS: the model is text in the names ``x0, x1, …``. Its constants have six decimals; the others are recovered.

The library keeps the constants to itself, but predicts with them: those within half a unit of the sixth decimal that
reproduce its predictions at a few points are the model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression, numbered_index
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.language.peers.adapter import renamed

#: Half a unit of the last decimal, with a little room.
_ROUNDING = 6e-7


def from_rils_rols(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted ``RILSROLSRegressor``."""
    text = getattr(model, "model", None)
    if not isinstance(text, str):
        raise ParameterError(f"'model' must be a fitted RILS-ROLS regressor. Got {type(model).__name__}.")
    return renamed(_with_all_digits(parse(text, variables="x0"), model), names)


def _with_all_digits(written: Expression, model: Any) -> Expression:
    """The expression with the constants that reproduce the model's predictions; as written where none do better."""
    from scipy.optimize import least_squares

    start = np.array(written.constants)
    free = np.flatnonzero(start != np.round(start))  # exponents are whole numbers, and exact
    if not len(free) or not written.variables or not callable(getattr(model, "predict", None)):
        return written
    n_inputs = 1 + max(numbered_index(name) or 0 for name in written.variables)
    points = np.random.default_rng(0).uniform(-2.0, 2.0, (400, n_inputs))
    points[200:] = np.abs(points[200:])  # for roots and logarithms
    theirs = np.asarray(model.predict(points), dtype=float).ravel()

    def changed(change: FloatArray) -> Expression:
        constants = start.copy()
        constants[free] += _ROUNDING * change
        return written.with_constants(constants.tolist())

    ours = written(points)
    known = np.isfinite(theirs) & np.isfinite(ours)
    if known.sum() < len(free):
        return written
    # Relative, so that a row near a pole does not hide the others; of the size 1, for the solver's tolerances.
    scale = _ROUNDING * (np.abs(theirs[known]) + 1e-12)

    def misfit(change: FloatArray) -> FloatArray:
        found = (changed(change)(points)[known] - theirs[known]) / scale
        return np.asarray(np.nan_to_num(found, nan=1e9, posinf=1e9, neginf=-1e9))

    nothing = np.zeros(len(free))
    found = least_squares(misfit, nothing, bounds=(-1.0, 1.0), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    is_better = np.abs(found.fun).max() < np.abs(misfit(nothing)).max()
    return changed(found.x) if is_better else written
