"""Which equation is reported: the one with the lowest price, why, and the other rules that a user may ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import base_score, choice_rank, nmse
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.metric.batch import novelties
from sobolev_novelty.price.description import Description, Table, quick_nats_of
from sobolev_novelty.price.likelihood import Replicates
from sobolev_novelty.price.noise import POWERS, Noise, kinds_to_try
from sobolev_novelty.price.numbers import free_nats, n_free_numbers, n_numbers
from sobolev_novelty.search.choose.criteria import Finding, findings
from sobolev_novelty.search.choose.held_out import cross_validated
from sobolev_novelty.search.choose.rows import Rows
from sobolev_novelty.search.choose.shorter import shorter_fits
from sobolev_novelty.search.choose.simple_numbers import with_simple_constants
from sobolev_novelty.search.choose.weighted import found_power, refitted
from sobolev_novelty.search.contract.engine import Deadline
from sobolev_novelty.search.fit.loss_fit import refined
from sobolev_novelty.search.problem.loss import Rating

if TYPE_CHECKING:
    import pandas as pd

#: The table of equations -> the index of the row to choose.
Rule = Callable[["pd.DataFrame"], int]

RULES = ("price", "score", "distinct", "validation", "one-se")
#: Equations that are fitted under each kind of noise and take part to the end, and those whose numbers are made simple.
N_REFITTED, N_SIMPLE = 30, 12
#: Leaders that are shortened, and how often.
N_SHORTENED, N_ROUNDS = 3, 4
#: Probability of so much lack of fit by chance below which the sentence speaks of it.
LACKING = 0.01
#: Share of the spread of the target below which values are those of one function in two spellings.
SAME = 1e-6


def check_select(select: object) -> None:
    """Refuse what is not a rule of choice, before a search is spent on it."""
    if not callable(select) and select not in RULES:
        raise ParameterError(f"'select' must be one of {', '.join(RULES)}, or a callable. Got {select!r}.")


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """An equation and its price.

    Parameters
    ----------
    expression : Expression
    complexity : int
    nmse, score : float
        Error relative to that of a constant under the weights of the noise, and R_base.
    price : Description
    values : ndarray of shape (n_samples,)
    found : tuple of Finding or None
        None while nobody has looked.
    """

    expression: Expression
    complexity: int
    nmse: float
    score: float
    price: Description
    values: FloatArray
    found: tuple[Finding, ...] | None = None

    @property
    def nats(self) -> float:
        """What decides."""
        return self.price.total


@dataclass(slots=True, eq=False)
class Choice:
    """Equations in the order of their price, and the one that is chosen.

    Parameters
    ----------
    rows : Rows
    noise : Noise
    level : float
        Standard deviation of the noise, in units of its shape.
    priced : list of Priced
    """

    rows: Rows
    noise: Noise
    level: float
    priced: list[Priced]
    chosen: Priced = field(init=False)

    def __post_init__(self) -> None:
        self.chosen = self.priced[0]

    @property
    def weights(self) -> FloatArray | None:
        """Of the rows, under the noise at the chosen equation."""
        return self.rows.weights_at(self.chosen.expression, self.chosen.values, self.noise)

    def on_front(self) -> list[Priced]:
        """The chosen equation, then those that no other one beats in both size and error, as weighted there."""
        w = self.weights
        with np.errstate(all="ignore"):
            errors = {
                id(p): nmse(self.rows.y, p.values, w) if self.rows.loss.is_squared else p.nmse for p in self.priced
            }
        found: list[Priced] = []
        least = math.inf
        for p in sorted(self.priced, key=lambda p: (p.complexity, errors[id(p)], p.nats)):
            if errors[id(p)] < least * (1.0 - 1e-9) or (least == math.inf and errors[id(p)] < math.inf):
                least = errors[id(p)]
                found.append(p)
        return [self.chosen, *(p for p in found if p is not self.chosen)]

    @property
    def lack_of_fit(self) -> str:
        """Where inputs came more than once: whether the equation misses their means by more than the rows scatter."""
        replicates = Replicates.of(self.rows.X)
        spare, m = replicates.n_rows - replicates.n_distinct, replicates.n_distinct
        n_lack = m - n_numbers(self.chosen.expression)
        if not spare or n_lack < 1 or not np.isfinite(self.chosen.values).all():
            return ""
        h = self.rows.heights(self.chosen.expression, self.chosen.values, self.noise)
        w = np.ones_like(h) if self.rows.weights is None else self.rows.weights
        pure, lack = replicates.split((self.rows.y - self.chosen.values) / h, w)
        if not pure > 0.0:
            return ""
        from scipy.stats import f

        p = float(f.sf((lack / n_lack) / (pure / spare), n_lack, spare))
        word = "misses the means of repeated rows" if p < LACKING else "meets the means of repeated rows"
        return f"Among {m} different inputs it {word} (p = {number_text(p, digits=2)}; {spare} repeats)."

    @property
    def known(self) -> float:
        """Root mean square difference of predictions below which two equations are one function to these rows.

        Three standard errors of a mean, or rounding: digits of constants differ by as much.
        """
        h = self.rows.heights(self.chosen.expression, self.chosen.values, self.noise)
        size = self.level * float(np.sqrt(np.mean(h**2))) / math.sqrt(len(h)) if np.isfinite(h).all() else 0.0
        return max(3.0 * size, SAME * self.rows.spread)

    def differs(self, other: Priced) -> bool:
        """Whether an equation is another function than the chosen one at the rows."""
        return not np.sqrt(np.mean((other.values - self.chosen.values) ** 2)) <= self.known

    def predictions(self, priced: Sequence[Priced]) -> FloatArray:
        """Values of equations in the box of the inputs and at the rows."""
        X = np.hstack([self.rows.box(), np.ascontiguousarray(self.rows.X.T)])
        return self.rows.values([p.expression for p in priced], X)

    @property
    def sentence(self) -> str:
        """Why this equation, for a person."""
        own = f"{short_text(self.chosen.expression)}"
        rest = [p for p in self.priced if p is not self.chosen and math.isfinite(p.nats) and self.differs(p)]
        if not rest:
            return f"{own}: no different equation was found."
        ahead = rest[0].nats - self.chosen.nats
        behind = f"{number_text(abs(ahead), digits=2)} nats {'ahead of' if ahead >= 0.0 else 'behind'}"
        text = f"{own}: {behind} the next different equation, {short_text(rest[0].expression)}."
        return " ".join([text, *(finding.sentence for finding in self.chosen.found or ()), self.lack_of_fit]).rstrip()

    def frame(self) -> pd.DataFrame:
        """``choice_``: one row for each equation, the cheapest first."""
        import pandas as pd

        return pd.DataFrame(
            {
                "complexity": [p.complexity for p in self.priced],
                "structure": [p.price.structure for p in self.priced],
                "numbers": [p.price.numbers for p in self.priced],
                "rows": [p.price.rows for p in self.priced],
                "findings": [p.price.findings for p in self.priced],
                "behind": [p.nats - self.chosen.nats for p in self.priced],
                "found": [" ".join(finding.sentence for finding in p.found or ()) for p in self.priced],
                "expression": [p.expression for p in self.priced],
                "chosen": [p is self.chosen for p in self.priced],
            }
        )


@dataclass(eq=False)
class Chooser:
    """Prices equations on rows, and improves the leading ones.

    Parameters
    ----------
    rows : Rows
        In their own order (:attr:`Rows.ordered`).
    allowed : callable
        Whether an equation may come back.
    complexity : callable
        What it costs in nodes.
    is_fixed : bool
        Whether equations stay as they were found.
    is_fitted : bool
        Whether their constants were fitted to these very rows, by least squares.
    is_free : bool
        Whether other forms than those that were found may be tried.
    """

    rows: Rows
    allowed: Callable[[Expression], bool]
    complexity: Callable[[Expression], int]
    deadline: Deadline = field(default_factory=Deadline)
    is_fixed: bool = False
    is_fitted: bool = True
    is_free: bool = True
    table: Table = field(init=False)

    @cached_property
    def rating(self) -> Rating:
        """Of a loss other than squared errors."""
        return Rating.of(self.rows.loss, self.rows.y, self.rows.weights)

    def __post_init__(self) -> None:
        rows = self.rows
        self.table = Table(rows.X, rows.y, rows.weights, rows.level)

    def choice(self, expressions: Sequence[Expression], noise: str) -> Choice:
        """All equations in the order of their price, under the kind of noise that the rows speak for."""
        values = self.rows.values(list(expressions))
        given = list(zip(expressions, values, strict=True))
        best: tuple[Noise, list[Priced]] | None = None
        for kind in self._kinds(noise, given):
            priced = self._priced(given, kind)
            if not (self.is_fixed or (self.is_fitted and kind.is_constant and self.rows.loss.is_squared)):
                priced = self._refitted(priced, kind)
            if best is None or priced[0].nats < best[1][0].nats:
                best = kind, priced
        assert best is not None
        noise_found, priced = best
        if not self.is_fixed and self.rows.loss.is_squared:
            priced = self._simple(priced, noise_found)
            priced = self._shortened(priced, noise_found) if self.is_free else priced
        priced = _distinct(self._settled(priced))
        h = self.rows.heights(priced[0].expression, priced[0].values, noise_found)
        left = (self.rows.y - priced[0].values) / h
        w = self.table.own_weights
        level = float(np.sqrt(w @ left**2 / max(1.0, len(left) - len(priced[0].expression.constants))))
        return Choice(self.rows, noise_found, self.rows.level or level, priced)

    def _kinds(self, noise: str, given: Sequence[tuple[Expression, FloatArray]]) -> list[Noise]:
        """Kinds of noise to be compared; only constant noise where another loss than squared errors is asked for."""
        y = self.rows.y
        if not self.rows.loss.is_squared or (self.rows.level is not None and noise == "auto"):
            return [Noise()]
        kinds = []
        for kind in kinds_to_try(noise, y):
            if kind != "power":
                kinds.append(Noise.of(POWERS[kind], y))
                continue
            leader = min(given, key=lambda pair: self.table.rows_nats(pair[1], Noise.of(1.0, y)))
            kinds.append(Noise.of(found_power(y, leader[1]), y, is_found=True))
        return kinds

    def priced(self, expression: Expression, values: FloatArray, noise: Noise) -> Priced:
        """One equation with these values at the rows."""
        size = self.complexity(expression)
        rows = self.rows
        error = nmse(rows.y, values, rows.weights_at(expression, values, noise))
        if rows.loss.is_squared:
            h = rows.heights(expression, values, noise)
            price = self.table.describe(expression, values, noise, complexity=size, heights=h)
        else:
            error = self.rating.error(values)
            # Huber's loss is linear where it matters: n times the logarithm of its mean, as of absolute values.
            as_square = error**2 if rows.loss.name == "huber" else error
            price = Description(0.0, 0.0, quick_nats_of(expression, as_square, size, *rows.X.shape))
        return Priced(expression, size, error, base_score(error, size, len(rows.y)), price, values)

    def _priced(self, given: Sequence[tuple[Expression, FloatArray]], noise: Noise) -> list[Priced]:
        return self._sorted([self.priced(e, v, noise) for e, v in given])

    def _sorted(self, priced: list[Priced]) -> list[Priced]:
        """The cheapest first; of equal prices the one that was written shorter."""
        return sorted(priced, key=lambda p: (round(p.nats, 6), p.complexity))

    def _refitted(self, priced: list[Priced], noise: Noise) -> list[Priced]:
        """The leading equations fitted under the noise."""
        found: list[Priced] = []
        for p in priced[:N_REFITTED]:
            if self.deadline.is_over:
                break
            e = self._fitted(p.expression, noise, has_simplex=len(found) < N_SHORTENED)
            found.append(self._better(p, e, noise))
        return self._sorted([*found, *priced[len(found) :]])

    def _fitted(self, expression: Expression, noise: Noise, *, has_simplex: bool) -> Expression:
        rows = self.rows
        if rows.loss.is_squared:
            return refitted(expression, rows, self.table, noise)
        return refined(expression, rows.X, rows.names, self.rating, self.deadline, has_simplex=has_simplex)[0]

    def _better(self, p: Priced, e: Expression, noise: Noise) -> Priced:
        """The cheaper of an equation and what became of it."""
        if e == p.expression or not self.allowed(e):
            return p
        other = self.priced(e, self.rows.values([e])[0], noise)
        return other if other.nats < p.nats else p

    def _simple(self, priced: list[Priced], noise: Noise) -> list[Priced]:
        """The leading equations with simple numbers where that makes them cheaper."""
        found, rows = [], self.rows
        free = free_nats(len(rows.y))
        least = priced[0].nats
        for p in priced[:N_SIMPLE]:
            if self.deadline.is_over or not np.isfinite(p.values).all():
                break
            if p.nats - free * n_free_numbers(p.expression) > least:  # however simple they were
                found.append(p)
                continue
            weights = rows.weights_at(p.expression, p.values, noise)
            e = with_simple_constants(p.expression, rows.X, rows.y, weights, rows.names, deadline=self.deadline)
            found.append(self._better(p, e, noise))
            least = min(least, found[-1].nats)
        return self._sorted([*found, *priced[len(found) :]])

    def _shortened(self, priced: list[Priced], noise: Noise) -> list[Priced]:
        """What the leading equations become with an operator less, again and again while that is cheaper."""
        seen = {p.expression for p in priced}
        for _ in range(N_ROUNDS):
            leader = priced[0]
            if self.deadline.is_over or not np.isfinite(leader.values).all():
                break
            weights = self.rows.weights_at(leader.expression, leader.values, noise)
            tried = [p.expression for p in priced[:N_SHORTENED]]
            fresh = shorter_fits(tried, self.rows, weights, self.allowed, seen)
            if not fresh:
                break
            new = self._priced(list(zip(fresh, self.rows.values(fresh), strict=True)), noise)[:N_SHORTENED]
            new = self._simple(self._refitted(new, noise), noise)
            priced = self._sorted([*priced, *new])
            if priced[0] is leader:
                break
        return priced

    def _settled(self, priced: list[Priced]) -> list[Priced]:
        """What is found against the leading equations, until the cheapest is one that was looked at.

        Findings are never negative: who is behind without them stays behind.
        """
        done: list[Priced] = []
        for k, p in enumerate(priced):
            best = min((q.nats for q in done), default=math.inf)
            if best <= p.nats or (self.deadline.is_over and done):
                return self._sorted(done) + priced[k:]
            found = findings(p.expression, p.values, self.rows)
            done.append(replace(p, found=found, price=p.price.with_findings(sum(f.nats for f in found))))
        return self._sorted(done)


def _distinct(priced: Sequence[Priced]) -> list[Priced]:
    """Of equations with the same values the cheapest, which comes first: the others are the same in other words."""
    kept: dict[tuple[str, str], Priced] = {}
    for p in priced:
        at = int(np.argmax(np.abs(p.values))) if np.isfinite(p.values).all() else 0
        kept.setdefault((f"{p.price.rows:.4f}", f"{p.values[at]:.6e}"), p)
    return list(kept.values())


def by_rule(choice: Choice, select: str) -> Priced:
    """The equation that a rule by name takes."""
    if select == "price":
        return choice.priced[0]
    if select == "score":
        return max(choice.priced, key=lambda p: choice_rank(p.nmse, p.score))
    leading = choice.priced[:N_REFITTED]
    expressions = [p.expression for p in leading]
    if select == "distinct":
        own = novelties(expressions, choice.rows.X, names=choice.rows.names)
        kept = [
            p
            for p, found in zip(leading, own, strict=True)
            if found.status is Status.OK and float(np.min(found.nu)) > TAU_ID
        ]
        return kept[0] if kept else leading[0]
    mean, error = cross_validated(expressions, choice.rows)
    order = sorted(range(len(leading)), key=lambda i: (mean[i], leading[i].complexity))
    if select == "one-se":
        limit = mean[order[0]] + error[order[0]]
        order = sorted((i for i in order if mean[i] <= limit), key=lambda i: leading[i].complexity)
    return leading[order[0]]


def by_callable(select: Rule, table: pd.DataFrame) -> int:
    """The row that a user's own rule takes."""
    index = select(table)
    if not isinstance(index, int | np.integer) or not -len(table) <= index < len(table):
        raise ParameterError(
            f"'select' must return the index of a row of equations_, 0 to {len(table) - 1}. Got {index!r}."
        )
    return int(index) % len(table)
