"""Expressions -> programs -> numbers, one or a whole population."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.convert import from_sympy
from sobolev_novelty.data import FloatArray, Sample, as_sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.geometry import check_order
from sobolev_novelty.parsing import parse

#: Names of the columns of a table with one column and no names.
_UNNAMED = ("x0",)


def as_expression(source: Any, names: Sequence[str] | None = None) -> Expression:
    """An expression from an expression, a text or a SymPy object.

    Examples
    --------
    >>> as_expression("x0 + 1")
    Expression('x0 + 1')
    """
    if isinstance(source, Expression):
        return source
    if isinstance(source, str):
        return _parsed(source, names)
    if hasattr(source, "free_symbols") and hasattr(source, "func"):
        return _in_one_column(from_sympy(source), names)
    if isinstance(source, int | float):
        return Expression.of(float(source))
    raise ParameterError(
        f"An equation must be text, an Expression or a SymPy object. Got {type(source).__name__}. "
        "For a fitted model use sobolev_novelty.peers."
    )


def _parsed(text: str, names: Sequence[str] | None) -> Expression:
    if names is None or tuple(names) != _UNNAMED:
        return parse(text, names=names)
    one = _in_one_column(parse(text), names)
    return one if one.variables in ((), _UNNAMED) else parse(text, names=names)


def _in_one_column(expression: Expression, names: Sequence[str] | None) -> Expression:
    """With one column that has no name of its own, the only variable is that column, whatever it is called."""
    if names is None or tuple(names) != _UNNAMED or len(expression.variables) != 1:
        return expression
    return expression.rename({expression.variables[0]: _UNNAMED[0]})


def evaluate(expression: Any, X: Any) -> FloatArray:
    """Values of one expression at every row of ``X``; outside its domain ``nan`` or ``inf``.

    Examples
    --------
    >>> evaluate("x0**2 + log(x1)", [[3.0, 1.0], [2.0, -1.0]])
    array([ 9., nan])
    """
    sample = as_sample(X)
    return np.asarray(derivatives([as_expression(expression, sample.names)], sample, order=0)[0, 0])


def derivatives(expressions: Sequence[Expression], sample: Sample, order: int = 1, *, n_threads: int = 1) -> FloatArray:
    """Values and derivatives of many expressions at every sample.

    Returns
    -------
    ndarray of shape (n_expressions, n_rows, n_samples)
        Row 0 the values, then the gradient (order ≥ 1), then the second derivatives j ≤ k (order 2).
    """
    check_order(order)
    programs = kernels.compile_programs(expressions, sample.names)
    return np.asarray(kernels.derivatives(programs, sample.X, order, n_threads=n_threads))
