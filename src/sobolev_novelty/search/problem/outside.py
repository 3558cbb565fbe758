"""A warning for predictions beyond the rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExtrapolationWarning

#: Share of an input's range beyond which predictions warn.
MARGIN = 0.05


def warn_outside(X: FloatArray, expression: Expression, names: Sequence[str], ranges: FloatArray) -> list[str]:
    """Warn of rows beyond the training range of an input that the equation uses, and name the input."""
    for k in (names.index(name) for name in expression.variables):
        low, high = ranges[:, k]
        margin = MARGIN * (high - low)
        beyond = (X[:, k] < low - margin) | (X[:, k] > high + margin)
        if beyond.any():
            warnings.warn(
                f"{int(beyond.sum())} of {len(X)} rows have '{names[k]}' outside the training range, "
                f"{number_text(low)} to {number_text(high)}: these predictions extrapolate.",
                ExtrapolationWarning,
                stacklevel=3,
            )
            return [names[k]]
    return []
