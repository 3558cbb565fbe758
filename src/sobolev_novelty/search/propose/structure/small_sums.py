"""Sums of a few elementary terms: powers and functions of one input, times a power of an input, nearly all tried.

First terms without a constant inside, then with one or two whose constant runs over a grid; the loop's fit moves it to
its place. Of one input every kind of term is tried by itself as well: what many reductions end at is a smooth curve,
which the wrong sums of two terms follow to eight digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from sobolev_novelty.algebra.outer import composed, filled, slope_at, value_at
from sobolev_novelty.algebra.writing import multiplied, raised, respelled, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.pursuit import EXACT
from sobolev_novelty.search.propose.structure.dictionaries import (
    Dictionary,
    constant,
    distinct,
    empty,
    joined,
    power_products,
    products,
)
from sobolev_novelty.search.propose.structure.exact_relations import fitted_sum
from sobolev_novelty.search.propose.subproblem import Variable
from sobolev_novelty.search.propose.wide_beam import Terms, WideBeam

#: Terms of a sum.
N_TERMS, N_SCANNED_TERMS = 5, 4
#: Rows for each term: fewer are explained by any sum.
ROWS_PER_TERM = 6
#: Sums of each size whose constants are worth a fit.
N_SCANNED = 40

#: Of the terms of one input, kinds whose constants are worth a fit, and rows on which they are judged: one term with
#: one constant asks for few.
KEPT, N_ROWS = 24, 80

#: Terms with larger values, or with none above its inverse, are left out.
_HUGE = 1e100


def small_sums(variables: Sequence[Variable], t: FloatArray, operators: Sequence[str]) -> Iterator[list[Expression]]:
    """Two batches of forms: the best sums of terms without a constant inside, and of terms with one."""
    most = len(t) // ROWS_PER_TERM
    if most < 1:
        return
    plain = _plain(variables, operators)
    fixed = Terms(plain.values, plain.values[:0], np.arange(len(plain)))
    found = WideBeam().search(fixed, t, n_terms=min(N_TERMS, most), exact=EXACT)
    yield writable(lambda c: fitted_sum(plain, c.columns, t), found)
    if any(c.nmse <= EXACT for c in found):
        return
    whole, terms = _over_grids(_scans(variables, operators), plain)
    found = WideBeam(beam=300, branch=16, keep=N_SCANNED).search(
        terms, t, n_terms=min(N_SCANNED_TERMS, most), exact=EXACT
    )
    yield writable(
        lambda c: fitted_sum(whole, c.columns, t) if any(j >= len(plain) for j in c.columns) else None, found
    )


def _plain(variables: Sequence[Variable], operators: Sequence[str]) -> Dictionary:
    """1, the functions of every input, and their products with inputs, squares of inputs and products of two."""
    shapes = joined([_shapes(v, operators) for v in variables])
    own = np.eye(len(variables))
    factors = power_products(variables, np.vstack([own, 2.0 * own, *(a + b for a, b in combinations(own, 2))]))
    return distinct(constant(variables), shapes, products(factors, shapes)).dense()


def _shapes(v: Variable, operators: Sequence[str]) -> Dictionary:
    magnitude = _magnitude(v)
    whole = [(v, template) for template in words.OF_INPUT] + [(magnitude, template) for template in words.OF_MAGNITUDE]
    found = [_image(argument, template) for argument, template in whole if is_writable(argument, template, operators)]
    return joined([empty(len(v.values)), *found])


def _magnitude(v: Variable) -> Variable:
    return v if v.is_positive else Variable(Expression.of("abs", v.expression), np.abs(v.values))


def is_writable(argument: Variable, template: Expression, operators: Sequence[str]) -> bool:
    """Whether the function of an argument can be written in the allowed operators."""
    return respelled(filled(template, argument.expression), operators) is not None


def _image(v: Variable, template: Expression) -> Dictionary:
    return Dictionary(value_at(template, v.values)[None], lambda _: filled(template, v.expression))


#: None stands for no factor.
Factors = Sequence[Variable | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """A function of c·w for each constant c, times each of some factors (None for nothing)."""

    argument: Variable
    template: Expression
    constants: FloatArray
    factors: Factors

    def terms(self) -> Iterator[tuple[Dictionary, FloatArray]]:
        """The terms with each factor, and their slopes by the constant, without those of extreme size."""
        inside = np.multiply.outer(self.constants, self.argument.values)
        both = np.stack([value_at(self.template, inside), slope_at(self.template, inside) * self.argument.values])
        for factor in self.factors:
            values, slope = both if factor is None else both * factor.values
            sizes = np.abs(np.stack([values, slope])).max(axis=2)  # nan where a value is not finite
            fine = (sizes < _HUGE).all(axis=0) & (sizes[0] > 1.0 / _HUGE)
            yield Dictionary(values[fine], partial(self.written, factor, self.constants[fine].tolist())), slope[fine]

    def written(self, factor: Variable | None, constants: Sequence[float], j: int) -> Expression:
        """The j-th term with a factor."""
        term = filled(self.template, Expression.of("mul", constants[j], self.argument.expression))
        return term if factor is None else multiplied(factor.expression, term)


def _over_grids(scans: Iterable[_Scan], plain: Dictionary) -> tuple[Dictionary, Terms]:
    """Terms without a constant inside, then those of all scans, with their slopes by the constant and their kinds."""
    parts, slopes, kinds = [plain], [np.zeros_like(plain.values)], list(range(len(plain)))
    for part, slope in (term for scan in scans for term in scan.terms()):
        kinds += [len(plain) + len(parts)] * len(part)
        parts.append(part)
        slopes.append(slope)
    whole = joined(parts)
    return whole, Terms(whole.values, np.concatenate(slopes), np.array(kinds, dtype=np.intp))


def _relative(
    argument: Variable, template: Expression, grid: FloatArray, factors: Factors, operators: Sequence[str]
) -> Iterator[_Scan]:
    """The scan of a grid relative to the largest magnitude of the argument, where it can be written."""
    size = float(np.abs(argument.values).max())
    if size > 0.0 and is_writable(argument, template, operators):
        yield _Scan(argument, template, grid / size, factors)


def _scans(variables: Sequence[Variable], operators: Sequence[str]) -> Iterator[_Scan]:
    """Functions with a constant inside, times 1, an input, or a product of two unless they are waves."""
    for v in variables:
        plain = (None, *variables)
        pairs = (*plain, *(_product(v, w) for w in variables if w is not v))
        arguments = {"input": v, "magnitude": _magnitude(v), "square": _raised(v, 2.0)}
        for template, grid, name in words.SCANNED_OF:
            factors = plain if template in words.WAVE_TEMPLATES else pairs
            yield from _relative(arguments[name], template, grid, factors, operators)
        if v.is_positive and {"exp", "log"} <= set(operators):
            logarithm = Variable(Expression.of("log", v.expression), np.log(v.values))
            yield _Scan(logarithm, composed("exp"), words.EIGHTHS, pairs)


def _product(v: Variable, w: Variable) -> Variable:
    return Variable(multiplied(v.expression, w.expression), v.values * w.values)


def _raised(v: Variable, power: float) -> Variable:
    return Variable(raised(v.expression, power), v.values**power)


def single_terms(v: Variable, t: FloatArray, operators: Sequence[str]) -> list[Expression]:
    """The most promising terms c·vᵏ·f(a·vᵐ) of one input."""
    v, t = v.first(N_ROWS), t[:N_ROWS]
    dictionary, terms = _over_grids(_scans_of_one(v, operators), empty(len(t)))
    found = WideBeam(keep=KEPT).search(terms, t, n_terms=1, exact=0.0)
    return writable(lambda c: fitted_sum(dictionary, c.columns, t), found)


def _scans_of_one(v: Variable, operators: Sequence[str]) -> Iterator[_Scan]:
    in_front = words.IN_FRONT[: None if v.is_positive else words.N_IN_FRONT_OF_ANY]
    factors = [_raised(v, power) if power else None for power in in_front]
    for power in words.FEW if v.is_positive else (1.0, 2.0):
        for templates, grid in (
            (words.MONOTONE, words.SIZES_OF_ONE),
            (words.WAVE_TEMPLATES, words.CYCLES_OF_ONE),
        ):
            for template in templates:
                yield from _relative(_raised(v, power), template, grid, factors, operators)
