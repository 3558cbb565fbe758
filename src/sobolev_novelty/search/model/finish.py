"""The end of a fit: equations in the user's units, rated on all rows, within the time that was asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.algebra.canonical import tidy
from sobolev_novelty.algebra.spelling import spelled
from sobolev_novelty.algebra.waves import with_plain_waves
from sobolev_novelty.algebra.writing import respelled, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.core.score import base_score, nmse
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.search.choose.choice import Choice, Priced
from sobolev_novelty.search.choose.chooser import Chooser
from sobolev_novelty.search.choose.refits import plain_equations
from sobolev_novelty.search.contract.engine import CLOCKS, Candidate, Deadline
from sobolev_novelty.search.fit.final_fit import polished, with_known_digits
from sobolev_novelty.search.fit.loss_fit import refined
from sobolev_novelty.search.loop.front import undominated
from sobolev_novelty.search.model.rules import by_callable
from sobolev_novelty.search.model.tables import equations_table
from sobolev_novelty.search.problem.control import Control
from sobolev_novelty.search.problem.dimensions import Dimensions
from sobolev_novelty.search.problem.loss import Rating
from sobolev_novelty.search.problem.units import ToUser

if TYPE_CHECKING:
    import pandas as pd

#: Seconds of a time budget that are kept for the choice, and for each row where constants are polished on all rows;
#: no more than these shares of the budget.
CHOICE_SECONDS, CHOICE_SECONDS_PER_ROW, CHOICE_SHARE = 0.5, 3e-4, 0.1
SECONDS_PER_ROW, POLISH_SHARE = 8e-5, 0.25
#: Nodes of the largest equation, unless a user says otherwise.
DEFAULT_MAX_COMPLEXITY = 60
#: Rows that decide: of more a part as large says as much about the form.
MAX_DECIDING_ROWS = 10_000
#: Equations that are shown beside the front, at most.
MAX_SHOWN = 60
#: What a fit may take beyond its time: share and seconds.
GRACE_SHARE, GRACE_SECONDS = 0.03, 0.1
#: Seconds for the choice after Ctrl-C: on 10,000 rows it takes a quarter of one.
HURRY = 0.5
#: A spelling may differ by this share of the largest value: rounding. It is looked at on so many rows.
SAME_VALUE = 1e-12
SPELLED_ROWS = 500


@dataclass(frozen=True, slots=True)
class Clock:
    """When the parts of a fit end."""

    begin: float  # in the seconds of its kind
    seconds: float | None  # the time budget of the whole fit
    n_rows: int = 0  # rows on which constants are polished after the search; 0 where the search saw all
    kind: str = "wall"  # {"wall", "processor"}: see :class:`~sobolev_novelty.search.loop.loop.Budget`

    @classmethod
    def hurried(cls) -> Clock:
        """What is left after Ctrl-C."""
        return cls(CLOCKS["wall"](), HURRY)

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
    def choice(self) -> Deadline:
        """The end of the choice."""
        return self._at(-self.polishing)

    @property
    def end(self) -> Deadline:
        """The end of all, constants on all rows included."""
        return self._at(0.0 if self.seconds is None else GRACE_SHARE * self.seconds + GRACE_SECONDS)

    def _at(self, shift: float) -> Deadline:
        return Deadline() if self.seconds is None else Deadline(self.begin + self.seconds + shift, self.kind)


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """All training rows, and how many of them are distinct."""

    rows: Rows  # with the names that the equations use
    n_rows: int
    is_complete: bool  # whether the search saw every row; otherwise constants are polished
    control: Control = field(default_factory=Control)  # in the user's names
    #: Whether equations stay as the engine left them: see :class:`~sobolev_novelty.search.contract.engine.Engine`.
    as_found: bool = False
    max_complexity: int = DEFAULT_MAX_COMPLEXITY
    dimensions: Dimensions | None = None

    @cached_property
    def rating(self) -> Rating | None:
        """Of a loss other than squared errors."""
        return Rating.of(self.control.loss, self.rows)

    @cached_property
    def deciding(self) -> Rows:
        """The rows that decide, each once, in an order of their own."""
        rows = self.rows.merged
        if len(rows) > MAX_DECIDING_ROWS:
            rows = rows.some(np.unique(np.linspace(0, len(rows) - 1, MAX_DECIDING_ROWS).astype(np.intp)))
        return rows.ordered

    def values(self, expression: Expression) -> FloatArray:
        """Of an equation, at all rows."""
        found: FloatArray = values([expression], self.rows.sample)[0]
        return found

    def allows(self, e: Expression) -> bool:
        """Whether an equation may come back; a constant always may."""
        if not e.variables:
            return True
        makes_sense = self.dimensions is None or self.dimensions.allows(e)
        is_short = self.control.complexity(e) <= self.max_complexity
        return makes_sense and is_short and self.control.allows(e, self.rows.sample)

    def candidates(
        self, found: Sequence[Candidate], written: ToUser, operators: Collection[str]
    ) -> Iterator[Expression]:
        """What was found, in the user's names and units, and what nobody searched for, as far as it may come back."""
        shaped = writable(lambda c: self.control.shaped(written(c.expression)), found)
        plain = plain_equations(self.deciding, self.max_complexity, () if self.as_found else operators)
        return (e for e in dict.fromkeys([*shaped, *plain]) if e is not None and self.allows(e))

    def choice(self, candidates: Iterable[Expression], noise: str, *, deadline: Deadline) -> Choice:
        """Equations by price."""
        chooser = Chooser(
            self.deciding, self.allows, self.control.complexity, deadline, self.control.loss, is_fixed=self.as_found,
            is_fitted=self.is_complete and len(self.deciding) == self.n_rows, is_free=self.control.template is None,
        )  # fmt: skip
        return chooser.choice(list(candidates), noise)

    def polished(self, choice: Choice, priced: Priced, deadline: Deadline) -> Expression:
        """An equation with its constants fitted to all rows, where only some of them decided."""
        if self.as_found or (self.is_complete and len(choice.rows) == self.n_rows) or deadline.is_over:
            return priced.expression
        if self.rating is not None:
            return refined(priced.expression, self.rating, deadline)[0]
        return polished(
            priced.expression, self.weighed(choice, priced.expression), keeps_simple=True, deadline=deadline
        )[0]

    def weighed(self, choice: Choice, expression: Expression) -> Rows:
        """All rows with their weights under the noise at an equation."""
        own = None if self.rows.weights is None else self.rows.own_weights
        rows = replace(self.rows, weights=own, level=choice.rows.level)
        return choice.noise.weighed(rows, expression, self.values(expression))

    def shown(self, expression: Expression, weights: FloatArray | None) -> Candidate:
        """An equation with its error on all rows under the weights of the noise."""
        at_rows = self.values(expression)
        error = nmse(self.rows.y, at_rows, weights) if self.rating is None else self.rating.error(at_rows)
        cost = self.control.complexity(expression)
        return Candidate(
            expression, expression, error, base_score(error, cost, self.n_rows), cost if self.control.costs else None
        )

    def with_known_digits(self, candidate: Candidate, weights: FloatArray | None) -> Candidate:
        """The candidate without the digits that the rows cannot tell; under a loss of its own as it is."""
        if self.as_found or self.rating is not None or not np.isfinite(candidate.nmse):
            return candidate
        own = candidate.expression
        for form in (tidy(own), own):  # the first may be deeper than allowed, or have a difference
            found = with_known_digits(form, self.rows.weighed(weights), n_rows=self.n_rows)
            is_plain = set(_operators(found)) <= set(_operators(own))
            if (
                is_plain
                and self.control.complexity(found) <= candidate.complexity
                and self.control.allows(found, self.rows.sample)
            ):
                return candidate if found == own else self.shown(found, weights)
        return candidate

    def mean_loss(self, candidate: Candidate, weights: FloatArray | None) -> float:
        """The loss of an equation, in its own units."""
        if self.rating is None:
            y, centre = self.rows.y, np.average(self.rows.y, weights=weights)
            return candidate.nmse * float(np.average((y - centre) ** 2, weights=weights))
        return self.rating.mean(self.values(candidate.expression))

    def as_written(
        self, candidate: Candidate, operators: Collection[str], deadline: Deadline | None = None
    ) -> Candidate:
        """The candidate in the words of a person, with the same values at the rows; little of it when time is over."""
        if self.as_found:
            return candidate
        sample = self.rows.sample.rows(np.unique(np.linspace(0, len(self.rows) - 1, SPELLED_ROWS).astype(np.intp)))
        before = values([candidate.expression], sample)[0]
        if not np.isfinite(before).all():
            return candidate
        largest = float(np.max(np.abs(before)))

        def agrees(e: Expression) -> bool:
            return bool((np.abs(values([e], sample)[0] - before) <= SAME_VALUE * largest).all())

        allowed = frozenset(operators)
        positive = [name for name, low in zip(sample.names, self.rows.sample.X.min(axis=1), strict=True) if low > 0.0]
        # A fit may have written a difference where only sums are allowed: what is not spelled is respelled even so.
        short = spelled(candidate.expression, agrees, positive, lambda: deadline is not None and deadline.is_over)
        for spelling in (short, with_plain_waves(candidate.expression, turns=False), candidate.expression):
            found = respelled(spelling, allowed)
            if found is None or not agrees(found):
                continue
            cost = self.control.complexity(found)
            score = base_score(candidate.nmse, cost, self.n_rows)
            written = Candidate(candidate.form, found, candidate.nmse, score, cost if self.control.costs else None)
            is_dearer = written.cost is not None and cost > candidate.complexity
            if cost <= self.max_complexity and self.control.allows(found, self.rows.sample) and not is_dearer:
                return written
        return candidate


def _operators(expression: Expression) -> list[Operator]:
    return [token for token in expression.tokens if isinstance(token, Operator)]


def shown_equations(
    choice: Choice,
    data: TrainingTable,
    sample: Sample,
    select: object,
    *,
    operators: Collection[str],
    deadline: Deadline,
) -> tuple[pd.DataFrame, int]:
    """``equations_``, and the place of the chosen one: the front of size and error, and the chosen equation.

    Rows that are shorter and fit better than the chosen one stay in ``choice_``, with what speaks against them.
    """
    weights = data.weighed(choice, choice.chosen.expression).weights
    shown = [data.shown(data.polished(choice, p, deadline), weights) for p in choice.on_front()]
    written = [c if k and deadline.is_over else data.as_written(c, operators, deadline) for k, c in enumerate(shown)]
    written = [c if k and deadline.is_over else data.with_known_digits(c, weights) for k, c in enumerate(written)]
    kept = undominated(written)
    if not callable(select):
        first = written[0]
        kept = [i for i in kept if not i or written[i].complexity > first.complexity or written[i].nmse > first.nmse]
    order = sorted(kept, key=lambda i: (written[i].complexity, -written[i].nmse))
    found = [written[i] for i in order]
    table = equations_table(found, [data.mean_loss(c, weights) for c in found], sample)
    return table, by_callable(select, table) if callable(select) else order.index(0)
