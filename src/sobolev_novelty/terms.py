r"""The additive terms of an expression.

The decomposition that reproduces the paper's ground-truth row: multiplication is distributed over addition,
recursively, through products only; powers of sums, functions and denominators stay as they are; like terms (equal up to
a numeric factor) are merged, terms that cancel are dropped, and the constant offset is a term (:math:`\phi = 1`).

Notation
--------
A *product* is ``(coefficient, {base: exponent})``, a *sum* a list of products. Bases are numbered: equal structure,
equal number, so that ``x*y`` and ``y*x`` meet, also inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression, Token, format_number
from sobolev_novelty.operators import OPERATORS, Operator

Powers = dict[int, float]
Product = tuple[float, Powers]
Sum = list[Product]

#: A product whose distribution would give more terms than this keeps its largest factor undistributed.
MAX_DISTRIBUTED_TERMS = 512
#: Merged coefficients below this share of what was added up count as cancelled.
_CANCELLED = 1e-12


@dataclass(frozen=True, slots=True)
class Term:
    """One additive part: ``coefficient`` times ``expression`` (the paper's :math:`b_i\\phi_i`)."""

    coefficient: float
    expression: Expression

    @property
    def is_constant(self) -> bool:
        """Whether this is the constant offset."""
        return self.expression.tokens == (1.0,)

    def __str__(self) -> str:
        if self.is_constant:
            return format_number(self.coefficient)
        return f"{format_number(self.coefficient)}*({self.expression})"


@dataclass(frozen=True, slots=True)
class AdditiveTerms:
    """The terms of one expression, in order of first appearance.

    Parameters
    ----------
    terms : tuple of Term
    undistributed : tuple of Expression
        Factors left whole because distributing them would exceed the cap.
    """

    terms: tuple[Term, ...]
    undistributed: tuple[Expression, ...] = ()

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The :math:`\\phi_i`."""
        return tuple(term.expression for term in self.terms)

    @property
    def coefficients(self) -> tuple[float, ...]:
        """The :math:`b_i`."""
        return tuple(term.coefficient for term in self.terms)


def additive_terms(expression: Expression, *, max_terms: int = MAX_DISTRIBUTED_TERMS) -> AdditiveTerms:
    """Split an expression into the terms it is a sum of.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> [str(term) for term in additive_terms(parse("3*x0*(x1 - 2) + sin(x0) + x0*x1"))]
    ['4*(x0*x1)', '-6*(x0)', '1*(sin(x0))']
    """
    if max_terms < 1:
        raise ParameterError(f"'max_terms' must be at least 1. Got {max_terms}.")
    work = _Decomposition(expression.tokens, max_terms)
    products = _merged(work.root())
    return AdditiveTerms(
        tuple(Term(coefficient, work.rebuild(powers)) for coefficient, powers in products),
        tuple(dict.fromkeys(work.undistributed)),
    )


def products_of(
    expression: Expression, *, max_terms: int = MAX_DISTRIBUTED_TERMS
) -> tuple[list[Expression], Sum, bool]:
    """The expression as a sum of products of powers: the bases, the products over their numbers, and whether all was
    distributed."""
    work = _Decomposition(expression.tokens, max_terms)
    products = _merged(work.root())
    return work.bases, products, not work.undistributed


def sum_of_terms(terms: AdditiveTerms | list[Term] | tuple[Term, ...]) -> Expression:
    """The expression that the terms add up to, as short as the operators allow.

    Examples
    --------
    >>> str(sum_of_terms([Term(2.0, Expression.of("x0")), Term(-1.0, Expression.of("x1"))]))
    '2*x0 - x1'
    """
    total: Expression | None = None
    for term in terms:
        magnitude = abs(term.coefficient) if total is not None else term.coefficient
        part = _scaled(magnitude, term.expression)
        if total is None:
            total = part
        else:
            total = Expression.of("add" if term.coefficient >= 0 else "sub", total, part)
    return Expression.of(0.0) if total is None else total


def _scaled(coefficient: float, expression: Expression) -> Expression:
    if expression.tokens == (1.0,):
        return Expression.of(coefficient)
    if coefficient == 1.0:
        return expression
    if coefficient == -1.0:
        return Expression.of("neg", expression)
    # c*(1/q) reads better as c/q.
    if expression.head is OPERATORS["div"] and expression.tokens[1] == 1.0:
        return expression.replace(1, Expression.of(coefficient))
    return Expression.of("mul", coefficient, expression)


@dataclass(slots=True)
class _Decomposition:
    """One walk over the tokens, right to left; the stack holds (sum, end of the subtree)."""

    tokens: tuple[Token, ...]
    max_terms: int
    bases: list[Expression] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)
    undistributed: list[Expression] = field(default_factory=list)
    scales: dict[int, float] = field(default_factory=dict)  # leading coefficient of each base that is a sum
    sums: dict[int, Sum] = field(default_factory=dict)  # what the bases that are sums or products stand for
    whole: set[int] = field(default_factory=set)  # bases that the cap keeps undistributed

    def root(self) -> Sum:
        stack: list[tuple[Sum, int]] = []
        for start in range(len(self.tokens) - 1, -1, -1):
            token = self.tokens[start]
            if isinstance(token, float):
                stack.append(([(token, {})] if token else [], start + 1))
            elif isinstance(token, str):
                stack.append(([(1.0, {self.number(token, Expression.of(token)): 1.0})], start + 1))
            else:
                operands = [stack.pop() for _ in range(token.arity)]
                starts = [start + 1, operands[0][1]]
                spans = [(begin, end) for begin, (_, end) in zip(starts, operands, strict=False)]
                result = self.combine(token, [terms for terms, _ in operands], spans, start)
                stack.append((result, operands[-1][1]))
        return stack[0][0]

    def number(self, structure: object, base: Expression) -> int:
        """The number of this structure; ``base`` is kept the first time it is seen."""
        if structure not in self.numbers:
            self.numbers[structure] = len(self.bases)
            self.bases.append(base)
        return self.numbers[structure]

    def slice(self, span: tuple[int, int]) -> Expression:
        return Expression._trusted(self.tokens[span[0] : span[1]])

    def combine(self, op: Operator, operands: list[Sum], spans: list[tuple[int, int]], start: int) -> Sum:
        constant = _folded(op, operands)
        if constant is not None:
            return [(constant, {})] if constant else []
        special = _RULES.get(op.name)
        result = special(self, operands, spans) if special else None
        if result is not None and all(_is_usable(product) for product in result):
            return self.settled(result)
        children = [self.as_base(terms, span) for terms, span in zip(operands, spans, strict=True)]
        structure = (op.name, tuple(sorted(children) if op.is_commutative else children))
        return [(1.0, {self.number(structure, self.slice((start, spans[-1][1]))): 1.0})]

    def as_base(self, terms: Sum, span: tuple[int, int]) -> int:
        """The number of a whole sum, used as one factor or as a function's operand."""
        merged = _merged(terms)
        if len(merged) == 1 and merged[0][0] == 1.0:
            powers = merged[0][1]
            if len(powers) == 1 and next(iter(powers.values())) == 1.0:
                return next(iter(powers))
        structure = tuple(sorted((f"{c:.12g}", tuple(sorted(p.items()))) for c, p in merged))
        base = self.number(structure, self.slice(span))
        self.sums.setdefault(base, merged)
        return base

    def settled(self, terms: Sum) -> Sum:
        """Products in which no base hides a factor: sqrt(x + 1)**2 is x + 1, and sqrt(x**2)**2 is x**2.

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
            opened = [(coefficient * c, _joined(rest, p)) for c, p in factor]
            fits = len(done) + len(todo) + len(opened) <= max(self.max_terms, len(terms))
            if fits and all(_is_usable(product) for product in opened):
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
                factor = _real_power(coefficient, exponent)
                if factor is not None:
                    return base, [(factor, {b: power * exponent for b, power in inner.items()})]
        return None

    def keep_whole(self, base: int) -> None:
        self.whole.add(base)
        self.undistributed.append(self.bases[base])

    # --- rules for the operators that additive structure passes through

    def add(self, operands: list[Sum], spans: list[tuple[int, int]]) -> Sum:
        return operands[0] + operands[1]

    def sub(self, operands: list[Sum], spans: list[tuple[int, int]]) -> Sum:
        return operands[0] + [(-c, p) for c, p in operands[1]]

    def neg(self, operands: list[Sum], spans: list[tuple[int, int]]) -> Sum:
        return [(-c, p) for c, p in operands[0]]

    def mul(self, operands: list[Sum], spans: list[tuple[int, int]]) -> Sum:
        left, right = operands
        if len(left) * len(right) > self.max_terms:
            left, right = operands = [_merged(left), _merged(right)]
        if len(left) * len(right) > self.max_terms and len(left) > 1 and len(right) > 1:
            # Distributing would exceed the cap: the longer factor stays whole.
            longer = 0 if len(left) >= len(right) else 1
            base = self.as_base(operands[longer], spans[longer])
            self.keep_whole(base)
            whole: Sum = [(1.0, {base: 1.0})]
            left, right = (whole, right) if longer == 0 else (left, whole)
        return [(a * b, _joined(p, q)) for a, p in left for b, q in right]

    def div(self, operands: list[Sum], spans: list[tuple[int, int]]) -> Sum | None:
        inverse = self.power(operands[1], spans[1], -1.0)
        return None if inverse is None else [(a * inverse[0], _joined(p, inverse[1])) for a, p in operands[0]]

    def pow(self, operands: list[Sum], spans: list[tuple[int, int]]) -> Sum | None:
        exponent = _constant(operands[1])
        return None if exponent is None else self.raised(operands, spans, exponent)

    def raised(self, operands: list[Sum], spans: list[tuple[int, int]], exponent: float) -> Sum | None:
        if exponent == 1.0:
            return operands[0]
        if exponent == 0.0:
            return [(1.0, {})]
        product = self.power(operands[0], spans[0], exponent)
        return None if product is None else [product]

    def power(self, terms: Sum, span: tuple[int, int], exponent: float) -> Product | None:
        """``terms`` to a constant power, as one product; None where the numeric factor has no such power."""
        merged = _merged(terms)
        if not merged:
            return None
        if len(merged) > 1:
            return self.sum_power(merged, span, exponent)
        coefficient, powers = merged[0]
        if exponent.is_integer():
            factor = _real_power(coefficient, exponent)
            return None if factor is None else (factor, {base: power * exponent for base, power in powers.items()})
        factor = _real_power(coefficient, exponent) if coefficient > 0.0 else None
        if factor is None:
            return 1.0, {self.as_base(merged, span): exponent}
        inner = self.rebuild(powers)
        return factor, {self.as_base_of(powers, inner): exponent}

    def sum_power(self, merged: Sum, span: tuple[int, int], exponent: float) -> Product:
        """A sum to a power: 2x + 2 and x + 1 are one base, with the ratio in the coefficient."""
        ordered = sorted((tuple(sorted(powers.items())), coefficient) for coefficient, powers in merged)
        leading = ordered[0][1]
        structure = ("proportional", *((key, f"{coefficient / leading:.12g}") for key, coefficient in ordered))
        base = self.number(structure, self.slice(span))
        self.sums.setdefault(base, merged)
        ratio = leading / self.scales.setdefault(base, leading)
        factor = _real_power(ratio, exponent) if exponent.is_integer() or ratio > 0.0 else None
        return (1.0, {self.as_base(merged, span): exponent}) if factor is None else (factor, {base: exponent})

    def as_base_of(self, powers: Powers, expression: Expression) -> int:
        if len(powers) == 1 and next(iter(powers.values())) == 1.0:
            return next(iter(powers))
        base = self.number((("1", tuple(sorted(powers.items()))),), expression)
        self.sums.setdefault(base, [(1.0, powers)])
        return base

    def rebuild(self, powers: Powers) -> Expression:
        """The expression of a product without its coefficient."""
        above = [_raised(self.bases[base], power) for base, power in powers.items() if power > 0.0]
        below = [_raised(self.bases[base], -power) for base, power in powers.items() if power < 0.0]
        numerator = _product(above) if above else Expression.of(1.0)
        return Expression.of("div", numerator, _product(below)) if below else numerator


_Rule = Callable[[_Decomposition, list[Sum], list[tuple[int, int]]], Sum | None]
_RULES: dict[str, _Rule] = {
    "add": _Decomposition.add,
    "sub": _Decomposition.sub,
    "neg": _Decomposition.neg,
    "mul": _Decomposition.mul,
    "div": _Decomposition.div,
    "pow": _Decomposition.pow,
    "square": lambda self, operands, spans: self.raised(operands, spans, 2.0),
    "cube": lambda self, operands, spans: self.raised(operands, spans, 3.0),
    "inv": lambda self, operands, spans: self.raised(operands, spans, -1.0),
    "sqrt": lambda self, operands, spans: self.raised(operands, spans, 0.5),
}


def _constant(terms: Sum) -> float | None:
    """The value of a sum without variables."""
    if any(powers for _, powers in terms):
        return None
    try:
        return math.fsum(coefficient for coefficient, _ in terms)
    except OverflowError:
        return None


def _folded(op: Operator, operands: list[Sum]) -> float | None:
    """The operator's value where all operands are constants and the result is finite."""
    values = [_constant(terms) for terms in operands]
    if any(value is None for value in values):
        return None
    with np.errstate(all="ignore"):
        value = float(op.value(*(np.float64(v) for v in values)))
    return value if math.isfinite(value) else None


def _real_power(coefficient: float, exponent: float) -> float | None:
    try:
        value = coefficient**exponent
    except (OverflowError, ZeroDivisionError):
        return None
    return value if isinstance(value, float) and math.isfinite(value) and value != 0.0 else None


def _is_usable(product: Product) -> bool:
    """Whether coefficient and exponents are within the range of floats."""
    coefficient, powers = product
    return math.isfinite(coefficient) and coefficient != 0.0 and all(map(math.isfinite, powers.values()))


def _joined(left: Powers, right: Powers) -> Powers:
    joined = dict(left)
    for base, power in right.items():
        total = joined.get(base, 0.0) + power
        if total:
            joined[base] = total
        else:
            joined.pop(base, None)
    return joined


def _merged(terms: Sum) -> Sum:
    """Like terms added up, cancelled ones dropped, in order of first appearance."""
    if len(terms) == 1:
        return terms if terms[0][0] else []
    totals: dict[tuple[tuple[int, float], ...], tuple[float, float, Powers]] = {}
    for coefficient, powers in terms:
        key = tuple(sorted(powers.items()))
        total, magnitude, first = totals.get(key, (0.0, 0.0, powers))
        totals[key] = (total + coefficient, magnitude + abs(coefficient), first)
    if not all(math.isfinite(magnitude) for _, magnitude, _ in totals.values()):
        return terms  # adding up would overflow
    return [(total, powers) for total, magnitude, powers in totals.values() if abs(total) > _CANCELLED * magnitude]


def _raised(base: Expression, power: float) -> Expression:
    if power == 1.0:
        return base
    if power == 0.5:
        return Expression.of("sqrt", base)
    return Expression.of("pow", base, power)


def _product(factors: list[Expression]) -> Expression:
    product = factors[0]
    for factor in factors[1:]:
        product = Expression.of("mul", product, factor)
    return product
