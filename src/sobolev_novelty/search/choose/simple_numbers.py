r"""Constants as simple as the data allow: 1.0037 ± 0.005 is 1.

A constant that rows leave uncertain costs :math:`\ln(|\theta|/\sigma) - \ln 3/2` nats to write down (Bartlett, Desmond
and Ferreira 2023), a simple number the logarithm of its numerator and denominator, and more for a multiple of pi. What
the simple number costs in likelihood is half of the rise of :math:`\chi^2`, the other constants refitted. Where it
shortens the description by at least :data:`CLEAR_GAIN`, it is taken; the best exchange first, then the next, with what
the first has made more certain. A number that stands in the equation already costs only to point at it: 10/3 is not a
simple number, but one that is there may come again; and two constants that may both be the same simple number are
exchanged together, because terms that resemble each other leave either of them uncertain, but not both. A constant that
may be 0 takes its place in the equation with it. On exact data nothing is uncertain and nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sobolev_novelty.algebra.canonical import tidy
from sobolev_novelty.algebra.numbers import simple_numbers
from sobolev_novelty.algebra.waves import with_plain_waves
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.price.numbers import precision_nats
from sobolev_novelty.price.structure import form_nats
from sobolev_novelty.report.intervals.constants import Parametrised, parametrised
from sobolev_novelty.report.intervals.profiles import BoolArray, Estimate, Model, best_fit, refit
from sobolev_novelty.search.choose.choice import FARTHEST
from sobolev_novelty.search.contract.engine import Deadline

#: Nats by which a simple number must shorten the description: odds of e to one. What it costs to point at a number of
#: the equation, no more than that; of the 58 found numbers of 183 laws that could repeat another 7 do, which is ln 8.
CLEAR_GAIN, POINTING = 1.0, 1.0


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A constant and the number it might be, or two of them."""

    places: tuple[int, ...]  # among the parameters
    values: tuple[float, ...]
    saved: float  # nats by which the description gets shorter, what the data lose not counted
    rise: float  # nats that the data lose, to first order

    @property
    def gain(self) -> float:
        """Nats by which the description gets shorter."""
        return self.saved - self.rise


def with_simple_constants(expression: Expression, rows: Rows, *, deadline: Deadline | None = None) -> Expression:
    """The equation, fitted to the rows, with simple numbers wherever they allow it, the other constants refitted.

    >>> from sobolev_novelty.language.parsing import parse
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1.0, 3.0, (400, 2))
    >>> y = 0.5 * X[:, 0] * (1.0 + np.cos(X[:, 1])) + 0.737 + rng.normal(0.0, 0.02, 400)
    >>> found = with_simple_constants(parse("0.4983*(x0*(1.006 + cos(x1))) + 0.7372"), Rows.of(X, y))
    >>> str(found)[:22], round(found.constants[-1], 2)
    ('0.5*(x0*(1 + cos(x1)))', 0.74)
    """
    plain = with_plain_waves(expression)  # a phase of 11 is no simple number, and may be -π/2
    used, known = ({t for t in e.tokens if isinstance(t, Operator)} for e in (plain, expression))
    if plain.complexity <= expression.complexity and used <= known:
        expression = plain
    with np.errstate(all="ignore"):
        while not (deadline is not None and deadline.is_over):
            fit = _Fit.of(expression, rows)
            after = None if fit is None else fit.exchanged(expression.complexity)
            if after is None:
                break
            before, expression = expression, after
            if after.complexity >= before.complexity:
                break
    return expression


@dataclass(slots=True, eq=False)
class _Fit:
    """A fitted equation whose constants become simple one after the other."""

    written: Parametrised
    model: Model
    y: FloatArray
    theta: FloatArray
    loss: float
    variance: float
    free: BoolArray

    @classmethod
    def of(cls, expression: Expression, rows: Rows) -> _Fit | None:
        """None where there is nothing to exchange: no constants, too few rows, an exact fit."""
        written = parametrised(expression)
        if not 0 < len(written.theta) < len(rows) - 1:
            return None
        model = Model(written.parts, written.theta, rows.sample.X, rows.names, rows.root)
        y = rows.y if rows.root is None else rows.y * rows.root
        fit: Estimate | None = best_fit(model, y, written.theta)
        if fit is None or not fit.loss > 0.0:
            return None
        free = np.ones(len(fit.theta), dtype=bool)
        return cls(written, model, y, fit.theta, fit.loss, fit.loss / (len(y) - fit.rank), free)

    def exchanged(self, complexity: int) -> Expression | None:
        """The equation after all exchanges, or after the first that makes it shorter; None where there is none."""
        refused: set[tuple[tuple[int, ...], tuple[float, ...]]] = set()
        while options := [e for e in self._options(complexity) if (e.places, e.values) not in refused]:
            best = max(options, key=lambda e: e.gain)
            theta, free = self.theta.copy(), self.free.copy()
            theta[list(best.places)], free[list(best.places)] = best.values, False
            moved = refit(self.model, self.y, theta, free)
            if moved is None or best.saved - 0.5 * (moved[1] - self.loss) / self.variance <= CLEAR_GAIN:
                refused.add((best.places, best.values))
                continue
            (self.theta, self.loss), self.free = moved, free
            if best.values == (0.0,):
                break
        return None if self.free.all() else self._at(self.theta)

    def _at(self, theta: FloatArray) -> Expression:
        return tidy(self.written.at(theta))

    def _options(self, complexity: int) -> Iterator[_Exchange]:
        """Exchanges that would be worth it to first order."""
        places = np.flatnonzero(self.free)
        if len(places) == 0:
            return
        J = self.model.evaluate(self.theta[None])[1][0][places]
        scale = np.linalg.norm(J, axis=1)
        scale[scale == 0.0] = 1.0
        A = J / scale[:, None]
        errors = np.sqrt(self.variance * np.diag(np.linalg.pinv(A @ A.T, rcond=1e-12))) / scale
        settled = {abs(number) for number in self.theta[~self.free].tolist()} - {0.0}
        uncertain: list[tuple[int, float, float, float]] = []  # place, value, standard error, nats
        for place, error in zip(places.tolist(), errors.tolist(), strict=True):
            value = float(self.theta[place])
            if not 0.0 < error < math.inf or not math.isfinite(value) or value == 0.0:
                continue
            price = precision_nats(value, error)
            uncertain.append((place, value, error, price))
            tried = [(v, price - cost) for v, cost in simple_numbers(value, FARTHEST * error)]
            again = [math.copysign(number, value) for number in settled]
            tried += [(v, price - POINTING - math.log(len(again))) for v in again if abs(v - value) <= FARTHEST * error]
            without = self.theta.copy()
            without[place] = 0.0
            saved = price + form_nats(complexity - self._at(without).complexity, len(self.model.X))
            tried += [(0.0, saved)] if (value / error) ** 2 < 2.0 * saved else []
            for v, saved in tried:
                exchange = _Exchange((place,), (v,), saved, 0.5 * ((v - value) / error) ** 2)
                if exchange.gain > CLEAR_GAIN:
                    yield exchange
        for (i, first, error, price), (j, second, other_error, other_price) in combinations(uncertain, 2):
            for number, cost in simple_numbers(abs(first), FARTHEST * error):  # both may be it, but for their signs
                away = max(abs(number - abs(first)) / error, abs(number - abs(second)) / other_error)
                values = math.copysign(number, first), math.copysign(number, second)
                # The data lose at least what the more certain one of them loses; refitting tells how much.
                exchange = _Exchange((i, j), values, price + other_price - cost - POINTING, 0.5 * away**2)
                if away <= FARTHEST and exchange.gain > CLEAR_GAIN:
                    yield exchange
