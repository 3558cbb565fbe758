r"""The coefficients of an equation's terms as functions of the constants that the equation is written with.

Notation
--------
``theta``  the constants of the equation as it is written;  ``g``  the coefficient of a term

``2*(x0 - 3)*x1`` has two constants and two terms, x0*x1 with g = θ₀ and x1 with g = -θ₀ θ₁. Products are distributed
and like terms merged, so that a coefficient is a sum of products of powers,

.. math:: g = \sum_l c_l \prod_j \theta_j^{m_{lj}}

The powers are read off by changing one constant at a time and splitting the summand again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sobolev_novelty.algebra.terms import Term, additive_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.report.intervals.constants import Parametrised
from sobolev_novelty.report.intervals.profile_ends import Quantity

#: A constant is multiplied by each of these; a power has to come out of both.
CHANGES = (1.1371, 0.8713)
#: Powers agree up to this.
SAME_POWER = 1e-6


def coefficients_of(terms: Sequence[Term], whole: Parametrised) -> tuple[Quantity | None, ...]:
    """The coefficient of each term as a function of the constants; None where it is none, or not of this kind.

    ``terms``: the additive terms of the equation.
    ``whole``: the constants of the same equation.

    >>> from sobolev_novelty.report.intervals.constants import parametrised
    >>> from sobolev_novelty.language.parsing import parse
    >>> equation = parse("2*(x0 - 3)*x1")
    >>> [g.powers.tolist() for g in coefficients_of(additive_terms(equation).terms, parametrised(equation))]
    [[[1.0, 0.0]], [[1.0, 1.0]]]
    """
    products: dict[Expression, list[tuple[float, np.ndarray] | None]] = {}
    for i in range(len(whole.parts)):
        for expression, product in _of_summand(whole, i):
            products.setdefault(expression, []).append(product)
    found: list[Quantity | None] = []
    for term in terms:
        known = [product for product in products.get(term.expression, [None]) if product is not None]
        is_whole = len(known) == len(products.get(term.expression, [None]))
        quantity = Quantity(np.array([c for c, _ in known]), np.array([m for _, m in known])) if is_whole else None
        is_same = quantity is not None and math.isclose(quantity.value(whole.theta), term.coefficient, rel_tol=1e-9)
        found.append(quantity if quantity is not None and is_same and quantity.powers.any() else None)
    return tuple(found)


def _of_summand(whole: Parametrised, i: int) -> list[tuple[Expression, tuple[float, np.ndarray] | None]]:
    """The terms of one summand, each with its factor and powers; None where a change of a constant gives no power."""
    here = _split(whole, i, whole.theta)
    powers = np.zeros((len(here), len(whole.theta)))
    for j in {j for j in whole.parts[i].parameters if j >= 0}:
        if whole.theta[j] == 0.0:
            return [(term.expression, None) for term in here]
        each = [_split(whole, i, _changed(whole.theta, j, change)) for change in CHANGES]
        if any(len(changed) != len(here) for changed in each):
            return [(term.expression, None) for term in here]
        for k, term in enumerate(here):
            one, other = (
                _power(term.coefficient, changed[k].coefficient, change)
                for changed, change in zip(each, CHANGES, strict=True)
            )
            powers[k, j] = one if abs(one - other) <= SAME_POWER else math.nan
    powers = np.where(np.abs(powers - np.round(powers)) <= SAME_POWER, np.round(powers), powers)
    return [(term.expression, _product(term, m, whole.theta)) for term, m in zip(here, powers, strict=True)]


def _split(whole: Parametrised, i: int, theta: np.ndarray) -> tuple[Term, ...]:
    sign = whole.parts[i].sign
    return tuple(Term(sign * t.coefficient, t.expression) for t in additive_terms(whole.summand(i, theta)[0]))


def _changed(theta: np.ndarray, j: int, change: float) -> np.ndarray:
    changed = theta.copy()
    changed[j] *= change
    return changed


def _power(before: float, after: float, change: float) -> float:
    ratio = after / before if before else math.nan
    return math.log(ratio) / math.log(change) if ratio > 0.0 else math.nan


def _product(term: Term, powers: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray] | None:
    if not np.isfinite(powers).all():
        return None
    with np.errstate(all="ignore"):
        factor = term.coefficient / float(np.prod(theta[powers != 0.0] ** powers[powers != 0.0]))
    return (factor, powers) if math.isfinite(factor) else None
