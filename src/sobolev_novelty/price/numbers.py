"""What the numbers of an equation cost."""

from __future__ import annotations

import math
from functools import lru_cache

from sobolev_novelty.algebra.numbers import simple_nats
from sobolev_novelty.core.expression import Expression

#: Whole numbers below this are part of a form, as exponents are; all others were found. Of the whole numbers in the 133
#: laws of the white box and the 50 of ``lab/bench/problems/everyday.toml`` 97 % are.
SMALL = 10.0


def _is_part_of_form(value: float) -> bool:
    return value.is_integer() and abs(value) < SMALL


def n_numbers(expression: Expression) -> int:
    """Numbers of an equation that had to be found.

    >>> from sobolev_novelty.language.parsing import parse
    >>> n_numbers(parse("364.5*n**2/(n**2 - 4)"))
    1
    """
    return sum(not _is_part_of_form(c) for c in expression.constants)


def interpolates(expression: Expression, n_rows: int) -> bool:
    """Whether an equation has a number for every row: no row is left that could speak for it.

    >>> from sobolev_novelty.language.parsing import parse
    >>> line = parse("1.5*x + 0.25")
    >>> interpolates(line, 2), interpolates(line, 3)
    (True, False)
    """
    # A number needs a node to be joined by, so most tables need no count.
    return expression.complexity >= 2 * n_rows - 1 and n_numbers(expression) >= n_rows


def n_free_numbers(expression: Expression) -> int:
    """Those of them that only the rows could have said: no simple ones.

    >>> from sobolev_novelty.language.parsing import parse
    >>> n_free_numbers(parse("0.5*x + 0.1234"))
    1
    """
    return sum(not is_simple(c) for c in expression.constants)


def is_simple(value: float, n_rows: float = math.inf) -> bool:
    """Whether a number costs less as a simple one than as one that so many rows determine.

    >>> is_simple(-0.5, 100), is_simple(0.73, 100), is_simple(0.73), is_simple(0.5001)
    (True, False, True, False)
    """
    return _simple_nats(value) < free_nats(n_rows)


@lru_cache(maxsize=1 << 16)
def _simple_nats(value: float) -> float:
    return 0.0 if _is_part_of_form(value) else simple_nats(value)


def free_nats(n_rows: float) -> float:
    """Nats of a number that so many rows determine to about 1/√n of the noise (Schwarz).

    >>> round(free_nats(100), 1)
    2.3
    """
    return 0.5 * math.log(max(n_rows, 2.0))


def numbers_nats(expression: Expression, n_rows: float) -> float:
    """The price of all numbers: each as a free one, or as a simple one where that is less.

    >>> from sobolev_novelty.language.parsing import parse
    >>> [round(numbers_nats(parse(text), 100), 1) for text in ("2*x", "0.5*x", "0.51234*x")]
    [0.0, 0.7, 2.3]
    """
    free = free_nats(n_rows)
    return sum(min(free, _simple_nats(c)) for c in expression.constants)


def precision_nats(value: float, error: float) -> float:
    r"""Nats of the digits that rows give one number: :math:`\ln(|\theta|/\sigma) - \ln 3/2` (Bartlett and others 2023).

    Half the logarithm of the Fisher information in units of the number: which of two values it has within an equation,
    a simple one or the fitted one.

    >>> round(precision_nats(1.0, 0.01), 1), precision_nats(1.0, 10.0)
    (4.1, 0.0)
    """
    return max(math.log(abs(value) / error) - 0.5 * math.log(3.0), 0.0)
