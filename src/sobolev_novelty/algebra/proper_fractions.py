"""Quotients of sums as a whole part and a proper fraction: often shorter, and in terms that stand for themselves."""

from __future__ import annotations

from collections.abc import Sequence

from sobolev_novelty.algebra.products import joined
from sobolev_novelty.algebra.sums import compact, sum_of_products
from sobolev_novelty.algebra.writing import weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS

#: Sums with more terms than this are not divided.
MAX_TERMS = 12
#: Coefficients this small beside those they come from have cancelled.
CANCELLED = 1e-9
_DIV = OPERATORS["div"]
#: Marks the terms of the denominator while both sums are taken apart together; no name a user can give.
_MARK = "\0denominator"

#: The powers of a product, as a key.
Monomial = frozenset[tuple[int, float]]
Polynomial = dict[Monomial, float]


def with_proper_fractions(expression: Expression) -> Expression:
    """The expression with every quotient of sums divided out where that is shorter.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(with_proper_fractions(parse("(x**2 + x + y)/(x + 1)")))
    'x + y/(x + 1)'
    """
    for position, token in enumerate(expression.tokens):
        if token is _DIV:
            quotient = expression.subtree(position)
            divided = _divided(*quotient.children)
            if divided is not None and len(divided) < len(quotient):
                return with_proper_fractions(expression.replace(position, divided))
    return expression


def _divided(above: Expression, below: Expression) -> Expression | None:
    """Whole part plus remainder over the denominator; None where nothing divides out."""
    marked = Expression.of("add", above, Expression.of("mul", below, _MARK))
    both = sum_of_products(marked, max_summands=2 * MAX_TERMS)
    mark = Expression.of(_MARK)
    if both.undistributed or mark not in both.bases:
        return None
    number = both.bases.index(mark)
    denominator = {_key(joined(powers, {number: -1.0})): c for c, powers in both.summands if number in powers}
    rest = {_key(powers): c for c, powers in both.summands if number not in powers}
    if not 2 <= len(denominator) <= MAX_TERMS or not 2 <= len(rest) <= MAX_TERMS:
        return None
    leading = max(denominator, key=_degree)
    whole: Polynomial = {}
    while len(whole) < MAX_TERMS and (step := _next_step(rest, leading)) is not None:
        target, powers = step
        whole[powers] = rest[target] / denominator[leading]
        rest = _minus(rest, denominator, powers, whole[powers])
    if not whole:
        return None
    parts = _parts(whole, both.bases)
    if rest:
        parts.append((1.0, Expression.of("div", weighted_sum(_parts(rest, both.bases)), below)))
    return weighted_sum(parts)


def _next_step(rest: Polynomial, leading: Monomial) -> tuple[Monomial, Monomial] | None:
    """The term of highest degree that the leading term of the denominator divides, and their quotient."""
    for target in sorted(rest, key=_degree, reverse=True):
        quotient = _quotient(target, leading)
        if quotient is not None:
            return target, quotient
    return None


def _degree(powers: Monomial) -> tuple[float, list[tuple[int, float]]]:
    """Total degree, then the powers: an order in which subtracting only adds smaller terms."""
    return sum(power for _, power in powers), sorted(powers, reverse=True)


def _minus(rest: Polynomial, denominator: Polynomial, powers: Monomial, coefficient: float) -> Polynomial:
    left = dict(rest)
    for other, c in denominator.items():
        key = _key(joined(dict(powers), dict(other)))
        before = left.get(key, 0.0)
        after = before - coefficient * c
        if abs(after) <= CANCELLED * max(abs(before), abs(coefficient * c)):
            left.pop(key, None)
        else:
            left[key] = after
    return left


def _quotient(a: Monomial, b: Monomial) -> Monomial | None:
    """The quotient a / b where b divides a, that is, with no negative power."""
    powers = joined(dict(a), dict(b), -1.0)
    return None if any(power < 0.0 for power in powers.values()) else _key(powers)


def _key(powers: dict[int, float]) -> Monomial:
    return frozenset(powers.items())


def _parts(polynomial: Polynomial, bases: Sequence[Expression]) -> list[tuple[float, Expression]]:
    return [(c, compact(dict(sorted(powers)), bases)) for powers, c in polynomial.items()]
