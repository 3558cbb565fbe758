"""PySR: read from what it leaves behind, a table of equations; Julia is never started.

``hall_of_fame.csv`` has the columns Complexity, Loss and Equation; ``equations_`` of a fitted model has them in lower
case, and a model with several targets has a list of such tables.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import DataError, ParameterError, ParseError
from sobolev_novelty.language.convert import from_sympy
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.language.peers.adapter import FrontEntry

_COLUMNS = ("complexity", "loss", "equation")


def read_hall_of_fame(path: str | os.PathLike[str], *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """All equations of a ``hall_of_fame.csv``, in its order: simplest first.

    ``path``: the file, or the run's folder that holds it.
    ``names``: the variables there are; anything else is then an error. ``x0, x1, …`` by default.
    """
    path = Path(path)
    file = path / "hall_of_fame.csv" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError(f"There is no hall of fame at '{file}'.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"'{file}' is not text: {error.reason}. Is it a hall of fame of PySR?") from error
    return tuple(_entry(row, names, str(file)) for row in _rows(text))


def is_hall_of_fame(text: str) -> bool:
    """Whether this is the text of a ``hall_of_fame.csv``: its first line names the three columns."""
    head = text[:200].partition("\n")[0].lower()
    return set(_COLUMNS) <= {name.strip().strip('"') for name in head.split(",")}


def equation_of_hall_of_fame(text: str, row: int | None = None) -> tuple[str, int, int]:
    """Of the text of a hall of fame: an equation as it stands, its row from 0, and how many there are.

    Without ``row`` it is the equation that PySR would choose.
    """
    rows = _rows(text)
    if row is None:
        numbers = [_numbers(row, "the hall of fame") for row in rows]
        entries = [FrontEntry(*pair, Expression.of(float(k))) for k, pair in enumerate(numbers)]
        row = int(best_entry(entries).expression.constants[0])
    if not 0 <= row < len(rows):
        raise ParameterError(f"'row' must be an equation of the hall of fame, 0 to {len(rows) - 1}. Got {row}.")
    return str(rows[row]["equation"]), row, len(rows)


def from_pysr(model: Any, *, index: int | None = None, names: Sequence[str] | None = None) -> Expression:
    """The chosen equation of a fitted ``PySRRegressor``, or the one at ``index`` of its front.

    Only ``equations_`` and ``get_best()`` are used: the model may be any object that has them.
    """
    equations = getattr(model, "equations_", None)
    if equations is None or not hasattr(equations, "iloc"):
        raise ParameterError("'model' must be a fitted PySR model with one target: it has no table 'equations_'.")
    row = equations.iloc[index] if index is not None else model.get_best()
    return _entry(row, names, "equations_", _own_names(model)).expression


def pysr_front(model: Any, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """Every row of ``equations_``, simplest first."""
    own = _own_names(model)
    return tuple(_entry(row, names, "equations_", own) for row in model.equations_.to_dict("records"))


def pysr_system(model: Any, *, names: Sequence[str] | None = None) -> dict[str, Expression] | None:
    """The chosen equation for every target, as ``y0, y1, …``; None where there is one target."""
    if not isinstance(getattr(model, "equations_", None), list):
        return None
    own = _own_names(model)
    best = model.get_best()
    return {f"y{k}": _entry(row, names, "equations_", own).expression for k, row in enumerate(best)}


def best_entry(entries: Sequence[FrontEntry]) -> FrontEntry:
    """PySR's own choice: among losses within 1.5 times the least, the largest drop of log-loss per node."""
    if not entries:
        raise DataError("The hall of fame is empty. Let PySR run longer.")
    ordered = sorted(entries, key=lambda entry: entry.complexity)
    bound = 1.5 * min(entry.loss for entry in ordered)
    best, best_score = ordered[0], -math.inf
    for before, entry in zip([None, *ordered], ordered, strict=False):
        score = 0.0
        if before is not None and entry.complexity > before.complexity:
            floor = 1e-300  # a loss of exactly zero has no logarithm
            drop = math.log(max(before.loss, floor)) - math.log(max(entry.loss, floor))
            score = drop / (entry.complexity - before.complexity)
        if entry.loss <= bound and score > best_score:
            best, best_score = entry, score
    return best


def _rows(text: str) -> list[dict[str, Any]]:
    try:
        return [{str(k).strip().lower(): v for k, v in row.items()} for row in csv.DictReader(text.splitlines())]
    except csv.Error as error:
        raise DataError(f"The hall of fame cannot be read: {error}. Is it a file of PySR?") from error


def _own_names(model: Any) -> list[str] | None:
    """The names the equations are written in, where the model was fitted on a DataFrame."""
    own = getattr(model, "feature_names_in_", None)
    return None if own is None else [str(name) for name in own]


def _entry(row: Any, names: Sequence[str] | None, source: str, own: Sequence[str] | None = None) -> FrontEntry:
    missing = set(_COLUMNS) - set(row.keys())
    if missing:
        raise DataError(f"'{source}' lacks the column(s) {', '.join(sorted(missing))}. Is it a hall of fame of PySR?")
    try:
        expression = parse(str(row["equation"]), names=own if own is not None else names, dialect="pysr")
    except ParseError:
        # An operator of the user's own is explained by PySR's SymPy form, where the table has one.
        if not hasattr(row.get("sympy_format"), "free_symbols"):
            raise
        expression = from_sympy(row["sympy_format"])
    if own is not None and names is not None and len(own) == len(names):
        expression = expression.rename(dict(zip(own, names, strict=True)))
    return FrontEntry(*_numbers(row, source), expression)


def _numbers(row: Any, source: str) -> tuple[int, float]:
    try:
        return int(float(row["complexity"])), float(row["loss"])
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"'{source}' has a complexity or loss that is not a number: {row['complexity']!r}, {row['loss']!r}. "
            "Is it a hall of fame of PySR?"
        ) from error
