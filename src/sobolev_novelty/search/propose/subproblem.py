"""A problem inside a problem: what is left of a target when an outer function, a factor or a known part is taken away.

A step says how to get inside, and how a form for what is inside is written in its place. Structural families and the
tree search (:mod:`~sobolev_novelty.search.propose.partial_expressions`) take the same steps.

Notation
--------
``t``  the target;  ``s`` what is inside a step;  ``w`` |dy/ds|, by which an error inside counts as it does in ``y``
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sobolev_novelty.algebra.outer import OUTERS, Outer, composed, slope_at
from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import product, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose.vocabulary import OUTER


@dataclass(frozen=True, slots=True)
class Known:
    """A part of the target that is known; what is left stands beside it in a sum."""

    part: Expression


#: The name of an outer function that is undone, a product that is divided out, or a part that is subtracted.
Step = str | Product | Known
TURNED = "neg"
_OUTERS = {**OUTERS, TURNED: Outer(TURNED, composed(TURNED), -np.inf, np.inf, np.negative)}


def inside(step: Step, t: FloatArray, factor: FloatArray | float = np.nan) -> FloatArray:
    """What is left of a target; ``factor`` has the values of a product, or of a known part."""
    if isinstance(step, str):
        return _OUTERS[step].undo(t)
    with np.errstate(all="ignore"):
        return np.asarray(t - factor if isinstance(step, Known) else t / factor)


def slope(step: Step, s: FloatArray, factor: FloatArray) -> FloatArray:
    """How fast the target goes with what is inside, where that is ``s``."""
    if isinstance(step, str):
        return slope_at(_OUTERS[step].template, s)
    return np.ones_like(s) if isinstance(step, Known) else factor


def around(step: Step, form: Expression) -> Expression:
    """A form for what is inside, written in its place."""
    if isinstance(step, str):
        return _OUTERS[step].write(form)
    if isinstance(step, Known):
        return Expression.of("add", step.part, form)
    return product([(form, 1.0), *step.factors])


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An input, or a combination of inputs that stands for one."""

    expression: Expression
    values: FloatArray

    @property
    def is_positive(self) -> bool:
        """Whether it is above zero in every row."""
        return bool((self.values > 0.0).all())

    def first(self, n_rows: int) -> Variable:
        """The same on its first rows."""
        return Variable(self.expression, self.values[:n_rows])


@dataclass(frozen=True, slots=True, eq=False)
class Subproblem:
    """A target, the variables it depends on, and the steps that lead to it from the original one."""

    variables: tuple[Variable, ...]
    target: FloatArray  # shape (n_rows,)
    steps: tuple[Step, ...] = ()  # from outside
    error: float = np.nan  # of an interpolant of the target, relative to its spread; nan where none was made
    #: How an interpolant sees it: see :mod:`~sobolev_novelty.search.propose.structure.reductions`.
    view: Any = field(default=None)

    @property
    def key(self) -> tuple[str, ...]:
        """What the problem is about, for telling equal ones."""
        return (*sorted(str(v.expression) for v in self.variables), f"{self.target[:4].round(9).tolist()}")

    def behind(self, step: Step, factor: FloatArray | float = np.nan, **changed: Any) -> Subproblem:
        """The problem inside a step."""
        return replace(self, target=inside(step, self.target, factor), steps=(*self.steps, step), **changed)

    def first(self, n_rows: int) -> Subproblem:
        """The same on its first rows."""
        return replace(self, variables=tuple(v.first(n_rows) for v in self.variables), target=self.target[:n_rows])

    def undone(self, operators: Collection[str]) -> list[Subproblem]:
        """The problem as it is, and with each outer function undone that can be undone on all rows."""
        found = [self.behind(name) for name in OUTER if OUTERS[name].is_allowed(operators)]
        return [self, *(p for p in found if np.isfinite(p.target).all() and p.target.std() > 0.0)]

    def written(self, forms: Iterable[Expression]) -> list[Expression]:
        """Forms for this target as forms for the original one, without those whose numbers no float can hold."""

        def whole(form: Expression) -> Expression:
            for step in reversed(self.steps):
                form = around(step, form)
            return form

        return writable(whole, forms)
