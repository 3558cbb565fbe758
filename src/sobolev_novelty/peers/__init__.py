"""Fitted models of other libraries -> expressions, evaluated as their authors do.

One file per library; none of them imports it: a fitted model carries all that is needed. ``from_model`` finds the right
reader by where the model's class was defined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sobolev_novelty.convert import from_sympy
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.peers.ffx import from_ffx
from sobolev_novelty.peers.gplearn import from_gplearn
from sobolev_novelty.peers.hroch import from_hroch
from sobolev_novelty.peers.pyoperon import from_pyoperon
from sobolev_novelty.peers.pysindy import from_pysindy
from sobolev_novelty.peers.pysr import from_pysr, read_hall_of_fame

__all__ = [
    "from_ffx",
    "from_gplearn",
    "from_hroch",
    "from_model",
    "from_pyoperon",
    "from_pysindy",
    "from_pysr",
    "read_hall_of_fame",
]

_READERS: dict[str, Callable[..., Expression]] = {
    "HROCH": from_hroch,
    "ffx": from_ffx,
    "gplearn": from_gplearn,
    "pyoperon": from_pyoperon,
    "pysindy": from_pysindy,
    "pysr": from_pysr,
}


def from_model(model: Any, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted model.

    Parameters
    ----------
    model : object
        A fitted model of FFX, gplearn, HROCH, pyoperon, PySINDy (one target) or PySR, anything with a method
        ``sympy()`` or ``sympify()`` that returns one SymPy expression, or an estimator of this package.
    names : sequence of str, optional
        Names for the inputs, in the order of the columns; ``x0, x1, …`` by default, or the model's own where it has
        any.
    """
    if isinstance(getattr(model, "expression_", None), Expression):
        expression: Expression = model.expression_
        return expression.rename({f"x{k}": name for k, name in enumerate(names or ())})
    library = type(model).__module__.partition(".")[0]
    if library in _READERS:
        return _READERS[library](model, names=names)
    for method in ("sympy", "sympify"):
        if callable(getattr(model, method, None)):
            return from_sympy(getattr(model, method)())
    raise ParameterError(
        f"'model' must be a fitted model of {', '.join(_READERS)}, or have a method sympy(). "
        f"Got {type(model).__module__}.{type(model).__qualname__}."
    )
