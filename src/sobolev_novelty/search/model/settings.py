"""Arguments of an estimator beyond what scikit-learn does: fields of values, and names from before 0.2.

``model.set_params(constraints__max_depth=5)`` puts another value in the place of ``model.constraints``, which is
frozen, so that scikit-learn's grids can search over its fields. :data:`BEFORE` is the one table of earlier names:
constructor, ``set_params``, ``clone`` and stored models understand them until 0.3.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, Self, cast

from sklearn.base import BaseEstimator

from sobolev_novelty.core.parameters import SECONDS, check
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import SobolevGuidance
from sobolev_novelty.search.islands.cores import Islands
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.problem.constraints import Constraints, Units
from sobolev_novelty.search.problem.control import Control

P = ParamSpec("P")
DEFAULT_BUDGET = Budget(max_evaluations=20_000, seconds=60.0)


def as_budget(budget: Budget | float | None) -> Budget:
    """A budget, or a number of seconds.

    >>> as_budget(5.0)
    Budget(max_evaluations=None, seconds=5.0, stop_when_exact=True, clock='wall')
    """
    if isinstance(budget, Budget):
        return budget
    return DEFAULT_BUDGET if budget is None else Budget(seconds=float(budget))


def as_units(units: Units | Mapping[str, str] | None) -> Units:
    """Units, or those of the inputs alone."""
    return units if isinstance(units, Units) else Units(units or {})


def names_of(model: Any) -> tuple[str, ...]:
    """Names of the columns of a fitted estimator."""
    named = getattr(model, "feature_names_in_", None)
    return tuple(f"x{k}" for k in range(model.n_features_in_)) if named is None else tuple(map(str, named))


def constraints_of(model: Any) -> Constraints:
    """Which equations are allowed."""
    return Constraints() if model.constraints is None else model.constraints


def control_of(model: Any) -> Control:
    """The same with the loss, in the user's names."""
    return Control.of(names_of(model), model.constraints, model.loss)


#: Argument -> the value that it stands for, whose fields are parameters.
VALUES: Mapping[str, Callable[[Any], Any]] = {
    "novelty": lambda novelty: novelty if isinstance(novelty, SobolevGuidance) else SobolevGuidance(),
    "budget": as_budget,
    "constraints": lambda constraints: Constraints() if constraints is None else constraints,
    "units": as_units,
    "parallel": lambda parallel: parallel if isinstance(parallel, Islands) else Islands(),
}


@dataclass(frozen=True, slots=True)
class Before:
    """An argument of earlier versions: the argument that has its place ("fit" for one of ``fit``), what to write.

    ``joined``: what is there, and the earlier argument's value -> what is there then.
    """

    now: str
    spelling: str
    joined: Callable[[Any, Any], Any] = lambda there, value: value


def _field(argument: str, name: str, example: str) -> Before:
    made = type(VALUES[argument](None)).__name__
    return Before(
        argument, f"{argument}={made}({name}={example})",
        lambda there, value: replace(VALUES[argument](there), **{name: value}),
    )  # fmt: skip


def _within(budget: Any, seconds: float | None) -> Any:
    """A time limit alone is the whole budget; beside another the shorter time holds."""
    if seconds is None:
        return budget
    check("timeout", seconds, SECONDS)
    if budget is None:
        return Budget(seconds=float(seconds))
    own = as_budget(budget)
    return replace(own, seconds=seconds if own.seconds is None else min(seconds, own.seconds))


def _islands(there: Any, number: int | None) -> Any:
    return there if number in (None, 1) else replace(VALUES["parallel"](there), number=number)


def _client(there: Any, client: Any) -> Any:
    return there if client is None else replace(VALUES["parallel"](there), client=client)


_FIT = "fit(X, y, {}=…)"
#: Argument before 0.2 -> what has its place.
BEFORE: Mapping[str, Before] = {
    "timeout": Before("budget", "budget=seconds, or budget=Budget(seconds=…)", _within),
    "max_complexity": _field("constraints", "max_complexity", "…"),
    "operator_costs": _field("constraints", "operator_costs", "{…}"),
    "nesting": _field("constraints", "nesting", "{…}"),
    "max_depth": _field("constraints", "max_depth", "…"),
    "monotone": _field("constraints", "monotone", "{…}"),
    "template": _field("constraints", "template", "'…'"),
    "y_units": _field("units", "target", "'…'"),
    "constant_units": _field("units", "constants", "…"),
    "n_jobs": Before("parallel", "parallel=cores, which are threads, or parallel=Islands(number)"),
    "islands": Before("parallel", "parallel=Islands(number)", _islands),
    "client": Before("parallel", "parallel=Islands(client=…)", _client),
    "sigma": Before("fit", _FIT.format("sigma")),
    "x_sigma": Before("fit", _FIT.format("x_sigma")),
    "warm_start": Before("fit", _FIT.format("warm_start")),
    "verbose": Before("fit", _FIT.format("verbose")),
}


def with_earlier_names(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that takes the arguments of earlier versions too."""

    @wraps(init)
    def made(self: Settings, *args: Any, **given: Any) -> None:
        earlier = {name: given.pop(name) for name in BEFORE if name in given}
        cast("Callable[..., None]", init)(self, *args, **given)
        self._take(earlier)

    return cast("Callable[P, None]", made)


class Settings(BaseEstimator):  # type: ignore[misc]
    """Arguments that scikit-learn can read, set and copy."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments and their values; with ``deep`` also fields of values and options of the engine."""
        found: dict[str, Any] = super().get_params(deep)
        if deep:
            for name in found.keys() & VALUES.keys():
                value = found[name]
                if is_dataclass(value):
                    found |= {f"{name}__{field.name}": getattr(value, field.name) for field in fields(value)}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or fields of values: ``constraints__max_depth=5``."""
        earlier = {name: params.pop(name) for name in BEFORE if name in params}
        nested = {name: params.pop(name) for name in list(params) if name.partition("__")[0] in VALUES and "__" in name}
        super().set_params(**params)
        for name, value in nested.items():
            argument, _, field = name.partition("__")
            there = VALUES[argument](getattr(self, argument))
            known = [f.name for f in fields(there)]
            if field not in known:
                raise ParameterError(f"'{name}' must name a field of {argument}: {', '.join(known)}. Got '{field}'.")
            setattr(self, argument, replace(there, **{field: value}))
        self._take(earlier)
        return self

    def _take(self, earlier: Mapping[str, Any]) -> None:
        """Put what was given under earlier names where it belongs now."""
        for name in (name for name in BEFORE if name in earlier):
            row, value = BEFORE[name], earlier[name]
            warnings.warn(
                f"'{name}' is not an argument of {type(self).__name__} any more and will be an error in 0.3: write "
                f"{row.spelling}.",
                DeprecationWarning,
                stacklevel=3,
            )
            if row.now == "fit":
                self._said_before = self._of_fit() | {name: value}
            else:
                setattr(self, row.now, row.joined(getattr(self, row.now), value))

    def _of_fit(self) -> dict[str, Any]:
        """Arguments of ``fit`` that were given to the constructor, as in earlier versions."""
        return dict(vars(self).get("_said_before", {}))

    def __sklearn_clone__(self) -> Self:
        twin: Self = super().__sklearn_clone__()
        if self._of_fit():
            twin._said_before = self._of_fit()
        return twin


__all__ = [
    "BEFORE",
    "DEFAULT_BUDGET",
    "VALUES",
    "Before",
    "Settings",
    "as_budget",
    "as_units",
    "constraints_of",
    "control_of",
    "names_of",
    "with_earlier_names",
]
