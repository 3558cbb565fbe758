r"""Power laws: :math:`|t| = c\,\prod_j |v_j|^{k_j}`, by least squares of the logarithms."""

from __future__ import annotations

import numpy as np

from sobolev_novelty.algebra.numbers import nearest_simple
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose.pursuit import least_squares

#: Exponents nearer than this to a fraction with a denominator up to 4 are taken for it.
FRACTION_TOLERANCE = 0.02


def fit_power_law(columns: FloatArray, t: FloatArray) -> tuple[FloatArray, float, float]:
    """The power law that comes nearest to ``t``; neither it nor the columns, shape (n_variables, n_rows), may be 0.

    Returns
    -------
    exponents : ndarray of shape (n_variables,)
        As least squares gives them.
    scale : float
        The factor c.
    misfit : float
        Spread of what is left of log |t|, relative to the spread of log |t|.

    Examples
    --------
    >>> v = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 5.0, 3.0]])
    >>> fit_power_law(v, 3.0 * v[0] ** 2 / v[1])[0].round(9).tolist()
    [2.0, -1.0]
    """
    logs = np.log(np.abs(t))
    rows = np.vstack([np.log(np.abs(columns)), np.ones((1, len(t)))])
    k = least_squares(rows, logs)
    spread = max(float(logs.std()), 1e-300)
    return k[:-1], float(np.exp(k[-1])), float((logs - k @ rows).std()) / spread


def simple_exponent(k: float) -> float:
    """The simple fraction that an exponent stands for, or else the nearest multiple of one half.

    Examples
    --------
    >>> simple_exponent(0.34), simple_exponent(1.93), simple_exponent(0.9)
    (0.3333333333333333, 2.0, 1.0)
    """
    fraction = nearest_simple(k, FRACTION_TOLERANCE)
    return round(2.0 * k) / 2.0 if fraction is None else fraction


def common_sign(t: FloatArray) -> float:
    """1 or -1 where all rows have that sign, otherwise 0."""
    return 1.0 if (t > 0.0).all() else -1.0 if (t < 0.0).all() else 0.0
