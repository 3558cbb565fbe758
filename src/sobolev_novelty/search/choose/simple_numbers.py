r"""Constants as simple as the data allow: 1.0037 ± 0.005 is 1.

A constant that rows leave uncertain costs :math:`\ln(|\theta|/\sigma) - \ln 3/2` nats to write down (Bartlett, Desmond
and Ferreira 2023), a simple number the logarithm of its numerator and denominator, and more for a multiple of pi. What
the simple number costs in likelihood is half of the rise of :math:`\chi^2`, the other constants refitted. Where it
shortens the description by at least :data:`CLEAR_GAIN`, it is taken; the best exchange first, then the next, with what
the first has made more certain. A number that stands in the equation already costs only to point at it: 10/3 is not a
simple number, but one that is there may come again; and two constants that may both be the same simple number are
exchanged together, because terms that resemble each other leave either of them uncertain, but not both. A constant that
may be 0 takes its place in the equation with it.

On exact data nothing is uncertain and nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from sobolev_novelty.search.contract.engine import Deadline

#: Nats by which a simple number must shorten the description.
CLEAR_GAIN = 1.0
#: Nats that it costs to point at a number of the equation, more the more there are.
POINTING = 1.0
#: Standard errors from the estimate beyond which no number is tried.
FARTHEST = 3.0


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A constant and the number it might be, or two of them.

    Parameters
    ----------
    places : tuple of int
        Among the parameters.
    values : tuple of float
    saved : float
        Nats by which the description gets shorter, what the data lose not counted.
    rise : float
        Nats that the data lose, to first order.
    """

    places: tuple[int, ...]
    values: tuple[float, ...]
    saved: float
    rise: float

    @property
    def gain(self) -> float:
        """Nats by which the description gets shorter."""
        return self.saved - self.rise


def with_simple_constants(expression: Expression, rows: Rows, *, deadline: Deadline | None = None) -> Expression:
    """The equation, fitted to the rows, with simple numbers wherever they allow it, the other constants refitted.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1.0, 3.0, (400, 2))
    >>> y = 0.5 * X[:, 0] * (1.0 + np.cos(X[:, 1])) + 0.737 + rng.normal(0.0, 0.02, 400)
    >>> found = with_simple_constants(parse("0.4983*(x0*(1.006 + cos(x1))) + 0.7372"), Rows.of(X, y))
    >>> str(found)[:22], round(found.constants[-1], 2)
    ('0.5*(x0*(1 + cos(x1)))', 0.74)
    """
    expression = _with_small_phases(expression)
    with np.errstate(all="ignore"):
        while not (deadline is not None and deadline.is_over):
            found = _Fit.of(expression, rows)
            after = None if found is None else found.exchanged(expression.complexity)
            if after is None:
                break
            is_shorter, expression = after.complexity < expression.complexity, after
            if not is_shorter:
                break
    return expression


def _with_small_phases(expression: Expression) -> Expression:
    """A phase of 11 is no simple number, and may be -π/2; functions that were not there may not be allowed."""
    plain = with_plain_waves(expression)
    used, known = ({t for t in e.tokens if isinstance(t, Operator)} for e in (plain, expression))
    return plain if plain.complexity <= expression.complexity and used <= known else expression


class _Fit:
    """A fitted equation whose constants become simple one after the other."""

    def __init__(self, written: Parametrised, model: Model, y: FloatArray, estimate: Estimate) -> None:
        self.written, self.model, self.y = written, model, y
        self.theta, self.loss = estimate.theta, estimate.loss
        self.variance = estimate.loss / (len(y) - estimate.rank)
        self.free: BoolArray = np.ones(len(self.theta), dtype=bool)

    @classmethod
    def of(cls, expression: Expression, rows: Rows) -> _Fit | None:
        """None where there is nothing to exchange: no constants, too few rows, an exact fit."""
        written = parametrised(expression)
        if not 0 < len(written.theta) < len(rows) - 1:
            return None
        model = Model(written.parts, written.theta, rows.sample.X, rows.names, rows.root)
        y = rows.y if rows.root is None else rows.y * rows.root
        estimate = best_fit(model, y, written.theta)
        return cls(written, model, y, estimate) if estimate is not None and estimate.loss > 0.0 else None

    def exchanged(self, complexity: int) -> Expression | None:
        """The equation after all exchanges, or after the first that makes it shorter; None where there is none."""
        refused: set[tuple[tuple[int, ...], tuple[float, ...]]] = set()
        while options := [e for e in self._options(complexity) if (e.places, e.values) not in refused]:
            best = max(options, key=lambda e: e.gain)
            moved = self._moved(best)
            if moved is None or best.saved - self._rise(moved[1]) <= CLEAR_GAIN:
                refused.add((best.places, best.values))
                continue
            (self.theta, self.loss), self.free[list(best.places)] = moved, False
            if best.values == (0.0,):
                break
        return None if self.free.all() else tidy(self.written.at(self.theta))

    def _rise(self, loss: float) -> float:
        return 0.5 * (loss - self.loss) / self.variance

    def _moved(self, exchange: _Exchange) -> tuple[FloatArray, float] | None:
        """Parameters and loss with the exchange made and the others refitted."""
        theta, free = self.theta.copy(), self.free.copy()
        theta[list(exchange.places)], free[list(exchange.places)] = exchange.values, False
        return refit(self.model, self.y, theta, free)

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
        settled = {abs(number) for number in self.theta[~self.free].tolist()}
        uncertain: list[tuple[int, float, float, float]] = []  # place, value, standard error, nats
        for place, error in zip(places.tolist(), errors.tolist(), strict=True):
            value = float(self.theta[place])
            if not 0.0 < error < math.inf or not math.isfinite(value) or value == 0.0:
                continue
            price = precision_nats(value, error)
            uncertain.append((place, value, error, price))
            tried = [(v, price - cost) for v, cost in simple_numbers(value, FARTHEST * error)]
            again = [math.copysign(number, value) for number in settled if number > 0.0]
            tried += [(v, price - POINTING - math.log(len(again))) for v in again if abs(v - value) <= FARTHEST * error]
            saved = price + form_nats(complexity - self._without(place).complexity, len(self.model.X))
            if (value / error) ** 2 < 2.0 * saved:
                tried.append((0.0, saved))
            for v, saved in tried:
                exchange = _Exchange((place,), (v,), saved, 0.5 * ((v - value) / error) ** 2)
                if exchange.gain > CLEAR_GAIN:
                    yield exchange
        yield from (exchange for exchange in _pairs(uncertain) if exchange.gain > CLEAR_GAIN)

    def _without(self, place: int) -> Expression:
        """The equation where a constant is 0."""
        theta = self.theta.copy()
        theta[place] = 0.0
        return tidy(self.written.at(theta))


def _pairs(uncertain: Sequence[tuple[int, float, float, float]]) -> Iterator[_Exchange]:
    """Two constants that may be the same simple number, but for their signs."""
    for (i, first, error, price), (j, second, other_error, other_price) in combinations(uncertain, 2):
        for number, cost in simple_numbers(abs(first), FARTHEST * error):
            away = abs(number - abs(first)) / error, abs(number - abs(second)) / other_error
            if max(away) <= FARTHEST:
                values = math.copysign(number, first), math.copysign(number, second)
                # The data lose at least what the more certain one of them loses; refitting tells how much.
                yield _Exchange((i, j), values, price + other_price - cost - POINTING, 0.5 * max(away) ** 2)
