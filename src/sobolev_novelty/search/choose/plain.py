"""The equations that nobody searches for: the constant, and the straight line in selected columns."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.search.choose.weighted import fitted
from sobolev_novelty.search.propose.pursuit import Pursuit


def plain_equations(rows: Rows, max_complexity: int, operators: Collection[str]) -> list[Expression]:
    """The constant and, where sums are allowed, a line of one column, of two, and so on, fitted to the rows.

    Columns join in the order in which they lower the error most (forward selection), as many as the rows could tell
    apart. Which of the lines is worth its length the price says, as for every other equation.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> rows = Rows.of(X, 2.0 * X[:, 1] + X[:, 2], None, ("a", "b", "c"))
    >>> [e.variables for e in plain_equations(rows, 60, ("add", "mul"))]
    [(), ('b',), ('c', 'b'), ('a', 'c', 'b')]
    """
    forms = [Expression.of(1.0)]
    if {"add", "mul"} <= set(operators) and np.ptp(rows.y) > 0.0:
        varying = np.flatnonzero(np.ptp(rows.sample.X, axis=1) > 0.0)
        X, root = rows.sample.X[varying], 1.0 if rows.root is None else rows.root
        Z = root * (X - np.average(X, axis=1, weights=rows.weights)[:, None])
        unit = Z / np.maximum(np.linalg.norm(Z, axis=1), 1e-300)[:, None]
        line = Pursuit.start(root * (rows.y - np.average(rows.y, weights=rows.weights)), len(unit), unit.__matmul__)
        while len(forms) <= min(len(unit), len(rows) - 3) and len(best := line.best(1)[0]):
            line.add(unit[best[0]])
            forms.append(Expression.of("add", rows.names[varying[best[0]]], forms[-1]))
    found = [e for e in fitted(forms, rows) if e is not None]
    return [e for e in found if e.complexity <= max(max_complexity, 1)]
