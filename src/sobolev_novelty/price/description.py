"""The price of an equation for a table: structure, numbers, rows, and what is found against it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import EXACT_NMSE, nmse
from sobolev_novelty.price.likelihood import few_rows_nats, misfit_nats
from sobolev_novelty.price.noise import Noise, weights_of
from sobolev_novelty.price.numbers import n_numbers, numbers_nats
from sobolev_novelty.price.structure import form_nats, structure_nats


@dataclass(frozen=True, slots=True)
class Description:
    """Nats of an equation, up to a constant of the table."""

    structure: float
    numbers: float
    rows: float
    findings: float = 0.0

    @property
    def total(self) -> float:
        """What decides: the least."""
        return self.structure + self.numbers + self.rows + self.findings


def rows_nats(rows: Rows, values: FloatArray, noise: Noise, heights: FloatArray | None = None) -> float:
    """What the rows cost where an equation has these values, its numbers not counted.

    ``heights``: the shape of the noise, where it is not that of the values alone (:meth:`Noise.heights_at`).
    """
    if not np.isfinite(values).all():
        return math.inf
    w = rows.own_weights
    h = noise.heights(values) if heights is None else heights
    with np.errstate(all="ignore"):
        if rows.level is not None:  # it is known: nothing is integrated out
            return float(0.5 * w @ ((rows.y - values) / (rows.level * h)) ** 2 + np.sum(np.log(h)))
        least = rows.rounding * float(np.mean(h**-2.0))
        return misfit_nats((rows.y - values) / h, w, rows.replicates, least) + float(np.sum(np.log(h)))


def describe(
    rows: Rows,
    expression: Expression,
    values: FloatArray,
    noise: Noise,
    *,
    complexity: int | None = None,
    heights: FloatArray | None = None,
) -> Description:
    """The price of an equation with these values at the rows."""
    n = len(rows)
    h = noise.heights(values) if heights is None else heights
    with np.errstate(all="ignore"):
        error = nmse(rows.y, values, weights_of(h, rows.own_weights))
    few = few_rows_nats(n_numbers(expression), rows.replicates.n_distinct, error)
    return Description(
        structure_nats(expression, len(rows.names), complexity),
        numbers_nats(expression, n) + few + (0.5 * math.log(n) if noise.is_found else 0.0),
        rows_nats(rows, values, noise, h),
    )


def quick_nats(error: float, complexity: int, numbers: float, n_rows: int, n_inputs: int) -> float:
    """The price as a search needs it, from an error that is known: constant noise, no equal inputs.

    ``error``: NMSE: relative to the target's variance.
    ``numbers``: nats of the numbers.

    >>> round(quick_nats(0.0102, 5, 0.0, 10_000, 3) - quick_nats(0.01, 12, 0.0, 10_000, 3))
    87
    """
    return 0.5 * n_rows * math.log(max(error, EXACT_NMSE)) + form_nats(complexity, n_inputs) + numbers


def quick_nats_of(expression: Expression, error: float, complexity: int, n_rows: int, n_inputs: int) -> float:
    """The same for an equation, with its numbers and seldom functions."""
    few = few_rows_nats(n_numbers(expression), n_rows, error)
    seldom = structure_nats(expression, n_inputs, complexity) - form_nats(complexity, n_inputs)
    return quick_nats(error, complexity, numbers_nats(expression, n_rows) + few + seldom, n_rows, n_inputs)
