"""gplearn: the program is a prefix list already. Its text rounds constants to three decimals, so the list is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression, Token
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.peers.adapter import FrontEntry, pareto

#: gplearn's function names -> the operators that compute what gplearn computes; division, log, sqrt and inverse
#: protect.
_OPERATORS = {
    **{name: name for name in ("add", "sub", "mul", "neg", "abs", "max", "min", "sin", "cos", "tan")},
    "div": "gpdiv",
    "log": "gplog",
    "inv": "gpinv",
    "sqrt": "sqrtabs",
    "sig": "sigmoid",
}


def from_gplearn(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted ``gplearn.genetic.SymbolicRegressor``, or of one of its programs.

    ``names``: names of the inputs; the model's ``feature_names`` or ``x0, x1, …`` by default.
    """
    program = getattr(model, "_program", model)
    nodes = getattr(program, "program", None)
    if not isinstance(nodes, list):
        raise ParameterError(f"'model' must be a fitted gplearn model with one program. Got {type(model).__name__}.")
    names = names if names is not None else program.feature_names
    return Expression([_token(node, names) for node in nodes])


def gplearn_front(model: Any, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """The Pareto front (length, raw fitness) of the last generation, simplest first."""
    generations = [kept for kept in getattr(model, "_programs", []) if kept]
    if not generations:
        program = getattr(model, "_program", model)
        return (FrontEntry(len(program.program), float("nan"), from_gplearn(model, names=names)),)
    # gplearn's own measures of agreement grow; errors fall.
    sign = -1.0 if model._metric.greater_is_better else 1.0
    programs = [program for program in generations[-1] if program is not None]
    return pareto([FrontEntry(p.length_, sign * float(p.raw_fitness_), from_gplearn(p, names=names)) for p in programs])


def _token(node: Any, names: Sequence[str] | None) -> Token:
    if isinstance(node, int):
        return names[node] if names is not None else f"x{node}"
    if not hasattr(node, "arity"):
        return float(node)
    if node.name not in _OPERATORS:
        known = ", ".join(_OPERATORS)
        raise ParameterError(f"The program uses a function of its user's own, '{node.name}'. Known: {known}.")
    return OPERATORS[_OPERATORS[node.name]]
