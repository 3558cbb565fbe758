"""How the tree search writes expressions: products of powers and atoms, and outer functions that can be undone.

Notation
--------
``t``  what a hole must equal, given the target and the outer functions around the hole
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.operators import Operator

Function = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Product:
    """Powers of variables times atoms: ``x0**2 / x1 * sin(x2)``.

    Parameters
    ----------
    powers : tuple of (str, float)
        Variable and exponent, sorted by name.
    atoms : tuple of Expression
        Factors that are no powers of a variable.
    """

    powers: tuple[tuple[str, float], ...] = ()
    atoms: tuple[Expression, ...] = ()

    def times(self, other: Product) -> Product:
        powers = dict(self.powers)
        for name, exponent in other.powers:
            powers[name] = powers.get(name, 0.0) + exponent
        kept = tuple(sorted((name, p) for name, p in powers.items() if p != 0.0))
        return Product(kept, self.atoms + other.atoms)


class Writer:
    """Writes products and powers with the operators a problem allows.

    Examples
    --------
    >>> writer = Writer(("mul", "div", "square"))
    >>> str(writer.product(Product((("x0", 2.0), ("x1", -1.0)))))
    'square(x0)/x1'
    >>> writer.product(Product((("x0", 0.5),))) is None
    True
    """

    def __init__(self, operators: Sequence[str]) -> None:
        self.operators = frozenset(operators)

    def has(self, *names: str) -> bool:
        return self.operators.issuperset(names)

    @property
    def can_divide(self) -> bool:
        return bool(self.operators & {"div", "inv"})

    def power(self, base: Expression, exponent: float) -> Expression | None:
        """A positive power, or None where the operators cannot write it."""
        if exponent == 1.0:
            return base
        if exponent % 1.0 == 0.5 and self.has("sqrt"):
            root = Expression.of("sqrt", base)
            return root if exponent == 0.5 else self._times(self.power(base, exponent - 0.5), root)
        if not exponent.is_integer():
            return self._general(base, exponent)
        for factor, name in ((2.0, "square"), (3.0, "cube")):
            if exponent % factor == 0.0 and self.has(name):
                inner = self.power(base, exponent / factor)
                return None if inner is None else Expression.of(name, inner)
        if exponent > 3.0 and self.has("square"):
            return self._times(self.power(base, 2.0), self.power(base, exponent - 2.0))
        return self._times(base, self.power(base, exponent - 1.0)) or self._general(base, exponent)

    def _times(self, left: Expression | None, right: Expression | None) -> Expression | None:
        if left is None or right is None or not self.has("mul"):
            return None
        return Expression.of("mul", left, right)

    def _general(self, base: Expression, exponent: float) -> Expression | None:
        return Expression.of("pow", base, exponent) if self.has("pow") else None

    def quotient(self, above: Expression | None, below: Expression | None) -> Expression | None:
        """``above / below``; a missing part is 1."""
        if below is None:
            return Expression.of(1.0) if above is None else above
        if above is None and self.has("inv"):
            return Expression.of("inv", below)
        if self.has("div"):
            return Expression.of("div", Expression.of(1.0) if above is None else above, below)
        if above is not None and self.has("mul", "inv"):
            return Expression.of("mul", above, Expression.of("inv", below))
        return None

    def joined(self, factors: Sequence[Expression]) -> Expression | None:
        product: Expression | None = None
        for factor in factors:
            product = factor if product is None else Expression.of("mul", product, factor)
        return product

    def rewritten(self, expression: Expression) -> Expression | None:
        """The same expression with powers written in the allowed operators; None where that cannot be done.

        Examples
        --------
        >>> str(Writer(("square", "div")).rewritten(Expression.of("div", "x0", Expression.of("pow", "x1", 2.0))))
        'x0/square(x1)'
        """

        def node(op: Operator, operands: tuple[Expression | None, ...]) -> Expression | None:
            if any(operand is None for operand in operands):
                return None
            known = [operand for operand in operands if operand is not None]
            if op.name == "pow" and isinstance(known[1].head, float) and known[1].head > 0.0:
                return self.power(known[0], known[1].head)
            return Expression.of(op, *known) if self.has(op.name) else None

        return expression.fold(Expression.of, node)

    def product(self, product: Product) -> Expression | None:
        """The product as an expression; None where the operators cannot write it."""
        above: list[Expression] = []
        below: list[Expression] = []
        for name, exponent in product.powers:
            power = self.power(Expression.of(name), abs(exponent))
            if power is None:
                return None
            (above if exponent > 0.0 else below).append(power)
        above += product.atoms
        if max(len(above), len(below)) > 1 and not self.has("mul"):
            return None
        return self.quotient(self.joined(above), self.joined(below))


@dataclass(frozen=True, slots=True)
class Outer:
    """An outer function: the target is ``write(s)``, so that ``s`` is ``undo(target)``.

    Parameters
    ----------
    needs : tuple of str
        Operators it is written with; ``"/"`` stands for a quotient.
    undo : callable
        Target -> s; ``nan`` where there is none.
    slope : callable
        Derivative of the function at s.
    """

    name: str
    needs: tuple[str, ...]
    undo: Function
    slope: Function
    write: Callable[[Writer, Expression], Expression | None]

    def is_allowed(self, writer: Writer) -> bool:
        return writer.has(*(name for name in self.needs if name != "/")) and (
            "/" not in self.needs or writer.can_divide
        )


def _unary(name: str) -> Callable[[Writer, Expression], Expression | None]:
    return lambda writer, s: Expression.of(name, s)


def _over(name: str | None) -> Callable[[Writer, Expression], Expression | None]:
    return lambda writer, s: writer.quotient(None, s if name is None else Expression.of(name, s))


def _shifted_exp(shift: float) -> Callable[[Writer, Expression], Expression | None]:
    return lambda writer, s: Expression.of("add", Expression.of("exp", s), Expression.of(shift))


def _where(is_valid: Function, formula: Function) -> Function:
    return lambda t: np.where(is_valid(t), formula(t), np.nan)


def _positive(t: FloatArray) -> Any:
    return t > 0.0


def _within_one(t: FloatArray) -> Any:
    return np.abs(t) <= 1.0


OUTERS: dict[str, Outer] = {
    outer.name: outer
    for outer in (
        Outer("sqrt", ("sqrt",), _where(lambda t: t >= 0.0, np.square), lambda s: 0.5 / np.sqrt(s), _unary("sqrt")),
        Outer("square", ("square",), _where(lambda t: t >= 0.0, np.sqrt), lambda s: 2.0 * s, _unary("square")),
        Outer("inverse", ("/",), lambda t: 1.0 / t, lambda s: -1.0 / s**2, _over(None)),
        Outer(
            "inverse sqrt", ("/", "sqrt"), _where(_positive, lambda t: t**-2.0), lambda s: -0.5 * s**-1.5, _over("sqrt")
        ),
        Outer(
            "inverse square",
            ("/", "square"),
            _where(_positive, lambda t: t**-0.5),
            lambda s: -2.0 * s**-3.0,
            _over("square"),
        ),
        Outer("exp", ("exp",), _where(_positive, np.log), np.exp, _unary("exp")),
        Outer("log", ("log",), _where(lambda t: np.abs(t) < 40.0, np.exp), lambda s: 1.0 / s, _unary("log")),
        Outer("sin", ("sin",), _where(_within_one, np.arcsin), np.cos, _unary("sin")),
        Outer("cos", ("cos",), _where(_within_one, np.arccos), np.sin, _unary("cos")),
        Outer(
            "arcsin",
            ("arcsin",),
            _where(lambda t: np.abs(t) <= np.pi / 2.0, np.sin),
            lambda s: 1.0 / np.sqrt(np.maximum(1.0 - s * s, 1e-6)),
            _unary("arcsin"),
        ),
        Outer("tanh", ("tanh",), _where(_within_one, np.arctanh), lambda s: 1.0 - np.tanh(s) ** 2, _unary("tanh")),
        Outer("exp - 1", ("exp", "add"), _where(lambda t: t > -1.0, np.log1p), np.exp, _shifted_exp(-1.0)),
        Outer(
            "exp + 1", ("exp", "add"), _where(lambda t: t > 1.0, lambda t: np.log(t - 1.0)), np.exp, _shifted_exp(1.0)
        ),
    )
}
