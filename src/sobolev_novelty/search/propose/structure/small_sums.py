"""Sums of a few elementary terms: powers and functions of one input, times a power of an input, nearly all tried.

First terms without a constant inside, then with one or two whose constant runs over a grid; the loop's fit moves it to
its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    Places,
    Variable,
    constant,
    distinct,
    empty,
    joined,
    power_products,
    products,
)
from sobolev_novelty.search.propose.structure.exact_relations import fitted_sum
from sobolev_novelty.search.propose.wide_beam import Terms, WideBeam

#: Inputs up to which nearly all sums can be tried.
MAX_VARIABLES = 3
#: Terms of a sum.
N_TERMS, N_SCANNED_TERMS = 5, 4
#: Rows for each term: fewer are explained by any sum.
ROWS_PER_TERM = 6
#: Sums of each size whose constants are worth a fit.
N_SCANNED = 40

#: Terms with larger values, or with none above its inverse, are left out.
_HUGE = 1e100


def small_sums(variables: Sequence[Variable], t: FloatArray, operators: Sequence[str]) -> Iterator[list[Expression]]:
    """Two batches of forms: the best sums of terms without a constant inside, and of terms with one."""
    most = len(t) // ROWS_PER_TERM
    if len(variables) > MAX_VARIABLES or most < 1:
        return
    plain = _plain(variables, operators)
    fixed = Terms(plain.values, plain.values[:0], np.arange(len(plain)))
    found = WideBeam().search(fixed, t, n_terms=min(N_TERMS, most), exact=EXACT)
    yield writable(lambda c: fitted_sum(plain, c.columns, t), found)
    if any(c.nmse <= EXACT for c in found):
        return
    scanned, slopes, kinds = _scanned(variables, operators)
    whole = joined([plain, scanned])
    terms = Terms(
        whole.values,
        np.concatenate([np.zeros_like(plain.values), slopes]),
        np.concatenate([fixed.kinds, len(plain) + kinds]),
    )
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


def _scanned(variables: Sequence[Variable], operators: Sequence[str]) -> tuple[Dictionary, FloatArray, Places]:
    """Functions with a constant inside, times 1 or an input; their slopes by the constant, and their kinds."""
    n_rows = len(variables[0].values)
    parts: list[Dictionary] = [empty(n_rows)]
    slopes: list[FloatArray] = [np.zeros((0, n_rows))]
    kinds: list[int] = []
    for v in variables:
        pairs = [_product(v, w) for w in variables if w is not v]
        for part, slope, is_wave in _families(v, operators):
            for factor in (None, *variables, *(() if is_wave else pairs)):
                whole, whole_slope = times_factor(part, slope, factor)
                kinds += [len(parts)] * len(whole)
                parts.append(whole)
                slopes.append(whole_slope)
    return joined(parts), np.concatenate(slopes), np.array(kinds, dtype=np.intp)


def _product(v: Variable, w: Variable) -> Variable:
    return Variable(multiplied(v.expression, w.expression), v.values * w.values)


def times_factor(part: Dictionary, slope: FloatArray, factor: Variable | None) -> tuple[Dictionary, FloatArray]:
    """Terms times a variable, or as they are, and their slopes, without those of extreme size."""
    values = part.values if factor is None else part.values * factor.values
    slope_values = slope if factor is None else slope * factor.values
    sizes = np.abs(np.stack([values, slope_values])).max(axis=2)  # nan where a value is not finite
    fine = (sizes < _HUGE).all(axis=0) & (sizes[0] > 1.0 / _HUGE)
    places = np.flatnonzero(fine).tolist()

    def write(j: int) -> Expression:
        expression = part.expression(places[j])
        return expression if factor is None else multiplied(factor.expression, expression)

    return Dictionary(values[fine], write), slope_values[fine]


def _families(v: Variable, operators: Sequence[str]) -> Iterator[tuple[Dictionary, FloatArray, bool]]:
    """Functions of c·v for a grid of constants c, their derivatives by c, and whether they are waves."""
    arguments = {"input": v, "magnitude": _magnitude(v), "square": Variable(raised(v.expression, 2.0), v.values**2)}
    for template, grid, name in words.SCANNED_OF:
        argument = arguments[name]
        size = float(np.abs(argument.values).max())
        if size > 0.0 and is_writable(argument, template, operators):
            yield *over_grid(argument, template, grid / size), template in words.WAVE_TEMPLATES
    if v.is_positive and {"exp", "log"} <= set(operators):
        logarithm = Variable(Expression.of("log", v.expression), np.log(v.values))
        yield *over_grid(logarithm, composed("exp"), words.EIGHTHS), False


def over_grid(v: Variable, template: Expression, grid: FloatArray) -> tuple[Dictionary, FloatArray]:
    """The function of c·v for each c of a grid, and its derivative by c."""
    inside = np.multiply.outer(grid, v.values)
    part = Dictionary(
        value_at(template, inside), lambda j: filled(template, Expression.of("mul", float(grid[j]), v.expression))
    )
    return part, slope_at(template, inside) * v.values
