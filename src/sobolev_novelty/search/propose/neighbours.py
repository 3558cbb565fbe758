"""Equations near a given one: functions that are straight on the data written as such, and what begins like a part.

A search finds 165862*(1 - cos(0.0032*u)) where u²/2 is meant: the function is nowhere bent enough to show, and large
constants cancel. And noise hides the difference between functions that begin alike, such as 1 + u/2 and 1/sqrt(1 - u):
a search meets the simplest of them first, and no path of single steps leads from it to the others. The loop fits what
is proposed here like any other form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from sobolev_novelty.algebra.canonical import tidy
from sobolev_novelty.algebra.factoring import factored, flattened
from sobolev_novelty.algebra.outer import filled
from sobolev_novelty.algebra.products import EXPONENTS
from sobolev_novelty.algebra.proper_fractions import with_proper_fractions
from sobolev_novelty.algebra.terms import additive_terms, sum_of_terms
from sobolev_novelty.algebra.writing import ONE, raised, scaled, summands, weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.search.propose import vocabulary as words

#: Share of a function's spread by which it may differ from the line or the parabola.
NEARLY = 1e-3
#: Terms of an equation smaller than this share of the largest are tried without.
NEGLIGIBLE = 1e-7
MAX_THINNED_TERMS = 20


def shorter_spellings(expression: Expression, _: Sample | None = None) -> list[Expression]:
    """The expression factored, distributed and factored, divided out: those that have fewer nodes.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(e) for e in shorter_spellings(parse("2*x0*x1 + 3*x0*x2"))][:1]
    ['2*(x0*(x1 + 1.5*x2))']
    """
    spellings = (
        factored(expression),
        factored(flattened(expression, through_roots=True)),
        factored(with_proper_fractions(expression)),
    )
    return [spelling for spelling in spellings if spelling.complexity < expression.complexity]


def shortened(expression: Expression, _: Sample | None = None) -> list[Expression]:
    """Expressions with one operator taken out: each of its operands in its place.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(e) for e in shortened(parse("x0*tanh(x1)"))]
    ['x0', 'tanh(x1)', 'x0*x1']
    """
    found: dict[Expression, None] = {}
    for position, token in enumerate(expression.tokens):
        if isinstance(token, Operator):
            for operand in expression.subtree(position).children:
                found[expression.replace(position, operand)] = None
    return list(found)


def thinned(expression: Expression, sample: Sample) -> list[Expression]:
    """The expression distributed, without the terms whose size on the sample is rounding, and factored again."""
    terms = additive_terms(expression, max_terms=MAX_THINNED_TERMS).terms
    if not 1 < len(terms) <= MAX_THINNED_TERMS:
        return []
    values = derivatives([term.expression for term in terms], sample, 0)[:, 0]
    with np.errstate(all="ignore"):
        sizes = np.nan_to_num(np.abs([term.coefficient for term in terms]) * np.sqrt(np.mean(values**2, axis=1)))
    kept = [term for term, size in zip(terms, sizes, strict=True) if size > NEGLIGIBLE * sizes.max()]
    found = [factored(sum_of_terms(kept))] if kept else []
    return [form for form in found if form.complexity < expression.complexity]


def linearised(expression: Expression, sample: Sample) -> list[Expression]:
    """Expressions with one function replaced by its argument plus a constant, or by the square of that.

    Examples
    --------
    >>> from sobolev_novelty.core.sample import as_sample
    >>> from sobolev_novelty.language.parsing import parse
    >>> sample = as_sample(np.linspace(-1.0, 1.0, 50))
    >>> [str(e) for e in linearised(parse("2 - 1000*cos(0.01*x0)"), sample)], linearised(parse("cos(x0)"), sample)
    (['2 - 1000*(square(0.01*x0) + 1)'], [])
    """
    places = [
        place
        for place, token in enumerate(expression.tokens)
        if isinstance(token, Operator) and token.name in words.BENDING and expression.subtree(place).variables
    ]
    if not places:
        return []
    parts = [expression.subtree(place) for place in places]
    values = derivatives([*parts, *(part.children[0] for part in parts)], sample, 0)[:, 0]
    found = (
        _replacement(part.children[0], f, u)
        for part, f, u in zip(parts, values[: len(parts)], values[len(parts) :], strict=True)
    )
    return list(_replaced(expression, places, found))


def _replaced(expression: Expression, places: list[int], found: Iterator[Expression | None]) -> Iterator[Expression]:
    for place, other in zip(places, found, strict=True):
        if other is not None:
            yield expression.replace(place, other)


def _replacement(argument: Expression, f: FloatArray, u: FloatArray) -> Expression | None:
    """What a function with values ``f`` at ``u`` amounts to, up to a factor and an offset."""
    if not (np.isfinite(f).all() and np.isfinite(u).all()) or np.ptp(u) == 0.0 or np.ptp(f) == 0.0:
        return None
    z = u / np.max(np.abs(u))
    for degree in (1, 2):
        columns = np.stack([np.ones_like(z), z**degree])
        left = f - np.linalg.lstsq(columns.T, f, rcond=None)[0] @ columns
        if np.max(np.abs(left)) <= NEARLY * np.ptp(f):
            power = argument if degree == 1 else Expression.of("square", argument)
            return Expression.of("add", power, 1.0)
    return None


#: Slopes beyond this, and below, are accidents of a fit.
LEAST_SLOPE = 1e-9


def relatives(expression: Expression, _: Sample | None = None) -> list[Expression]:
    """Expressions in which a power of a + b·u, exp(b·u), cos(b·u) or log(a + b·u) is replaced by what begins like it.

    Each also with u² in the place of u, and the other way round.

    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(e) for e in relatives(parse("x0*(1 + x1)"))][:3]
    ['x0*inv(-x1 + 1)', 'x0*sqrt(2*x1 + 1)', 'x0*inv(sqrt(-2*x1 + 1))']
    """
    found: dict[Expression, None] = {}
    for site in _sites(expression):
        if LEAST_SLOPE < abs(site.slope) < 1.0 / LEAST_SLOPE:
            for other in site.others():
                whole = other if site.above is None else Expression.of("mul", site.above, other)
                found[expression.replace(site.place, whole)] = None
    found.pop(expression, None)
    return list(found)


@dataclass(frozen=True, slots=True)
class _Site:
    """A part f(u) of an expression that may be replaced."""

    place: int  # of the token where it begins, or where the quotient begins that it is below
    above: Expression | None  # what stands above it there
    u: Expression
    slope: float  # of f at u = 0, relative to f there
    power: float | None  # f is 1 + slope·u to this power, but for a factor; None for the exponential, 0 for the cosine
    factor: Expression | None = None  # what f vanishes with: log(1 + u) is u times something that begins with 1

    def others(self) -> Iterator[Expression]:
        """What may be meant instead."""
        changed = self.u.children[0] if _name(self.u) == "square" else Expression.of("square", self.u)
        for u in (self.u, changed):
            for p in words.OF_ONE_PLUS:
                if u is changed or p != self.power:
                    yield self._times(raised(weighted_sum([(self.slope / p, u), (1.0, ONE)]), p))
            if u is changed or self.power is not None:
                yield self._times(Expression.of("exp", scaled(self.slope, u)))
        if _name(self.u) == "square":
            yield self._times(Expression.of("cos", scaled(math.sqrt(2.0 * abs(self.slope)), self.u.children[0])))
        if self.power == 1.0 and self.factor is None:
            inverse = Expression.of("div", Expression.of(abs(2.0 / self.slope)), self.u)
            yield filled(words.LIKE_LARGE, inverse)

    def _times(self, other: Expression) -> Expression:
        return other if self.factor is None else Expression.of("mul", self.factor, other)


def _sites(expression: Expression) -> Iterator[_Site]:
    taken: set[int] = set()  # sums that were looked at with the powers they stand in
    for place, token in enumerate(expression.tokens):
        if not isinstance(token, Operator) or place in taken:
            continue
        if token.name in words.RELATED:
            taken.add(place + 1)  # a sum there is a phase, or a scale
            yield from _of_function(place, expression.subtree(place), token.name)
        else:
            yield from _of_power(place, expression, taken)


def _of_function(place: int, part: Expression, name: str) -> Iterator[_Site]:
    argument = part.children[0]
    parts = [(c, e) for c, e in summands(argument) if e != ONE]
    if len(parts) != 1:
        return
    slope, u = parts[0]
    if name == "exp":
        yield _Site(place, None, u, slope, None)
    elif name in words.WAVES:
        yield _Site(place, None, Expression.of("square", u), -0.5 * slope * slope, 0.0)
    elif (found := _linear(argument)) is not None:
        yield _Site(place, None, u, -0.5 * found[1], 0.0, u)


def _of_power(place: int, expression: Expression, taken: set[int]) -> Iterator[_Site]:
    part = inner = expression.subtree(place)
    above, power, start = None, 1.0, place
    if _name(part) == "div":
        (above, inner), power, start = part.children, -1.0, expression.end(place + 1)
    while (exponent := EXPONENTS.get(_name(inner))) is not None:
        taken.add(start)
        inner, power, start = inner.children[0], power * exponent, start + 1
    found = _linear(inner)
    if found is not None:
        taken.add(start)
        yield _Site(place, above, found[0], power * found[1], power)
    elif inner is part:
        yield from _of_two(place, part)


def _of_two(place: int, part: Expression) -> Iterator[_Site]:
    """A sum a·A + b·B is A·(1 + u) with u = (b/a)·B/A, and the other way round."""
    parts = summands(part) if _name(part) in ("add", "sub") else []
    if len(parts) == 2 and all(e.variables for _, e in parts):
        for (a, first), (b, second) in (parts, parts[::-1]):
            ratio = tidy(Expression.of("div", second, first))
            yield _Site(place, None, ratio, b / a, 1.0, first)


def _linear(inner: Expression) -> tuple[Expression, float] | None:
    """The u and b/a of a sum a + b·u; None for anything else."""
    if _name(inner) not in ("add", "sub"):
        return None
    parts = summands(inner)
    offset = sum(c for c, e in parts if e == ONE)
    rest = [(c, e) for c, e in parts if e != ONE]
    if not rest or offset == 0.0 or not all(e.variables for _, e in rest):
        return None
    (first, u), *more = rest
    return (weighted_sum(rest), 1.0 / offset) if more else (u, first / offset)


def _name(expression: Expression) -> str:
    head = expression.head
    return head.name if isinstance(head, Operator) else ""


class Best(Enum):
    """By what an equation is among the best."""

    SCORE = "score"
    DESCRIPTION = "length of its description"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A way from one of the best equations to others nearby, up to a complexity."""

    name: str
    of: Best
    most: int
    forms: Callable[[Expression, Sample], list[Expression]]


#: In the order in which they are tried.
NEIGHBOURS = (
    Neighbours("factored, distributed, divided out", Best.SCORE, 80, shorter_spellings),
    Neighbours("without terms that are only rounding", Best.SCORE, 80, thinned),
    Neighbours("functions that are straight on the data, or parabolas, as such", Best.SCORE, 80, linearised),
    Neighbours("with an operator less", Best.DESCRIPTION, 30, shortened),
    Neighbours("with another function that begins alike", Best.DESCRIPTION, 30, relatives),
)


def nearby(expression: Expression, sample: Sample, of: Best) -> list[Expression]:
    """All that is tried near an equation that is among the best by something."""
    rows = [row for row in NEIGHBOURS if row.of is of and expression.complexity <= row.most]
    return [form for row in rows for form in row.forms(expression, sample)]


#: Expressions longer than this are not made shorter: there are too many ways.
MAX_NODES = 60


def shorter_forms(expression: Expression) -> list[Expression]:
    """Forms with one operator less, or with a constant in the place of an input.

    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(e) for e in shorter_forms(parse("x0*exp(x1)"))]
    ['x0', 'exp(x1)', 'x0*x1', '1.5*exp(x1)', 'x0*exp(1.5)']
    """
    if expression.complexity > MAX_NODES:
        return []
    found = dict.fromkeys(shortened(expression))
    for place, token in enumerate(expression.tokens):
        if isinstance(token, str):
            found[expression.replace(place, Expression.of(1.5))] = None
    return [e for e in found if e.variables]
