"""PySR: read from what it leaves behind, a table of equations; Julia is never started.

``hall_of_fame.csv`` has the columns Complexity, Loss and Equation; ``equations_`` of a fitted model has them in lower
case.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.parsing import parse


@dataclass(frozen=True, slots=True)
class FrontEntry:
    """One line of a hall of fame."""

    complexity: int
    loss: float
    expression: Expression


def read_hall_of_fame(path: str | Path, *, names: Sequence[str] | None = None) -> tuple[FrontEntry, ...]:
    """All equations of a ``hall_of_fame.csv``, in its order: simplest first.

    Parameters
    ----------
    path : path
        The file, or the run's folder that holds it.
    names : sequence of str, optional
        The variables there are; anything else is then an error. ``x0, x1, …`` by default.
    """
    path = Path(path)
    file = path / "hall_of_fame.csv" if path.is_dir() else path
    try:
        with file.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
    except FileNotFoundError as error:
        raise DataError(f"There is no hall of fame at '{file}'.") from error
    return tuple(_entry({str(key).lower(): value for key, value in row.items()}, names, str(file)) for row in rows)


def from_pysr(model: Any, *, index: int | None = None, names: Sequence[str] | None = None) -> Expression:
    """The chosen equation of a fitted ``PySRRegressor``, or the one at ``index`` of its front.

    Only ``equations_`` and ``get_best()`` are used: the model may be any object that has them.
    """
    equations = getattr(model, "equations_", None)
    if equations is None or not hasattr(equations, "iloc"):
        raise ParameterError("'model' must be a fitted PySR model with one target: it has no table 'equations_'.")
    row = equations.iloc[index] if index is not None else model.get_best()
    return _entry({str(key): row[key] for key in ("complexity", "loss", "equation")}, names, "equations_").expression


def best_entry(entries: Sequence[FrontEntry]) -> FrontEntry:
    """PySR's own choice: among losses within 1.5 times the least, the largest drop of log-loss per node."""
    if not entries:
        raise DataError("The hall of fame is empty. Let PySR run longer.")
    import math

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


def _entry(row: dict[str, Any], names: Sequence[str] | None, source: str) -> FrontEntry:
    missing = {"complexity", "loss", "equation"} - set(row)
    if missing:
        raise DataError(f"'{source}' lacks the column(s) {', '.join(sorted(missing))}. Is it a hall of fame of PySR?")
    expression = parse(str(row["equation"]), names=names, variables="names" if names is not None else "x0")
    return FrontEntry(int(row["complexity"]), float(row["loss"]), expression)
