r"""The accuracy–complexity score that every engine and every verb shares.

.. math:: R_{\mathrm{base}}(s) = \frac{\eta^{C(s)}}{1 + \sqrt{\mathrm{NMSE}(s)}}, \qquad
          \mathrm{NMSE} = \frac{\sum_n (y_n-s(x_n))^2}{\sum_n (y_n-\bar y)^2}

1 is a perfect fit by an empty expression; each node costs a factor η. The paper names an accuracy–complexity score
without giving it; this is the one of tree-search symbolic regression with the square root taken of the normalised
error, so that it does not depend on units.
"""

from __future__ import annotations

import numpy as np

from sobolev_novelty.data import FloatArray

#: Price of one node. At 0.999 ten nodes must lower 1 + √NMSE by one per cent.
PARSIMONY = 0.999
#: Nodes for each row beyond which the expected error grows no further.
MAX_PARAMETER_SHARE = 0.9


def nmse(y: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
    """Squared error relative to the target's variance; ``inf`` where a prediction is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> nmse(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))
    0.0
    """
    w = np.ones_like(y) if weights is None else weights
    centre = float(np.average(y, weights=w))
    with np.errstate(over="ignore"):
        total = float(np.sum(w * (y - centre) ** 2))
        error = float(np.sum(w * (y - prediction) ** 2))
    if not np.isfinite(error):
        return float("inf")
    return error / total if total > 0.0 else (0.0 if error == 0.0 else float("inf"))


def expected_error(error: float, complexity: int, n_samples: int) -> float:
    """NMSE to expect on new rows, by generalised cross-validation with every node counted as a parameter:
    ``error / (1 - C/n)²``.

    A search chooses nodes as a fit chooses constants; on few rows that alone lowers the error. With a thousand rows and
    twenty nodes the factor is 1.04. It is bounded where there are fewer rows than nodes.

    Examples
    --------
    >>> expected_error(0.0, 30, 40), expected_error(0.25, 20, 40)
    (0.0, 1.0)
    """
    return error / (1.0 - min(complexity / n_samples, MAX_PARAMETER_SHARE)) ** 2


def base_score(error: float, complexity: int, parsimony: float = PARSIMONY) -> float:
    """R_base of a candidate with this NMSE and node count; 0 where the error is not finite.

    Examples
    --------
    >>> base_score(0.0, 0), round(base_score(1.0, 10), 4)
    (1.0, 0.495)
    """
    return float(parsimony**complexity / (1.0 + np.sqrt(error))) if np.isfinite(error) else 0.0
