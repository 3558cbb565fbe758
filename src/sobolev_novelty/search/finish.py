"""The end of a fit: equations in the user's units, rated on all rows, within the time that was asked for."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.algebra.spelling import spelled
from sobolev_novelty.algebra.waves import with_plain_waves
from sobolev_novelty.algebra.writing import respelled, writable
from sobolev_novelty.batch import novelties
from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.expression import Expression
from sobolev_novelty.geometry import Status
from sobolev_novelty.scoring import base_score, merged_rows
from sobolev_novelty.search.choice import FEW_ROWS, TRUSTED_NMSE
from sobolev_novelty.search.control import Control
from sobolev_novelty.search.engine import Candidate, Deadline
from sobolev_novelty.search.final_fit import polished, relative_error
from sobolev_novelty.search.fits import Fitter
from sobolev_novelty.search.forms import split_form
from sobolev_novelty.search.front import ParetoFront, distinct
from sobolev_novelty.search.loss import Rating
from sobolev_novelty.search.loss_fit import predictions, refined
from sobolev_novelty.search.preparation import Prepared
from sobolev_novelty.search.simple_constants import with_simple_constants
from sobolev_novelty.search.units import ToUser

if TYPE_CHECKING:
    import pandas as pd

#: Seconds of a time budget that are kept for the choice, and for each row where constants are polished on all rows;
#: no more than these shares of the budget.
CHOICE_SECONDS, CHOICE_SECONDS_PER_ROW, CHOICE_SHARE = 0.25, 1e-4, 0.1
SECONDS_PER_ROW, POLISH_SHARE = 8e-5, 0.25
#: Seconds for each row that simple constants of one equation take, about.
SIMPLE_SECONDS_PER_ROW = 4e-6
#: Rows up to which more than the front is fitted to all rows, in how many steps, and how many of them are kept.
MAX_CONTENDED_ROWS = 50_000
CONTEST_STEPS, N_CONTENDERS = 3, 40
#: Equations with the shortest descriptions that may be chosen although another is as short and fits better. Of a law
#: whose numbers are still free there are often ten imitations that describe the rows as well; not when they are one.
N_DESCRIBED = 20
#: Share of the time that is left for simple numbers; the rest is for the choice.
SIMPLE_SHARE = 0.6
#: What a fit may take beyond its time: share and seconds.
GRACE_SHARE, GRACE_SECONDS = 0.03, 0.1
#: A spelling may differ by this share of the largest value: rounding. It is looked at on so many rows.
SAME_VALUE = 1e-12
SPELLED_ROWS = 500


@dataclass(frozen=True, slots=True)
class Clock:
    """When the parts of a fit end.

    Parameters
    ----------
    begin : float
        In the seconds of its kind.
    seconds : float or None
        The time budget of the whole fit.
    n_rows : int
        Rows on which constants are polished after the search; 0 where the search saw all.
    kind : {"wall", "processor"}
        See :class:`~sobolev_novelty.search.loop.Budget`.
    """

    begin: float
    seconds: float | None
    n_rows: int = 0
    kind: str = "wall"

    @property
    def polishing(self) -> float:
        """Seconds for constants on all rows."""
        return 0.0 if self.seconds is None else min(POLISH_SHARE * self.seconds, SECONDS_PER_ROW * self.n_rows)

    @property
    def choosing(self) -> float:
        """Seconds for the choice."""
        if self.seconds is None:
            return 0.0
        return min(CHOICE_SHARE * self.seconds, CHOICE_SECONDS + CHOICE_SECONDS_PER_ROW * self.n_rows)

    @property
    def search(self) -> Deadline:
        """The end of the search."""
        return self._at(-self.polishing - self.choosing)

    @property
    def polish(self) -> Deadline:
        """The end of polishing."""
        return self._at(-self.choosing)

    @property
    def choice(self) -> Deadline:
        """The end of all."""
        return self._at(0.0 if self.seconds is None else GRACE_SHARE * self.seconds + GRACE_SECONDS)

    def _at(self, shift: float) -> Deadline:
        return Deadline() if self.seconds is None else Deadline(self.begin + self.seconds + shift, self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTable:
    """All training rows, the names the equations use, and how many of the rows are distinct.

    Parameters
    ----------
    is_complete : bool
        Whether the search saw every row; otherwise constants are polished.
    control : Control
        In the user's names.
    as_found : bool
        Whether equations stay as the engine left them: see :class:`~sobolev_novelty.search.engine.Engine`.
    rating : Rating, optional
        Of a loss other than squared errors.
    """

    X: FloatArray
    y: FloatArray
    weights: FloatArray | None
    names: tuple[str, ...]
    n_rows: int
    is_complete: bool
    control: Control = field(default_factory=Control)
    as_found: bool = False
    rating: Rating | None = field(init=False)

    def __post_init__(self) -> None:
        loss = self.control.loss
        is_plain = loss.is_squared or np.ptp(self.y) == 0.0
        object.__setattr__(self, "rating", None if is_plain else Rating.of(loss, self.y, self.weights))

    @property
    def variance(self) -> float:
        """That of the target."""
        centre = np.average(self.y, weights=self.weights)
        return float(np.average((self.y - centre) ** 2, weights=self.weights))

    def rated(self, expression: Expression, deadline: Deadline, nmse: float | None = None) -> Candidate:
        """The candidate on all rows, its constants polished as far as the time allows.

        An equation that comes when the time is over keeps the error it has on the rows of the search, if it has one.
        """
        if nmse is None or not (self.is_complete or deadline.is_over):
            if self.rating is None:
                rows = self.X, self.y, self.weights, self.names
                expression, nmse = polished(expression, *rows, deadline=deadline)
            else:
                expression, nmse = refined(expression, self.X, self.names, self.rating, deadline)
        return self._candidate(expression, expression, nmse)

    def _candidate(self, form: Expression, expression: Expression, nmse: float) -> Candidate:
        cost = self.control.complexity(expression)
        score = base_score(nmse, cost, self.n_rows)
        return Candidate(form, expression, nmse, score, cost if self.control.costs else None)

    def allows(self, candidate: Candidate, max_complexity: int) -> bool:
        """Whether an equation may come back."""
        sample = Sample(np.ascontiguousarray(self.X.T), self.names)
        return candidate.complexity <= max_complexity and self.control.allows(candidate.expression, sample)

    def mean_loss(self, candidate: Candidate) -> float:
        """The loss of an equation, in its own units."""
        if self.rating is None:
            return candidate.nmse * self.variance
        return self.rating.mean(predictions(candidate.expression, self.X, self.names))

    def rated_front(
        self,
        front: Sequence[Candidate],
        others: Sequence[Candidate],
        written: ToUser,
        max_complexity: int,
        deadline: Deadline,
    ) -> list[Candidate]:
        """The front in the user's names and units, simplest first, without what has outgrown the limit there.

        The best are polished first. On enough rows for descriptions to be compared, other fits come in too: simple
        numbers make some of them shorter, and all rows may tell apart what some could not.
        """
        ranked = sorted(front, key=lambda candidate: candidate.rank, reverse=True)
        found = [self._rated_in_words(c, written, deadline) for c in ranked]
        is_settled = self.as_found or self.n_rows < FEW_ROWS or any(c.nmse < TRUSTED_NMSE for c in front)
        # What has the error of an equation of the front is that equation in other words.
        fresh = [c for c in distinct([*front, *others], len(front) + len(others)) if c not in set(front)]
        found += [] if is_settled else self._contenders(fresh if self.is_complete else others, written, deadline)
        allowed = [c for c in found if c is not None and self.allows(c, max_complexity)]
        best = [*ParetoFront().including_all(allowed), *sorted(allowed, key=self._nats)[:N_DESCRIBED]]
        return sorted(dict.fromkeys(best), key=lambda c: c.complexity)

    def _contenders(self, others: Sequence[Candidate], written: ToUser, deadline: Deadline) -> list[Candidate]:
        """Of the other fits those that describe all rows best; what saw only some is fitted to all, in a few steps."""
        if self.rating is not None or len(self.y) > MAX_CONTENDED_ROWS or deadline.is_over:
            return []
        if self.is_complete:
            rated = writable(lambda c: self._rated_in_words(c, written, deadline), others)
            return sorted(rated, key=self._nats)[:N_CONTENDERS]
        shaped = writable(lambda c: self.control.shaped(written(c.expression)), others)
        weight = len(self.y) if self.weights is None else float(np.sum(self.weights))
        fitter = Fitter(np.ascontiguousarray(self.X.T), self.names, self.y, self.weights, weight * self.variance)
        with np.errstate(all="ignore"):
            fits = fitter.fit([split_form(e) for e in dict.fromkeys(shaped)], CONTEST_STEPS)
        found: list[Candidate] = []
        for fit in (fit for fit in fits if math.isfinite(fit.nmse)):
            with contextlib.suppress(ExpressionError):  # a number that no float can hold
                expression = assemble(fit.terms, fit.coefficients.tolist())
                found.append(self._candidate(expression, expression, fit.nmse))
        return distinct(sorted(found, key=self._nats), N_CONTENDERS)

    def _nats(self, candidate: Candidate) -> float:
        return candidate.nats(self.n_rows, self.X.shape[1])

    def _rated_in_words(self, candidate: Candidate, written: ToUser, deadline: Deadline) -> Candidate | None:
        shaped = self.control.shaped(written(candidate.expression))
        return None if shaped is None else self.rated(shaped, deadline, candidate.nmse)

    def rated_plain(self, plain: Sequence[Expression], max_complexity: int, deadline: Deadline) -> list[Candidate]:
        """The equations that nobody searched for, where they are allowed; a constant always is."""
        shaped = [
            e if not e.variables else self.control.shaped(e) for e in plain if not (self.as_found and e.variables)
        ]
        found = [self.rated(e, deadline) for e in shaped if e is not None]
        return [c for c in found if not c.expression.variables or self.allows(c, max_complexity)]

    def rerated(self, candidate: Candidate, expression: Expression) -> Candidate:
        """The candidate with another expression of its form, as it stands."""
        if expression == candidate.expression:
            return candidate
        nmse = relative_error(expression, self.X, self.y, self.weights, self.names)
        return self._candidate(candidate.form, expression, nmse)

    def with_simple_constants(
        self, candidates: Sequence[Candidate], max_complexity: int, deadline: Deadline
    ) -> list[Candidate]:
        """The candidates with simple numbers where the rows allow them, the best first, as far as the time goes.

        The intervals that decide are those of least squares: another loss leaves the constants as they were fitted.
        """
        if self.rating is not None or self.as_found:
            return list(candidates)
        found, deadline = {}, deadline.sooner(SIMPLE_SHARE)
        # A row given twice is one row, and the order of rows must not matter to the last digit.
        rows = (*merged_rows(self.X, self.y, self.weights), self.names)
        for candidate in sorted(candidates, key=self._nats):
            if deadline.remaining <= SIMPLE_SECONDS_PER_ROW * len(self.y):
                break
            simple = with_simple_constants(candidate.expression, *rows, deadline=deadline)
            if simple != candidate.expression:
                shaped = self._candidate(candidate.form, simple, relative_error(simple, *rows))
                if math.isfinite(shaped.nmse) and self.allows(shaped, max_complexity):
                    found[candidate] = shaped
        return [found.get(candidate, candidate) for candidate in candidates]

    def as_written(
        self, candidate: Candidate, operators: Collection[str], max_complexity: int, deadline: Deadline | None = None
    ) -> Candidate:
        """The candidate in the words of a person, with the same values at the rows; little of it when time is over."""
        if self.as_found:
            return candidate
        some = np.unique(np.linspace(0, len(self.y) - 1, SPELLED_ROWS).astype(np.intp))
        X = self.X[some]
        before = predictions(candidate.expression, X, self.names)
        if not np.isfinite(before).all():
            return candidate
        largest = float(np.max(np.abs(before)))

        def agrees(e: Expression) -> bool:
            return bool((np.abs(predictions(e, X, self.names) - before) <= SAME_VALUE * largest).all())

        allowed = frozenset(operators)
        positive = [name for name, low in zip(self.names, self.X.min(axis=0).tolist(), strict=True) if low > 0.0]
        # A fit may have written a difference where only sums are allowed: what is not spelled is respelled even so.
        short = spelled(candidate.expression, agrees, positive, lambda: deadline is not None and deadline.is_over)
        for spelling in (short, with_plain_waves(candidate.expression, turns=False), candidate.expression):
            found = respelled(spelling, allowed)
            if found is None or not agrees(found):
                continue
            written = self._candidate(candidate.form, found, candidate.nmse)
            is_dearer = written.cost is not None and written.complexity > candidate.complexity
            if self.allows(written, max_complexity) and not is_dearer:
                return written
        return candidate


def load_tables() -> None:
    """Import what the end of a fit needs."""
    importlib.import_module("pandas")
    importlib.import_module("sobolev_novelty.render.equation_table")


def equation_rows(front: Sequence[Candidate], data: TrainingTable, sample: FloatArray) -> pd.DataFrame:
    """The columns of ``equations_``, one row for each candidate; novelties are those on the rows of the search."""
    import pandas as pd

    rows = []
    found = novelties([candidate.expression for candidate in front], sample, names=data.names)
    for candidate, own in zip(front, found, strict=True):
        known = own.status is Status.OK
        rows.append(
            {
                "complexity": candidate.complexity,
                "loss": data.mean_loss(candidate),
                "score": candidate.score,
                "min_novelty": float(np.min(own.nu)) if known else math.nan,
                "mean_novelty": float(np.mean(own.nu)) if known else math.nan,
                "expression": candidate.expression,
                "chosen": False,
            }
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What a search remembers, for a warm start to go on from: its rows, its random numbers, the engine's state."""

    key: tuple[object, ...]
    prepared: Prepared
    rng: np.random.Generator
    state: Any
