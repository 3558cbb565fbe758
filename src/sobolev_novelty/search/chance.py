r"""What rows say for an equation beyond the numbers it was given.

Notation
--------
``n``  rows;  ``k``  numbers of the equation that had to be found;  ``L``  its length in nats, apart from its numbers

k numbers can be chosen so that k rows are met. The other n − k rows speak for the equation: each that is met to a share
√NMSE of the target's spread would be so by chance with about that probability. What they say together,
(n − k)·ln(1/√NMSE), has to pay for the length of a form that was picked among all that are as long, twice over.
"""

from __future__ import annotations

import math
from functools import lru_cache

from sobolev_novelty.algebra.numbers import simple_nats
from sobolev_novelty.expression import Expression

#: Whole numbers below this are part of a form, as exponents are; all others were found.
SMALL = 10.0
#: How many times L the rows have to say.
MARGIN = 2.0
#: What is left of a target is no longer noise but rounding.
LEAST_NMSE = 1e-28
#: Operators that a form chooses from at every second node, with one of the inputs.
CHOICES = 5


def n_numbers(expression: Expression) -> int:
    """Numbers of an equation that had to be found.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> n_numbers(parse("364.5*n**2/(n**2 - 4)"))
    1
    """
    return sum(not (c.is_integer() and abs(c) < SMALL) for c in expression.constants)


def interpolates(expression: Expression, n_rows: int) -> bool:
    """Whether an equation has a number for every row: no row is left that could speak for it.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> line = parse("1.5*x + 0.25")
    >>> interpolates(line, 2), interpolates(line, 3)
    (True, False)
    """
    # A number needs a node to be joined by, so most tables need no count.
    return expression.complexity >= 2 * n_rows - 1 and n_numbers(expression) >= n_rows


def length(complexity: int, n_inputs: int) -> float:
    """L of a form: the logarithm of how many there are of its complexity, about."""
    return 0.5 * complexity * math.log(CHOICES * n_inputs)


def description(nmse: float, complexity: int, numbers: float, n_rows: int, n_inputs: int) -> float:
    r"""Nats that it takes to write down an equation and what it leaves of the target, up to a constant.

    :math:`\frac{n}{2} \ln \mathrm{NMSE} + L`, and the numbers: the noise is as large as what is left. What R_base
    takes for a hair's breadth, an error of 0.0102 instead of 0.01, is a hundred nats on ten thousand rows.

    Parameters
    ----------
    numbers : float
        Nats of the numbers: :func:`number_nats`.

    Examples
    --------
    >>> round(description(0.0102, 5, 0.0, 10_000, 3) - description(0.01, 12, 0.0, 10_000, 3))
    90
    """
    return 0.5 * n_rows * math.log(max(nmse, LEAST_NMSE)) + length(complexity, n_inputs) + numbers


def description_of(expression: Expression, nmse: float, complexity: int, n_rows: int, n_inputs: int) -> float:
    """The :func:`description` of an equation, its numbers included."""
    numbers = sum(number_nats(c, n_rows) for c in expression.constants)
    return description(nmse, complexity, numbers, n_rows, n_inputs)


@lru_cache(maxsize=1 << 16)
def number_nats(value: float, n_rows: int) -> float:
    """Nats of a number: those of a simple one, or of one that so many rows determine to about 1/√n.

    Examples
    --------
    >>> number_nats(2.0, 100), round(number_nats(0.5, 100), 1), round(number_nats(0.51234, 100), 1)
    (0.0, 0.7, 2.3)
    """
    if value.is_integer() and abs(value) < SMALL:
        return 0.0
    return min(0.5 * math.log(max(n_rows, 2)), simple_nats(value))


def is_beyond_chance(expression: Expression, nmse: float, n_rows: int, n_inputs: int) -> bool:
    """Whether the rows that the numbers do not account for pay for the length of the form.

    One such row is not enough: it may lie where a term vanishes.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> law = parse("x0**2 + 0.5*x1")
    >>> is_beyond_chance(law, 1e-12, 4, 2), is_beyond_chance(law, 1e-3, 4, 2)
    (True, False)
    """
    spare = n_rows - n_numbers(expression)
    met = -0.5 * math.log(nmse) if nmse > 0.0 else math.inf
    return spare > 1 and spare * met > MARGIN * length(expression.complexity, n_inputs)
