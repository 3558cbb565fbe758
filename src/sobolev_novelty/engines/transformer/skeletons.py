"""Skeletons, formulas with placeholders for constants, as forms that the loop can fit.

Two formulas have the same skeleton when they have the same canonical terms once free constants are left out. A skeleton
becomes several forms: its constants start from different values, and every other form has a free offset. The factor of
each term is linear, so that ``a + b*f`` is always among what is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sobolev_novelty.algebra.writing import ONE, respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.search.contract.engine import Problem
from sobolev_novelty.search.fit.forms import Form, split_form

#: Starting values lie between the inverse of this and this, with either sign.
LARGEST_START = 10.0


def is_new(skeleton: Expression, known: set[frozenset[Expression]]) -> bool:
    """Whether no formula with this skeleton is known; it is known from now on.

    >>> from sobolev_novelty.language.parsing import parse
    >>> known = set()
    >>> [is_new(parse(text), known) for text in ("2*sin(3*x0) + 1", "1 - sin(x0*5)", "sin(x0)")]
    [True, False, True]
    """
    key = frozenset(_without_constants(split_form(_generic(skeleton))))
    seen = key in known
    known.add(key)
    return not seen


def started_forms(
    skeletons: Sequence[Expression], problem: Problem, n_starts: int, rng: np.random.Generator
) -> Iterator[Expression]:
    """The forms of skeletons that a problem allows: the first start of all of them, then the second, and so on.

    A skeleton without inner constants has two forms, without and with an offset.
    """
    splits = [split_form(_generic(skeleton)) for skeleton in skeletons]
    for k in range(n_starts):
        for skeleton, split in zip(skeletons, splits, strict=True):
            with_offset = k % 2 == 1 and ONE not in split.terms
            if k == 0 or split.n_free or (k == 1 and with_offset):
                start = _generic(skeleton) if k == 0 else _random(skeleton, rng)
                form = respelled(Expression.of("add", start, 1.0) if with_offset else start, problem.operators)
                if form is not None and form.complexity <= problem.max_complexity:
                    yield form


def _generic(skeleton: Expression) -> Expression:
    """Constants near 1, no two of them equal: no terms merge that differ for other constants."""
    return skeleton.with_constants([1.0 + 0.0137 * j for j in range(len(skeleton.constants))])


def _random(skeleton: Expression, rng: np.random.Generator) -> Expression:
    n = len(skeleton.constants)
    sizes = LARGEST_START ** rng.uniform(-1.0, 1.0, n)
    return skeleton.with_constants((rng.choice([-1.0, 1.0], n) * sizes).tolist())


def _without_constants(form: Form) -> Iterator[Expression]:
    flags = iter(form.free)
    for term in form.terms:
        yield term.with_constants([0.0 if next(flags) else constant for constant in term.constants])
