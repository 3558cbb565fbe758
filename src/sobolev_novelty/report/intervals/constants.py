"""Which numbers of an equation are constants that a fit may change, and which belong to its structure.

Every summand has a coefficient, written or not. Inside a summand every number is a constant, except

- exponents that are whole or half numbers (``x**2``, ``x**-0.5``),
- the numbers 1 and -1 (``1/q``, ``1 + exp(x)``): without this rule the scale of a logistic curve would be free twice.

Numbers that meet only numbers are one constant (``2*pi``), and of several numbers that multiply the same summand only
the first is a constant: ``3*q/(4*pi*r)`` has one scale, not two.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.products import EXPONENTS, folded
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.report.intervals.profiles import Part

_ADD, _SUB, _MUL, _DIV, _NEG, _POW = (OPERATORS[name] for name in ("add", "sub", "mul", "div", "neg", "pow"))


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant.

    ``summand``, ``place``: which summand it is in (of several, the first), and where among the summand's numbers.
    """

    is_coefficient: bool
    summand: int
    place: int
    is_implied: bool = False  # whether it is a coefficient 1 or -1, written or not


@dataclass(frozen=True, slots=True, eq=False)
class Parametrised:
    """An equation as a sum with parameters."""

    parts: tuple[Part, ...]  # the summands, an unwritten coefficient 1 written
    constants: tuple[Constant, ...]
    theta: FloatArray  # shape (n_constants,): their values; the coefficient of ``- 2*x`` is -2

    def at(self, theta: FloatArray) -> Expression:
        """The equation with these values; a coefficient that was not written and is still 1 stays unwritten."""
        return self._summed([self.summand(i, theta)[0] for i in range(len(self.parts))])

    def summand(self, i: int, theta: FloatArray) -> tuple[Expression, int]:
        """Summand ``i`` without its sign, and how many of the numbers of its part are not written."""
        part = self.parts[i]
        values = [
            value if j < 0 else float(theta[j]) * factor
            for value, j, factor in zip(part.expression.constants, part.parameters, part.factors, strict=True)
        ]
        whole = part.expression.with_constants(values)
        return (whole.subtree(2), 1) if self._is_unwritten(i) else (whole, 0)

    def half_widths(self, own: Sequence[float | None]) -> tuple[float | None, ...]:
        """Half-widths of the parameters as those of the numbers of :meth:`at`, in prefix order."""
        found: list[float | None] = []
        for i, part in enumerate(self.parts):
            widths = [None if j < 0 else own[j] for j in part.parameters]
            found += widths[1:] if self._is_unwritten(i) else widths
        return tuple(found)

    def _is_unwritten(self, i: int) -> bool:
        """Whether the summand is written ``1*e`` here only, its factor fixed."""
        part = self.parts[i]
        tokens = part.expression.tokens
        return part.parameters[:1] == (-1,) and tokens[0] is _MUL and tokens[1] == 1.0

    def _summed(self, summands: list[Expression]) -> Expression:
        total = summands[0] if self.parts[0].sign > 0.0 else Expression.of("neg", summands[0])
        for part, summand in zip(self.parts[1:], summands[1:], strict=True):
            positive = _without_minus(summand)
            is_added = (part.sign > 0.0) == (positive is summand)
            total = Expression.of("add" if is_added else "sub", total, positive)
        return total


def _without_minus(summand: Expression) -> Expression:
    """The summand with the sign of a negative number in front of it taken away."""
    place = 1 if summand.head is _MUL or summand.head is _DIV else 0
    number = summand.tokens[place]
    if isinstance(number, float) and number < 0.0:
        return summand.replace(place, Expression.of(-number))
    return summand


def parametrised(expression: Expression, fixed: Collection[int] = ()) -> Parametrised:
    """The constants of an equation as it is written.

    ``fixed``: summands whose coefficient 1 stays 1.
    """
    parts: list[Part] = []
    constants: list[Constant] = []
    theta: list[float] = []
    for i, (sign, summand) in enumerate(_summands(_folded(expression))):
        place, inner_sign, repeated = _coefficient(summand)
        is_added = place is None
        whole = Expression.of("mul", 1.0, summand) if is_added else summand
        at = 0 if place is None else place
        is_implied = abs(whole.constants[at]) == 1.0
        parameters: list[int] = []
        factors: list[float] = []
        for k, (value, is_free) in enumerate(zip(whole.constants, _free(whole), strict=True)):
            is_coefficient = k == at
            is_repeated = k - is_added in repeated or (is_coefficient and is_implied and i in fixed)
            if is_repeated or not (is_free or is_coefficient):
                parameters.append(-1)
                factors.append(1.0)
                continue
            factor = sign * inner_sign if is_coefficient else 1.0
            parameters.append(len(theta))
            factors.append(factor)
            theta.append(value * factor)
            constants.append(Constant(is_coefficient, i, k, is_coefficient and is_implied))
        is_linear = parameters[at] >= 0 and sum(j >= 0 for j in parameters) == 1
        parts.append(Part(whole, sign, tuple(parameters), tuple(factors), is_linear))
    return Parametrised(tuple(parts), tuple(constants), np.array(theta))


def parametrised_terms(coefficients: Sequence[float], expressions: Sequence[Expression]) -> Parametrised:
    """The constants of a list of terms, their coefficients first.

    Distributing a product repeats its inner constants; equal numbers inside different terms are therefore one constant.
    """
    parts: list[Part] = []
    constants = [Constant(True, i, 0) for i in range(len(expressions))]
    theta = [float(c) for c in coefficients]
    known: dict[float, tuple[int, int]] = {}  # value -> parameter and the term it was last seen in
    for i, e in enumerate(map(_folded, expressions)):
        if isinstance(e.head, float):
            parts.append(Part(Expression.of("mul", theta[i], e), 1.0, (i, -1), (1.0, 1.0), True))
            continue
        parameters = [i]
        for k, (value, is_free) in enumerate(zip(e.constants, _free(e), strict=True)):
            if not is_free:
                parameters.append(-1)
                continue
            j, owner = known.get(value, (-1, -1))
            if j < 0 or owner == i:
                j = len(theta)
                theta.append(value)
                constants.append(Constant(False, i, k + 1))
            known[value] = j, i
            parameters.append(j)
        whole = Expression.of("mul", theta[i], e)
        parts.append(Part(whole, 1.0, tuple(parameters), (1.0,) * len(parameters), max(parameters[1:], default=-1) < 0))
    return Parametrised(tuple(parts), tuple(constants), np.array(theta))


def _folded(expression: Expression) -> Expression:
    """Numbers that meet only numbers as one."""

    def node(op: Operator, operands: tuple[Expression, ...]) -> Expression:
        values = [operand.head for operand in operands if isinstance(operand.head, float)]
        if len(values) == len(operands):
            number = folded(op, values)
            if number is not None:
                return Expression.of(number)
        return Expression.of(op, *operands)

    def leaf(token: float | str) -> Expression:
        return Expression.of(token)

    return expression.fold(leaf, node)


def _summands(expression: Expression) -> list[tuple[float, Expression]]:
    """The summands of the outermost sum with their signs, in order."""
    found: list[tuple[float, Expression]] = []
    waiting = [(1.0, expression)]
    while waiting:
        sign, e = waiting.pop()
        if e.head is _NEG:
            waiting.append((-sign, e.children[0]))
        elif e.head is _ADD or e.head is _SUB:
            left, right = e.children
            waiting += [(sign if e.head is _ADD else -sign, right), (sign, left)]
        else:
            found.append((sign, e))
    return found


def _coefficient(summand: Expression) -> tuple[int | None, float, set[int]]:
    """Which of the summand's numbers multiplies all of it, the sign before it, and numbers that would only repeat it.

    The first is None where there is no such number above the line.
    """
    tokens = summand.tokens
    number = {position: k for k, position in enumerate(p for p, t in enumerate(tokens) if isinstance(t, float))}
    above: list[tuple[int, float]] = []
    elsewhere: list[int] = []  # below the line or under a power
    waiting = [(0, 1.0, True)]
    while waiting:
        position, sign, is_above = waiting.pop()
        token, first = tokens[position], position + 1
        if isinstance(token, float):
            if is_above:
                above.append((number[position], sign))
            elif abs(token) != 1.0:
                elsewhere.append(number[position])
        elif token is _MUL:
            waiting += [(summand.end(first), sign, is_above), (first, sign, is_above)]
        elif token is _DIV:
            waiting += [(summand.end(first), sign, False), (first, sign, is_above)]
        elif token is _NEG:
            waiting.append((first, -sign, is_above))
        elif isinstance(token, Operator) and (token.name in EXPONENTS or _is_power(summand, position)):
            waiting.append((first, sign, False))
    if above:
        (place, sign), *others = above
        return place, sign, {k for k, _ in others} | set(elsewhere)
    return None, 1.0, set(elsewhere[1:])


def _is_power(summand: Expression, position: int) -> bool:
    return summand.tokens[position] is _POW and isinstance(summand.tokens[summand.end(position + 1)], float)


def _free(summand: Expression) -> list[bool]:
    """Which of the summand's numbers are constants, by the rule of this module."""
    tokens = summand.tokens
    exponents = {
        end
        for position, token in enumerate(tokens)
        if token is _POW
        and isinstance(exponent := tokens[end := summand.end(position + 1)], float)
        and (2.0 * exponent).is_integer()
    }
    return [
        position not in exponents and abs(token) != 1.0
        for position, token in enumerate(tokens)
        if isinstance(token, float)
    ]
