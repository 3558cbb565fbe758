r"""One canonical writing: signs and numeric factors in their places, constants folded, nothing distributed.

Notation
--------
A *part* is ``(c, is_explicit, e)``: the number ``c`` times the expression ``e`` (``None`` for 1); ``is_explicit`` says
that a constant of the expression stands behind ``c``, so that a fit may change it. A *sum* is a list of parts.
Within this module an expression is its bare tokens: this is where a search spends most of its time in Python.

Numeric factors move out of products, quotients, powers and roots, where they would only repeat the coefficient:
:math:`\sqrt{2 + 2x} = \sqrt2\,\sqrt{1 + x}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from sobolev_novelty.algebra.products import EXPONENTS, folded, real_power
from sobolev_novelty.algebra.writing import ONE, product_of, tokens_below
from sobolev_novelty.core.expression import Expression, Token, end_of_tree
from sobolev_novelty.core.operators import OPERATORS, Operator

Tokens = tuple[Token, ...]
Part = tuple[float, bool, Tokens | None]
Sum = list[Part]

_POW, _DIV, _MUL, _ADD, _SUB, _NEG, _EXP, _LOG, _INV = (
    OPERATORS[name] for name in ("pow", "div", "mul", "add", "sub", "neg", "exp", "log", "inv")
)

#: Sums up to this many nodes are taken apart summand by summand.
MAX_SUM_IN_PARTS = 200
#: Larger numbers stay inside an exponential.
MAX_EXPONENT = 300.0


def canonical_terms(expression: Expression) -> tuple[Expression, ...]:
    """The terms of the top-level sum without their coefficients, each once, with every constant a fit may change.

    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(term) for term in canonical_terms(parse("3*x0*(x1 + 2) - sqrt(4*x0 + 8) + 5"))]
    ['x0*(x1 + 2)', 'sqrt(x0 + 2)', '1']
    """
    terms = dict.fromkeys([ONE.tokens if e is None else e for _, _, e in _sum_of(expression.tokens, tidy=False)])
    return tuple([Expression._trusted(e) for e in terms])


def assemble(terms: Sequence[Expression], coefficients: Sequence[float]) -> Expression:
    """The fitted expression, written as briefly as the operators allow; terms with coefficient 0 are left out.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(assemble([parse("x0"), parse("exp(-1*x1)"), ONE], [2.0, -1.0, 0.0]))
    '2*x0 - exp(-x1)'
    """
    parts: Sum = []
    for term, coefficient in zip(terms, coefficients, strict=True):
        c, explicit, e = _collapse(_sum_of(term.tokens, tidy=True))  # a term that is a sum stays whole
        parts.append((c * float(coefficient), explicit, e))
    return Expression._trusted(_build([part for part in parts if part[0] != 0.0]))


def tidy(expression: Expression) -> Expression:
    """The same expression with signs and numeric factors written canonically.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(tidy(parse("x0 + (-0.5)*x1*2 + sin(1*x0)")))
    'x0 - x1 + sin(x0)'
    """
    return Expression._trusted(_build([part for part in _sum_of(expression.tokens, tidy=True) if part[0] != 0.0]))


def _sum_of(tokens: Tokens, *, tidy: bool) -> Sum:
    """The canonical sum.

    With ``tidy`` a factor 1 is no constant any more; without, it is kept because the fit may change it.
    """
    # A search meets the same summands in many sums; a sum too long for that is folded without recursion.
    if tokens[0] is _ADD and len(tokens) <= MAX_SUM_IN_PARTS:
        return _sum_from(tokens, 0, tidy)[0]
    return list(_summand(tokens, tidy))


def _sum_from(tokens: Tokens, start: int, tidy: bool) -> tuple[Sum, int]:
    """The sum of the tree that begins at ``start``, and where the tree ends."""
    if tokens[start] is _ADD:
        left, middle = _sum_from(tokens, start + 1, tidy)
        right, end = _sum_from(tokens, middle, tidy)
        return _of_two(_ADD, left, right, tidy), end
    end = end_of_tree(tokens, start)
    return list(_summand(tokens[start:end], tidy)), end


@lru_cache(maxsize=1 << 15)
def _summand(tokens: Tokens, tidy: bool) -> tuple[Part, ...]:
    # Expression.fold, with its two functions written out.
    stack: list[Sum] = []
    for token in reversed(tokens):
        if isinstance(token, Operator):
            first = stack.pop()
            if token.arity == 1:
                stack.append(_of_one(token, first, tidy))
            else:
                stack.append(_of_two(token, first, stack.pop(), tidy))
        elif isinstance(token, str):
            stack.append([(1.0, False, (token,))])
        else:
            stack.append([(token, not tidy, None)])
    return tuple(stack[0])


def _of_one(op: Operator, operand: Sum, tidy: bool) -> Sum:
    if len(operand) == 1 and operand[0][2] is None:
        number = folded(op, [operand[0][0]])
        if number is not None:
            return [(number, not tidy, None)]
    rule = _RULES_OF_ONE.get(op)
    result = None if rule is None else rule(operand)
    if result is None:
        return [(1.0, False, (op, *_build(operand)))]  # nothing to clear
    return _cleared(result) if tidy else result


def _of_two(op: Operator, left: Sum, right: Sum, tidy: bool) -> Sum:
    if len(left) == 1 and len(right) == 1 and left[0][2] is None and right[0][2] is None:
        number = folded(op, [left[0][0], right[0][0]])  # sums add up their constants
        if number is not None:
            return [(number, not tidy, None)]
    rule = _RULES_OF_TWO.get(op)
    result = None if rule is None else rule(left, right)
    if result is None:
        result = [(1.0, False, (op, *_build(left), *_build(right)))]
    return _cleared(result) if tidy else result


def _cleared(parts: Sum) -> Sum:
    """Without parts that vanish; and a sum that only a sign is left to stand before, as its parts."""
    if len(parts) > 1:
        parts = [part for part in parts if part[0] != 0.0]
        if len(parts) > 1:
            return parts
    if not parts or parts[0][0] == 0.0:
        return [(0.0, False, None)]
    sign, _, e = parts[0]
    if abs(sign) == 1.0 and e is not None and (e[0] is _ADD or e[0] is _SUB):
        return [(sign * c, explicit, inner) for c, explicit, inner in _sum_of(e, tidy=True)]
    return parts


def _add(left: Sum, right: Sum) -> Sum:
    both = left + right
    constants = [part for part in both if part[2] is None]
    if len(constants) < 2:
        return both
    total: Part = (math.fsum(c for c, _, _ in constants), any(flag for _, flag, _ in constants), None)
    return [part for part in both if part[2] is not None] + [total]


def _neg(operand: Sum) -> Sum:
    return [(-c, explicit, e) for c, explicit, e in operand]


def _sub(left: Sum, right: Sum) -> Sum:
    return _add(left, _neg(right))


def _mul(left: Sum, right: Sum) -> Sum:
    a, explicit_a, x = left[0] if len(left) == 1 else _collapse(left)
    b, explicit_b, y = right[0] if len(right) == 1 else _collapse(right)
    product = y if x is None else x if y is None else product_of(x, y)
    return [(a * b, explicit_a or explicit_b, product)]


def _div(left: Sum, right: Sum) -> Sum | None:
    a, explicit_a, x = left[0] if len(left) == 1 else _collapse(left)
    b, explicit_b, y = right[0] if len(right) == 1 else _collapse(right)
    if b == 0.0:
        return None
    return [(a / b, explicit_a or explicit_b, x if y is None else _over(x, y))]


def _over(x: Tokens | None, y: Tokens) -> Tokens:
    """x/y; with y = 1/q a product."""
    q = tokens_below(y)
    if q is None or isinstance(q[0], float):  # 1/0 stays what it is
        return (_DIV, *(x or ONE.tokens), *y)
    return q if x is None else product_of(x, q)


def _raised(op: Operator, exponent: float, operand: Sum) -> Sum | None:
    c, explicit, e = _collapse(operand)
    factor = None if e is None else real_power(c, exponent)
    if e is None or factor is None:
        return None
    if op is _INV:
        return [(factor, explicit, _over(None, e))]
    return [(factor, explicit, (op, *e, *_scaled(exponent, False, None)) if op is _POW else (op, *e))]


def _pow(base: Sum, exponent: Sum) -> Sum | None:
    if len(exponent) == 1 and exponent[0][2] is None:
        return _raised(_POW, exponent[0][0], base)
    return None


def _exp(operand: Sum) -> Sum | None:
    """exp(a + s) = exp(a) exp(s): the constant repeats the coefficient."""
    rest = [part for part in operand if part[2] is not None]
    if len(rest) == len(operand):
        return None
    constant = sum(c for c, _, e in operand if e is None)
    if abs(constant) > MAX_EXPONENT:
        return None
    return [(math.exp(constant), True, (_EXP, *_build(rest)))]


def _log(operand: Sum) -> Sum | None:
    """log(c exp(s)) = log c + s: what an undone logarithm leaves of a law that has an exponential outside."""
    c, explicit, e = operand[0]
    if len(operand) != 1 or e is None or e[0] is not _EXP or not c > 0.0:
        return None
    inner = _sum_of(e[1:], tidy=True)
    return inner if c == 1.0 and not explicit else _add(inner, [(math.log(c), explicit, None)])


def _power_rule(name: str, exponent: float) -> Callable[[Sum], Sum | None]:
    op = OPERATORS[name]
    return lambda operand: _raised(op, exponent, operand)


_RULES_OF_ONE: dict[Operator, Callable[[Sum], Sum | None]] = {
    _NEG: _neg,
    _EXP: _exp,
    _LOG: _log,
    **{OPERATORS[name]: _power_rule(name, exponent) for name, exponent in EXPONENTS.items()},
}
_RULES_OF_TWO: dict[Operator, Callable[[Sum, Sum], Sum | None]] = {
    _ADD: _add,
    _SUB: _sub,
    _MUL: _mul,
    _DIV: _div,
    _POW: _pow,
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
    if not all([math.isfinite(ratio[0]) for ratio in ratios]):  # beside 1e-320 everything is too large
        return 1.0, False, _build(parts)
    return scale, is_free, _build(ratios)


def _build(parts: Sequence[Part]) -> Tokens:
    """The sum as an expression."""
    if len(parts) == 1:
        return _scaled(*parts[0])
    if not parts:
        return (0.0,)
    first, *others = _ordered(parts)
    # Sums nest to the left, so in prefix order all their operators come first, the last one in front.
    operators: list[Token] = []
    operands: list[Token] = list(_scaled(*first))
    for c, explicit, e in others:
        # A free constant keeps its sign within, so that the fit may change it.
        operators.append(_SUB if c < 0.0 else _ADD)
        operands += _scaled(abs(c), explicit, e)
    operators.reverse()
    return (*operators, *operands)


def _scaled(c: float, explicit: bool, e: Tokens | None) -> Tokens:
    """Tokens of c·e."""
    if e is not None and not explicit:
        if c == 1.0:
            return e
        if c == -1.0:
            return (_NEG, *e)
    if not math.isfinite(c):
        return Expression.of(c).tokens  # raises, and says why
    if e is None:
        return (c,)
    if c != 1.0 and e[0] is _DIV and e[1] == 1.0:
        return (_DIV, c, *e[2:])
    return (_MUL, c, *e)
