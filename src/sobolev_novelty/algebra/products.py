"""Products of powers: exponents added up, numeric factors raised, constants folded.

Notation
--------
``powers``  base -> exponent, none of them 0; a base is an expression, or the number of one
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator

Base = TypeVar("Base", bound=Hashable)

#: Operators that take their operand to a constant power.
EXPONENTS = {"square": 2.0, "cube": 3.0, "sqrt": 0.5, "inv": -1.0}
#: Operators that neither raise nor warn at any two floats: NumPy's scalars would only cost time.
_PLAIN = frozenset({"add", "sub", "mul", "neg", "square", "cube"})


def joined(left: Mapping[Base, float], right: Mapping[Base, float], times: float = 1.0) -> dict[Base, float]:
    """The powers of ``left · right**times``.

    >>> joined({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 1.0}, -1.0)
    {'b': 2.0, 'c': -1.0}
    """
    powers = dict(left)
    for base, power in right.items():
        total = powers.get(base, 0.0) + times * power
        if total:
            powers[base] = total
        else:
            powers.pop(base, None)
    return powers


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A product of powers, equal to any other with the same factors."""

    #: tuple of (Expression, float): bases, each once, and their exponents.
    factors: tuple[tuple[Expression, float], ...] = ()

    def times(self, other: Product) -> Product:
        """The product of both, equal bases joined; variables come first, by name."""
        powers = joined(dict(self.factors), dict(other.factors))
        return Product(tuple(sorted(powers.items(), key=lambda factor: _place(factor[0]))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and frozenset(self.factors) == frozenset(other.factors)

    def __hash__(self) -> int:
        return hash(frozenset(self.factors))


def _place(base: Expression) -> tuple[bool, str]:
    return (False, str(base.head)) if len(base) == 1 else (True, "")


def real_power(number: float, exponent: float) -> float | None:
    """A number to a power; None where that is not real, not finite, or 0."""
    try:
        value = number**exponent
    except (OverflowError, ZeroDivisionError):
        return None
    return value if isinstance(value, float) and math.isfinite(value) and value != 0.0 else None


def folded(op: Operator, operands: Sequence[float]) -> float | None:
    """The operator's value at constants; None where it is not finite."""
    if op.name in _PLAIN:
        value = float(op.value(*operands))
    else:
        with np.errstate(all="ignore"):
            value = float(op.value(*(np.float64(operand) for operand in operands)))
    return value if math.isfinite(value) else None


def constant_exponent(expression: Expression) -> float | None:
    """The constant power that the root takes its first operand to; None for any other root."""
    head = expression.head
    if not isinstance(head, Operator):
        return None
    if head.name == "pow":
        exponent = expression.tokens[expression.end(1)]
        return exponent if isinstance(exponent, float) else None
    return EXPONENTS.get(head.name)
