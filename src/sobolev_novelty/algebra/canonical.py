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
    # Expression.fold, with its two functions written out: this is where a search spends most of its time in Python.
    stack: list[Sum] = []
    for token in reversed(expression.tokens):
        if isinstance(token, str):
            stack.append([(1.0, False, _variable(token))])
        elif isinstance(token, float):
            stack.append([(token, not tidy, None)])
        elif token.arity == 1:
            stack.append(_joined(token, (stack.pop(),), tidy=tidy))
        else:
            first = stack.pop()
            stack.append(_joined(token, (first, stack.pop()), tidy=tidy))
    return tuple(stack[0])


@lru_cache(maxsize=1 << 10)
def _variable(name: str) -> Expression:
    return Expression._trusted((name,))


def _joined(op: Operator, operands: tuple[Sum, ...], *, tidy: bool) -> Sum:
    for operand in operands:
        if len(operand) != 1 or operand[0][2] is not None:
            break
    else:  # sums add up their constants
        number = folded(op, [operand[0][0] for operand in operands])
        if number is not None:
            return [(number, not tidy, None)]
    rule = _RULES.get(op.name)
    result = rule(*operands) if rule else None
    if result is None:
        result = [(1.0, False, _apply(op, *[_build(operand) for operand in operands]))]
    return _cleared(result) if tidy else result


def _cleared(parts: Sum) -> Sum:
    """Without parts that vanish; and a sum that only a sign is left to stand before, as its parts."""
    kept = [part for part in parts if part[0] != 0.0] or [(0.0, False, None)]
    if len(kept) > 1:
        return kept
    sign, _, e = kept[0]
    if abs(sign) == 1.0 and e is not None and e.tokens[0] in (_ADD, _SUB):
        return [(sign * c, explicit, inner) for c, explicit, inner in _sum_of(e, tidy=True)]
    return kept


def _add(left: Sum, right: Sum) -> Sum:
    both = left + right
    constants = [part for part in both if part[2] is None]
    if len(constants) < 2:
        return both
    total: Part = (math.fsum(c for c, _, _ in constants), any(flag for _, flag, _ in constants), None)
    return [part for part in both if part[2] is not None] + [total]


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
    if parts[0][0] >= 0.0:
        return parts
    for first, part in enumerate(parts):
        if part[0] >= 0.0:
            return [part, *parts[:first], *parts[first + 1 :]]
    return parts


def _collapse(parts: Sum) -> Part:
    """A sum as one factor: the magnitude of the coefficient of the variable part written first stands before it."""
    if len(parts) == 1:
        return parts[0]
    for leading in _ordered(parts):
        if leading[2] is not None and leading[0] != 0.0:
            break
    else:
        return 1.0, False, _build(parts)
    scale = abs(leading[0])
    for part in parts:
        if not part[0] <= 0.0:
            break
    else:
        scale = -scale
    is_free = leading[1]
    # The leading part carries no constant; any other one does where its own or the leading coefficient could move.
    ratios = [(part[0] / scale, part is not leading and (part[1] or is_free), part[2]) for part in parts]
    return scale, is_free, _build(ratios)


def _build(parts: Sequence[Part]) -> Expression:
    """The sum as an expression."""
    if len(parts) == 1:
        c, explicit, e = parts[0]
        if e is not None and c == 1.0 and not explicit:
            return e
        return Expression._trusted(_scaled(c, explicit, e))
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
    tokens = e.tokens
    if not explicit:
        if c == 1.0:
            return tokens
        if c == -1.0:
            return (_NEG, *tokens)
    if c != 1.0 and tokens[0] is _DIV and tokens[1] == 1.0:
        return (_DIV, c, *tokens[2:])
    return (_MUL, c, *tokens)


def _apply(op: Operator, *operands: Expression) -> Expression:
    if len(operands) == 1:
        return Expression._trusted((op, *operands[0].tokens))
    left, right = operands
    return Expression._trusted((op, *left.tokens, *right.tokens))
