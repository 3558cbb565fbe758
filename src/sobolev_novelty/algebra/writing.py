"""Products, powers and weighted sums as expressions, in as few nodes as possible and in the operators that are allowed.

Everything is built in the full set of operators first; :func:`respelled` then writes it in those a problem allows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from sobolev_novelty.algebra.products import EXPONENTS, Product
from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.errors import ExpressionError

T = TypeVar("T")
W = TypeVar("W")
ONE = Expression.of(1.0)
ANY = frozenset(OPERATORS)
#: Larger powers are not spelled out in squares and products.
MAX_SPELLED_POWER = 24.0
_ADD, _SUB, _NEG, _DIV, _INV, _MUL, _EXP = (
    OPERATORS[name] for name in ("add", "sub", "neg", "div", "inv", "mul", "exp")
)


@lru_cache(maxsize=1 << 14)
def power(base: Expression, exponent: float, operators: frozenset[str] = ANY) -> Expression | None:
    """``base`` to a constant power, in the fewest nodes these operators allow; None where they cannot write it.

    >>> x = Expression.of("x0")
    >>> str(power(x, 1.5)), str(power(x, 5.0)), str(power(x, 5.0, frozenset({"mul", "square"})))
    ('sqrt(cube(x0))', 'x0**5', 'square(square(x0))*x0')
    >>> str(power(x, 1 / 3, frozenset({"exp", "log", "mul"})))
    'exp(0.3333333333333333*log(x0))'
    """
    if exponent == 0.0:
        return ONE
    if exponent == 1.0:
        return base
    spellings: list[Expression | None] = []
    if exponent < 0.0:
        spellings.append(_reciprocal(power(base, -exponent, operators), operators))
    elif (4.0 * exponent).is_integer() and exponent <= MAX_SPELLED_POWER:
        spellings += _spelled_powers(base, exponent, operators)
    if "pow" in operators:
        spellings.append(Expression.of("pow", base, exponent))
    if operators >= {"exp", "mul"}:
        if base.head is _EXP:
            spellings.append(Expression.of("exp", Expression.of("mul", exponent, base.children[0])))
        elif "log" in operators and not (4.0 * exponent).is_integer():
            # Defined where the power is: for positive bases.
            spellings.append(Expression.of("exp", Expression.of("mul", exponent, Expression.of("log", base))))
    return min((spelling for spelling in spellings if spelling is not None), key=len, default=None)


def _spelled_powers(base: Expression, exponent: float, operators: frozenset[str]) -> Iterable[Expression | None]:
    """A positive multiple of 1/4 by squares, cubes, roots and products."""
    is_root = not exponent.is_integer()
    for name in ("sqrt",) if is_root else ("square", "cube"):
        inner = exponent / EXPONENTS[name]
        if name in operators and (is_root or inner.is_integer()):
            whole = power(base, inner, operators)
            yield None if whole is None else Expression.of(name, whole)
    for step in (2.0, 1.0):
        if step < exponent and "mul" in operators:
            rest, factor = power(base, exponent - step, operators), power(base, step, operators)
            yield None if rest is None or factor is None else Expression.of("mul", rest, factor)


def _reciprocal(e: Expression | None, operators: Collection[str]) -> Expression | None:
    if e is None:
        return None
    if "inv" in operators:
        return Expression.of("inv", e)
    if "div" in operators:
        return Expression.of("div", 1.0, e)
    return Expression.of("pow", e, -1.0) if "pow" in operators else None


def raised(base: Expression, exponent: float) -> Expression:
    """``base`` to a constant power, in the fewest nodes.

    >>> str(raised(Expression.of("x0"), 2.0)), str(raised(Expression.of("x0"), 1.5))
    ('square(x0)', 'sqrt(cube(x0))')
    """
    return power(base, exponent) or Expression.of("pow", base, exponent)


def product(factors: Iterable[tuple[Expression, float]]) -> Expression:
    """The product of powers; square roots are taken together, and equal powers where that saves nodes.

    >>> x, y = Expression.of("x0"), Expression.of("x1")
    >>> str(product([(x, 1.0), (y, -2.0)])), str(product([(x, 0.5), (y, -0.5)]))
    ('x0/square(x1)', 'sqrt(x0/x1)')
    """
    listed = [(base, exponent) for base, exponent in factors if exponent and base != ONE]
    halves = [(base, k) for base, k in listed if k % 1.0 == 0.5]
    if len(halves) > 1 or (len(halves) == 1 and halves[0][1] < 0.0):
        whole = [(base, k) for base, k in listed if k % 1.0 != 0.5]
        # All below the line: one root in the denominator; otherwise one root over a quotient.
        side = -1.0 if whole and all(k < 0.0 for _, k in halves) else 1.0
        root = Expression.of("sqrt", product([(base, 2.0 * side * k) for base, k in halves]))
        return product([*whole, (root, side)])
    above = _grouped((base, k) for base, k in listed if k > 0.0)
    below = _grouped((base, -k) for base, k in listed if k < 0.0)
    if not below:
        return chained("mul", above) if above else ONE
    if not above:
        return Expression.of("inv", chained("mul", below))
    return Expression.of("div", chained("mul", above), chained("mul", below))


def _grouped(factors: Iterable[tuple[Expression, float]]) -> list[Expression]:
    """Positive powers, equal exponents taken together."""
    by_exponent: dict[float, list[Expression]] = {}
    for base, exponent in factors:
        by_exponent.setdefault(exponent, []).append(base)
    return [raised(chained("mul", bases), exponent) for exponent, bases in by_exponent.items()]


def chained(name: str, operands: Sequence[Expression]) -> Expression:
    """One or more operands joined by a binary operator, nested to the left."""
    if len(operands) == 1:
        return operands[0]
    # Nested to the left, in prefix order all operators come first.
    tokens: list[Token] = [OPERATORS[name]] * (len(operands) - 1)
    for operand in operands:
        tokens += operand.tokens
    return Expression._trusted(tuple(tokens))


def denominator_of(e: Expression) -> Expression | None:
    """``q`` where the expression is ``1/q``, in either spelling."""
    q = tokens_below(e.tokens)
    return None if q is None else Expression._trusted(q)


def tokens_below(tokens: tuple[Token, ...]) -> tuple[Token, ...] | None:
    """:func:`denominator_of`, of bare tokens."""
    head = tokens[0]
    if head is _INV:
        return tokens[1:]
    return tokens[2:] if head is _DIV and tokens[1] == 1.0 else None


def multiplied(a: Expression, b: Expression) -> Expression:
    """a·b; with a factor 1/q as a quotient."""
    return Expression._trusted(product_of(a.tokens, b.tokens))


def product_of(a: tuple[Token, ...], b: tuple[Token, ...]) -> tuple[Token, ...]:
    """:func:`multiplied`, of bare tokens."""
    q = tokens_below(b)
    if q is not None:
        return (_DIV, *a, *q)
    q = tokens_below(a)
    return (_MUL, *a, *b) if q is None else (_DIV, *b, *q)


def scaled(c: float, e: Expression) -> Expression:
    """c·e, where factors 1 and -1 are not written, and c·(1/q) is c/q."""
    if e.tokens == (1.0,):
        return Expression.of(c)
    if c == 1.0:
        return e
    if c == -1.0:
        return Expression.of("neg", e)
    q = denominator_of(e)
    return Expression.of("mul", c, e) if q is None else Expression.of("div", c, q)


def weighted_sum(parts: Iterable[tuple[float, Expression]]) -> Expression:
    """Σ c·e in the order given; 0 where there is nothing to add.

    >>> str(weighted_sum([(1.0, Expression.of("x0")), (-2.0, Expression.of("x1")), (3.0, ONE)]))
    'x0 - 2*x1 + 3'
    """
    total: Expression | None = None
    for c, e in parts:
        if total is None:
            total = scaled(c, e)
        else:
            total = Expression.of("add" if c >= 0.0 else "sub", total, scaled(abs(c), e))
    return Expression.of(0.0) if total is None else total


def writable(write: Callable[[T], W | None], items: Iterable[T]) -> list[W]:
    """What ``write`` makes of the items, without those it makes nothing of or whose numbers no float can hold."""
    forms = []
    for item in items:
        with contextlib.suppress(ExpressionError, OverflowError):
            form = write(item)
            if form is not None:
                forms.append(form)
    return forms


def summands(e: Expression) -> list[tuple[float, Expression]]:
    """Parts of a sum as it stands, with their numeric factors."""
    if e.head is _ADD or e.head is _SUB:
        left, right = (summands(child) for child in e.children)
        return left + ([(-c, part) for c, part in right] if e.head is _SUB else right)
    if e.head is _NEG:
        return [(-c, part) for c, part in summands(e.children[0])]
    if isinstance(e.head, float):
        return [(e.head, Expression.of(1.0))]
    if e.head is _MUL and isinstance(e.children[0].head, float):
        return [(e.children[0].head, e.children[1])]
    return [(1.0, e)]


def respelled(expression: Expression, operators: Collection[str]) -> Expression | None:
    """The expression in the allowed operators alone; None where they cannot write it.

    Powers become squares, cubes, roots, products or exponentials, differences and quotients become sums and products
    of what is negative or below the line.

    >>> str(respelled(raised(Expression.of("x0"), 3.0), ("mul",)))
    'x0*(x0*x0)'
    >>> respelled(Expression.of("sin", "x0"), ("mul",)) is None
    True
    """
    allowed = operators if isinstance(operators, frozenset) else frozenset(operators)
    if allowed.issuperset([token.name for token in expression.tokens if isinstance(token, Operator)]):
        return expression

    def node(op: Operator, operands: tuple[Expression | None, ...]) -> Expression | None:
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        return Expression.of(op, *known) if op.name in allowed else _spelled_out(op.name, known, allowed)

    def leaf(token: float | str) -> Expression | None:
        return Expression.of(token)

    return expression.fold(leaf, node)


def _spelled_out(name: str, operands: list[Expression], operators: frozenset[str]) -> Expression | None:
    first, last = operands[0], operands[-1]
    exponent = last.head if name == "pow" else EXPONENTS.get(name)
    if isinstance(exponent, float):
        return power(first, exponent, operators)
    if name == "neg":
        return _negative(first, operators)
    if name == "sub" and "add" in operators:
        negative = _negative(last, operators)
        return None if negative is None else Expression.of("add", first, negative)
    if name == "div":
        below = _reciprocal(last, operators)
        return below if below is None or first == ONE else _times(first, below, operators)
    return None


def _negative(e: Expression, operators: frozenset[str]) -> Expression | None:
    place = 1 if e.head is _MUL else 0
    number = e.tokens[place]
    if isinstance(number, float):
        return e.replace(place, Expression.of(-number))
    return Expression.of("neg", e) if "neg" in operators else _times(Expression.of(-1.0), e, operators)


def _times(a: Expression, b: Expression, operators: frozenset[str]) -> Expression | None:
    return Expression.of("mul", a, b) if "mul" in operators else None


class Writer:
    """Writes expressions with the operators a problem allows.

    >>> writer = Writer(("mul", "div", "square"))
    >>> str(writer.product(Product(((Expression.of("x0"), 2.0), (Expression.of("x1"), -1.0)))))
    'square(x0)/x1'
    >>> writer.product(Product(((Expression.of("x0"), 0.5),))) is None
    True
    """

    def __init__(self, operators: Collection[str]) -> None:
        self.operators = frozenset(operators)

    def has(self, *names: str) -> bool:
        """Whether all of these operators are allowed."""
        return self.operators.issuperset(names)

    def written(self, expression: Expression) -> Expression | None:
        """The expression in the allowed operators; None where they cannot write it."""
        return respelled(expression, self.operators)

    def product(self, factors: Product) -> Expression | None:
        """The product in the allowed operators; None where they cannot write it."""
        return self.written(product(factors.factors))
