"""What the arguments of a regressor and of its engines may be: the table that ``fit`` looks at before it begins.

Constructors of estimators only store; :func:`check_arguments` is the one call at the start of ``fit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sobolev_novelty.core.parameters import (
    CORES,
    COUNT,
    DIGITS,
    FLAG,
    FUNCTION,
    INDEX,
    NOTHING,
    PATH,
    SECONDS,
    TEXT,
    UNITS,
    WORD,
    Kind,
    check_stored,
    instance,
    list_of,
    one_of,
    read,
    whole,
)
from sobolev_novelty.price.noise import KINDS
from sobolev_novelty.search.choose.choice import RULES
from sobolev_novelty.search.contract.engine import Engine, GuessSource, SobolevGuidance
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.storage import StoredEngine

CLIENT = Kind(
    "a dask.distributed.Client",
    lambda v: not isinstance(v, type) and callable(getattr(v, "scheduler_info", None)),
)


def dictionary(example: str) -> Kind:
    """A dictionary; what is in it is read by ``search.control``, which names the entry."""
    return Kind(f"a dictionary such as {example}", lambda v: isinstance(v, Mapping))


GUESSES = (
    instance("a list of equations", list, tuple)
    | Kind("the name of an engine", WORD.holds)
    | Kind("a source of guesses", lambda v: isinstance(v, GuessSource) and not isinstance(v, type))
)

#: Argument of :class:`~sobolev_novelty.search.model.regressor.SymbolicRegressor` -> what it may be.
REGRESSOR = {
    "engine": WORD | instance("an Engine such as MCTS()", Engine, StoredEngine),
    "novelty": FLAG | instance("a SobolevGuidance", SobolevGuidance),
    "budget": instance("a Budget, such as Budget(max_evaluations=5000)", Budget) | NOTHING,
    "timeout": SECONDS | NOTHING,
    "operators": list_of(WORD, "a list of names of operators, such as ['add', 'mul', 'sin']", at_least=1) | NOTHING,
    "max_complexity": COUNT | NOTHING,
    "operator_costs": dictionary("{'sin': 3}") | NOTHING,
    "nesting": dictionary("{'sin': {'cos': 0}}") | NOTHING,
    "max_depth": COUNT | NOTHING,
    "monotone": dictionary("{'x0': 'increasing'}") | NOTHING,
    "loss": Kind("'squared', 'absolute' or 'huber'", WORD.holds) | FUNCTION,
    "template": Kind("text of at most 2,000 characters", lambda v: WORD.holds(v) and len(v) <= 2000) | NOTHING,
    "guesses": GUESSES | NOTHING,
    "select": one_of(*RULES) | FUNCTION,
    "units": UNITS | NOTHING,
    "y_units": TEXT | NOTHING,
    "constant_units": FLAG,
    "warm_start": FLAG,
    "n_jobs": CORES | NOTHING,
    "islands": whole(1, 2**20) | NOTHING,
    "client": CLIENT | NOTHING,
    "verbose": FLAG | NOTHING,
    "noise": one_of(*KINDS),
    "x_sigma": read("a number of at least 0 per input: the standard deviation of its errors"),
}

#: The same of its methods.
METHODS: dict[str, dict[str, Kind]] = {
    "fit": {"checkpoint": PATH | NOTHING, "callback": FUNCTION | NOTHING},
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


def check_arguments(regressor: Any) -> None:
    """Refuse arguments of a regressor, and of the engine it was given, that are not of their kinds."""
    check_stored(regressor)
    if isinstance(regressor.engine, Engine):
        check_stored(regressor.engine)


__all__ = ["METHODS", "REGRESSOR", "check_arguments"]
