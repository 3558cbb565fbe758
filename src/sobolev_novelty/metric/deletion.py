r"""Which term an equation can best do without: the one whose deletion costs least.

Notation
--------
``b``     coefficients;  ``nu`` novelties;  ``lengths`` ‖Ψ(φ_i)‖ of the terms

By the deletion theorem (Appendix A) the nearest equation without term i, the others refitted, is
:math:`|b_i|\,\nu_i\,\|\Psi(\phi_i)\|` away. A useless term is often novel: whoever only looks at terms of low novelty
never finds it. So no term is excluded unless the rule of Appendix D.2 is asked for by its name.
"""

from __future__ import annotations

import numpy as np

from sobolev_novelty.algebra.terms import sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Geometry
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.metric.batch import TermNovelties, novelties_of

#: What a deletion is taken to cost.
#:
#: ``novelty``  |b| ν ‖Ψ‖ of values and slopes;
#: ``error``    |b| ν ‖φ‖ of values alone: with coefficients of least squares, its square is exactly what the mean
#:              squared error rises by when the term goes and the others are refitted;
#: ``size``     |b| rms(φ): the others stay as they are, no novelty enters;
#: ``D.2``      as ``novelty``, but only of terms with ν ≤ τ (Appendix D.2).
COSTS = ("novelty", "error", "size", "D.2")


def deletion_costs(
    b: FloatArray, nu: FloatArray, lengths: FloatArray, cost: str = "novelty", tau: float = TAU_ID
) -> FloatArray:
    """What the deletion of each term costs; infinite for a term that the rule excludes, ``nan`` where nothing is known.

    ``b``, ``nu``, ``lengths``: shape (n_terms,), of values and slopes for ``novelty`` and ``D.2``, of values alone for
    ``error`` and ``size``.

    >>> import numpy as np
    >>> b, nu, lengths = np.ones(3), np.array([0.9, 0.1, 0.2]), np.array([0.3, 20.0, 5.0])
    >>> [least_needed(deletion_costs(b, nu, lengths, cost)) for cost in ("novelty", "D.2")]
    [0, 2]
    """
    if cost not in COSTS:
        raise ParameterError(f"'cost' must be one of {', '.join(COSTS)}. Got {cost!r}.")
    weights = np.abs(b) if cost == "size" else np.abs(b) * nu
    costs = np.where(lengths == 0.0, 0.0, weights * lengths)
    return np.where(nu > tau, np.inf, costs) if cost == "D.2" else costs


def least_needed(costs: FloatArray) -> int | None:
    """The term whose deletion costs least; None where one is alone, excluded, or nothing is known.

    >>> import numpy as np
    >>> least_needed(np.array([0.3, 0.1])), least_needed(np.array([0.3])), least_needed(np.array([np.inf, np.nan]))
    (1, None, None)
    """
    return int(np.nanargmin(costs)) if len(costs) > 1 and np.isfinite(costs).any() else None


def costs_of(found: TermNovelties, sample: Sample, cost: str = "novelty", tau: float = TAU_ID) -> FloatArray:
    """What the deletion of each term of a diagnosed expression costs on these rows."""
    if cost in ("error", "size"):
        found = novelties_of([found.terms], sample, Geometry(0))[0]
    b = np.array([term.coefficient for term in found.terms])
    return deletion_costs(b, found.nu, found.lengths, cost, tau)


def without_least_needed(
    found: TermNovelties, sample: Sample, cost: str = "novelty", tau: float = TAU_ID
) -> Expression | None:
    """The expression without the term whose deletion costs least, coefficients as they are; None where there is none.

    >>> import numpy as np
    >>> from sobolev_novelty.core.sample import as_sample
    >>> from sobolev_novelty.metric.batch import novelties
    >>> X = as_sample(np.linspace(-1, 1, 100)[:, None])
    >>> found = novelties(["2*x0 + 1e-3*cos(9*x0)"], X)[0]
    >>> str(without_least_needed(found, X)), without_least_needed(found, X, "D.2")
    ('2*x0', None)
    """
    least = least_needed(costs_of(found, sample, cost, tau))
    return None if least is None else sum_of_terms([term for i, term in enumerate(found.terms) if i != least])
