"""Feyn (QLattice): a model is a list of elements with parameters, the root first; its text rounds, so they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError

_OPERATORS = {
    "multiply:2": "mul", "add:2": "add", "tanh:1": "tanh", "inverse:1": "inv", "log:1": "log", "exp:1": "exp",
    "sqrt:1": "sqrt", "squared:1": "square",
}  # fmt: skip


def from_feyn(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a ``feyn.Model``, in the names of its DataFrame; a classifier gives its probability.

    ``names``: not used: Feyn's models always have names.
    """
    elements = list(model)
    made: dict[int, Expression] = {}
    for element in reversed(elements):  # children come after their parents
        made[element._ix] = _element(element, [made[child] for child in element.children])
    return made[elements[0]._ix]


def _element(element: Any, operands: list[Expression]) -> Expression:
    kind, p = element.fname, element.params
    if kind == "in-linear:0":
        shifted = _plus(Expression.of(str(element.name)), -p["scale_offset"])
        return _plus(_times(p["scale"] * p["w"], shifted), p["bias"])
    if kind in _OPERATORS:
        return Expression.of(_OPERATORS[kind], *operands)
    if kind in ("gaussian:1", "gaussian:2"):
        squares = [Expression.of("square", operand) for operand in operands]
        total = squares[0] if len(squares) == 1 else Expression.of("add", *squares)
        return Expression.of("exp", _times(-2.0, total))
    if kind == "linear:1":
        return _plus(_times(p["w"], operands[0]), p["bias"])
    if kind == "out-linear:1":
        return _times(p["scale"], _plus(_times(p["w"], operands[0]), p["bias"]))
    if kind == "out-lr:1":
        return Expression.of("sigmoid", _plus(_times(p["w"], operands[0]), p["bias"]))
    what = f"a categorical input, '{element.name}'" if kind.startswith("in-cat") else f"an element '{kind}'"
    raise ParameterError(f"The Feyn model has {what}, which is not a formula of numbers. Fit without it.")


def _times(factor: float, operand: Expression) -> Expression:
    return operand if factor == 1.0 else Expression.of("mul", float(factor), operand)


def _plus(operand: Expression, offset: float) -> Expression:
    return operand if offset == 0.0 else Expression.of("add", operand, float(offset))
