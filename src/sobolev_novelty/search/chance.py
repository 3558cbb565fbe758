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

from sobolev_novelty.expression import Expression

#: Whole numbers below this are part of a form, as exponents are; all others were found.
SMALL = 10.0
#: How many times L the rows have to say.
MARGIN = 2.0
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
