"""What was chosen and why, and the other rules that a user may ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import choice_rank, nmse
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.metric.batch import novelties
from sobolev_novelty.price.description import Description
from sobolev_novelty.price.noise import Noise
from sobolev_novelty.price.numbers import n_numbers
from sobolev_novelty.search.choose.criteria import Finding
from sobolev_novelty.search.choose.held_out import cross_validated
from sobolev_novelty.search.problem.loss import LEAST_SQUARES, Loss

if TYPE_CHECKING:
    import pandas as pd

#: The table of equations -> the index of the row to choose.
Rule = Callable[["pd.DataFrame"], int]

RULES = ("price", "score", "distinct", "validation", "one-se")
#: Equations that are fitted under each kind of noise, and among which the rules choose: the fronts of 746 laws on
#: everyday tables and the white box hold 30 or fewer, so that none of those is left out.
N_REFITTED = 30
#: Probability of so much lack of fit by chance below which the sentence speaks of it, as usual in tests of lack of fit.
LACKING = 0.01
#: Share of the spread of the target below which values are those of one function: fits end within it of each other.
SAME = 1e-6


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


@dataclass(frozen=True, eq=False)
class Choice:
    """Equations in the order of their price, and the one that is chosen.

    Parameters
    ----------
    rows : Rows
    noise : Noise
    level : float
        Standard deviation of the noise, in units of its shape.
    priced : tuple of Priced
    chosen : Priced
    """

    rows: Rows
    noise: Noise
    level: float
    priced: tuple[Priced, ...]
    chosen: Priced

    @cached_property
    def heights(self) -> FloatArray:
        """The shape of the noise at the chosen equation."""
        return self.noise.heights_at(self.rows, self.chosen.expression, self.chosen.values)

    def on_front(self) -> list[Priced]:
        """The chosen equation, then those that no other one beats in both size and error, as weighted there."""
        errors = [p.nmse for p in self.priced]
        if self.noise.varies(self.rows):
            w = self.noise.weighed(self.rows, self.chosen.expression, self.chosen.values).weights
            with np.errstate(all="ignore"):
                errors = [nmse(self.rows.y, p.values, w) for p in self.priced]
        found, least = [self.chosen], math.inf
        for error, p in sorted(zip(errors, self.priced, strict=True), key=lambda e: (e[1].complexity, e[0], e[1].nats)):
            if error < least * (1.0 - 1e-9) or (least == math.inf and error < math.inf):
                least = error
                found += [p] if p is not self.chosen else []
        return found

    @property
    def lack_of_fit(self) -> str:
        """Where inputs came more than once: whether the equation misses their means by more than the rows scatter."""
        replicates = self.rows.replicates
        spare, m = replicates.n_rows - replicates.n_distinct, replicates.n_distinct
        n_lack = m - n_numbers(self.chosen.expression)
        if not spare or n_lack < 1 or not np.isfinite(self.chosen.values).all():
            return ""
        w = np.ones_like(self.rows.y) if self.rows.weights is None else self.rows.weights
        pure, lack = replicates.split((self.rows.y - self.chosen.values) / self.heights, w)
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
        h = self.heights
        size = self.level * float(np.sqrt(np.mean(h**2))) / math.sqrt(len(h)) if np.isfinite(h).all() else 0.0
        return max(3.0 * size, SAME * self.rows.spread)

    @property
    def sentence(self) -> str:
        """Why this equation, for a person."""
        own, values = self.chosen, self.chosen.values
        rest = (
            p for p in self.priced
            if p is not own and math.isfinite(p.nats) and not np.sqrt(np.mean((p.values - values) ** 2)) <= self.known
        )  # fmt: skip
        different = next(rest, None)
        if different is None:
            return f"{short_text(own.expression)}: no different equation was found."
        ahead = different.nats - own.nats
        behind = f"{number_text(abs(ahead), digits=2)} nats {'ahead of' if ahead >= 0.0 else 'behind'}"
        text = (
            f"{short_text(own.expression)}: {behind} the next different equation, {short_text(different.expression)}."
        )
        return " ".join([text, *(finding.sentence for finding in own.found or ()), self.lack_of_fit]).rstrip()

    def frame(self) -> pd.DataFrame:
        """``choice_``: one row for each equation, the cheapest first."""
        import pandas as pd

        return pd.DataFrame(
            {
                "complexity": p.complexity,
                "structure": p.price.structure,
                "numbers": p.price.numbers,
                "rows": p.price.rows,
                "findings": p.price.findings,
                "behind": p.nats - self.chosen.nats,
                "found": " ".join(finding.sentence for finding in p.found or ()),
                "expression": p.expression,
                "chosen": p is self.chosen,
            }
            for p in self.priced
        )


def by_rule(choice: Choice, select: str, loss: Loss = LEAST_SQUARES) -> Priced:
    """The equation that a rule by name takes."""
    if select == "price":
        return choice.priced[0]
    if select == "score":
        return max(choice.priced, key=lambda p: choice_rank(p.nmse, p.score))
    leading = choice.priced[:N_REFITTED]
    expressions = [p.expression for p in leading]
    if select == "distinct":
        own = novelties(expressions, choice.rows.sample)
        kept = (
            p for p, found in zip(leading, own, strict=True)
            if found.status is Status.OK and float(np.min(found.nu)) > TAU_ID
        )  # fmt: skip
        return next(kept, leading[0])
    mean, error = cross_validated(expressions, choice.rows, loss)
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
