"""What the arguments of a regressor and of its engines may be: the table that ``fit`` looks at before it begins.

Constructors of estimators only store; :func:`check_arguments` is the one call at the start of ``fit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sobolev_novelty.core.parameters import (
    CORES,
    DIGITS,
    FLAG,
    FUNCTION,
    INDEX,
    NOTHING,
    PATH,
    SECONDS,
    UNITS,
    WORD,
    WORDS,
    Kind,
    check,
    check_stored,
    instance,
    list_of,
    one_of,
    read,
)
from sobolev_novelty.price.noise import KINDS
from sobolev_novelty.search.contract.engine import Engine, GuessSource, SobolevGuidance
from sobolev_novelty.search.islands.cores import Islands
from sobolev_novelty.search.loop.loop import Budget, Callback
from sobolev_novelty.search.model.rules import RULES
from sobolev_novelty.search.model.storage import StoredEngine
from sobolev_novelty.search.problem.constraints import Constraints, Units

GUESSES = (
    instance("a list of equations", list, tuple)
    | Kind("the name of an engine", WORD.holds)
    | Kind("a source of guesses", lambda v: isinstance(v, GuessSource) and not isinstance(v, type))
)

#: Argument of :class:`~sobolev_novelty.search.model.regressor.SymbolicRegressor` -> what it may be.
REGRESSOR = {
    "engine": WORD | instance("an Engine such as MCTS()", Engine, StoredEngine),
    "novelty": FLAG | instance("a SobolevGuidance", SobolevGuidance),
    "budget": instance("a Budget, such as Budget(max_evaluations=5000)", Budget) | SECONDS | NOTHING,
    "operators": list_of(WORD, "a list of names of operators, such as ['add', 'mul', 'sin']", at_least=1) | NOTHING,
    "constraints": instance("Constraints, such as Constraints(max_complexity=20)", Constraints) | NOTHING,
    "loss": Kind("'squared', 'absolute' or 'huber'", WORD.holds) | FUNCTION,
    "guesses": GUESSES | NOTHING,
    "select": one_of(*RULES) | FUNCTION,
    "noise": one_of(*KINDS),
    "units": UNITS | instance("Units, such as Units({'v': 'm/s'}, target='J')", Units) | NOTHING,
    "parallel": CORES | instance("Islands, such as Islands(4)", Islands) | NOTHING,
}

#: The same of its methods.
METHODS: dict[str, dict[str, Kind]] = {
    "fit": {
        "x_sigma": read("a number of at least 0 per input: the standard deviation of its errors"),
        "warm_start": FLAG,
        "checkpoint": PATH | NOTHING,
        "callback": FUNCTION | NOTHING,
        "verbose": FLAG | NOTHING,
    },
    "predict": {},
    "score": {},
    "latex": {"precision": DIGITS | NOTHING},
    "latex_table": {"precision": DIGITS},
    "sympy": {},
    "choose": {"index": INDEX},
    "novelty_report": {},
    "intervals": {},
    "save": {},
    "load": {},
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What one call of ``fit`` was given beside the table."""

    sample_weight: Any = None
    sigma: Any = None
    x_sigma: Any = None
    warm_start: bool = False
    checkpoint: str | Path | None = None
    callback: Callback | None = None
    verbose: bool | None = None

    def after(self, said: Mapping[str, Any]) -> Asked:
        """With what a constructor was given for every call, as in earlier versions, where this call says nothing."""
        here = {name: said[name] for name in said if getattr(self, name) is None or getattr(self, name) is False}
        for name, value in here.items():
            check(name, value, {**WORDS, **METHODS["fit"]}[name])
        return replace(self, **here)


def check_arguments(regressor: Any) -> None:
    """Refuse arguments of a regressor, and of the engine it was given, that are not of their kinds."""
    check_stored(regressor)
    if isinstance(regressor.engine, Engine):
        check_stored(regressor.engine)


__all__ = ["METHODS", "REGRESSOR", "Asked", "check_arguments"]
