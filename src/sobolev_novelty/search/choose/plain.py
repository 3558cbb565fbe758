"""The equations that nobody searches for: the constant, and the straight line in selected columns."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.search.choose.rows import Rows
from sobolev_novelty.search.choose.weighted import fitted


def plain_equations(rows: Rows, max_complexity: int, operators: Collection[str]) -> list[Expression]:
    """The constant and, where sums are allowed, a line of one column, of two, and so on, fitted to the rows.

    Columns join in the order in which they lower the error most (forward selection). Which of the lines is worth its
    length the price says, as for every other equation.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> rows = Rows(X, 2.0 * X[:, 1] + X[:, 2], None, ("a", "b", "c"))
    >>> [e.variables for e in plain_equations(rows, 60, ("add", "mul"))]
    [(), ('b',), ('c', 'b'), ('a', 'c', 'b')]
    """
    forms = [Expression.of(1.0)]
    if {"add", "mul"} <= set(operators):
        line = Expression.of(1.0)
        for place in _telling(rows):
            line = Expression.of("add", rows.names[place], line)
            forms.append(line)
    found = [e for e in fitted(forms, rows, rows.weights) if e is not None]
    return [e for e in found if e.complexity <= max(max_complexity, 1)]


def _telling(rows: Rows) -> list[int]:
    """Columns in the order of a forward selection, as many as the rows could tell apart."""
    varying = np.flatnonzero(np.ptp(rows.X, axis=0) > 0.0)
    root = np.ones(len(rows.y)) if rows.weights is None else np.sqrt(rows.weights)
    Z = root[:, None] * (rows.X[:, varying] - np.average(rows.X[:, varying], axis=0, weights=rows.weights))
    residual = root * (rows.y - np.average(rows.y, weights=rows.weights))
    full = np.linalg.norm(Z, axis=0)
    chosen: list[int] = []
    while len(chosen) < min(len(varying), len(rows.y) - 3):
        lengths = np.linalg.norm(Z, axis=0)
        with np.errstate(all="ignore"):
            gains = np.where(lengths > 1e-7 * full, np.abs(residual @ Z) / lengths, -1.0)
        gains[chosen] = -1.0
        best = int(np.argmax(gains))
        if gains[best] <= 0.0:
            break
        chosen.append(best)
        direction = Z[:, best] / lengths[best]
        residual = residual - (residual @ direction) * direction
        Z = Z - np.outer(direction, direction @ Z)
    return [int(place) for place in varying[chosen]]
