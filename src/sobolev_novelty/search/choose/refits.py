"""Equations fitted anew: to other weights, an operator shorter, and those that nobody searches for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

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
from sobolev_novelty.search.propose.neighbours import shorter_forms
from sobolev_novelty.search.propose.pursuit import Pursuit

#: Fits whose weights follow the equation, at most, and nats below which the next is not worth its time: a hundredth of
#: the smallest difference that a sentence speaks of.
N_REWEIGHTED, SETTLED = 3, 0.01


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
        is_settled = after[2] > least - SETTLED
        best, known, least = after
        if is_settled or not noise.varies(rows):
            break
    return best


def shorter_fits(
    leaders: Sequence[Expression], rows: Rows, allowed: Callable[[Expression], bool], seen: set[Expression]
) -> list[Expression]:
    """The shorter forms of leaders that were not seen before, fitted."""
    forms = [form for e in leaders for form in shorter_forms(e) if form not in seen]
    seen.update(forms)
    return [e for e in fitted(list(dict.fromkeys(forms)), rows) if e is not None and allowed(e)]


def plain_equations(rows: Rows, max_complexity: int, operators: Collection[str]) -> list[Expression]:
    """The constant and, where sums are allowed, a line of one column, of two, and so on, fitted to the rows.

    Columns join in the order in which they lower the error most (forward selection), as many as the rows could tell
    apart. Which of the lines is worth its length the price says, as for every other equation.

    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> rows = Rows.of(X, 2.0 * X[:, 1] + X[:, 2], None, ("a", "b", "c"))
    >>> [e.variables for e in plain_equations(rows, 60, ("add", "mul"))]
    [(), ('b',), ('c', 'b'), ('a', 'c', 'b')]
    """
    forms = [Expression.of(1.0)]
    if {"add", "mul"} <= set(operators) and np.ptp(rows.y) > 0.0:
        X, root = rows.sample.X, 1.0 if rows.root is None else rows.root
        Z = root * (X - np.average(X, axis=1, weights=rows.weights)[:, None])
        lengths = np.linalg.norm(Z, axis=1)
        varying = np.flatnonzero((np.ptp(X, axis=1) > 0.0) & (lengths > 0.0))
        unit = Z[varying] / lengths[varying, None]
        line = Pursuit.start(root * (rows.y - np.average(rows.y, weights=rows.weights)), len(unit), unit.__matmul__)
        while len(forms) <= min(len(unit), len(rows) - 3) and len(best := line.best(1)[0]):
            line.add(unit[best[0]])
            forms.append(Expression.of("add", rows.names[varying[best[0]]], forms[-1]))
    found = [e for e in fitted(forms, rows) if e is not None]
    return [e for e in found if e.complexity <= max(max_complexity, 1)]
