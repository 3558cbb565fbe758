"""What was chosen, and among what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import nmse
from sobolev_novelty.price.description import Description
from sobolev_novelty.price.noise import Noise
from sobolev_novelty.search.choose.criteria import Finding

#: Standard errors within which two values may be one: chance exceeds three in 1 of 370 cases.
FARTHEST = 3.0
#: Share of the spread, or of an error, below which two are one: six digits, as far as the choice tells values apart.
SAME = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """An equation and its price."""

    expression: Expression
    complexity: int
    nmse: float  # error relative to that of a constant under the weights of the noise
    score: float  # R_base
    price: Description
    values: FloatArray  # at the rows
    found: tuple[Finding, ...] | None = None  # None while nobody has looked

    @property
    def nats(self) -> float:
        """What decides."""
        return self.price.total


@dataclass(frozen=True, eq=False)
class Choice:
    """Equations in the order of their price, and the one that is chosen."""

    rows: Rows
    noise: Noise
    level: float  # standard deviation of the noise, in units of its shape
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
            if error < least * (1.0 - SAME) or (least == math.inf and error < math.inf):
                least = error
                found += [p] if p is not self.chosen else []
        return found

    @cached_property
    def known(self) -> float:
        """Root mean square difference of predictions below which two equations are one function to these rows.

        :data:`FARTHEST` standard errors of a mean, or rounding: digits of constants differ by as much.
        """
        h = self.heights
        size = self.level * float(np.sqrt(np.mean(h**2))) / math.sqrt(len(h)) if np.isfinite(h).all() else 0.0
        return max(FARTHEST * size, SAME * self.rows.spread)

    def differs(self, other: Priced) -> bool:
        """Whether an equation is another function than the chosen one at the rows."""
        return not np.sqrt(np.mean((other.values - self.chosen.values) ** 2)) <= self.known
