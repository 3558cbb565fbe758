"""A single term in one variable: a power of it times a function with a constant inside, as in Planck's law.

What many reductions end at is a smooth curve, which the wrong sums of two terms follow to eight digits. So every kind
of term is tried by itself, at the best constant of a grid; the loop's fit moves it to its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sobolev_novelty.algebra.writing import raised, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.structure.dictionaries import Dictionary, Variable, joined
from sobolev_novelty.search.propose.structure.exact_relations import fitted_sum
from sobolev_novelty.search.propose.structure.small_sums import is_writable, over_grid, times_factor
from sobolev_novelty.search.propose.wide_beam import Terms, WideBeam

#: Kinds of terms whose constants are worth a fit.
KEPT = 24
#: Rows on which they are judged: one term with one constant asks for few.
N_ROWS = 80


def single_terms(v: Variable, t: FloatArray, operators: Sequence[str]) -> list[Expression]:
    """The most promising terms c·vᵏ·f(a·vᵐ)."""
    v, t = Variable(v.expression, v.values[:N_ROWS]), t[:N_ROWS]
    parts: list[Dictionary] = []
    slopes: list[FloatArray] = []
    kinds: list[int] = []
    for part, slope in _families(v, operators):
        for power in words.IN_FRONT[: None if v.is_positive else words.N_IN_FRONT_OF_ANY]:
            whole, whole_slope = times_factor(part, slope, _raised(v, power) if power else None)
            kinds += [len(parts)] * len(whole)
            parts.append(whole)
            slopes.append(whole_slope)
    if not kinds:
        return []
    dictionary = joined(parts)
    terms = Terms(dictionary.values, np.concatenate(slopes), np.array(kinds, dtype=np.intp))
    found = WideBeam(keep=KEPT).search(terms, t, n_terms=1, exact=0.0)
    return writable(lambda c: fitted_sum(dictionary, c.columns, t), found)


def _families(v: Variable, operators: Sequence[str]) -> Iterator[tuple[Dictionary, FloatArray]]:
    """Functions of a·vᵐ over the grid of a, and their derivatives by a."""
    for power in words.FEW if v.is_positive else (1.0, 2.0):
        argument = _raised(v, power)
        size = float(np.abs(argument.values).max())
        for templates, grid in ((words.MONOTONE, words.SIZES_OF_ONE), (words.WAVE_TEMPLATES, words.CYCLES_OF_ONE)):
            for template in templates:
                if size > 0.0 and is_writable(argument, template, operators):
                    yield over_grid(argument, template, grid / size)


def _raised(v: Variable, power: float) -> Variable:
    return Variable(raised(v.expression, power), v.values**power)
