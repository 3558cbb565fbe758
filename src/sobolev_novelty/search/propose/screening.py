"""Screening: candidates whose terms repeat each other come last, before anything is fitted (Sec. 4.2).

The target is not looked at. All candidates are judged in one call of the batch kernel, on a few rows, and terms that
several of them share are evaluated once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import STATUSES, Geometry, Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.metric.batch import evaluated

#: Rows on which candidates are screened.
SCREEN_ROWS = 100
_SIGNS = (OPERATORS["add"], OPERATORS["sub"])

#: The paper's signature.
FIRST_ORDER = Geometry()

T = TypeVar("T")


def lowest_novelties(
    candidates: Sequence[Sequence[Expression]], sample: Sample, geometry: Geometry = FIRST_ORDER
) -> FloatArray:
    """The smallest ν of each candidate's terms among themselves.

    1 for a candidate with one term, whose novelty is 1 by definition; 0 where novelty cannot be computed.

    ``candidates``: the terms of each, without coefficients.

    >>> from sobolev_novelty.core.sample import as_sample
    >>> from sobolev_novelty.language.parsing import parse
    >>> x = as_sample(np.linspace(-1, 1, 100)[:, None])
    >>> twins, novel = [parse("x0"), parse("sin(x0)")], [parse("x0"), parse("cos(3*x0)")]
    >>> lowest_novelties([twins, novel, [parse("log(x0)")]], x).round(2).tolist()
    [0.12, 1.0, 1.0]
    """
    lowest = np.ones(len(candidates))
    several = [i for i, terms in enumerate(candidates) if len(terms) > 1]
    if not several:
        return lowest
    found = evaluated([candidates[i] for i in several], sample, geometry)
    starts = np.cumsum([0, *(len(candidates[i]) for i in several[:-1])])
    lowest[several] = np.where(found.status == STATUSES.index(Status.OK), np.minimum.reduceat(found.nu, starts), 0.0)
    return lowest


def screened(candidates: Sequence[T], lowest: FloatArray, n_kept: int, *, tau: float = TAU_ID) -> list[T]:
    """The first ``n_kept`` of the candidates, those above the threshold before the others, each kind in its order.

    >>> screened("abcd", np.array([0.1, 0.9, 0.2, 0.8]), 3)
    ['b', 'd', 'a']
    """
    order = np.argsort(~(np.asarray(lowest) > tau), kind="stable")
    return [candidates[int(i)] for i in order[:n_kept]]


def summands(form: Expression) -> tuple[Expression, ...]:
    """The terms of the top-level sum as they stand, signs left out; nothing is distributed or merged.

    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(term) for term in summands(parse("x0*(x1 + 2) - (sin(x0) + x1)"))]
    ['x0*(x1 + 2)', 'sin(x0)', 'x1']
    """
    # In prefix order what follows a summand is the next one, or the sign before it.
    found: list[Expression] = []
    position = 0
    while position < len(form):
        if form.tokens[position] in _SIGNS:
            position += 1
        else:
            found.append(form.subtree(position))
            position += len(found[-1])
    return tuple(found)
