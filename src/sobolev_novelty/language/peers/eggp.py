"""eggp and symregg: a table of results, each with its NumPy text, where ``t[k]`` are the parameters in ``theta``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.language.peers.adapter import FrontEntry, renamed

#: What predictions of these losses go through.
_LINKS = {"Bernoulli": "sigmoid", "Poisson": "exp"}


def from_eggp(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression with which a fitted ``eggp.EGGP`` predicts: the row of ``results`` of least training loss."""
    losses = [_number(row["loss_train"]) for row in _rows(model)]
    return _expression(_rows(model)[losses.index(min(losses))], model, names)


def from_symregg(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression with which a fitted ``symregg.SymRegg`` predicts: the last row of ``results``."""
    return _expression(_rows(model)[-1], model, names)


def eggp_front(model: Any, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """All rows of ``results``, simplest first."""
    return tuple(
        FrontEntry(int(row["size"]), _number(row["loss_train"]), _expression(row, model, names)) for row in _rows(model)
    )


def _rows(model: Any) -> list[dict[str, Any]]:
    results = getattr(model, "results", None)
    if results is None or not hasattr(results, "to_dict") or not len(results):
        raise ParameterError(f"'model' must be a fitted eggp model. Got {type(model).__name__} without 'results'.")
    rows: list[dict[str, Any]] = results.to_dict("records")
    return rows


def _expression(row: dict[str, Any], model: Any, names: Sequence[str] | None) -> Expression:
    theta = [part for part in str(row["theta"]).split(";") if part]
    text = re.sub(r"\bt\[(\d+)\]", lambda match: f"({theta[int(match[1])]})", str(row["Numpy"]))
    expression = renamed(parse(text), names)
    link = _LINKS.get(str(getattr(model, "loss", "")))
    return expression if link is None else Expression.of(link, expression)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("inf")
