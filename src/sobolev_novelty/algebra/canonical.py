r"""One canonical writing: signs and numeric factors in their places, constants folded, nothing distributed.

Notation
--------
A *part* is ``(c, is_explicit, e)``: the number ``c`` times the expression ``e`` (``None`` for 1); ``is_explicit`` says
that a constant of the expression stands behind ``c``, so that a fit may change it. A *sum* is a list of parts.

Numeric factors move out of products, quotients, powers and roots, where they would only repeat the coefficient:
:math:`\sqrt{2 + 2x} = \sqrt2\,\sqrt{1 + x}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from sobolev_novelty.algebra.products import EXPONENTS, folded, real_power
from sobolev_novelty.algebra.writing import ONE, denominator_of, multiplied
from sobolev_novelty.expression import Expression, Token
from sobolev_novelty.operators import OPERATORS, Operator

Part = tuple[float, bool, Expression | None]
Sum = list[Part]

_POW, _DIV, _MUL, _ADD, _SUB, _NEG = (OPERATORS[name] for name in ("pow", "div", "mul", "add", "sub", "neg"))

#: Sums up to this many nodes are taken apart summand by summand.
MAX_SUM_IN_PARTS = 200
#: Larger numbers stay inside an exponential.
MAX_EXPONENT = 300.0


def canonical_terms(expression: Expression) -> tuple[Expression, ...]:
    """The terms of the top-level sum without their coefficients, each once, with every constant a fit may change.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> [str(term) for term in canonical_terms(parse("3*x0*(x1 + 2) - sqrt(4*x0 + 8) + 5"))]
    ['x0*(x1 + 2)', 'sqrt(x0 + 2)', '1']
    """
    return tuple(dict.fromkeys(ONE if e is None else e for _, _, e in _sum_of(expression, tidy=False)))


def assemble(terms: Sequence[Expression], coefficients: Sequence[float]) -> Expression:
    """The fitted expression, written as briefly as the operators allow; terms with coefficient 0 are left out.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> str(assemble([parse("x0"), parse("exp(-1*x1)"), ONE], [2.0, -1.0, 0.0]))
    '2*x0 - exp(-x1)'
    """
    parts: Sum = []
    for term, coefficient in zip(terms, coefficients, strict=True):
        c, explicit, e = _collapse(_sum_of(term, tidy=True))  # a term that is a sum stays whole
        parts.append((c * float(coefficient), explicit, e))
    return _build([part for part in parts if part[0] != 0.0])


def tidy(expression: Expression) -> Expression:
    """The same expression with signs and numeric factors written canonically.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> str(tidy(parse("x0 + (-0.5)*x1*2 + sin(1*x0)")))
    'x0 - x1 + sin(x0)'
    """
    return _build([part for part in _sum_of(expression, tidy=True) if part[0] != 0.0])


def _sum_of(expression: Expression, *, tidy: bool) -> Sum:
    """The canonical sum.

    With ``tidy`` a factor 1 is no constant any more; without, it is kept because the fit may change it.
    """
    # A search meets the same summands in many sums; a sum too long for that is folded without recursion.
    if expression.tokens[0] is _ADD and len(expression) <= MAX_SUM_IN_PARTS:
        left, right = expression.children
        return _joined(_ADD, (_sum_of(left, tidy=tidy), _sum_of(right, tidy=tidy)), tidy=tidy)
    return list(_summand(expression, tidy))


@lru_cache(maxsize=1 << 15)
def _summand(expression: Expression, tidy: bool) -> tuple[Part, ...]:
    def leaf(token: float | str) -> Sum:
        return [(token, not tidy, None) if isinstance(token, float) else (1.0, False, Expression._trusted((token,)))]

    whole: Sum = expression.fold(leaf, lambda op, operands: _joined(op, operands, tidy=tidy))
    return tuple(whole)


def _joined(op: Operator, operands: tuple[Sum, ...], *, tidy: bool) -> Sum:
    if all(len(operand) == 1 and operand[0][2] is None for operand in operands):  # sums add up their constants
        number = folded(op, [operand[0][0] for operand in operands])
        if number is not None:
            return [(number, not tidy, None)]
    rule = _RULES.get(op.name)
    result = rule(*operands) if rule else None
    if result is None:
        result = [(1.0, False, _apply(op, *(_build(operand) for operand in operands)))]
    return _cleared(result) if tidy else result


def _cleared(parts: Sum) -> Sum:
    """Without parts that vanish; and a sum that only a sign is left to stand before, as its parts."""
    kept = [part for part in parts if part[0] != 0.0] or [(0.0, False, None)]
    sign, _, e = kept[0]
    if len(kept) == 1 and abs(sign) == 1.0 and e is not None and e.head in (_ADD, _SUB):
        return [(sign * c, explicit, inner) for c, explicit, inner in _sum_of(e, tidy=True)]
    return kept


def _add(left: Sum, right: Sum) -> Sum:
    constants = [part for part in left + right if part[2] is None]
    if len(constants) < 2:
        return left + right
    total: Part = (math.fsum(c for c, _, _ in constants), any(flag for _, flag, _ in constants), None)
    return [part for part in left + right if part[2] is not None] + [total]


def _neg(operand: Sum) -> Sum:
    return [(-c, explicit, e) for c, explicit, e in operand]


def _mul(left: Sum, right: Sum) -> Sum:
    a, explicit_a, x = _collapse(left)
    b, explicit_b, y = _collapse(right)
    product = y if x is None else x if y is None else multiplied(x, y)
    return [(a * b, explicit_a or explicit_b, product)]


def _div(left: Sum, right: Sum) -> Sum | None:
    a, explicit_a, x = _collapse(left)
    b, explicit_b, y = _collapse(right)
    if b == 0.0:
        return None
    quotient = x if y is None else _over(ONE if x is None else x, y)
    return [(a / b, explicit_a or explicit_b, quotient)]


def _over(x: Expression, y: Expression) -> Expression:
    """x/y; with y = 1/q a product."""
    q = denominator_of(y)
    if q is None or isinstance(q.head, float):  # 1/0 stays what it is
        return _apply(_DIV, x, y)
    return q if x is ONE else multiplied(x, q)


def _raised(name: str, exponent: float, operand: Sum) -> Sum | None:
    c, explicit, e = _collapse(operand)
    factor = None if e is None else real_power(c, exponent)
    if e is None or factor is None:
        return None
    if name == "inv":
        return [(factor, explicit, _over(ONE, e))]
    exponents = (Expression.of(exponent),) if name == "pow" else ()
    return [(factor, explicit, _apply(OPERATORS[name], e, *exponents))]


def _pow(base: Sum, exponent: Sum) -> Sum | None:
    if len(exponent) == 1 and exponent[0][2] is None:
        return _raised("pow", exponent[0][0], base)
    return None


def _exp(operand: Sum) -> Sum | None:
    """exp(a + s) = exp(a) exp(s): the constant repeats the coefficient."""
    constant = sum(c for c, _, e in operand if e is None)
    rest = [part for part in operand if part[2] is not None]
    if len(rest) == len(operand) or abs(constant) > MAX_EXPONENT:
        return None
    return [(math.exp(constant), True, _apply(OPERATORS["exp"], _build(rest)))]


_RULES: dict[str, Callable[..., Sum | None]] = {
    "add": _add,
    "sub": lambda left, right: _add(left, _neg(right)),
    "neg": _neg,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "exp": _exp,
    **{name: lambda operand, name=name, p=p: _raised(name, p, operand) for name, p in EXPONENTS.items()},
}


def _ordered(parts: Sequence[Part]) -> Sequence[Part]:
    """As they are written: the first positive part in front, where there is one."""
    first = next((i for i, part in enumerate(parts) if part[0] >= 0.0), 0)
    return [parts[first], *parts[:first], *parts[first + 1 :]] if first else parts


def _collapse(parts: Sum) -> Part:
    """A sum as one factor: the magnitude of the coefficient of the variable part written first stands before it."""
    if len(parts) == 1:
        return parts[0]
    leading = next((part for part in _ordered(parts) if part[2] is not None and part[0] != 0.0), None)
    if leading is None:
        return 1.0, False, _build(parts)
    scale = abs(leading[0])
    if all(c <= 0.0 for c, _, _ in parts):
        scale = -scale
    ratios: Sum = []
    for part in parts:
        c, explicit, e = part
        # The leading part carries no constant; any other one does where its own or the leading coefficient could move.
        ratios.append((c / scale, part is not leading and (explicit or leading[1]), e))
    return scale, leading[1], _build(ratios)


def _build(parts: Sequence[Part]) -> Expression:
    """The sum as an expression."""
    if not parts:
        return Expression.of(0.0)
    first, *others = _ordered(parts)
    # Sums nest to the left, so in prefix order all their operators come first, the last one in front.
    operators: list[Token] = []
    operands: list[Token] = list(_scaled(*first))
    for c, explicit, e in others:
        # A free constant keeps its sign within, so that the fit may change it.
        operators.append(_SUB if c < 0.0 else _ADD)
        operands += _scaled(abs(c), explicit, e)
    return Expression._trusted((*reversed(operators), *operands))


def _scaled(c: float, explicit: bool, e: Expression | None) -> tuple[Token, ...]:
    """Tokens of c·e."""
    if not math.isfinite(c):
        return Expression.of(c).tokens  # raises, and says why
    if e is None:
        return (c,)
    if not explicit:
        if c == 1.0:
            return e.tokens
        if c == -1.0:
            return (_NEG, *e.tokens)
    if c != 1.0 and e.tokens[0] is _DIV and e.tokens[1] == 1.0:
        return (_DIV, c, *e.tokens[2:])
    return (_MUL, c, *e.tokens)


def _apply(op: Operator, *operands: Expression) -> Expression:
    tokens: tuple[Token, ...] = (op,)
    for operand in operands:
        tokens += operand.tokens
    return Expression._trusted(tokens)
