"""The plug-in verbs: prune, rerank, TermArchive, feedback, accepts. Each is usable alone; none needs our engines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sobolev_novelty.algebra.terms import Term, additive_terms, sum_of_terms
from sobolev_novelty.core.digits import short_numbers
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.geometry import MIN_ROWS, Geometry, Status
from sobolev_novelty.core.linear.projection import TAU_ID, unit_columns
from sobolev_novelty.core.parameters import (
    COUNT,
    EQUATIONS,
    FUNCTION,
    NOTHING,
    TREES,
    checked,
    checked_class,
    is_real,
    list_of,
    number,
    one_of,
    read,
    whole,
)
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample, as_target, numeric_array
from sobolev_novelty.core.score import base_score, choice_rank, n_distinct_rows, nmse
from sobolev_novelty.errors import ParameterError, shortened
from sobolev_novelty.kernels.evaluate import as_expression, derivatives, evaluate, read_together
from sobolev_novelty.language.peers import for_every_equation
from sobolev_novelty.metric.batch import (
    TermNovelties,
    evaluated,
    normalised_factor,
    novelties,
    novelties_of,
)
from sobolev_novelty.metric.deletion import COSTS, costs_of

#: Weight of the penalty in R_SN (Eq. D.1).
SN_WEIGHT = 0.01
RESIDUALS = list_of(number(0.0), "a list of numbers of at least 0")
#: Points on which the corpus filter judges a formula (Appendix D.4).
MAX_FILTER_POINTS = 200

Score = Callable[[FloatArray, FloatArray, Expression], float]


@dataclass(frozen=True, slots=True)
class PruneStep:
    """One accepted deletion: the term, its novelty, and the score before and after."""

    term: str
    novelty: float
    score_before: float
    score_after: float


@dataclass(frozen=True, slots=True)
class Pruned:
    """What :func:`prune` gives back: the refitted expression, the deletions, and its score."""

    expression: Expression
    steps: tuple[PruneStep, ...]
    score: float

    def __str__(self) -> str:
        return short_text(self.expression)

    def __repr__(self) -> str:
        deleted = [
            f"  deleted {short_numbers(s.term)} (novelty {s.novelty:.4g}), "
            f"score {s.score_before:.4g} → {s.score_after:.4g}"
            for s in self.steps
        ]
        return "\n".join([str(self), *(deleted or ["  nothing was deleted"]), f"  score {self.score:.4g}"])


@checked(score=FUNCTION | NOTHING, max_deletions=whole() | NOTHING, cost=one_of(*COSTS))
@for_every_equation
def prune(
    equation: Any,
    X: Any,
    y: Any,
    *,
    score: Score | None = None,
    cost: str = "novelty",
    tau: float = TAU_ID,
    order: int = 1,
    max_deletions: int | None = None,
) -> Pruned:
    """Refit an equation and delete the terms it does not need, never worse by the caller's own score.

    The coefficients are refitted first: beside badly fitted ones any deletion looks like a gain, because it refits the
    others. Then terms are deleted one by one and the others refitted; a deletion stays if the score does not drop.
    The one whose deletion costs least is tried first, by default |b| ν ‖Ψ‖ (the deletion theorem): a term may be
    distinct and still do nothing for the target. A rejected term is not tried again. Where a refit does not raise the
    score the coefficients stay as they were written. By the default score, as in the choice of a search, an exact fit
    is not given up for a shorter approximation.

    Rows where the equation is not finite are not used. Where novelty cannot be computed (fewer than 32 rows) the
    equation comes back as it was.

    Parameters
    ----------
    equation : str, Expression, SymPy expression or fitted model
        A model with several targets gives a dict with a result for each; ``y`` then has a column per equation.
    X, y : the data
    score : callable ``(y, prediction, expression) -> float``, optional
        Larger is better. By default the accuracy–complexity score of the search
        (:func:`sobolev_novelty.core.score.base_score`) on the distinct rows.
    cost : {"novelty", "error", "size", "D.2"}
        In what order terms are tried: |b| ν ‖Ψ‖ of values and slopes; the same of values alone, which is what the error
        rises by; |b| rms(φ); or those with ν ≤ τ alone, as Appendix D.2 has it.
    max_deletions : int, optional
        Stop after this many accepted deletions.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100)
    >>> slim = prune("sin(x0) + 1e-9*x0", x[:, None], np.sin(x))
    >>> str(slim), len(slim.steps)
    ('sin(x0)', 1)
    """
    sample = as_sample(X)
    target = as_target(y, sample.n_samples)
    current = as_expression(equation, sample.names)
    # A row outside the domain would give every candidate the same worst score, and any deletion would pass.
    is_finite = np.isfinite(evaluate(current, sample))
    if is_finite.any():
        sample, target = sample.rows(is_finite), target[is_finite]
    judge = _Judge(sample, target, score, n_distinct_rows(sample.X.T, target) if score is None else 0)
    terms = additive_terms(current).terms
    best = judge.trial(terms, current)
    geometry = Geometry(order)
    if novelties_of([terms], sample, geometry)[0].status is not Status.OK:
        return Pruned(current, (), best.score)
    best = judge.refitted(best)
    steps: list[PruneStep] = []
    rejected: set[Expression] = set()
    while len(best.terms) > 1 and (max_deletions is None or len(steps) < max_deletions):
        found = novelties_of([best.terms], sample, geometry)[0]
        for i in np.argsort(costs_of(found, sample, cost, tau), kind="stable").tolist():
            if best.terms[i].expression in rejected:
                continue
            trial = judge.refitted(judge.trial((*best.terms[:i], *best.terms[i + 1 :])))
            if trial.rank >= best.rank and not math.isnan(trial.score):  # an object nan is equal to itself in tuples
                steps.append(PruneStep(str(best.terms[i].expression), float(found.nu[i]), best.score, trial.score))
                best = trial
                break
            rejected.add(best.terms[i].expression)
        else:
            break
    return Pruned(best.expression, tuple(steps), best.score)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Terms, the expression they add up to, its score, and what decides (its score where the caller gave one)."""

    terms: tuple[Term, ...]
    expression: Expression
    score: float
    rank: tuple[bool, float]


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """The data and the caller's score; without one, the score and the choice of the search."""

    sample: Sample
    y: FloatArray
    score: Score | None
    n_rows: int

    def trial(self, terms: tuple[Term, ...], expression: Expression | None = None) -> _Trial:
        expression = sum_of_terms(terms) if expression is None else expression
        prediction = evaluate(expression, self.sample)
        if self.score is not None:
            given = self.score(self.y.copy(), prediction, expression)  # it may write to what it gets
            if not is_real(given, finite=False):
                raise ParameterError(f"'score' must return a number. Got {shortened(given)}.")
            given = float(given)
            return _Trial(terms, expression, given, (False, given))
        error = nmse(self.y, prediction)
        score = base_score(error, expression.complexity, self.n_rows)
        return _Trial(terms, expression, score, choice_rank(error, score))

    def refitted(self, written: _Trial) -> _Trial:
        """With coefficients refitted, or as written where that is as good."""
        again = self.trial(refit(written.terms, self.sample, self.y))
        return again if again.rank > written.rank else written


def refit(terms: Sequence[Term], sample: Sample, y: FloatArray) -> tuple[Term, ...]:
    """The terms with their coefficients refitted to ``y`` by least squares, on the rows where all are finite.

    Coefficients have 15 digits, so that rounding does not make 0.9999999999999998 of 1; that of a term without a finite
    value other than 0 is 0.
    """
    if not terms:
        return ()
    values = derivatives([term.expression for term in terms], sample, order=0)[:, 0]
    rows = np.isfinite(values).all(axis=0)
    columns, scale = unit_columns(values[:, rows].T)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        coefficients = np.linalg.lstsq(columns, y[rows], rcond=None)[0] / scale
    found = zip(coefficients.tolist(), terms, strict=True)
    return tuple(Term(float(f"{b:.15g}") if math.isfinite(b) else 0.0, term.expression) for b, term in found)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate of :func:`rerank`: its place in the input, its own score, the penalty, and R_SN."""

    index: int
    candidate: Any
    score: float
    penalty: float

    @property
    def guided_score(self) -> float:
        """R_SN = score − penalty."""
        return self.score - self.penalty


@checked(candidates=EQUATIONS, scores=read("one number per candidate"), weight=number(0.0))
def rerank(
    candidates: Sequence[Any],
    X: Any,
    scores: Sequence[float],
    *,
    weight: float = SN_WEIGHT,
    tau: float = TAU_ID,
    order: int = 1,
) -> list[Ranked]:
    """Candidates sorted by R_SN (Eq. D.1), best first.

    A candidate whose novelty cannot be computed gets the full penalty ``weight``; a score that is ``nan`` comes last,
    and equals keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> [ranked.index for ranked in rerank(["x0 + sin(x0)", "x0 + cos(3*x0)"], X, [0.9, 0.898])]
    [1, 0]
    """
    values = numeric_array(scores, "scores")
    if values.shape != (len(candidates),):
        raise ParameterError(f"'scores' must have one entry per candidate: {len(candidates)}. Got {values.size}.")
    found = novelties(candidates, X, order=order)
    ranked = [
        Ranked(index, candidate, value, weight * own.penalty(tau))
        for index, (candidate, value, own) in enumerate(zip(candidates, values.tolist(), found, strict=True))
    ]
    return sorted(ranked, key=lambda entry: (np.isnan(entry.score), -entry.guided_score))


@checked_class(capacity=COUNT, min_novelty=number(0.0, 1.0, below=True), terms=TREES, residuals=RESIDUALS)
@dataclass(slots=True)
class TermArchive:
    """Terms whose behaviour spans as much as possible, kept within a capacity.

    After each :meth:`update` the archive holds the terms with the largest residual outside the span of those already
    kept, in that order.

    Parameters
    ----------
    capacity : int
        Terms kept at most.
    min_novelty : float
        A term whose conditional novelty is not above this is not kept.
    order : {0, 1, 2}

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> archive = TermArchive(capacity=2)
    >>> archive.update(["x0", "sin(x0)", "cos(3*x0)"], X)
    >>> [str(term) for term in archive.terms]
    ['x0', 'cos(3*x0)']
    """

    capacity: int = 64
    min_novelty: float = 1e-6
    order: int = 1
    terms: list[Expression] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.terms)

    @checked(terms=EQUATIONS)
    def update(self, terms: Iterable[Any], X: Any) -> None:
        """Offer new terms; what is kept is chosen anew from old and new alike.

        Rows with a missing or infinite input are left out; a term that is not finite, with its derivatives, on all the
        others is not kept.
        """
        sample = as_sample(X)
        sample = sample.rows(np.flatnonzero(np.isfinite(sample.X).all(axis=0)))
        offered = [as_expression(term, sample.names) for term in read_together(terms, sample.names)]
        pool = list(dict.fromkeys([*self.terms, *offered]))
        columns, kept = _finite_factor(pool, sample, Geometry(self.order))
        order, residuals = farthest_first(columns, self.capacity, self.min_novelty)
        self.terms = [pool[kept[i]] for i in order]
        self.residuals = residuals


def _finite_factor(pool: Sequence[Expression], sample: Sample, geometry: Geometry) -> tuple[FloatArray, list[int]]:
    """R of the unit signatures of the terms that are finite with all derivatives, and their places in the pool."""
    alone = evaluated([[term] for term in pool], sample, geometry)
    kept = np.flatnonzero((alone.rows == sample.n_samples) & (alone.lengths > 0.0)).tolist()
    R = normalised_factor([pool[i] for i in kept], sample, geometry)
    return (np.zeros((0, 0)), []) if R is None else (R, kept)


def farthest_first(columns: FloatArray, capacity: int, min_residual: float = 0.0) -> tuple[list[int], list[float]]:
    """Greedy order of unit columns by their residual outside the span of those before; ties keep the given order.

    >>> import numpy as np
    >>> farthest_first(np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 1.0]]), 2)
    ([0, 2], [1.0, 1.0])
    """
    rest = columns.copy()
    order: list[int] = []
    residuals: list[float] = []
    lengths = np.linalg.norm(rest, axis=0)
    while len(order) < min(capacity, columns.shape[1]):
        # Rounding must not decide between equals: the first within 1e-12 of the largest is taken.
        best = int(np.argmax(lengths > lengths.max(initial=0.0) - 1e-12))
        if not lengths[best] > min_residual:
            break
        order.append(best)
        residuals.append(float(lengths[best]))
        direction = rest[:, best] / lengths[best]
        rest -= np.outer(direction, direction @ rest)
        lengths = np.linalg.norm(rest, axis=0)
        lengths[order] = -1.0
    return order, residuals


@checked(max_low=whole(), max_high=whole())
def feedback(
    equation: Any,
    X: Any,
    *,
    max_low: int = 3,
    max_high: int = 2,
    tau: float = TAU_ID,
    order: int = 1,
    intercept: str = "free",
) -> str:
    """Words for a language model about what an equation already says, or "" when nothing is low (Appendix D.3).

    A constant is never listed. With ``intercept="free"`` it takes part in every equation, whether written or not; with
    "term", as in the paper, it is a term where it is written, and other terms may be low because of it. "" too where
    there is no diagnosis (too few rows on which all terms are finite); text that cannot be read is an error.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> feedback("x0 + cos(3*x0)", X)
    ''
    >>> print(feedback("x0 + sin(x0)", X).splitlines()[0])
    These terms repeat what the other terms already express, in value and in slope:
    """
    found = novelties([equation], as_sample(X), order=order, intercept=intercept)[0]
    if found.status is not Status.OK:
        return ""  # Appendix D.3: where diagnosis fails the prompt stays as it was
    by_novelty = [int(i) for i in np.argsort(found.nu, kind="stable") if found.terms[i].expression.variables]
    low = [i for i in by_novelty if found.nu[i] <= tau][:max_low]
    high = [i for i in reversed(by_novelty) if found.nu[i] > tau][:max_high]
    if not low:
        return ""
    lines = ["These terms repeat what the other terms already express, in value and in slope:"]
    lines += [f"- {found.terms[i].expression} (novelty {found.nu[i]:.2f})" for i in low]
    if high:
        lines.append("These terms add behaviour of their own:")
        lines += [f"- {found.terms[i].expression} (novelty {found.nu[i]:.2f})" for i in high]
    lines.append("Propose terms whose values and slopes vary differently from all of the above.")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a formula enters a corpus, and why; true in a condition when it does."""

    accepted: bool
    reason: str
    min_novelty: float

    def __bool__(self) -> bool:
        return self.accepted

    def __repr__(self) -> str:
        return f"{'accepted' if self.accepted else 'rejected'}: {self.reason}"


@checked(max_points=whole(MIN_ROWS))
def accepts(
    equation: Any,
    X: Any,
    *,
    tau: float = TAU_ID,
    max_points: int = MAX_FILTER_POINTS,
    order: int = 1,
    intercept: str = "term",
) -> Verdict:
    """The corpus filter: every term must be novel on the formula's own points (Appendix D.4).

    Single-term formulas pass with novelty 1; a formula with fewer than 32 valid points is rejected; at most
    ``max_points`` rows are used. With ``intercept="free"`` the constant takes part in every formula, and terms that are
    constant on the rows are not judged.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> accepts("x0 + sin(x0)", X).reason
    "Term 'x0' has novelty 0.124, not above 0.316."
    >>> bool(accepts("x0 + cos(3*x0)", X))
    True
    """
    sample = as_sample(X)
    if sample.n_samples > max_points:
        sample = sample.rows(np.arange(max_points))
    return verdict_on(novelties([equation], sample, order=order, intercept=intercept)[0], tau)


def verdict_on(found: TermNovelties, tau: float = TAU_ID) -> Verdict:
    """The corpus filter's verdict on novelties that are known."""
    if found.status is not Status.OK:
        return Verdict(False, found.status.sentence, float("nan"))
    if np.isnan(found.nu).all():
        return Verdict(False, "Every term is constant on these rows, and the intercept is free.", 0.0)
    worst = int(np.nanargmin(found.nu))  # a constant has no novelty where the intercept is free
    lowest = float(found.nu[worst])
    if lowest > tau:
        return Verdict(True, f"All {len(found)} term(s) have novelty above {tau:.3f}.", lowest)
    label = found.terms[worst].expression
    return Verdict(False, f"Term '{label}' has novelty {lowest:.3f}, not above {tau:.3f}.", lowest)


__all__ = [
    "Pruned",
    "Ranked",
    "TermArchive",
    "Verdict",
    "accepts",
    "farthest_first",
    "feedback",
    "prune",
    "refit",
    "rerank",
    "verdict_on",
]
