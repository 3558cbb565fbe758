"""Functions that are straight lines or parabolas on the data, written as such.

A search finds 165862*(1 - cos(0.0032*u)) where u²/2 is meant: the function is nowhere bent enough to show, and large
constants cancel. The loop fits what is proposed here like any other form.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.search.propose.vocabulary import BENDING

#: Share of a function's spread by which it may differ from the line or the parabola.
NEARLY = 1e-3


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
        if isinstance(token, Operator) and token.name in BENDING and expression.subtree(place).variables
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
