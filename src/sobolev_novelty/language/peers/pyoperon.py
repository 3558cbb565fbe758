"""pyoperon: the tree is a postfix array of nodes. Its text prints decimals, so the nodes are read.

Operon computes in single precision: its own predictions differ from the expression's by about 1e-6 of their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.peers.adapter import FrontEntry

#: Operon's name of a node -> operator. Its type is no guide: pyoperon 0.6.2 calls a maximum ``NodeType.Fmin``.
_OPERATORS = {
    **dict.fromkeys(
        ("pow", "powabs", "aq", "abs", "cbrt", "square", "exp", "log", "log1p", "logabs", "sqrt", "sqrtabs")
    ),
    **dict.fromkeys(("sin", "cos", "tan", "sinh", "cosh", "tanh")),
    **{"+": "add", "-": "sub", "*": "mul", "/": "div", "fmin": "min", "fmax": "max"},
    **{"asin": "arcsin", "acos": "arccos", "atan": "arctan"},
}
#: What a node with one operand means.
_UNARY = {"sub": "neg", "div": "inv"}


def from_pyoperon(model: Any, *, tree: Any = None, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted ``pyoperon.sklearn.SymbolicRegressor``.

    ``tree``: another tree of the same model, such as one of its Pareto front; the chosen one by default.
    ``names``: names of the inputs; ``x0, x1, …`` by default (Operon's own X1 is x0).
    """
    if not hasattr(model, "model_"):
        raise ParameterError(f"'model' must be a fitted pyoperon model. Got {type(model).__name__} without 'model_'.")
    # variables_ maps a hash to the name X1, X2, … in the order of the columns.
    positions = {code: int(str(name)[1:]) - 1 for code, name in model.variables_.items()}
    stack: list[Expression] = []
    for node in (model.model_ if tree is None else tree).Nodes:
        if node.IsVariable:
            column = positions[node.HashValue]
            variable = names[column] if names is not None else f"x{column}"
            stack.append(Expression.of("mul", float(node.Value), variable))
        elif node.IsConstant:
            stack.append(Expression.of(float(node.Value)))
        else:
            # The operand nearest to its operator is the first one.
            operands = [stack.pop() for _ in range(node.Arity)]
            stack.append(_applied(node.Name, operands))
    if len(stack) != 1:
        raise ParameterError(f"The Operon tree holds {len(stack)} expressions instead of one.")
    return stack[0]


def pyoperon_front(model: Any, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """Every entry of ``pareto_front_``, simplest first, with its mean squared error."""
    entries = (
        FrontEntry(
            int(entry["tree"].Length),
            float(entry.get("mean_squared_error", entry.get("mse", "nan"))),
            from_pyoperon(model, tree=entry["tree"], names=names),
        )
        for entry in model.pareto_front_
    )
    return tuple(sorted(entries, key=lambda entry: entry.complexity))


def _applied(node_name: str, operands: list[Expression]) -> Expression:
    if node_name not in _OPERATORS:
        raise ParameterError(f"Operon's primitive '{node_name}' has no counterpart here. Fit without it.")
    name = _OPERATORS[node_name] or node_name
    if len(operands) == 1:
        return Expression.of(_UNARY.get(name, name), operands[0])
    # Operon's sums and products take any number of operands.
    result = operands[0]
    for operand in operands[1:]:
        result = Expression.of(name, result, operand)
    return result
