"""Equations fitted to rows, and under a kind of noise whose weights follow their own values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.price.description import rows_nats
from sobolev_novelty.price.noise import Noise
from sobolev_novelty.search.fit.fits import FIT_ITERATIONS, Fitter
from sobolev_novelty.search.fit.forms import split_form

#: Fits whose weights follow the equation, at most.
N_REWEIGHTED = 3


def fitted(expressions: Sequence[Expression], rows: Rows) -> list[Expression | None]:
    """Each equation with its constants fitted; None where that is not finite."""
    found: list[Expression | None] = []
    with np.errstate(all="ignore"):
        for fit in Fitter(rows).fit([split_form(e) for e in expressions], FIT_ITERATIONS):
            try:
                found.append(assemble(fit.terms, fit.coefficients.tolist()) if math.isfinite(fit.loss) else None)
            except ExpressionError:  # a number that no float can hold
                found.append(None)
    return found


def refitted(expression: Expression, rows: Rows, noise: Noise) -> Expression:
    """The equation with constants at which the rows cost least; the weights of the rows follow its own values.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> x = np.geomspace(1.0, 1000.0, 40)
    >>> y = x**2 * (1.0 + 0.01 * np.cos(7.0 * np.arange(40)))
    >>> found = refitted(parse("1.02*x0**2 + 3"), Rows.of(x[:, None], y), Noise.of(1.0, y))
    >>> abs(found.constants[-1]) < 0.01
    True
    """

    def at(e: Expression) -> tuple[Expression, FloatArray, float]:
        v = values([e], rows.sample)[0]
        return e, v, rows_nats(rows, v, noise, noise.heights_at(rows, e, v))

    best, known, least = at(expression)
    for _ in range(N_REWEIGHTED):
        found = fitted([best], noise.weighed(rows, best, known))[0] if np.isfinite(known).all() else None
        if found is None:
            break
        after = at(found)
        if not after[2] < least - 1e-9:
            break
        is_settled = after[2] > least - 0.01
        best, known, least = after
        if is_settled or not noise.varies(rows):
            break
    return best
