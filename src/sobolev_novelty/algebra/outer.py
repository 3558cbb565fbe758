r"""Outer functions: where the target is :math:`g(s)`, undoing g leaves a simpler target s.

Notation
--------
``s``  what stands inside;  ``t`` the target;  a *template* is an expression in which the one variable ``s`` occurs once
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import FloatArray

INSIDE = "s"


def composed(*names: str) -> Expression:
    """The template of unary operators applied one after the other, the innermost first."""
    template = Expression.of(INSIDE)
    for name in names:
        template = Expression.of(name, template)
    return template


def filled(template: Expression, e: Expression) -> Expression:
    """The template with ``e`` inside."""
    return template.replace(template.tokens.index(INSIDE), e)


def value_at(template: Expression, s: FloatArray) -> FloatArray:
    """Values of the template at ``s``."""
    with np.errstate(all="ignore"):
        return np.asarray(
            template.fold(lambda token: s if token == INSIDE else token, lambda op, args: op.value(*args))
        )


def slope_at(template: Expression, s: FloatArray) -> FloatArray:
    """Derivative of the template at ``s``."""

    def node(op: Operator, operands: tuple[tuple[Any, Any], ...]) -> tuple[Any, Any]:
        inner = [value for value, _ in operands]
        value = op.value(*inner)
        slopes = (f(*inner, value) * slope for f, (_, slope) in zip(op.first, operands, strict=True))
        return value, sum(slopes)

    with np.errstate(all="ignore"):
        return np.asarray(template.fold(lambda token: (s, 1.0) if token == INSIDE else (token, 0.0), node)[1])


_ONE_MORE = Expression.of("add", INSIDE, 1.0)
#: Templates that several lists of terms share: log(1 + s), 1/(1 + s), √(1 + s), and 1/(exp(s) - 1).
LOG1P, SATURATION, ROOT1P = (Expression.of(name, _ONE_MORE) for name in ("log", "inv", "sqrt"))
INVERSE_EXPM1 = Expression.of("inv", Expression.of("sub", composed("exp"), 1.0))


@dataclass(frozen=True, slots=True)
class Outer:
    """An outer function.

    ``low``, ``high``: where the target must lie.
    """

    name: str
    template: Expression
    low: float
    high: float
    inverse: Callable[[FloatArray], FloatArray]  # target -> s within these limits

    def write(self, e: Expression) -> Expression:
        """The function of ``e``."""
        return filled(self.template, e)

    def undo(self, t: FloatArray) -> FloatArray:
        """What stands inside, row by row; not finite where the target is outside the range."""
        with np.errstate(all="ignore"):
            return np.where((t >= self.low) & (t <= self.high), self.inverse(t), np.nan)

    def is_allowed(self, operators: Collection[str]) -> bool:
        """Whether these operators can write it."""
        return respelled(self.template, operators) is not None


def _exp_plus(c: float) -> Expression:
    return Expression.of("add" if c > 0.0 else "sub", composed("exp"), abs(c))


_INF = np.inf

#: The most common first.
OUTERS: dict[str, Outer] = {
    outer.name: outer
    for outer in (
        Outer("sqrt", composed("sqrt"), 0.0, _INF, np.square),
        Outer("inverse", composed("inv"), -_INF, _INF, np.reciprocal),
        Outer("inverse sqrt", composed("sqrt", "inv"), 0.0, _INF, lambda t: t**-2.0),
        Outer("exp", composed("exp"), 0.0, _INF, np.log),
        Outer("square", composed("square"), 0.0, _INF, np.sqrt),
        Outer("log", composed("log"), -50.0, 50.0, np.exp),
        Outer("arcsin", composed("arcsin"), -np.pi / 2.0, np.pi / 2.0, np.sin),
        Outer("arccos", composed("arccos"), 0.0, np.pi, np.cos),
        Outer("1/(exp - 1)", INVERSE_EXPM1, 0.0, _INF, lambda t: np.log1p(1.0 / t)),
        Outer("inverse square", composed("square", "inv"), 0.0, _INF, lambda t: t**-0.5),
        Outer("sin", composed("sin"), -1.0, 1.0, np.arcsin),
        Outer("cos", composed("cos"), -1.0, 1.0, np.arccos),
        Outer("tanh", composed("tanh"), -1.0, 1.0, np.arctanh),
        Outer("exp - 1", _exp_plus(-1.0), -1.0, _INF, np.log1p),
        Outer("exp + 1", _exp_plus(1.0), 1.0, _INF, lambda t: np.log(t - 1.0)),
    )
}
