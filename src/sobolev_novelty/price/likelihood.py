r"""How well rows are met: minus the logarithm of their likelihood, the level of the noise integrated out.

Notation
--------
``n``  rows;  ``m``  distinct inputs among them;  ``k``  free numbers of the equation
``r``  residuals in units of the noise's shape, :math:`(y - f)/h`;  ``w``  weights of the rows, with mean 1
``P``  sum of squares within the rows of equal inputs, the pure error;  ``A``  that of their means, the lack of fit

Without equal inputs the level of the noise is integrated out under Jeffreys's prior, which leaves
:math:`\frac n2 \ln \sum w r^2`. With them the misfit of an equation is the same in all rows of one input: no more than
m values speak for a form, however often each was measured. Where A/m is larger than P/(n − m), the misfit has a
variance of its own (a random effect of each input), and the likelihood is largest at

.. math:: \frac{n - m}{2} \ln \frac{P}{n - m} + \frac m2 \ln \frac Am .

k numbers can be chosen to meet k inputs. On many rows that is the ½ ln n of each (Schwarz 1978). On few there is the
second-order term of Hurvich and Tsai (1989), :math:`K(K + 1)/(m - K - 1)` with the level of the noise among the K, and
the digits of the target that numbers as many as inputs would take over from it, ½ ln(1/NMSE) each, by the share k/m
that they are. Both are nothing at a thousand rows.
"""

from __future__ import annotations

import math
import sys

from sobolev_novelty.core.rows import Replicates
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import EXACT_NMSE


def misfit_nats(r: FloatArray, w: FloatArray, replicates: Replicates, least: float = 0.0) -> float:
    """The logarithm above, up to a constant of the table; infinite where a residual is not finite.

    ``least``: sum of squares that counts as nothing: what is left then is rounding.

    >>> import numpy as np
    >>> r, alone = np.array([1.0, -1.0, 1.0, -1.0]), Replicates.of(np.arange(4.0)[:, None])
    >>> misfit_nats(np.sqrt(np.e) * r, np.ones(4), alone) - misfit_nats(r, np.ones(4), alone)
    2.0
    """
    pure, lack = replicates.split(r, w)
    n, m = replicates.n_rows, replicates.n_distinct
    if not math.isfinite(pure + lack):
        return math.inf
    spare, floor = n - m, max(least / n, sys.float_info.min)
    if spare and lack / m > pure / spare:
        return 0.5 * spare * math.log(max(pure / spare, floor)) + 0.5 * m * math.log(max(lack / m, floor))
    return 0.5 * n * math.log(max((pure + lack) / n, floor))


def few_rows_nats(n_numbers: int, n_distinct: int, nmse: float) -> float:
    """What chosen numbers do to few rows.

    >>> [round(few_rows_nats(3, n, 0.01), 2) for n in (1000, 40, 15, 4)]
    [0.04, 1.09, 3.38, 25.18]
    """
    k = n_numbers + 1
    digits = -0.5 * math.log(min(max(nmse, EXACT_NMSE), 1.0))
    return k * (k + 1) / max(n_distinct - k - 1, 1) + digits * n_numbers**2 / n_distinct
