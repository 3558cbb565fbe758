"""Equations fitted under a kind of noise, and the kind that the rows speak for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.price.description import Table
from sobolev_novelty.price.noise import Noise
from sobolev_novelty.search.choose.rows import Rows
from sobolev_novelty.search.fit.fits import FIT_ITERATIONS, Fitter
from sobolev_novelty.search.fit.forms import split_form

#: Fits whose weights follow the equation, at most.
N_REWEIGHTED = 3


def fitted(expressions: Sequence[Expression], rows: Rows, weights: FloatArray | None) -> list[Expression | None]:
    """Each equation with its constants fitted under weights; None where that is not finite."""
    fitter = Fitter(np.ascontiguousarray(rows.X.T), rows.names, rows.y, weights, 1.0)
    found: list[Expression | None] = []
    with np.errstate(all="ignore"):
        for fit in fitter.fit([split_form(e) for e in expressions], FIT_ITERATIONS):
            try:
                found.append(assemble(fit.terms, fit.coefficients.tolist()) if math.isfinite(fit.nmse) else None)
            except ExpressionError:  # a number that no float can hold
                found.append(None)
    return found


def refitted(expression: Expression, rows: Rows, table: Table, noise: Noise) -> Expression:
    """The equation with constants at which the rows cost least; the weights of the rows follow its own values.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> x = np.geomspace(1.0, 1000.0, 40)
    >>> y = x**2 * (1.0 + 0.01 * np.cos(7.0 * np.arange(40)))
    >>> rows = Rows(x[:, None], y, None, ("x0",))
    >>> found = refitted(parse("1.02*x0**2 + 3"), rows, Table(rows.X, y), Noise.of(1.0, y))
    >>> abs(found.constants[-1]) < 0.01
    True
    """
    best, values = expression, rows.values([expression])[0]
    least = table.rows_nats(values, noise, rows.heights(best, values, noise))
    for _ in range(N_REWEIGHTED):
        if not np.isfinite(values).all():
            break
        found = fitted([best], rows, rows.weights_at(best, values, noise))[0]
        if found is None:
            break
        values = rows.values([found])[0]
        cost = table.rows_nats(values, noise, rows.heights(found, values, noise))
        if not cost < least - 1e-9:
            break
        is_settled, best, least = cost > least - 0.01, found, cost
        if (noise.is_constant and rows.x_sigma is None) or is_settled:
            break
    return best


def found_power(y: FloatArray, values: FloatArray) -> float:
    """The power of the value that the size of the residuals goes with, to a tenth, from a straight line in logarithms.

    Examples
    --------
    >>> f = np.geomspace(1.0, 100.0, 60)
    >>> found_power(f + np.sqrt(f) * np.cos(9.0 * np.arange(60)), f)
    0.5
    """
    with np.errstate(all="ignore"):
        size, scale = np.log(np.abs(y - values)), np.log(np.abs(values))
    used = np.isfinite(size) & np.isfinite(scale)
    if used.sum() < 3 or not np.ptp(scale[used]) > 0.0:
        return 0.0
    return round(float(np.clip(np.polyfit(scale[used], size[used], 1)[0], 0.0, 2.0)), 1)
