"""Phases between -π and π, quarter turns as the other function, signs outside; powers of exponentials as exponentials.

A fit finds sin(u + 29.85) as readily as -cos(u), because it ends in the nearest minimum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from sobolev_novelty.algebra.writing import ONE, scaled, summands, weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator

_ADD, _SUB, _MUL, _DIV, _NEG, _EXP = (OPERATORS[name] for name in ("add", "sub", "mul", "div", "neg", "exp"))
#: A phase that is a quarter turn to this accuracy, relative to its size as it was found, is one; the phase of a fit
#: that went astray is large enough for any number to be one within rounding.
_ROUNDING, _LEAST_ACCURACY = 1e-13, 1e-9
#: Enough digits for the remainder of every float that a fit ends in.
_PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
#: Beyond this half turns are not counted: no row tells such a phase from none.
_LARGEST = 1e60
#: What sin(u + k π/2) is: the function and its sign, for k from 0 on; so for the others.
_TURNED = {
    "sin": (("sin", 1.0), ("cos", 1.0), ("sin", -1.0), ("cos", -1.0)),
    "cos": (("cos", 1.0), ("sin", -1.0), ("cos", -1.0), ("sin", 1.0)),
    "tan": (("tan", 1.0), ("cot", -1.0)),
    "cot": (("cot", 1.0), ("tan", -1.0)),
}
_POWERS = {"sqrt": 0.5, "cbrt": 1.0 / 3.0, "square": 2.0, "cube": 3.0, "inv": -1.0}


def with_plain_waves(expression: Expression, *, turns: bool = True) -> Expression:
    """The expression with small phases, signs drawn out of waves, and exponentials in place of their powers.

    ``turns``: whether a quarter turn may become the other function; it may not be allowed.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(with_plain_waves(parse("2*sin(x0 + 7)").with_constants([2.0, 9.5 * math.pi])))
    '-2*cos(x0)'
    >>> str(with_plain_waves(parse("sqrt(exp(-square(x0)))"))), str(with_plain_waves(parse("cos(2*(x0 + 5))")))
    ('exp(-0.5*square(x0))', 'cos(2*(x0 - 1.2831853071795865))')
    """

    def node(operator: Operator, parts: tuple[Expression, ...]) -> Expression:
        if operator.name in _TURNED:
            return _without_sign(_turned(Expression.of(operator, *parts), turns=turns))
        if operator.name in _POWERS and parts[0].head is _EXP:
            return _raised(parts[0], _POWERS[operator.name])
        if operator is _MUL and _NEG in (parts[0].head, parts[1].head):
            return _product(*parts)
        if operator in (_ADD, _SUB) and parts[1].head is _NEG:
            return Expression.of("sub" if operator is _ADD else "add", parts[0], parts[1].children[0])
        return Expression.of(operator, *parts)

    return expression.fold(Expression.of, node)


def with_small_phases(expression: Expression) -> Expression:
    """The same form with the phase of every wave within one period: only constants change.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(with_small_phases(parse("cos((x0 - 100)/4) + tan(2*x0 + 10)")))
    'cos((x0 - (-0.5309649148733836))/4) + tan(2*x0 + 0.5752220392306203)'
    """
    values = list(expression.tokens)
    for place, token in enumerate(expression.tokens):
        if isinstance(token, Operator) and token.name in _TURNED and expression.subtree(place).variables:
            parts = list(_phase_parts(expression, place + 1, Fraction(1)))
            phase = sum((c * weight for c, weight, _ in parts), Fraction(0))
            small = _remainder(phase, token.name)
            if abs(small) < abs(phase):
                c, weight, largest = max(parts, key=lambda part: abs(part[0] * part[1]))
                values[largest] = float(c + (small - phase) / weight)
    return expression if tuple(values) == expression.tokens else Expression(tuple(values))


def _with_plain_signs(expression: Expression) -> Expression:
    """X - (-1) as x + 1."""

    def node(operator: Operator, parts: tuple[Expression, ...]) -> Expression:
        if operator in (_ADD, _SUB) and isinstance(parts[1].head, float) and parts[1].head < 0.0:
            return Expression.of("sub" if operator is _ADD else "add", parts[0], -parts[1].head)
        return Expression.of(operator, *parts)

    return expression.fold(Expression.of, node)


def _remainder(phase: Fraction, wave: str) -> Fraction:
    """The phase within one period of the wave about 0."""
    period = len(_TURNED[wave]) * _PI / 2
    return phase - round(phase / period) * period if abs(phase) < _LARGEST else Fraction(0)


def _phase_parts(e: Expression, place: int, weight: Fraction) -> Iterator[tuple[Fraction, Fraction, int]]:
    """Numbers that are added to the argument of a wave: the number, its factor, its place."""
    token = e.tokens[place]
    if isinstance(token, float) and token:
        yield Fraction(token), weight, place
    if not isinstance(token, Operator) or token not in (_ADD, _SUB, _MUL, _DIV, _NEG):
        return
    first = place + 1
    if token is _NEG:
        yield from _phase_parts(e, first, -weight)
        return
    second = e.end(first)
    left, right = e.tokens[first], e.tokens[second]
    if token in (_ADD, _SUB):
        yield from _phase_parts(e, first, weight)
        yield from _phase_parts(e, second, -weight if token is _SUB else weight)
    elif isinstance(right, float) and right:
        yield from _phase_parts(e, first, weight * Fraction(right) if token is _MUL else weight / Fraction(right))
    elif token is _MUL and isinstance(left, float) and left:
        yield from _phase_parts(e, second, weight * Fraction(left))


def _product(*parts: Expression) -> Expression:
    """a·(-b) as -(a·b), or as (-a)·b for a number a."""
    a, b = (e.children[0] if e.head is _NEG else e for e in parts)
    if parts[0].head is _NEG and parts[1].head is _NEG:
        return Expression.of("mul", a, b)
    return Expression.of("mul", -a.head, b) if isinstance(a.head, float) else scaled(-1.0, Expression.of("mul", a, b))


def _without_sign(wave: Expression) -> Expression:
    """sin(-u) as -sin(u), cos(-u) as cos(u)."""
    if wave.head is _NEG:
        inner = _without_sign(wave.children[0])
        return inner.children[0] if inner.head is _NEG else Expression.of("neg", inner)
    u = wave.children[0]
    if u.head is _MUL and isinstance(u.children[0].head, float) and u.children[0].head < 0.0:
        u = scaled(-u.children[0].head, u.children[1])
    elif u.head is _NEG:
        u = u.children[0]
    else:
        return wave
    made = Expression.of(wave.head, u)
    return made if wave.head is OPERATORS["cos"] else Expression.of("neg", made)


def _raised(e: Expression, power: float) -> Expression:
    """exp(u) to a power, as an exponential."""
    u = e.children[0]
    if u.head is _NEG:
        power, u = -power, u.children[0]
    if u.head is _MUL and isinstance(u.children[0].head, float):
        power, u = power * u.children[0].head, u.children[1]
    return Expression.of("exp", scaled(power, u))


def _turned(wave: Expression, *, turns: bool) -> Expression:
    """A wave with its phase within one period about 0, or without one."""
    factor, inside = 1.0, wave.children[0]
    if inside.head is _MUL and isinstance(inside.children[0].head, float):
        factor, inside = inside.children[0].head, inside.children[1]
    parts = summands(inside)
    rest = [(c, part) for c, part in parts if part != ONE]
    phase = Fraction(factor) * sum((Fraction(c) for c, part in parts if part == ONE), Fraction(0))
    if not phase or not rest:
        return _with_plain_signs(with_small_phases(wave))
    name = wave.head.name if isinstance(wave.head, Operator) else ""
    small = float(_remainder(phase, name))
    quarters = round(small / (0.5 * math.pi))
    accuracy = min(_ROUNDING * max(1.0, float(min(abs(phase), Fraction(_LARGEST)))), _LEAST_ACCURACY)
    if turns and abs(small - quarters * 0.5 * math.pi) <= accuracy:
        other, sign = _TURNED[name][quarters % len(_TURNED[name])]
        return scaled(sign, Expression.of(other, scaled(factor, weighted_sum(rest))))
    if abs(small) >= abs(phase):
        return _with_plain_signs(with_small_phases(wave))
    return Expression.of(name, scaled(factor, weighted_sum([*rest, (small / factor, ONE)])))
