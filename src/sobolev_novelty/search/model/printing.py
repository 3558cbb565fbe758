"""What ``print(model)`` says: the equation, and why it."""

from __future__ import annotations

from typing import Any

from sobolev_novelty.core.expression import short_text


def described(model: Any) -> str:
    """The chosen equation and the reason; before ``fit`` the arguments, as scikit-learn shows them."""
    if not hasattr(model, "expression_"):
        return repr(model)
    lines = [short_text(model.expression_), getattr(model, "reason_", ""), getattr(model, "noise_", "")]
    return "\n".join(line for line in lines if line)


__all__ = ["described"]
