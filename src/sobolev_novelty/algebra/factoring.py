"""The same function with fewer nodes: common factors of sums are taken out."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from sobolev_novelty.algebra.products import EXPONENTS, constant_exponent, joined, real_power
from sobolev_novelty.algebra.sums import Powers, Sum, compact, sum_of_products
from sobolev_novelty.algebra.writing import product, scaled, weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator

#: Sums with more terms than this are left as they are.
MAX_FACTORED_TERMS = 12

_SQRT = OPERATORS["sqrt"]


# Operands are met again and again; without the cache the recursion would be exponential in the depth.
@lru_cache(maxsize=4096)
def factored(expression: Expression) -> Expression:
    """The shortest of the expression as it is and with common factors taken out, inside functions too.

    Roots are taken apart as if their factors were positive; it is for the loop to judge the result on the data.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(factored(parse("q*a + q*b*v*sin(t)")))
    'q*(a + b*v*sin(t))'
    """
    best = _factored_once(expression)
    while True:
        again = _factored_once(best)
        if len(again) >= len(best):
            return best
        best = again


def _factored_once(expression: Expression) -> Expression:
    inner = flattened(_with_short_operands(expression))
    whole = sum_of_products(inner)
    terms = whole.summands
    if whole.undistributed or not 1 <= len(terms) <= MAX_FACTORED_TERMS:
        return min(expression, inner, key=len)
    # Only shorter bases: the recursion ends. A base that is a product of sums may be shorter distributed.
    shortened = [factored(base) if len(base) < len(inner) else _with_short_operands(base) for base in whole.bases]
    return min(expression, inner, _written(terms, shortened), _with_squares(terms, shortened), key=len)


#: Operators that a product is seen through.
_FACTORS = frozenset({*EXPONENTS, "mul", "div", "pow"})


def flattened(expression: Expression, *, through_roots: bool = False) -> Expression:
    """Nested products, quotients and powers as one quotient; equal factors are joined, sums stay whole.

    ``through_roots`` also writes √(u²) as u, which holds for positive u only.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(flattened(parse("inv(x2*(x0 - 1)/x1/x3)")))
    'x1*x3/(x2*(x0 - 1))'
    """
    head = expression.head
    if not isinstance(head, Operator):
        return expression
    if head.name not in _FACTORS:
        return Expression.of(head, *(flattened(child, through_roots=through_roots) for child in expression.children))
    powers: dict[Expression, float] = {}
    coefficient = _collect(expression, 1.0, powers, through_roots)
    if coefficient is None:
        return expression
    return min(expression, scaled(coefficient, product(powers.items())), key=len)


def _collect(
    expression: Expression, power: float, powers: dict[Expression, float], through_roots: bool
) -> float | None:
    """Add the factors of ``expression`` to ``powers``; the numeric factor, or None where it has no such power."""
    head = expression.head
    if isinstance(head, float):
        return real_power(head, power)
    name = head.name if isinstance(head, Operator) else ""
    if name in ("mul", "div"):
        left = _collect(expression.children[0], power, powers, through_roots)
        right = _collect(expression.children[1], power if name == "mul" else -power, powers, through_roots)
        return None if left is None or right is None else left * right
    if name == "neg" and power.is_integer():
        inner = _collect(expression.children[0], power, powers, through_roots)
        return None if inner is None else inner * (-1.0) ** power
    inner = _inner_power(expression, through_roots)
    if inner is None or not (power.is_integer() or name == "inv" or through_roots):
        return _keep(expression, power, powers)
    return _collect(expression.children[0], power * inner, powers, through_roots)


def _inner_power(expression: Expression, through_roots: bool) -> float | None:
    """The constant power the root takes its operand to; None for others and for roots of squares (√x² is not x)."""
    exponent = constant_exponent(expression)
    if exponent is None or exponent.is_integer():
        return exponent
    is_root = expression.head is _SQRT and (through_roots or not _has_even_power(expression.children[0]))
    return exponent if is_root else None


def _has_even_power(expression: Expression) -> bool:
    return any(isinstance(token, Operator) and token.name in ("square", "pow") for token in expression.tokens)


def _keep(expression: Expression, power: float, powers: dict[Expression, float]) -> float:
    head = expression.head
    is_factor = isinstance(head, Operator) and head.name in _FACTORS
    base = expression if is_factor else flattened(expression)
    powers[base] = powers.get(base, 0.0) + power
    return 1.0


def _with_short_operands(expression: Expression) -> Expression:
    """Operands of functions (not of sums, products and quotients, which are seen through) factored."""
    head = expression.head
    if not isinstance(head, Operator):
        return expression
    if head.symbol and head.name != "pow":
        return Expression.of(head, *(_with_short_operands(child) for child in expression.children))
    return Expression.of(head, *(factored(child) for child in expression.children))


def _written(terms: Sum, bases: list[Expression]) -> Expression:
    """Σ products, with the factor that occurs most often taken out, over and over."""
    best = _best_factor(terms)
    if best is None:
        return weighted_sum((c, compact(powers, bases)) for c, powers in terms)
    base, power = best
    inside = [(c, joined(powers, {base: power}, -1.0)) for c, powers in terms if _contains(powers, base, power)]
    outside = [(c, powers) for c, powers in terms if not _contains(powers, base, power)]
    scale = inside[0][0] if len({abs(c) for c, _ in inside}) == 1 or not outside else 1.0
    group = _written([(c / scale, powers) for c, powers in inside], bases)
    whole = scaled(scale, product([(bases[base], power), (group, 1.0)]))
    return Expression.of("add", whole, _written(outside, bases)) if outside else whole


def _with_squares(terms: Sum, bases: list[Expression]) -> Expression:
    """The sum with perfect squares written as such: a² - 2ab + b² is (a - b)²."""
    rest = list(terms)
    squares = []
    while (found := _perfect_square(rest)) is not None:
        i, j, k = found
        (p, u), (q, v), (cross, _) = rest[i], rest[j], rest[k]
        halves = [compact({base: power / 2.0 for base, power in powers.items()}, bases) for powers in (u, v)]
        ratio = math.sqrt(q / p) * (1.0 if cross * p > 0.0 else -1.0)
        squares.append((p, Expression.of("square", weighted_sum([(1.0, halves[0]), (ratio, halves[1])]))))
        rest = [term for n, term in enumerate(rest) if n not in found]
    written = [weighted_sum(squares)] if squares else []
    if rest:
        written.append(_written(rest, bases))
    return written[0] if len(written) == 1 else Expression.of("add", *written)


def _perfect_square(terms: Sum) -> tuple[int, int, int] | None:
    """Places of p·u², q·v² and ±2√(pq)·u·v, if there are such."""
    even = [i for i, (_, powers) in enumerate(terms) if all(power % 2.0 == 0.0 for power in powers.values())]
    for n, i in enumerate(even):
        for j in even[n + 1 :]:
            (p, u), (q, v) = terms[i], terms[j]
            if p * q <= 0.0:
                continue
            middle = {base: (u.get(base, 0.0) + v.get(base, 0.0)) / 2.0 for base in {*u, *v}}
            for k, (cross, powers) in enumerate(terms):
                if k not in (i, j) and powers == middle and math.isclose(cross * cross, 4.0 * p * q, rel_tol=1e-9):
                    return i, j, k
    return None


def _best_factor(terms: Sum) -> tuple[int, float] | None:
    """The base and power shared by most terms; larger powers first among equals."""
    count: Counter[tuple[int, float]] = Counter()
    for _, powers in terms:
        for base, power in powers.items():
            step = 1.0 if power > 0.0 else -1.0
            k = step
            while abs(k) <= abs(power) + 1e-9:
                count[(base, k)] += 1
                k += step
            if not power.is_integer():
                count[(base, power)] += 1
    shared = [(n, abs(power), -base, power) for (base, power), n in count.items() if n >= 2]
    if not shared:
        return None
    _, _, base, power = max(shared)
    return -base, power


def _contains(powers: Powers, base: int, power: float) -> bool:
    have = powers.get(base, 0.0)
    return have == power or (power.is_integer() and have * power > 0.0 and abs(have) >= abs(power))
