"""What a fit is worth: its error by the loss that was asked for, its cost, and whether it is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.score import base_score
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.price.numbers import interpolates
from sobolev_novelty.search.contract.engine import Candidate, Problem
from sobolev_novelty.search.fit.fits import Fitted
from sobolev_novelty.search.fit.loss_fit import refined
from sobolev_novelty.search.loop.front import ParetoFront
from sobolev_novelty.search.problem.loss import Rating

#: By this factor the error may fall when constants move from least squares to another loss, and, once they are on the
#: way there, by this one.
HOPE, LITTLE_HOPE = 4.0, 1.3


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Scores the fits of a search."""

    problem: Problem
    rating: Rating | None  # none for squared errors, which a fit knows already

    @classmethod
    def of(cls, problem: Problem) -> Judge:
        """The judge of a problem."""
        return cls(problem, Rating.of(problem.control.loss, problem.rows))

    @property
    def hope(self) -> float:
        """By which factor the error of a converged fit may still fall."""
        return 1.0 if self.rating is None else HOPE

    def scored(self, forms: Sequence[Expression], fits: Sequence[Fitted]) -> list[Candidate]:
        """The candidates of fits, with their R_base."""
        return [self._scored(form, fit) for form, fit in zip(forms, fits, strict=True)]

    def _scored(self, form: Expression, fit: Fitted) -> Candidate:
        if not math.isfinite(fit.nmse):
            return failed(form)
        try:
            expression = assemble(fit.terms, fit.coefficients.tolist())
        except ExpressionError:  # a number that no float can hold
            return failed(form)
        error = fit.nmse
        if self.rating is not None:
            error = self.rating.error(values([expression], self.problem.sample)[0])
        return self.candidate(form, expression, error)

    def candidate(self, form: Expression, expression: Expression, error: float) -> Candidate:
        """A candidate with this error, at what it costs; a failed one where it has a number for every row.

        The form of a template is the user's, and none of the search.
        """
        control = self.problem.control
        cost = control.complexity(expression)
        if not math.isfinite(error) or (control.template is None and interpolates(expression, len(self.problem.y))):
            return failed(form)
        score = base_score(error, cost, len(self.problem.y))
        return Candidate(form, expression, error, score, cost if control.costs else None)

    def refined(self, candidate: Candidate, front: ParetoFront) -> Candidate:
        """The candidate with constants that are better by the loss, as far as it may come onto the front."""
        deadline = self.problem.deadline
        if self.rating is None or not math.isfinite(candidate.nmse) or deadline.is_over:
            return candidate

        def goes_on(error: float) -> bool:
            return front.admits(error / LITTLE_HOPE, candidate.complexity)

        expression, error = refined(candidate.expression, self.rating, deadline, goes_on=goes_on)
        return self.candidate(candidate.form, expression, error)

    def admitted(self, candidate: Candidate) -> Candidate:
        """The candidate as it is allowed to be on the front; a failed one where it is not."""
        control, user = self.problem.control, self.problem.user
        expression = control.shaped(candidate.expression)
        if expression is None or not control.is_monotone(expression, self.problem.sample):
            return failed(candidate.form)
        if user.units.by_name and control.shaped(user.written(expression)) is None:
            return failed(candidate.form)
        if expression == candidate.expression:
            return candidate
        return self.candidate(candidate.form, expression, candidate.nmse)


def failed(form: Expression) -> Candidate:
    """A candidate that could not be fitted, or is not allowed: infinite error, score 0."""
    return Candidate(form, form, math.inf, 0.0)
