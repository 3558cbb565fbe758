"""Small builders of expressions that keep the node count low."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

from sobolev_novelty.expression import Expression
from sobolev_novelty.operators import Operator


def raised(base: Expression, power: float) -> Expression:
    """``base`` to a positive power, by the cheapest operators.

    Examples
    --------
    >>> str(raised(Expression.of("x0"), 2.0)), str(raised(Expression.of("x0"), 1.5))
    ('square(x0)', 'sqrt(cube(x0))')
    """
    if power == 1.0:
        return base
    if power == 2.0:
        return Expression.of("square", base)
    if power == 3.0:
        return Expression.of("cube", base)
    if power == 4.0:
        return Expression.of("square", Expression.of("square", base))
    if power == 6.0:
        return Expression.of("square", Expression.of("cube", base))
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
        root = Expression.of("sqrt", product([(base, 2.0 * power) for base, power in halves]))
        return product([*whole, (root, 1.0)])
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
    """The expression in the allowed operators alone: powers as products, 1/x as a quotient; None where that cannot be done.

    Examples
    --------
    >>> str(respelled(raised(Expression.of("x0"), 3.0), ("mul",)))
    'x0*x0*x0'
    >>> respelled(Expression.of("sin", "x0"), ("mul",)) is None
    True
    """

    def node(op: Operator, operands: tuple[Expression | None, ...]) -> Expression | None:
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        if op.name in operators:
            return Expression.of(op, *known)
        return _spelled_out(op.name, known, operators)

    return expression.fold(lambda leaf: Expression.of(leaf), node)


def _spelled_out(name: str, operands: list[Expression], operators: Collection[str]) -> Expression | None:
    first = operands[0]
    if name in ("square", "cube") and "mul" in operators:
        return _repeated(first, 2 if name == "square" else 3)
    if name == "inv" and "div" in operators:
        return Expression.of("div", 1.0, first)
    if name == "neg" and "mul" in operators:
        return Expression.of("mul", -1.0, first)
    if name == "sub" and {"add", "mul"} <= set(operators):
        return Expression.of("add", first, Expression.of("mul", -1.0, operands[1]))
    if name == "div" and {"mul", "inv"} <= set(operators):
        return Expression.of("mul", first, Expression.of("inv", operands[1]))
    if name == "pow":
        return _whole_power(first, operands[1].head, operators)
    return None


def _whole_power(base: Expression, power: object, operators: Collection[str]) -> Expression | None:
    if (
        not isinstance(power, float)
        or not power.is_integer()
        or not 1.0 <= abs(power) <= 12.0
        or "mul" not in operators
    ):
        return None
    whole = _repeated(base, int(abs(power)))
    return whole if power > 0.0 else respelled(Expression.of("inv", whole), operators)


def _repeated(base: Expression, count: int) -> Expression:
    total = base
    for _ in range(count - 1):
        total = Expression.of("mul", total, base)
    return total
