"""Small builders of expressions that keep the node count low."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction

from sobolev_novelty.expression import Expression
from sobolev_novelty.operators import OPERATORS, Operator

#: Powers that one or two unary operators give, innermost first.
_CHEAP = {2.0: ("square",), 3.0: ("cube",), 4.0: ("square", "square"), 6.0: ("cube", "square")}


def raised(base: Expression, power: float) -> Expression:
    """``base`` to a positive power, by the cheapest operators.

    Examples
    --------
    >>> str(raised(Expression.of("x0"), 2.0)), str(raised(Expression.of("x0"), 1.5))
    ('square(x0)', 'sqrt(cube(x0))')
    """
    if power == 1.0:
        return base
    if power in _CHEAP:
        for name in _CHEAP[power]:
            base = Expression.of(name, base)
        return base
    if power > 0.0 and (2.0 * power).is_integer() and not power.is_integer():
        return Expression.of("sqrt", raised(base, 2.0 * power))
    return Expression.of("pow", base, power)


def product(factors: Iterable[tuple[Expression, float]]) -> Expression:
    """The product of powers; square roots are taken together.

    Examples
    --------
    >>> x, y = Expression.of("x0"), Expression.of("x1")
    >>> str(product([(x, 1.0), (y, -2.0)])), str(product([(x, 0.5), (y, -0.5)]))
    ('x0/square(x1)', 'sqrt(x0/x1)')
    """
    listed = [(base, power) for base, power in factors if power]
    halves = [(base, power) for base, power in listed if (2.0 * power).is_integer() and not power.is_integer()]
    if len(halves) > 1 or (len(halves) == 1 and halves[0][1] < 0.0):
        whole = [(base, power) for base, power in listed if (base, power) not in halves]
        # All below the line: one root in the denominator; otherwise one root over a quotient.
        side = -1.0 if whole and all(power < 0.0 for _, power in halves) else 1.0
        root = Expression.of("sqrt", product([(base, 2.0 * side * power) for base, power in halves]))
        return product([*whole, (root, side)])
    above = [(base, power) for base, power in listed if power > 0.0]
    below = [(base, -power) for base, power in listed if power < 0.0]
    if not below:
        return _joined(above) if above else Expression.of(1.0)
    if not above:
        return Expression.of("inv", _joined(below))
    return Expression.of("div", _joined(above), _joined(below))


def _joined(factors: Sequence[tuple[Expression, float]]) -> Expression:
    """A product of positive powers; equal powers are taken together where that saves nodes."""
    by_power: dict[float, list[Expression]] = {}
    for base, power in factors:
        by_power.setdefault(power, []).append(base)
    parts = []
    for power, bases in by_power.items():
        whole = bases[0]
        for base in bases[1:]:
            whole = Expression.of("mul", whole, base)
        parts.append(raised(whole, power))
    total = parts[0]
    for part in parts[1:]:
        total = Expression.of("mul", total, part)
    return total


def weighted_sum(parts: Sequence[tuple[float, Expression]]) -> Expression:
    """Σ c·e, with unit coefficients left out."""
    total: Expression | None = None
    for coefficient, part in parts:
        size = coefficient if total is None else abs(coefficient)
        if part.tokens == (1.0,):
            scaled = Expression.of(size)
        elif size == 1.0:
            scaled = part
        elif size == -1.0:
            scaled = Expression.of("neg", part)
        else:
            scaled = Expression.of("mul", size, part)
        total = scaled if total is None else Expression.of("add" if coefficient >= 0.0 else "sub", total, scaled)
    return Expression.of(0.0) if total is None else total


def nearest_simple(value: float, tolerance: float) -> float | None:
    """The simplest fraction with denominator 1, 2, 3 or 4 within ``tolerance``, if any.

    Examples
    --------
    >>> nearest_simple(0.50001, 1e-3), nearest_simple(0.41, 1e-3)
    (0.5, None)
    """
    for denominator in (1, 2, 3, 4):
        candidate = round(value * denominator) / denominator
        if abs(candidate - value) <= tolerance:
            return float(Fraction(round(value * denominator), denominator))
    return None


def respelled(expression: Expression, operators: Collection[str]) -> Expression | None:
    """The expression in the allowed operators alone: powers as products, 1/x as a quotient; None where that cannot be
    done.

    Examples
    --------
    >>> str(respelled(raised(Expression.of("x0"), 3.0), ("mul",)))
    'x0*x0*x0'
    >>> respelled(Expression.of("sin", "x0"), ("mul",)) is None
    True
    """

    if all(token.name in operators for token in expression.tokens if isinstance(token, Operator)):
        return expression

    def node(op: Operator, operands: tuple[Expression | None, ...]) -> Expression | None:
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        if op.name in operators:
            return Expression.of(op, *known)
        return _spelled_out(op.name, known, operators)

    def leaf(token: float | str) -> Expression | None:
        return Expression.of(token)

    return expression.fold(leaf, node)


def _spelled_out(name: str, operands: list[Expression], operators: Collection[str]) -> Expression | None:
    first, last = operands[0], operands[-1]
    if name == "pow":
        return _whole_power(first, last.head, operators)
    spellings: dict[str, tuple[tuple[str, ...], Callable[[], Expression]]] = {
        "square": (("mul",), lambda: _repeated(first, 2)),
        "cube": (("mul",), lambda: _repeated(first, 3)),
        "inv": (("div",), lambda: Expression.of("div", 1.0, first)),
        "neg": (("mul",), lambda: Expression.of("mul", -1.0, first)),
        "sub": (("add", "mul"), lambda: Expression.of("add", first, Expression.of("mul", -1.0, last))),
        "div": (("mul", "inv"), lambda: Expression.of("mul", first, Expression.of("inv", last))),
    }
    if name not in spellings or not all(need in operators for need in spellings[name][0]):
        return None
    return spellings[name][1]()


def _whole_power(base: Expression, power: object, operators: Collection[str]) -> Expression | None:
    if (
        not isinstance(power, float)
        or not power.is_integer()
        or not 1.0 <= abs(power) <= 12.0
        or "mul" not in operators
    ):
        return None
    if base.head is OPERATORS["exp"]:
        return Expression.of("exp", Expression.of("mul", power, base.children[0]))
    whole = _repeated(base, int(abs(power)))
    return whole if power > 0.0 else respelled(Expression.of("inv", whole), operators)


def _repeated(base: Expression, count: int) -> Expression:
    total = base
    for _ in range(count - 1):
        total = Expression.of("mul", total, base)
    return total
