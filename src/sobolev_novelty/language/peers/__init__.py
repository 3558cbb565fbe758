"""Fitted models of other libraries -> expressions, evaluated as their authors do.

One file per library; none of them imports it: a fitted model carries all that is needed. The right file is found by
where the model's class was defined.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.language.convert import from_sympy
from sobolev_novelty.language.peers.adapter import Adapter, FrontEntry
from sobolev_novelty.language.peers.bingo import bingo_front, from_bingo
from sobolev_novelty.language.peers.deap import deap_front, from_deap
from sobolev_novelty.language.peers.eggp import eggp_front, from_eggp, from_symregg
from sobolev_novelty.language.peers.feyn import from_feyn
from sobolev_novelty.language.peers.ffx import ffx_front, from_ffx
from sobolev_novelty.language.peers.gplearn import from_gplearn, gplearn_front
from sobolev_novelty.language.peers.hroch import from_hroch
from sobolev_novelty.language.peers.itea import from_itea
from sobolev_novelty.language.peers.kan import from_kan, is_symbolic_formula, kan_system
from sobolev_novelty.language.peers.linear import from_linear, linear_system
from sobolev_novelty.language.peers.pyoperon import from_pyoperon, pyoperon_front
from sobolev_novelty.language.peers.pysindy import from_pysindy, pysindy_system
from sobolev_novelty.language.peers.pysr import best_entry, from_pysr, pysr_front, pysr_system, read_hall_of_fame
from sobolev_novelty.language.peers.rils_rols import from_rils_rols

__all__ = [
    "FrontEntry",
    "for_every_equation",
    "from_bingo",
    "from_deap",
    "from_eggp",
    "from_feyn",
    "from_ffx",
    "from_gplearn",
    "from_hroch",
    "from_itea",
    "from_kan",
    "from_linear",
    "from_model",
    "from_pyoperon",
    "from_pysindy",
    "from_pysr",
    "from_rils_rols",
    "from_symregg",
    "front_of",
    "is_model",
    "read_hall_of_fame",
    "system_of",
]

P = ParamSpec("P")
R = TypeVar("R")

#: Package in which a model's class is defined -> how its models are read.
ADAPTERS: dict[str, Adapter] = {
    "HROCH": Adapter(from_hroch),
    "bingo": Adapter(from_bingo, bingo_front),
    "deap": Adapter(from_deap, deap_front),
    "eggp": Adapter(from_eggp, eggp_front),
    "feyn": Adapter(from_feyn),
    "ffx": Adapter(from_ffx, ffx_front),
    "gplearn": Adapter(from_gplearn, gplearn_front),
    "itea": Adapter(from_itea),
    "kan": Adapter(from_kan, system=kan_system),
    "pyoperon": Adapter(from_pyoperon, pyoperon_front),
    "pysindy": Adapter(from_pysindy, system=pysindy_system),
    "pysr": Adapter(from_pysr, pysr_front, pysr_system),
    "rils_rols": Adapter(from_rils_rols),
    "sklearn": Adapter(from_linear, system=linear_system),
    "symregg": Adapter(from_symregg, eggp_front),
}
ACCEPTED = (
    f"text, an Expression, a SymPy object, a list of terms, or a fitted model of {', '.join(ADAPTERS)}; "
    "a DEAP tree as (tree, pset), a hall of fame of PySR as a Path, or anything with a method sympy()"
)


def from_model(model: Any, names: Sequence[str] | None = None) -> Expression:
    """The expression of a fitted model.

    ``model``: a fitted model of a library listed in ``ADAPTERS`` with one target, the path of a ``hall_of_fame.csv``,
    anything with a method ``sympy()`` or ``sympify()`` that returns one SymPy expression, or an estimator of this
    package.
    ``names``: names for the inputs, in the order of the columns; ``x0, x1, …`` by default, or the model's own where it
    has any.
    """
    if isinstance(getattr(model, "expression_", None), Expression):
        expression: Expression = model.expression_
        return expression.rename({f"x{k}": name for k, name in enumerate(names or ())})
    if isinstance(model, os.PathLike):
        return best_entry(read_hall_of_fame(model, names=names)).expression
    adapter = _adapter(model)
    if adapter is not None:
        return adapter.read(model, names=names)
    for method in ("sympy", "sympify"):
        if callable(getattr(model, method, None)):
            return from_sympy(getattr(model, method)())
    raise refusal(model)


def refusal(model: Any) -> ParameterError:
    """The error for what is not a model, which says what is."""
    return ParameterError(f"'model' must be {ACCEPTED}. Got {type(model).__module__}.{type(model).__qualname__}.")


def is_model(model: Any) -> bool:
    """Whether :func:`from_model` knows this kind of object; a list or a text is none."""
    return (
        isinstance(getattr(model, "expression_", None), Expression)
        or isinstance(model, os.PathLike)
        or _adapter(model) is not None
        or any(callable(getattr(model, method, None)) for method in ("sympy", "sympify"))
    )


def system_of(model: Any, names: Sequence[str] | None = None) -> dict[str, Expression] | None:
    """All equations of a model with several targets, by name; None for everything else."""
    adapter = _adapter(model)
    return None if adapter is None or adapter.system is None else adapter.system(model, names=names)


def front_of(model: Any, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """All equations that a model offers, simplest first; the one equation where it offers no more."""
    table = getattr(model, "equations_", None)
    if isinstance(getattr(model, "expression_", None), Expression) and hasattr(table, "to_dict"):
        return tuple(
            FrontEntry(int(row["complexity"]), float(row["loss"]), row["expression"])
            for row in table.to_dict("records")  # type: ignore[union-attr]
        )
    if isinstance(model, os.PathLike):
        return read_hall_of_fame(model, names=names)
    adapter = _adapter(model)
    if adapter is None or adapter.front is None:
        expression = from_model(model, names)
        return (FrontEntry(expression.complexity, float("nan"), expression),)
    return adapter.front(model, names=names)


def for_every_equation(verb: Callable[P, R]) -> Callable[P, R]:
    """A verb whose first argument may be a model with several targets: it then returns a dict with a result for each.

    A target ``y`` is then a table with one column per equation.
    """
    signature = inspect.signature(verb)
    first = next(iter(signature.parameters))

    @wraps(verb)
    def for_each(*args: P.args, **kwargs: P.kwargs) -> R:
        model = args[0] if args else kwargs.get(first)
        if isinstance(model, (str, Expression)):  # almost always, and novelty takes 90 µs
            return verb(*args, **kwargs)
        system = system_of(model)
        if system is None:
            return verb(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        targets = _columns(given.arguments.get("y"), list(system))
        results = {}
        for (name, expression), y in zip(system.items(), targets, strict=True):
            given.arguments |= {first: expression} | ({} if y is None else {"y": y})
            results[name] = verb(*given.args, **given.kwargs)
        # The verb's own type is that of one equation, which is what almost every caller has.
        return results  # type: ignore[return-value]

    return for_each


def _columns(y: Any, names: list[str]) -> list[Any]:
    if y is None:
        return [None] * len(names)
    table = np.asarray(y)
    if table.ndim != 2 or table.shape[1] != len(names):
        raise DataError(
            f"'y' must have one column per equation, {len(names)} in all ({', '.join(names)}). Got shape {table.shape}."
        )
    return list(table.T)


def _adapter(model: Any) -> Adapter | None:
    """By the class of the model or one it inherits from: users derive their own from DEAP's and scikit-learn's."""
    if is_symbolic_formula(model):
        return ADAPTERS["kan"]
    if isinstance(model, tuple):  # (tree, pset)
        is_deap = len(model) == 2 and any(_library(kind) == "deap" for kind in type(model[1]).__mro__)
        return ADAPTERS["deap"] if is_deap else None
    libraries = (_library(kind) for kind in type(model).__mro__)
    found = next((library for library in libraries if library in ADAPTERS), None)
    # Anyone's estimator inherits from scikit-learn's.
    if found == "sklearn" and not any(hasattr(model, a) for a in ("coef_", "steps", "estimators_", "best_estimator_")):
        return None
    return None if found is None else ADAPTERS[found]


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0]
