"""Columns in units an engine can work with, and equations back in the user's.

Engines draw constants of order one and try functions of bare inputs: ``exp(x)`` means nothing for pressures in pascal,
``sin(x)`` nothing for years. Columns far from one are therefore searched in units of a power of ten, and columns far
from zero compared with their spread from a round number. In the equation this is undone: factors join the constants
that are there, so that it hardly grows. Columns of ordinary size are left as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.canonical import tidy
from sobolev_novelty.algebra.factoring import factored
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError

#: Gives an expression of search inputs in the user's names and units.
ToUser = Callable[[Expression], Expression]

#: Root mean squares between these are ordinary.
SMALLEST, LARGEST = 1e-3, 1e3
#: Beyond these a factor for the way back is no longer safe to write down.
TINY, HUGE = 1e-100, 1e100
#: A column whose mean is more than this many standard deviations from zero is searched from a round number near it.
MAX_OFFSET = 50.0


@dataclass(frozen=True, slots=True)
class Units:
    """Search input = (input − centre) / scale, for the columns that are not ordinary.

    >>> from sobolev_novelty.language.parsing import parse
    >>> units = Units({"x0": (0.0, 1000.0)})
    >>> str(units.to_user(parse("2*x0**2 + exp(0.5*x0)"))), str(units.to_search(parse("x0")))
    ('2e-06*x0**2 + exp(0.0005*x0)', '1000*x0')
    """

    by_name: Mapping[str, tuple[float, float]]  # mapping of str to (float, float): centre and scale

    @classmethod
    def of(cls, X: FloatArray, names: tuple[str, ...]) -> Units:
        """Units for the columns ``X``, shape (n_features, n_samples)."""
        chosen = {name: _unit(column) for name, column in zip(names, X, strict=True)}
        return cls({name: unit for name, unit in chosen.items() if unit != (0.0, 1.0)})

    def applied(self, X: FloatArray, names: tuple[str, ...]) -> FloatArray:
        """The columns in search units."""
        if not self.by_name:
            return X
        centre, scale = np.array([self.by_name.get(name, (0.0, 1.0)) for name in names]).T
        return np.ascontiguousarray((X - centre[:, None]) / scale[:, None])

    def undone(self, X: FloatArray, names: tuple[str, ...]) -> FloatArray:
        """Columns in search units as the user's."""
        if not self.by_name:
            return X
        centre, scale = np.array([self.by_name.get(name, (0.0, 1.0)) for name in names]).T
        return np.ascontiguousarray(X * scale[:, None] + centre[:, None])

    def to_user(self, expression: Expression) -> Expression:
        """An equation of search inputs as one of the user's."""
        inputs = {
            name: Expression.of("mul", 1.0 / scale, _shifted(Expression.of(name), -centre))
            for name, (centre, scale) in self.by_name.items()
        }
        changed = _rewritten(expression, inputs)
        # c·(x − 2010) + d is c·x + d′ where nothing else holds the difference together.
        return factored(changed) if any(centre for centre, _ in self.by_name.values()) else changed

    def to_search(self, expression: Expression) -> Expression:
        """An equation of the user's inputs as one of search inputs."""
        inputs = {
            name: _shifted(Expression.of("mul", scale, name), centre) for name, (centre, scale) in self.by_name.items()
        }
        return _rewritten(expression, inputs)


def _unit(column: FloatArray) -> tuple[float, float]:
    with np.errstate(all="ignore"):
        mean, spread = float(np.mean(column)), float(np.std(column))
    if not TINY < max(abs(mean), spread) < HUGE:
        return 0.0, 1.0
    if spread > 0.0 and abs(mean) > MAX_OFFSET * spread:
        step = 10.0 * _power_of_ten(spread)
        return round(mean / step) * step, 1.0 if SMALLEST <= spread <= LARGEST else _power_of_ten(spread)
    size = math.hypot(mean, spread)
    return 0.0, 1.0 if SMALLEST <= size <= LARGEST else _power_of_ten(size)


def _power_of_ten(size: float) -> float:
    """The largest that is not above ``size``."""
    return float(10.0 ** math.floor(math.log10(size)))


def _shifted(expression: Expression, by: float) -> Expression:
    return Expression.of("add" if by > 0.0 else "sub", expression, abs(by)) if by else expression


def _rewritten(expression: Expression, inputs: Mapping[str, Expression]) -> Expression:
    if not any(token in inputs for token in expression.tokens if isinstance(token, str)):
        return expression
    changed = expression.substituted(inputs)
    try:
        short = tidy(changed)
    except ExpressionError:  # a high power of a factor is beyond the floats: it stays with its input
        return changed
    # Powers of ten are not exact in binary; the last digit is theirs.
    return short.with_constants([float(f"{constant:.15g}") for constant in short.constants])
