r"""How well a table can be fitted at all: numbers that were stored in single precision, or written with a few digits.

Notation
--------
``σ_y``, ``σ_j``  standard deviations of the rounding of the target and of input j in a row: their
step over √12
``σ_y² + Σ_j (∂f/∂x_j)² σ_j²``  what rounding alone leaves of the true law f
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.evaluation import derivatives
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.validation import Rows

#: Decimal places that are looked for; numbers with more of them are as good as exact.
_PLACES = range(13)


def rounding(values: FloatArray, *, decimals: bool) -> FloatArray:
    """Standard deviation of the rounding of each value; 0 where they have all their digits.

    Parameters
    ----------
    decimals : bool
        Whether numbers with a few decimal places count as rounded. Those of inputs may be settings, and exact.

    Examples
    --------
    >>> y = np.array([0.12, 0.5, 0.37])
    >>> rounding(y, decimals=True).round(4), rounding(y, decimals=False), rounding(np.sqrt(y), decimals=True)
    (array([0.0029, 0.0029, 0.0029]), array([0., 0., 0.]), array([0., 0., 0.]))
    """
    for places in _PLACES if decimals else ():
        if np.array_equal(np.round(values, places), values):
            return np.full(len(values), 10.0**-places / np.sqrt(12.0))
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if np.array_equal(single, values) and not np.array_equal(np.round(values, _PLACES[-1]), values):
        return np.asarray(np.spacing(np.abs(single)).astype(float) / np.sqrt(12.0))
    return np.zeros(len(values))


def rounding_errors(expressions: Sequence[Expression], rows: Rows) -> FloatArray:
    """Error that the rounding of the rows leaves of each law, as a share of the target's variance.

    Rows at which the law has no slope are left out.
    """
    variances = [rounding(rows.y, decimals=True) ** 2, *(rounding(x, decimals=False) ** 2 for x in rows.X.T)]
    centre = np.average(rows.y, weights=rows.weights)
    spread = float(np.average((rows.y - centre) ** 2, weights=rows.weights))
    if not any(v.any() for v in variances) or not spread > 0.0:
        return np.zeros(len(expressions))
    with np.errstate(all="ignore"):
        slopes = derivatives(expressions, rows.sample, 1)[:, 1:]
        left = variances[0] + np.einsum("enr,nr->er", slopes**2, np.array(variances[1:]))
        fine = np.isfinite(left)
        weights = fine * (1.0 if rows.weights is None else rows.weights)
        return (
            np.asarray((weights * np.where(fine, left, 0.0)).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-300))
            / spread
        )
