"""Equations as people write them: shared constants, exponentials divided out, quotients in lowest terms.

Rules offer other spellings of a part; the shortest that still has the same values is kept, over and over. Some rules
hold only where an input is positive, or nowhere zero: whoever asks says how values are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator

from sobolev_novelty.algebra.factoring import factored, flattened
from sobolev_novelty.algebra.numbers import DENOMINATORS, nearest_simple, repeating_fraction
from sobolev_novelty.algebra.products import EXPONENTS, constant_exponent, real_power
from sobolev_novelty.algebra.sums import sum_of_products
from sobolev_novelty.algebra.waves import with_plain_waves
from sobolev_novelty.algebra.writing import multiplied, product, scaled, summands, weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.errors import ExpressionError

_ADD, _SUB, _MUL, _DIV, _NEG, _EXP, _LOG, _COS, _SQRT = (
    OPERATORS[name] for name in ("add", "sub", "mul", "div", "neg", "exp", "log", "cos", "sqrt")
)
#: Coefficients that differ by less, relatively, are one constant.
SAME = 1e-13
#: Larger expressions are left as they are, and parts of sums with more summands.
MAX_NODES, MAX_SUMMANDS = 80, 12
#: Steps, and spellings followed in each.
MAX_STEPS, WIDTH = 6, 4
#: Steps without a better spelling before the search for one ends.
PATIENCE = 1
#: Largest whole number that a factor such as 0.333… is written as a division by.
MAX_DIVISOR = 100
#: Nodes that a bare 1 in a sum is worth: a quantity without units.
BARE_ONE = 1.5


def spelled(
    expression: Expression,
    agrees: Callable[[Expression], bool],
    positive: Collection[str] = (),
    is_late: Callable[[], bool] = lambda: False,
) -> Expression:
    """The expression as people would write it.

    ``agrees``: whether a spelling has the values of the expression.
    ``positive``: variables that are positive: they may be taken out of roots.
    ``is_late``: whether time is over: phases are small even then, the rest stays as it is.

    >>> from sobolev_novelty.language.parsing import parse
    >>> str(spelled(parse("3*exp(2*x0)/(exp(2*x0) + exp(x0))"), lambda e: True))
    '3/(1 + exp(-x0))'
    >>> str(spelled(parse("2.5*x0 - 2.5*x1 + 2.5*x2"), lambda e: True))
    '2.5*(x0 + x2 - x1)'
    >>> str(spelled(parse("x2*(x0 - x1)/sqrt(x2**2 - x1**2)"), lambda e: True, {"x2"}))
    '(x0 - x1)/sqrt(1 - square(x1/x2))'
    >>> str(spelled(parse("3*exp(0.7*log(x0))"), lambda e: True))
    '3*x0**0.7'
    """
    if expression.complexity > MAX_NODES:
        return expression
    plain = with_plain_waves(expression)
    expression = plain if agrees(plain) else expression
    best, beam, seen, idle = expression, [expression], {expression}, 0
    for _ in range(MAX_STEPS):
        if is_late():
            break
        found = dict.fromkeys(e for known in beam for e in _spellings(known, frozenset(positive)))
        fresh = [e for e in found if e not in seen]
        seen.update(fresh)
        beam = [e for e in sorted(fresh, key=_cost)[: 2 * WIDTH] if agrees(e)][:WIDTH]
        idle = idle + 1 if not beam or _cost(beam[0]) >= _cost(best) else 0
        if not beam or idle > PATIENCE:
            break
        best = min(best, beam[0], key=_cost)
    exact = best.with_constants([_tidied(c) for c in best.constants])
    return exact if agrees(exact) else best


def _tidied(c: float) -> float:
    """A number, or the simple fraction from which it differs in the last digits: rules multiply and divide."""
    if not 1.0 / MAX_DIVISOR < abs(c) < MAX_DIVISOR:
        return c
    fraction = nearest_simple(c, 1e-15, denominators=DENOMINATORS, is_relative=True)
    return c if fraction is None else fraction


def _cost(e: Expression) -> tuple[float, int, int, int]:
    """Nodes first, then signs and numbers inside products, awkward numbers, nested quotients, roots beside factors.

    A bare 1 is welcome, as in 1 - v²/c².
    """
    awkward = sum(1 for c in e.constants if c < 0.0 or _divisor(c) is not None or repeating_fraction(c) is not None)
    signs = sum(1 for token in e.tokens if token is _NEG)
    ones = quotients = roots = inner = 0
    for k, token in enumerate(e.tokens):
        if token in (_ADD, _SUB, _MUL, _DIV):
            second = e.end(k + 1)
            operands = e.tokens[k + 1], e.tokens[second]
            if token in (_ADD, _SUB):
                ones += operands.count(1.0)
            else:
                quotients += token is _DIV and operands[1] is _DIV
                roots += operands.count(_SQRT) if not isinstance(operands[0], float) else 0
                starts = (k + 1, second) if token is _MUL else (k + 1,)
                inner += sum(e.tokens[p] is _MUL and isinstance(e.tokens[p + 1], float) for p in starts)
    return e.complexity - BARE_ONE * ones, awkward + signs + quotients + inner, -ones, roots


def _spellings(expression: Expression, positive: frozenset[str]) -> Iterator[Expression]:
    try:
        yield from (factored(expression), flattened(expression, through_roots=True))
        for place, token in enumerate(expression.tokens):
            if isinstance(token, Operator):
                part = expression.subtree(place)
                for other in _rewritten(part, positive):
                    if other != part:
                        yield expression.replace(place, other)
    except (ExpressionError, OverflowError):  # a number that no float can hold
        return


def _rewritten(part: Expression, positive: frozenset[str]) -> Iterator[Expression]:
    head = part.head
    if head in (_ADD, _SUB):
        yield from _with_shared_constants(part)
        yield from _with_half_angles(part)
    if head is _DIV:
        yield from _with_exponentials_divided_out(part)
    if head is _EXP:
        yield from _as_power(part)
    if head in (_MUL, _DIV) or (isinstance(head, Operator) and head.name in EXPONENTS):
        yield from _with_roots_moved(part, positive)
        yield from _with_sign_in_front(part)
    if head in (_MUL, _DIV):
        yield from _with_number_in_front(part)
    if head is _MUL and isinstance(part.children[0].head, float):
        divisor = _divisor(part.children[0].head)
        if divisor is not None:
            yield Expression.of("div", part.children[1], divisor)
        yield from _with_number_in_the_sum(part.children[0].head, part.children[1])


def _with_number_in_front(part: Expression) -> Iterator[Expression]:
    """A number that stands in the middle of a product, before it: x0*(2*x1)/x2 is 2*(x0*x1/x2)."""
    a, b = part.children
    if _is_multiple(a):
        yield scaled(a.children[0].constants[0], Expression.of(part.tokens[0], a.children[1], b))
    if part.head is _MUL and _is_multiple(b) and a.variables:
        yield scaled(b.children[0].constants[0], multiplied(a, b.children[1]))


def _with_number_in_the_sum(c: float, rest: Expression) -> Iterator[Expression]:
    """3*(x0*(x1 + 0.666…*x2)) as x0*(3*x1 + 2*x2), where the sum has an awkward number."""
    before, inner = (rest.children[0], rest.children[1]) if rest.head is _MUL else (None, rest)
    parts = summands(inner) if inner.head in (_ADD, _SUB) else []
    if len(parts) <= MAX_SUMMANDS and any(repeating_fraction(k) is not None for k, _ in parts):
        total = weighted_sum([(_tidied(c * k), e) for k, e in parts])
        yield total if before is None else multiplied(before, total)


def _is_multiple(e: Expression) -> bool:
    return e.head is _MUL and isinstance(e.tokens[1], float)


def _as_power(part: Expression) -> Iterator[Expression]:
    """exp(c·log(u)) as u to the power c."""
    inner = part.children[0]
    c, logarithm = inner.children if inner.head is _MUL else (Expression.of(1.0), inner)
    if isinstance(c.head, float) and logarithm.head is _LOG:
        yield product([(logarithm.children[0], c.head)])


def _divisor(c: float) -> float | None:
    """K where c is 1/k and no short decimal."""
    if not 0.0 < c < 0.5:
        return None
    k = round(1.0 / c)
    is_fraction = 3 <= k <= MAX_DIVISOR and abs(c * k - 1.0) < 1e-15 * k
    return float(k) if is_fraction and len(f"{c:.15g}") > 8 else None


def _with_shared_constants(part: Expression) -> Iterator[Expression]:
    """c·a + c·b + d as c·(a + b) + d; a number that stands alone shares no constant."""
    parts = summands(part)
    if len(parts) > MAX_SUMMANDS:
        return
    yield weighted_sum(parts)
    for c in {abs(c) for c, e in parts if e.variables and abs(c) != 1.0}:
        alike = [(math.copysign(1.0, k), e) for k, e in parts if e.variables and abs(abs(k) - c) <= SAME * c]
        others = [(k, e) for k, e in parts if not (e.variables and abs(abs(k) - c) <= SAME * c)]
        if len(alike) > 1:
            sign = 1.0 if any(k > 0.0 for k, _ in alike) else -1.0
            inner = sorted(((sign * k, e) for k, e in alike), key=lambda item: item[0] < 0.0)
            yield weighted_sum([(sign * c, weighted_sum(inner)), *others])


def _with_half_angles(part: Expression) -> Iterator[Expression]:
    """1 - cos(u) as 2·sin²(u/2), and 1 + cos(u) as 2·cos²(u/2)."""
    parts = summands(part)
    for i, (k, e) in enumerate(parts):
        for j, (c, wave) in enumerate(parts):
            if e.tokens == (1.0,) and wave.head is _COS and abs(abs(k) - abs(c)) <= SAME * abs(k):
                name = "cos" if (k > 0.0) == (c > 0.0) else "sin"
                u = sum_of_products(Expression.of("mul", 0.5, wave.children[0]))
                half = weighted_sum((factor, u.written(own)) for factor, own in u.summands)
                square = Expression.of("square", Expression.of(name, half))
                yield weighted_sum([(2.0 * k, square), *(p for n, p in enumerate(parts) if n not in (i, j))])


def _with_sign_in_front(part: Expression) -> Iterator[Expression]:
    """-c·(a - b) as c·(b - a)."""
    if part.head is not _MUL or not isinstance(part.children[0].head, float) or part.children[0].head >= 0.0:
        return
    c, rest = part.children[0].head, part.children[1]
    if rest.head is _SUB:
        yield scaled(-c, Expression.of("sub", rest.children[1], rest.children[0]))


def _with_exponentials_divided_out(part: Expression) -> Iterator[Expression]:
    """Numerator and denominator times exp(-u), for each exp(u) below the line."""
    above, below = part.children
    if below.head not in (_ADD, _SUB, _EXP, _MUL):
        return
    exponents = {e.children[0] for e in _subtrees(below) if e.head is _EXP}
    for u in sorted(exponents, key=str)[:4]:
        top, bottom = (_times_exp(e, u) for e in (above, below))
        if top is not None and bottom is not None:
            yield top if bottom.tokens == (1.0,) else Expression.of("div", top, bottom)


def _subtrees(e: Expression) -> Iterator[Expression]:
    return (e.subtree(place) for place in range(len(e.tokens)))


def _times_exp(e: Expression, u: Expression) -> Expression | None:
    """e·exp(-u) with one exponential in each summand; None where there are too many."""
    whole = sum_of_products(e, max_summands=MAX_SUMMANDS)
    if len(whole.summands) > MAX_SUMMANDS:
        return None
    parts = []
    for c, powers in whole.summands:
        bases = [(whole.bases[base], k) for base, k in powers.items()]
        exponent = weighted_sum([*((k, base.children[0]) for base, k in bases if base.head is _EXP), (-1.0, u)])
        total = sum_of_products(exponent, max_summands=MAX_SUMMANDS)
        rest = product((base, k) for base, k in bases if base.head is not _EXP)
        if total.summands:
            # The difference of two constants is not exact in binary; the last digit is its own.
            power = weighted_sum((float(f"{k:.15g}"), total.written(own)) for k, own in total.summands)
            rest = (
                multiplied(rest, Expression.of("exp", power)) if rest.tokens != (1.0,) else Expression.of("exp", power)
            )
        parts.append((c, rest))
    # A bare number comes first, as in 1 + exp(-u).
    return weighted_sum(sorted(parts, key=lambda item: bool(item[1].variables)))


def _factors(e: Expression, power: float, powers: dict[Expression, float]) -> float:
    """Add the factors of a product, sums left whole, to ``powers``; the numeric factor, nan where it is none."""
    head = e.head
    if isinstance(head, float):
        value = real_power(head, power)
        return math.nan if value is None else value
    if head is _MUL or head is _DIV:
        left, right = e.children
        return _factors(left, power, powers) * _factors(right, power if head is _MUL else -power, powers)
    exponent = constant_exponent(e)
    if exponent is not None and isinstance(head, Operator):
        return _factors(e.children[0], power * exponent, powers)
    powers[e] = powers.get(e, 0.0) + power
    return 1.0


def _with_roots_moved(part: Expression, positive: frozenset[str]) -> Iterator[Expression]:
    """a²·S under a root as a·√S and the other way round, for positive a; and a·(S/a) as S."""
    powers: dict[Expression, float] = {}
    coefficient = _factors(part, 1.0, powers)
    if not math.isfinite(coefficient) or coefficient == 0.0:
        return
    yield scaled(coefficient, product(powers.items()))
    yield scaled(coefficient, _with_quotients_raised(powers))
    for base, h in list(powers.items()):
        if base.head not in (_ADD, _SUB):
            continue
        square = real_power(coefficient, 1.0 / h) if coefficient > 0.0 and abs(h) == 0.5 else None
        if square is not None:  # c·√S as √(c²·S)
            c = float(f"{square:.15g}")
            inner = weighted_sum((float(f"{c * k:.15g}"), e) for k, e in summands(base))
            yield product([*((k, v) for k, v in powers.items() if k != base), (inner, h)])
        # Of a sum outside roots only what stands beside it is taken in.
        names = {name for name in base.variables if h % 1.0 or Expression.of(name) in powers}
        for name in sorted(names & positive):
            for m in (-2.0, 2.0, -1.0, 1.0):
                changed = _times_power(base, name, m)
                if changed is None:
                    continue
                moved = {k: v for k, v in powers.items() if k != base}
                a = Expression.of(name)
                moved[a] = moved.get(a, 0.0) - m * h
                moved[changed] = moved.get(changed, 0.0) + h
                yield scaled(coefficient, product(moved.items()))


def _with_quotients_raised(powers: dict[Expression, float]) -> Expression:
    """a²/b² as (a/b)², and one exponential for several."""
    groups: dict[float, list[tuple[Expression, float]]] = {}
    exponents = [(k, base.children[0]) for base, k in powers.items() if base.head is _EXP]
    for base, k in powers.items():
        if len(exponents) < 2 or base.head is not _EXP:
            groups.setdefault(abs(k), []).append((base, math.copysign(1.0, k)))
    factors = groups.pop(1.0, []) + [(product(own), k) for k, own in groups.items()]
    if len(exponents) > 1:
        factors.append((Expression.of("exp", weighted_sum(exponents)), 1.0))
    return product(factors)


def _times_power(e: Expression, name: str, m: float) -> Expression | None:
    """e·nameᵐ, multiplied out; None where that is long, or a number of it has no real power."""
    a = Expression.of(name)
    parts: list[tuple[float, Expression]] = []
    for c, part in summands(e):
        powers: dict[Expression, float] = {}
        factor = _factors(part, 1.0, powers)
        if not math.isfinite(factor):
            return None
        powers[a] = powers.get(a, 0.0) + m
        parts.append((c * factor, product(powers.items())))
    return weighted_sum(parts) if len(parts) <= MAX_SUMMANDS else None
