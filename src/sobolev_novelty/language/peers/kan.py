"""KAN: ``symbolic_formula()`` gives SymPy expressions and the list of their inputs. The network itself is float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.convert import from_sympy


def from_kan(model: Any, *, names: Sequence[str] | None = None) -> Expression:
    """The formula of a KAN with one output, or of what its ``symbolic_formula()`` gave.

    ``model``: KAN or pair (formulas, inputs), every activation must be symbolic: call ``auto_symbolic()`` first.
    ``names``: names of the inputs; ``x0, x1, …`` by default (KAN's own x_1 is x0).
    """
    (expression, *others) = _formulas(model, names)
    if others:
        raise ParameterError(f"The KAN has {1 + len(others)} outputs. Give one of them: symbolic_formula()[0][k].")
    return expression


def kan_system(model: Any, *, names: Sequence[str] | None = None) -> dict[str, Expression] | None:
    """The formulas of a KAN with several outputs, as ``y0, y1, …``."""
    found = _formulas(model, names)
    return None if len(found) == 1 else {f"y{k}": expression for k, expression in enumerate(found)}


def is_symbolic_formula(model: Any) -> bool:
    """Whether this is what ``symbolic_formula()`` returns: a list of formulas and a list of symbols."""
    return (
        isinstance(model, tuple)
        and len(model) == 2
        and all(isinstance(part, list) and part for part in model)
        and all(getattr(symbol, "is_Symbol", False) for symbol in model[1])
        and all(hasattr(formula, "free_symbols") for formula in model[0])
    )


def _formulas(model: Any, names: Sequence[str] | None) -> list[Expression]:
    found = model if isinstance(model, tuple) else model.symbolic_formula()
    if not is_symbolic_formula(found):
        raise ParameterError("The KAN has activations that are not symbolic. Call auto_symbolic() or fix_symbolic().")
    formulas, inputs = found
    renamed = {str(s): names[k] if names is not None else f"x{k}" for k, s in enumerate(inputs)}
    return [from_sympy(formula).rename(renamed) for formula in formulas]
