"""HROCH: the model is text with all digits, in the names ``x0, x1, …``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.language.peers.adapter import renamed


def from_hroch(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted ``HROCH.SymbolicRegressor``."""
    text = getattr(model, "sexpr_", None)
    if not isinstance(text, str):
        raise ParameterError(f"'model' must be a fitted HROCH regressor. Got {type(model).__name__}.")
    return renamed(parse(text), names)
