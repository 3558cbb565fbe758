"""The equation with the lowest price, with the kind of noise, the constants and the shorter form that lower it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import base_score, nmse
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.price.description import Description, describe, quick_nats_of, rows_nats
from sobolev_novelty.price.noise import POWERS, Noise, found_power, kinds_to_try
from sobolev_novelty.price.numbers import free_nats, n_free_numbers
from sobolev_novelty.search.choose.choice import Choice, Priced
from sobolev_novelty.search.choose.criteria import findings
from sobolev_novelty.search.choose.refits import refitted, shorter_fits
from sobolev_novelty.search.choose.simple_numbers import with_simple_constants
from sobolev_novelty.search.contract.engine import Deadline
from sobolev_novelty.search.fit.loss_fit import refined
from sobolev_novelty.search.problem.loss import Loss, Rating

#: Leading equations that are fitted under a kind of noise, whose numbers are made simple, and that are shortened: they
#: bound the time. Fronts of the everyday suite have at most 26; of the white box at 10 % noise 124 of 133 exceed 30.
N_REFITTED, N_SIMPLE, N_SHORTENED = 30, 12, 3

#: What may become of an equation, and those that came before it.
Step = Callable[[Priced, list[Priced]], Expression]


@dataclass(eq=False)
class Chooser:
    """Prices equations on rows, and improves the leading ones."""

    rows: Rows  # in their own order (:attr:`Rows.ordered`)
    allowed: Callable[[Expression], bool]  # whether an equation may come back
    complexity: Callable[[Expression], int]  # what it costs in nodes
    deadline: Deadline = field(default_factory=Deadline)
    loss: Loss = field(default_factory=Loss)  # what stands for squared errors
    is_fixed: bool = False  # whether equations stay as they were found
    is_fitted: bool = True  # whether their constants were fitted to these very rows, by least squares
    is_free: bool = True  # whether other forms than those that were found may be tried

    @cached_property
    def rating(self) -> Rating | None:
        """Of a loss other than squared errors."""
        return Rating.of(self.loss, self.rows)

    def choice(self, expressions: Sequence[Expression], noise: str) -> Choice:
        """All equations in the order of their price, under the kind of noise that the rows speak for."""
        rows = self.rows
        given = list(zip(expressions, values(expressions, rows.sample), strict=True))
        kinds = ((kind, self._under(kind, given)) for kind in self._kinds(noise, given))
        kind, priced = min(kinds, key=lambda found: found[1][0].nats)
        if not self.is_fixed and self.rating is None:
            priced = self._simple(priced, kind)
            priced = self._shortened(priced, kind) if self.is_free else priced
        priced = _distinct(self._settled(priced))
        best = priced[0]
        left = (rows.y - best.values) / kind.heights_at(rows, best.expression, best.values)
        level = float(np.sqrt(rows.own_weights @ left**2 / max(1.0, len(left) - len(best.expression.constants))))
        return Choice(rows, kind, rows.level or level, tuple(priced), best)

    def _kinds(self, noise: str, given: Sequence[tuple[Expression, FloatArray]]) -> list[Noise]:
        """Kinds of noise to be compared; only constant noise where another loss than squared errors is asked for."""
        rows, y = self.rows, self.rows.y
        if self.rating is not None or (rows.level is not None and noise == "auto"):
            return [Noise()]
        kinds = kinds_to_try(noise, y)
        if "power" not in kinds:
            return [Noise.of(POWERS[kind], y) for kind in kinds]
        leader = min(given, key=lambda pair: rows_nats(rows, pair[1], Noise.of(1.0, y)))
        return [Noise.of(found_power(y, leader[1]), y, is_found=True)]

    def _under(self, noise: Noise, given: Sequence[tuple[Expression, FloatArray]]) -> list[Priced]:
        """Equations under a kind of noise, the leading ones fitted anew where the weights are others."""
        priced = self._priced(given, noise)
        is_fitted = self.is_fitted and noise.is_constant and self.rating is None
        return priced if self.is_fixed or is_fitted else self._refitted(priced, noise)

    def priced(self, expression: Expression, values: FloatArray, noise: Noise) -> Priced:
        """One equation with these values at the rows."""
        size, rows = self.complexity(expression), self.rows
        if self.rating is None:
            h = noise.heights_at(rows, expression, values)
            price = describe(rows, expression, values, noise, complexity=size, heights=h)
            error = nmse(rows.y, values, noise.weighed(rows, expression, values).weights)
        else:
            error = self.rating.error(values)
            # Huber's loss is linear where it matters: n times the logarithm of its mean, as of absolute values.
            as_square = error**2 if self.loss.name == "huber" else error
            price = Description(0.0, 0.0, quick_nats_of(expression, as_square, size, len(rows), len(rows.names)))
        return Priced(expression, size, error, base_score(error, size, len(rows)), price, values)

    def _priced(self, given: Iterable[tuple[Expression, FloatArray]], noise: Noise) -> list[Priced]:
        return _sorted([self.priced(e, v, noise) for e, v in given])

    def _improved(self, priced: list[Priced], n: int, noise: Noise, step: Step) -> list[Priced]:
        """The leading equations, or what became of each by a step where that is allowed and cheaper."""
        found: list[Priced] = []
        for p in priced[:n]:
            if self.deadline.is_over:
                break
            e, best = step(p, found), p
            if e != p.expression and self.allowed(e):
                best = min(p, self.priced(e, values([e], self.rows.sample)[0], noise), key=lambda q: q.nats)
            found.append(best)
        return _sorted([*found, *priced[len(found) :]])

    def _refitted(self, priced: list[Priced], noise: Noise) -> list[Priced]:
        """The leading equations fitted under the noise, or the loss."""

        def step(p: Priced, before: list[Priced]) -> Expression:
            if self.rating is None:
                return refitted(p.expression, self.rows, noise)
            return refined(p.expression, self.rating, self.deadline, has_simplex=len(before) < N_SHORTENED)[0]

        return self._improved(priced, N_REFITTED, noise, step)

    def _simple(self, priced: list[Priced], noise: Noise) -> list[Priced]:
        """The leading equations with simple numbers where that makes them cheaper."""

        def step(p: Priced, before: list[Priced]) -> Expression:
            least = min((q.nats for q in before), default=p.nats)
            cheapest = p.nats - free_nats(len(self.rows)) * n_free_numbers(p.expression)  # however simple they were
            if not cheapest <= least or not np.isfinite(p.values).all():
                return p.expression
            rows = noise.weighed(self.rows, p.expression, p.values)
            return with_simple_constants(p.expression, rows, deadline=self.deadline)

        return self._improved(priced, N_SIMPLE, noise, step)

    def _shortened(self, priced: list[Priced], noise: Noise) -> list[Priced]:
        """What the leading equations become with an operator less, again and again while that is cheaper."""
        seen, leader = {p.expression for p in priced}, None
        while priced[0] is not leader and np.isfinite(priced[0].values).all() and not self.deadline.is_over:
            leader = priced[0]
            rows = noise.weighed(self.rows, leader.expression, leader.values)
            fresh = shorter_fits([p.expression for p in priced[:N_SHORTENED]], rows, self.allowed, seen)
            new = self._priced(zip(fresh, values(fresh, self.rows.sample), strict=True), noise)[:N_SHORTENED]
            priced = _sorted([*priced, *self._simple(self._refitted(new, noise), noise)])
        return priced

    def _settled(self, priced: list[Priced]) -> list[Priced]:
        """What is found against the leading equations, until the cheapest is one that was looked at.

        Findings are never negative: who is behind without them stays behind.
        """
        done: list[Priced] = []
        for k, p in enumerate(priced):
            best = min((q.nats for q in done), default=math.inf)
            if best <= p.nats or (self.deadline.is_over and done):
                return _sorted(done) + priced[k:]
            found = findings(p.expression, p.values, self.rows)
            done.append(replace(p, found=found, price=replace(p.price, findings=sum(f.nats for f in found))))
        return _sorted(done)


def _sorted(priced: list[Priced]) -> list[Priced]:
    """The cheapest first; of equal prices the one that was written shorter."""
    return sorted(priced, key=lambda p: (round(p.nats, 6), p.complexity))


def _distinct(priced: Sequence[Priced]) -> list[Priced]:
    """Of equations with the same values the cheapest, which comes first: the others are the same in other words."""
    kept: dict[tuple[str, str], Priced] = {}
    for p in priced:
        at = int(np.argmax(np.abs(p.values))) if np.isfinite(p.values).all() else 0
        kept.setdefault((f"{p.price.rows:.4f}", f"{p.values[at]:.6e}"), p)
    return list(kept.values())
