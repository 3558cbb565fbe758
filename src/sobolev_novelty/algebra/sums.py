r"""An expression as a sum of products of powers.

Multiplication is distributed over addition, recursively, through products only; powers of sums, functions and
denominators stay as they are; like products are merged, those that cancel are dropped.

Notation
--------
A *summand* is ``(coefficient, {base: exponent})``, a *sum* a list of summands. Bases are numbered: equal structure,
equal number, so that ``x*y`` and ``y*x`` meet, also inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sobolev_novelty.algebra.products import EXPONENTS, folded, joined, real_power
from sobolev_novelty.algebra.writing import ONE, chained, product
from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import OPERATORS, Operator

Powers = dict[int, float]
Summand = tuple[float, Powers]
Sum = list[Summand]
Span = tuple[int, int]
Spans = list[Span]

#: A product whose distribution would give more summands than this keeps its largest factor undistributed.
MAX_SUMMANDS = 512
#: Merged coefficients below this share of what was added up count as cancelled.
CANCELLED = 1e-12
#: Whole numbers below this are whole because they were written so, not because floats are so coarse there.
EXACT = 2.0**44


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """A distributed expression."""

    bases: Sequence[Expression]  # what the numbers in the summands stand for
    summands: Sum  # list of (float, dict of int to float)
    undistributed: tuple[Expression, ...]  # factors left whole because distributing them would exceed the cap

    def written(self, powers: Powers) -> Expression:
        """The expression of a summand without its coefficient."""
        return _written(self.bases, powers)


def sum_of_products(expression: Expression, *, max_summands: int = MAX_SUMMANDS) -> SumOfProducts:
    """Distribute an expression.

    >>> x, y = Expression.of("x0"), Expression.of("x1")
    >>> whole = sum_of_products(Expression.of("mul", x, Expression.of("sub", Expression.of("mul", x, y), 2.0)))
    >>> [(c, str(whole.written(powers))) for c, powers in whole.summands]
    [(1.0, 'x0**2*x1'), (-2.0, 'x0')]
    """
    work = _Decomposition(expression.tokens, max_summands)
    summands = collected(work.root())
    return SumOfProducts(work.bases, summands, tuple(dict.fromkeys(work.undistributed)))


def collected(terms: Sum) -> Sum:
    """Like summands added up, cancelled ones dropped, in order of first appearance."""
    if len(terms) == 1:
        return terms if terms[0][0] else []
    alike: dict[tuple[tuple[int, float], ...], tuple[Powers, list[float]]] = {}
    for coefficient, powers in terms:
        alike.setdefault(tuple(sorted(powers.items())), (powers, []))[1].append(coefficient)
    if not all(math.isfinite(sum(map(abs, coefficients))) for _, coefficients in alike.values()):
        return terms  # adding up would overflow
    totals = [(_total(coefficients), powers) for powers, coefficients in alike.values()]
    return [(total, powers) for total, powers in totals if total]


def _total(coefficients: list[float]) -> float:
    """Their sum; 0 where it is no more than what rounding leaves of numbers that cancel."""
    if len(coefficients) == 1:
        return coefficients[0]
    total = math.fsum(coefficients)
    if all(c.is_integer() and abs(c) < EXACT for c in coefficients):
        return total  # nothing was rounded: 1e13 - 1e13 + 1 is 1
    return total if abs(total) > CANCELLED * math.fsum(map(abs, coefficients)) else 0.0


def _written(bases: Sequence[Expression], powers: Powers) -> Expression:
    above = [_plain(bases[base], k) for base, k in powers.items() if k > 0.0]
    below = [_plain(bases[base], -k) for base, k in powers.items() if k < 0.0]
    numerator = chained("mul", above) if above else ONE
    return Expression.of("div", numerator, chained("mul", below)) if below else numerator


def _plain(base: Expression, exponent: float) -> Expression:
    """Powers as people read them: x**2, sqrt(x)."""
    if exponent == 0.5:
        return Expression.of("sqrt", base)
    return base if exponent == 1.0 else Expression.of("pow", base, exponent)


def compact(powers: Powers, bases: Sequence[Expression]) -> Expression:
    """The product of numbered bases in the fewest nodes, where :meth:`SumOfProducts.written` writes it plainly."""
    return product((bases[base], k) for base, k in powers.items())


class _Bases(Sequence[Expression]):
    """The bases by number; a part of the whole expression is cut out of it when it is first asked for.

    Nested operands, max(x0, max(x1, …)), have as many parts as nodes: cut out at once, they would take the square.
    """

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens
        self.known: list[Expression | Span] = []

    def append(self, base: Expression | Span) -> None:
        self.known.append(base)

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, place: Any) -> Any:
        base = self.known[place]
        if not isinstance(base, Expression):
            base = self.known[place] = Expression._trusted(self.tokens[base[0] : base[1]])
        return base


@dataclass(slots=True)
class _Decomposition:
    """One walk over the tokens, right to left; the stack holds (sum, end of the subtree)."""

    tokens: tuple[Token, ...]
    max_summands: int
    bases: _Bases = field(init=False)
    numbers: dict[object, int] = field(default_factory=dict)
    undistributed: list[Expression] = field(default_factory=list)
    scales: dict[int, float] = field(default_factory=dict)  # leading coefficient of each base that is a sum
    sums: dict[int, Sum] = field(default_factory=dict)  # what the bases that are sums or products stand for
    whole: set[int] = field(default_factory=set)  # bases that the cap keeps undistributed

    def __post_init__(self) -> None:
        self.bases = _Bases(self.tokens)

    def root(self) -> Sum:
        stack: list[tuple[Sum, int]] = []
        for start in range(len(self.tokens) - 1, -1, -1):
            token = self.tokens[start]
            if isinstance(token, float):
                stack.append(([(token, {})] if token else [], start + 1))
            elif isinstance(token, str):
                place = self.numbers.get(token)
                if place is None:
                    place = self.number(token, Expression._trusted((token,)))
                stack.append(([(1.0, {place: 1.0})], start + 1))
            elif token.arity == 1:
                only, end = stack.pop()
                stack.append((self.combine(token, [only], [(start + 1, end)], start), end))
            else:
                (left, middle), (right, end) = stack.pop(), stack.pop()
                spans = [(start + 1, middle), (middle, end)]
                stack.append((self.combine(token, [left, right], spans, start), end))
        return stack[0][0]

    def number(self, structure: object, base: Expression | Span) -> int:
        """The number of this structure; ``base`` is kept the first time it is seen."""
        place = self.numbers.setdefault(structure, len(self.bases))
        if place == len(self.bases):
            self.bases.append(base)
        return place

    def combine(self, op: Operator, operands: list[Sum], spans: Spans, start: int) -> Sum:
        if not any(operand and operand[0][1] for operand in operands):  # else there is a variable, for certain
            numbers = [number for number in map(_constant, operands) if number is not None]
            constant = folded(op, numbers) if len(numbers) == len(operands) else None
            if constant is not None:
                return [(constant, {})] if constant else []
        special = _RULES.get(op.name)
        result = special(self, operands, spans) if special else None
        if op in _ADDITIVE and result is not None:
            return result  # what was usable and settled before still is
        if result is not None and all(map(_is_usable, result)):
            return self.settled(result)
        children = [self.as_base(terms, span) for terms, span in zip(operands, spans, strict=True)]
        structure = (op.name, tuple(sorted(children) if op.is_commutative else children))
        return [(1.0, {self.number(structure, (start, spans[-1][1])): 1.0})]

    def as_base(self, terms: Sum, written: Expression | Span) -> int:
        """The number of a whole sum, used as one factor or as a function's operand."""
        merged = collected(terms)
        if len(merged) == 1 and merged[0][0] == 1.0:
            powers = merged[0][1]
            if len(powers) == 1 and next(iter(powers.values())) == 1.0:
                return next(iter(powers))
        structure = tuple(sorted((f"{c:.12g}", tuple(sorted(p.items()))) for c, p in merged))
        base = self.number(structure, written)
        self.sums.setdefault(base, merged)
        return base

    def settled(self, terms: Sum) -> Sum:
        """Summands in which no base hides a factor: sqrt(x + 1)**2 is x + 1, and sqrt(x**2)**2 is x**2.

        A base's sum is made of bases with smaller numbers, so this ends.
        """
        done: Sum = []
        todo = terms[::-1]
        while todo:
            coefficient, powers = todo.pop()
            hidden = self.hidden_factor(powers)
            if hidden is None:
                done.append((coefficient, powers))
                continue
            base, factor = hidden
            rest = {other: power for other, power in powers.items() if other != base}
            opened = [(coefficient * c, joined(rest, p)) for c, p in factor]
            fits = len(done) + len(todo) + len(opened) <= max(self.max_summands, len(terms))
            if fits and all(map(_is_usable, opened)):
                todo.extend(opened[::-1])
            else:
                self.keep_whole(base)
                todo.append((coefficient, powers))
        return done

    def hidden_factor(self, powers: Powers) -> tuple[int, Sum] | None:
        for base, exponent in powers.items():
            inside = self.sums.get(base)
            if inside is None or base in self.whole:
                continue
            if exponent == 1.0:
                return base, inside
            if len(inside) == 1 and exponent.is_integer():
                coefficient, inner = inside[0]
                factor = real_power(coefficient, exponent)
                if factor is not None:
                    return base, [(factor, {b: power * exponent for b, power in inner.items()})]
        return None

    def keep_whole(self, base: int) -> None:
        self.whole.add(base)
        self.undistributed.append(self.bases[base])

    # --- rules for the operators that additive structure passes through

    def mul(self, operands: list[Sum], spans: Spans) -> Sum:
        left, right = operands
        if len(left) * len(right) > self.max_summands:
            left, right = operands = [collected(left), collected(right)]
        if len(left) * len(right) > self.max_summands and len(left) > 1 and len(right) > 1:
            # Distributing would exceed the cap: the longer factor stays whole.
            longer = 0 if len(left) >= len(right) else 1
            base = self.as_base(operands[longer], spans[longer])
            self.keep_whole(base)
            whole: Sum = [(1.0, {base: 1.0})]
            left, right = (whole, right) if longer == 0 else (left, whole)
        return [(a * b, joined(p, q)) for a, p in left for b, q in right]

    def div(self, operands: list[Sum], spans: Spans) -> Sum | None:
        inverse = self.power(operands[1], spans[1], -1.0)
        return None if inverse is None else [(a * inverse[0], joined(p, inverse[1])) for a, p in operands[0]]

    def pow(self, operands: list[Sum], spans: Spans) -> Sum | None:
        exponent = _constant(operands[1])
        return None if exponent is None else self.raised(operands, spans, exponent)

    def raised(self, operands: list[Sum], spans: Spans, exponent: float) -> Sum | None:
        if exponent == 1.0:
            return operands[0]
        if exponent == 0.0:
            return [(1.0, {})]
        product = self.power(operands[0], spans[0], exponent)
        return None if product is None else [product]

    def power(self, terms: Sum, span: Span, exponent: float) -> Summand | None:
        """``terms`` to a constant power, as one product; None where the numeric factor has no such power."""
        merged = collected(terms)
        if not merged:
            return None
        if len(merged) > 1:
            return self.sum_power(merged, span, exponent)
        coefficient, powers = merged[0]
        factor = real_power(coefficient, exponent)
        if exponent.is_integer():
            return None if factor is None else (factor, {base: power * exponent for base, power in powers.items()})
        if factor is None:
            return 1.0, {self.as_base(merged, span): exponent}
        return factor, {self.as_base([(1.0, powers)], _written(self.bases, powers)): exponent}

    def sum_power(self, merged: Sum, span: Span, exponent: float) -> Summand:
        """A sum to a power: 2x + 2 and x + 1 are one base, with the ratio in the coefficient."""
        ordered = sorted((tuple(sorted(powers.items())), coefficient) for coefficient, powers in merged)
        leading = ordered[0][1]
        structure = ("proportional", *((key, f"{coefficient / leading:.12g}") for key, coefficient in ordered))
        base = self.number(structure, span)
        self.sums.setdefault(base, merged)
        factor = real_power(leading / self.scales.setdefault(base, leading), exponent)
        return (1.0, {self.as_base(merged, span): exponent}) if factor is None else (factor, {base: exponent})


_ADDITIVE = frozenset(OPERATORS[name] for name in ("add", "sub", "neg"))
_Rule = Callable[[_Decomposition, list[Sum], Spans], Sum | None]
_RULES: dict[str, _Rule] = {
    "add": lambda self, operands, spans: operands[0] + operands[1],
    "sub": lambda self, operands, spans: operands[0] + _negative(operands[1]),
    "neg": lambda self, operands, spans: _negative(operands[0]),
    "mul": _Decomposition.mul,
    "div": _Decomposition.div,
    "pow": _Decomposition.pow,
    **{name: partial(_Decomposition.raised, exponent=exponent) for name, exponent in EXPONENTS.items()},
}


def _negative(terms: Sum) -> Sum:
    return [(-c, powers) for c, powers in terms]


def _constant(terms: Sum) -> float | None:
    """The value of a sum without variables."""
    if any(powers for _, powers in terms):
        return None
    try:
        return math.fsum(coefficient for coefficient, _ in terms)
    except OverflowError:
        return None


def _is_usable(summand: Summand) -> bool:
    """Whether coefficient and exponents are within the range of floats."""
    coefficient, powers = summand
    return math.isfinite(coefficient) and coefficient != 0.0 and all(map(math.isfinite, powers.values()))
