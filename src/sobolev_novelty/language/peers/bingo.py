"""Bingo: a graph is text with all digits; its square root and logarithm take absolute values, which the text omits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.language.peers.adapter import FrontEntry, renamed


def from_bingo(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted ``bingo`` SymbolicRegressor, EquationRegressor or AGraph."""
    if callable(getattr(model, "get_best_individual", None)):
        model = model.get_best_individual()
    graph = getattr(model, "equation", model)
    if not callable(getattr(graph, "get_formatted_string", None)):
        raise ParameterError(f"'model' must be a fitted bingo model or an AGraph. Got {type(model).__name__}.")
    text = graph.get_formatted_string("sympy")
    return renamed(parse(text, dialect="bingo"), names)


def bingo_front(model: Any, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """The Pareto front of a SymbolicRegressor, simplest first."""
    if not callable(getattr(model, "get_pareto_front", None)):
        return (FrontEntry(0, float("nan"), from_bingo(model, names=names)),)
    entries = (
        FrontEntry(int(m.complexity), float(m.fitness), from_bingo(m, names=names)) for m in model.get_pareto_front()
    )
    return tuple(sorted(entries, key=lambda entry: entry.complexity))
