"""How a formula is chosen from those that were written for a task, and what is fitted meanwhile.

``least squares``
    Ours. Linear coefficients and an offset are fitted to all formulas, inner constants to the best few, with and
    without an offset that was not written. Of fits that are exact up to rounding the shortest formula is chosen.
``written``
    E2ESR's. Formulas are ranked as they are written; the best few get every constant moved by BFGS from its written
    value, and nothing else: no coefficient, no factor and no offset that was not written.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.algebra.writing import ONE
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.core.score import EXACT_NMSE
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.search.fit.fitting import Fit, fit_terms
from sobolev_novelty.search.fit.forms import Form, split_form

LEAST_SQUARES, WRITTEN = "least squares", "written"


@dataclass(frozen=True, slots=True)
class Solution:
    """What one draw found: the chosen formula in standardized inputs, or why there is none."""

    expression: Expression | None
    nmse: float
    n_distinct: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Refinement:
    """How constants are fitted."""

    n_refined: int  # formulas of each draw whose constants are fitted: those with the smallest error before
    n_iterations: int  # steps of that fit
    #: Its starting points: what was written, and others around it. The written readout has only the first.
    n_starts: int


class Readout(ABC):
    """Chooses formulas for one table; what several draws propose is fitted once."""

    @abstractmethod
    def choose(self, formulas: Sequence[Expression]) -> Solution:
        """The best formula of one draw."""


def readout(name: str, sample: Sample, y: FloatArray, refinement: Refinement, rng: np.random.Generator) -> Readout:
    """The readout of this name for a table."""
    return Written(sample, y, refinement) if name == WRITTEN else LeastSquares(sample, y, refinement, rng)


class LeastSquares(Readout):
    """Linear coefficients and an offset by least squares, inner constants by Levenberg–Marquardt."""

    def __init__(self, sample: Sample, y: FloatArray, refinement: Refinement, rng: np.random.Generator) -> None:
        self.sample, self.y, self.refinement, self.rng = sample, y, refinement, rng
        self.total = _variation(y)
        self.rough: dict[Expression, float] = {}
        self.fine: dict[Expression, tuple[float, Expression] | None] = {}

    def choose(self, formulas: Sequence[Expression]) -> Solution:
        """The best formula of one draw; of those with one skeleton the first is kept."""
        distinct = list({_skeleton(formula): formula for formula in reversed(formulas)}.values())[::-1]
        self._rank([formula for formula in distinct if formula not in self.rough])
        ranked = sorted(distinct, key=lambda formula: self.rough[formula])[: self.refinement.n_refined]
        best = [formula for formula in ranked if self.rough[formula] < math.inf]
        self._refine([formula for formula in best if formula not in self.fine])
        fitted = [found for found in (self.fine[formula] for formula in best) if found is not None]
        return _chosen(fitted, len(distinct))

    def _rank(self, formulas: Sequence[Expression]) -> None:
        forms = [_with_offset(split_form(formula)) for formula in formulas]
        for formula, fit in zip(formulas, self._fits(forms, 0, 1), strict=True):
            self.rough[formula] = fit.loss

    def _refine(self, formulas: Sequence[Expression]) -> None:
        written = [split_form(formula) for formula in formulas]
        forms = [*written, *map(_with_offset, written)]
        fits = self._fits(forms, self.refinement.n_iterations, self.refinement.n_starts)
        for formula, plain, offset in zip(formulas, fits[: len(formulas)], fits[len(formulas) :], strict=True):
            found = [judged for judged in (self._judged(plain), self._judged(offset)) if judged is not None]
            self.fine[formula] = min(found, key=_rank, default=None)

    def _fits(self, forms: Sequence[Form], n_iterations: int, n_starts: int) -> list[Fit]:
        return fit_terms(
            [form.terms for form in forms], self.sample, self.y, free=[form.free for form in forms],
            n_iterations=n_iterations, n_starts=n_starts, rng=self.rng,
        )  # fmt: skip

    def _judged(self, fit: Fit) -> tuple[float, Expression] | None:
        """Error on the training rows as the formula is written down."""
        try:
            expression = assemble(fit.terms, fit.coefficients.tolist())
        except ExpressionError:
            return None
        loss = _loss(expression, self.sample, self.y)
        return (loss / self.total if self.total else loss, expression) if math.isfinite(loss) else None


class Written(Readout):
    """Formulas as they are written, their constants moved by BFGS: E2ESR's refinement, counted instead of timed."""

    def __init__(self, sample: Sample, y: FloatArray, refinement: Refinement) -> None:
        self.sample, self.y, self.refinement = sample, y, refinement
        self.total = _variation(y)
        self.losses: dict[Expression, float] = {}
        self.fine: dict[Expression, tuple[float, Expression]] = {}

    def choose(self, formulas: Sequence[Expression]) -> Solution:
        """The best formula of one draw; of those with one skeleton the best as written is kept."""
        for formula in formulas:
            if formula not in self.losses:
                self.losses[formula] = _loss(formula, self.sample, self.y)
        ranked = sorted(dict.fromkeys(formulas), key=lambda formula: self.losses[formula])
        distinct = list({_skeleton(formula): formula for formula in reversed(ranked)}.values())
        distinct.sort(key=lambda formula: self.losses[formula])
        best = [f for f in distinct[: self.refinement.n_refined] if math.isfinite(self.losses[f])]
        for formula in best:
            if formula not in self.fine:
                self.fine[formula] = self._refined(formula)
        return _chosen([self.fine[formula] for formula in best], len(distinct))

    def _refined(self, formula: Expression) -> tuple[float, Expression]:
        if not self.refinement.n_iterations:
            return self._relative(self.losses[formula]), formula
        moved = moved_constants(formula, self.sample, self.y, self.refinement.n_iterations)
        loss = _loss(moved, self.sample, self.y)
        if not loss < self.losses[formula]:
            moved, loss = formula, self.losses[formula]
        return self._relative(loss), moved

    def _relative(self, loss: float) -> float:
        return loss / self.total if self.total else loss


def moved_constants(formula: Expression, sample: Sample, y: FloatArray, n_iterations: int) -> Expression:
    """The formula with the best constants that BFGS meets on its way from the written ones.

    What is minimised is half the mean squared error, with scipy's tolerances, as in E2ESR; there it ends after a second
    of wall time, here after a number of iterations.

    >>> from sobolev_novelty.language.parsing import parse
    >>> x = np.linspace(0.0, 2.0, 50)
    >>> table = Sample(x[None], ("x0",))
    >>> moved = moved_constants(parse("2*sin(1.1*x0) + 0.4"), table, 3.0 * np.sin(x) + 0.5, 100)
    >>> [round(constant, 3) for constant in moved.constants]
    [3.0, 1.0, 0.5]
    """
    if not formula.constants:
        return formula
    from scipy.optimize import minimize  # not with the module: training needs torch and NumPy only

    programs = kernels.compile_programs([formula], sample.names)
    best: tuple[float, FloatArray] = (math.inf, np.array(formula.constants))

    def objective(constants: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        with np.errstate(all="ignore"):
            values, slopes = kernels.jacobians(kernels.with_constants(programs, constants), sample.X)
            residual = values[0] - y
            loss = 0.5 * float(np.mean(residual**2))
            gradient = slopes @ residual / len(y)
        if not (math.isfinite(loss) and np.isfinite(gradient).all()):
            return math.inf, np.zeros(len(constants))
        if loss < best[0]:
            best = loss, np.array(constants)
        return loss, gradient

    with np.errstate(all="ignore"):
        minimize(objective, best[1], jac=True, method="BFGS", options={"maxiter": n_iterations})
    return formula.with_constants(best[1].tolist())


def _chosen(fitted: Sequence[tuple[float, Expression]], n_distinct: int) -> Solution:
    if not fitted:
        return Solution(None, math.inf, n_distinct, "No formula is finite on the training rows.")
    nmse, expression = min(fitted, key=_rank)
    return Solution(expression, nmse, n_distinct)


def _rank(found: tuple[float, Expression]) -> tuple[float, int]:
    return max(found[0], EXACT_NMSE), found[1].complexity


def _variation(y: FloatArray) -> float:
    return float(np.sum((y - y.mean()) ** 2))


def _loss(expression: Expression, sample: Sample, y: FloatArray) -> float:
    """Sum of squared errors; infinite where a value is not finite."""
    with np.errstate(all="ignore"):
        loss = float(np.sum((y - evaluate(expression, sample)) ** 2))
    return loss if math.isfinite(loss) else math.inf


def _with_offset(form: Form) -> Form:
    return form if ONE in form.terms else Form((*form.terms, ONE), (*form.free, False))


def _skeleton(formula: Expression) -> tuple[object, ...]:
    return tuple(None if isinstance(token, float) else token for token in formula.tokens)
