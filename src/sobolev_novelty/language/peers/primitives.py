"""A user's own function -> the row of the operator table that computes the same.

DEAP and ITEA are given Python functions under names of the user's choice, such as ``protectedDiv``. The name says
little, so the function is tried on a few numbers and compared with every row.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.errors import ParameterError

#: Where a row must agree with the function.
_GENERIC = (-2.3, -0.7, -0.05, 0.06, 0.4, 0.9, 1.7, 3.1)
#: Where protected functions differ from each other: of the rows that agree elsewhere, the one that agrees here too.
_GUARDED = (0.0, 1e-12, 1e-7, 5e-4, -5e-4, 2e-3)

#: What stands for the function that returns its argument.
IDENTITY = "identity"


def matching_operator(function: Callable[..., Any], arity: int, name: str) -> Operator | str:
    """The operator that computes what ``function`` does, or :data:`IDENTITY`.

    >>> matching_operator(lambda a, b: a / b if b else 1.0, 2, "protectedDiv")
    div
    >>> matching_operator(lambda a: math.log(abs(a)), 1, "plog")
    logabs
    """
    if arity not in (1, 2):
        raise ParameterError(f"The model uses '{name}' with {arity} operands; here operators have one or two.")
    generic = list(product(_GENERIC, repeat=arity))
    guarded = list(product((*_GUARDED, 1.7), repeat=arity))
    theirs = [_tried(function, point) for point in generic]
    found: list[tuple[int, Operator | str]] = []
    for row, value in _candidates(arity):
        if all(_agree(a, _tried(value, point)) for a, point in zip(theirs, generic, strict=True)):
            n_equal = sum(_agree(_tried(function, point), _tried(value, point)) for point in guarded)
            found.append((-n_equal, row))
    if not found or not any(math.isfinite(value) for value in theirs):
        raise ParameterError(
            f"The model uses a function of its user's own, '{name}', that computes what no operator here does. "
            f"Known: {', '.join(row.name for row in OPERATORS.values() if row.arity == arity)}. "
            "Register it first: sobolev_novelty.register_operator."
        )
    return min(found, key=lambda entry: entry[0])[1]


def _candidates(arity: int) -> Iterator[tuple[Operator | str, Callable[..., Any]]]:
    if arity == 1:
        yield IDENTITY, lambda a: a
    for row in OPERATORS.values():
        if row.arity == arity:
            # Python's own division by zero raises; the table's follows IEEE arithmetic.
            yield row, lambda *operands, value=row.value: value(*map(np.float64, operands))


def _tried(function: Callable[..., Any], point: tuple[float, ...]) -> float:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = function(*point)
            return math.nan if isinstance(value, complex) else float(value)
    except (ArithmeticError, ValueError, TypeError):
        return math.nan


def _agree(a: float, b: float) -> bool:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
