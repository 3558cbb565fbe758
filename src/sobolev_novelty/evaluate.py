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
        return parse(source, names=names)
    if hasattr(source, "free_symbols") and hasattr(source, "func"):
        return from_sympy(source)
    if isinstance(source, int | float):
        return Expression.of(float(source))
    raise ParameterError(
        f"An equation must be text, an Expression or a SymPy object. Got {type(source).__name__}. "
        "For a fitted model use sobolev_novelty.peers."
    )


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
