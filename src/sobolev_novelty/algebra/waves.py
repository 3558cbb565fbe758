"""Phases between -π and π, quarter turns as the other function, signs outside; powers of exponentials as exponentials.

A fit finds sin(u + 29.85) as readily as -cos(u), because it ends in the nearest minimum.
"""

from __future__ import annotations

import math

from sobolev_novelty.algebra.writing import ONE, scaled, summands, weighted_sum
from sobolev_novelty.expression import Expression
from sobolev_novelty.operators import OPERATORS, Operator

_ADD, _SUB, _MUL, _NEG, _EXP = (OPERATORS[name] for name in ("add", "sub", "mul", "neg", "exp"))
#: A phase that is a quarter turn to this accuracy, relative to its size as it was found, is one.
_ROUNDING = 1e-13
#: sin(u + k π/2) and cos(u + k π/2): the function and its sign, for k = 0 to 3.
_TURNED = {
    "sin": (("sin", 1.0), ("cos", 1.0), ("sin", -1.0), ("cos", -1.0)),
    "cos": (("cos", 1.0), ("sin", -1.0), ("cos", -1.0), ("sin", 1.0)),
}
_POWERS = {"sqrt": 0.5, "cbrt": 1.0 / 3.0, "square": 2.0, "cube": 3.0, "inv": -1.0}


def with_plain_waves(expression: Expression, *, turns: bool = True) -> Expression:
    """The expression with small phases, signs drawn out of waves, and exponentials in place of their powers.

    Parameters
    ----------
    turns : bool
        Whether a quarter turn may become the other function; it may not be allowed.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> str(with_plain_waves(parse("2*sin(x0 + 7)").with_constants([2.0, 9.5 * math.pi])))
    '-2*cos(x0)'
    >>> str(with_plain_waves(parse("sqrt(exp(-square(x0)))"))), str(with_plain_waves(parse("cos(2*(x0 + 5))")))
    ('exp(-0.5*square(x0))', 'cos(2*(x0 - 1.2831853071795862))')
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
    """A sine or cosine with its phase between -π and π, or without one."""
    factor, inside = 1.0, wave.children[0]
    if inside.head is _MUL and isinstance(inside.children[0].head, float):
        factor, inside = inside.children[0].head, inside.children[1]
    parts = summands(inside)
    rest = [(c, part) for c, part in parts if part != ONE]
    phase = factor * sum(c for c, part in parts if part == ONE)
    if phase == 0.0 or not rest or not math.isfinite(phase):
        return wave
    name = wave.head.name if isinstance(wave.head, Operator) else ""
    small = math.remainder(phase, 2.0 * math.pi)
    quarters = round(small / (0.5 * math.pi))
    if turns and abs(small - quarters * 0.5 * math.pi) <= _ROUNDING * max(1.0, abs(phase)):
        other, sign = _TURNED[name][quarters % 4]
        return scaled(sign, Expression.of(other, scaled(factor, weighted_sum(rest))))
    if abs(small) >= abs(phase):
        return wave
    return Expression.of(name, scaled(factor, weighted_sum([*rest, (small / factor, ONE)])))
