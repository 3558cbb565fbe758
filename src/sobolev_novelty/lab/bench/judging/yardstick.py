r"""Which equation would somebody choose who knows the noise? A judge that shares nothing with the choice.

.. math:: Y = -2 \ln L + k \ln n + 2 \cdot \tfrac12 C \ln 5d

Notation
--------
``L``  likelihood of the rows under normal noise of the *true* size, the equation refitted to it
``k``  free numbers, ``C`` nodes of the equation;  ``n`` rows, ``d`` columns of the table

A law is *learnable* from a table if it has the lowest ``Y`` of all equations that were met. *Found* means the same form
with its constants freed, and an error on fresh rows without noise below :math:`3 \cdot \mathrm{noise}/\sqrt n`.

Two equations are the same form if each, with its constants free, gives the values of the other: a rational function has
many spellings, and canonical ones exist for few of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.report.intervals.constants import parametrised
from sobolev_novelty.report.intervals.profiles import Model, refit

#: Errors up to this many times noise/√n are those of constants.
MOST_ERRORS = 3.0
#: Share of a law's variance that an equation of its form may leave, its constants fitted to the law.
SAME_FORM = 1e-9
#: Rows on which forms are compared.
N_COMPARED = 200
#: Refits whose weights follow the equation, where the noise is a share of its value.
N_REWEIGHTED = 4
#: Whole numbers below this are part of a form, as exponents are.
SMALL = 10.0


class Noise(Protocol):
    """What is known of the noise: its standard deviation where the law has some values."""

    def __call__(self, values: FloatArray) -> FloatArray:
        """One standard deviation per row."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A table whose noise is known."""

    X: FloatArray  # shape (n_samples, n_features)
    y: FloatArray  # shape (n_samples,)
    noise: Noise  # values of an equation -> standard deviation of each row if the equation is the law

    @property
    def names(self) -> tuple[str, ...]:
        """``x0, x1, …``."""
        return tuple(f"x{k}" for k in range(self.X.shape[1]))

    def refitted(self, expression: Expression) -> Expression:
        """The equation with its constants fitted under the true noise; as it is where that is not possible."""
        best = expression
        for _ in range(N_REWEIGHTED):
            with np.errstate(all="ignore"):
                sigma = self.noise(evaluate(best, self.X))
                found = _fitted(best, self.X, self.y, self.names, 1.0 / sigma)
            if found is None or self.misfit(found) >= self.misfit(best) * (1.0 - 1e-9):
                break
            best = found
        return best

    def misfit(self, expression: Expression) -> float:
        """−2 ln L, up to a constant; infinite where a prediction is not finite."""
        with np.errstate(all="ignore"):
            values = evaluate(expression, self.X)
            sigma = self.noise(values)
            found = float(np.sum(((self.y - values) / sigma) ** 2) + 2.0 * np.sum(np.log(sigma)))
        return found if math.isfinite(found) else math.inf

    def yardstick(self, expression: Expression) -> float:
        """Y of an equation, refitted."""
        n, d = self.X.shape
        best = self.refitted(expression)
        numbers = sum(not (c.is_integer() and abs(c) < SMALL) for c in best.constants)
        return self.misfit(best) + numbers * math.log(n) + best.complexity * math.log(5 * d)


def is_same_form(expression: Expression, law: Expression, X: FloatArray) -> bool:
    """Whether two equations are the same but for their constants.

    ``X``: shape (n_samples, n_features), rows on which both are compared.
    """
    if set(expression.variables) != set(law.variables):
        return False
    rows = X[np.unique(np.linspace(0, len(X) - 1, N_COMPARED).astype(np.intp))]
    return _reaches(law, expression, rows) and _reaches(expression, law, rows)


def _reaches(form: Expression, other: Expression, X: FloatArray) -> bool:
    """Whether a form gives the values of another equation with other constants."""
    names = tuple(f"x{k}" for k in range(X.shape[1]))
    with np.errstate(all="ignore"):
        target = evaluate(other, X)
        used = np.isfinite(target) & np.isfinite(evaluate(form, X))
        target = target[used]
        spread = float(np.std(target)) if used.any() else 0.0
        if not spread > 0.0 or used.mean() < 0.9:
            return False
        found = _fitted(form, X[used], target / spread, names, None, n_steps=100, scale=spread)
        left = math.inf if found is None else float(np.mean((evaluate(found, X[used]) - target) ** 2)) / spread**2
    return left < SAME_FORM


def _fitted(
    expression: Expression,
    X: FloatArray,
    y: FloatArray,
    names: tuple[str, ...],
    root: FloatArray | None,
    *,
    n_steps: int = 30,
    scale: float = 1.0,
) -> Expression | None:
    """The equation with its constants fitted to ``scale·y``; None where it has none, or is not finite."""
    written = parametrised(expression)
    if len(written.theta) == 0:
        return expression
    model = Model(written.parts, written.theta, np.ascontiguousarray(X.T), names, root)
    target = scale * (y if root is None else y * root)
    found = refit(model, target, written.theta, np.ones(len(written.theta), dtype=bool), n_steps=n_steps)
    return None if found is None else written.at(found[0])


def law_error(expression: Expression, X: FloatArray, truth: FloatArray, *, is_relative: bool, spread: float) -> float:
    """Root mean square error on rows without noise, in the unit of the noise: the target's spread, or its value.

    Infinite where a prediction is not finite.
    """
    with np.errstate(all="ignore"):
        left = (evaluate(expression, X) - truth) / (truth if is_relative else spread)
        found = float(np.sqrt(np.mean(left**2)))
    return found if math.isfinite(found) else math.inf


def is_found(
    expression: Expression, law: Expression, X: FloatArray, error: float, *, noise: float, n_rows: int
) -> bool:
    """Whether an equation is the law: the error of :func:`law_error` is that of constants, and the form is the same."""
    return error < MOST_ERRORS * noise / math.sqrt(n_rows) and is_same_form(expression, law, X)
