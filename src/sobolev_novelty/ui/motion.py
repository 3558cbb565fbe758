"""``sobolev fit --time``: the equations of motion of the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sobolev_novelty.core.digits import json_value
from sobolev_novelty.core.output import check_output, write_or_rescue
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.tables.columns import input_columns, unusable_columns, usable_columns
from sobolev_novelty.tables.files import read_table
from sobolev_novelty.tables.format import TableFormat

if TYPE_CHECKING:
    from sobolev_novelty.dynamics.regressor import DynamicsRegressor


@dataclass(frozen=True, slots=True)
class MotionSummary:
    """What ``sobolev fit --time`` tells.

    ``notes``, ``out``, ``problem``: as in :class:`sobolev_novelty.ui.fit.FitSummary`.
    """

    #: One per state: state, expression (text), complexity, r2_rate, misfit, min_novelty.
    equations: tuple[dict[str, Any], ...]
    checks: tuple[dict[str, Any], ...]  # one per trajectory: errors, lost_at, diverged_at, reason, followed
    text: str  # equations, checks and verdicts in words
    notes: tuple[str, ...]
    out: str | None = None
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        content = asdict(self)
        del content["text"]
        return content

    def __str__(self) -> str:
        return "\n".join([self.text, *(f"Note: {note}" for note in self.notes)])


def refuse_for_trajectories(time: str, **given: object) -> None:
    """Refuse arguments that mean nothing for trajectories, and a time that is not a column."""
    if re.fullmatch(r"[\d.]+", time):
        raise ParameterError(
            f"'time' names the column of time. Got {time}. For seconds give 'budget'.", arguments=("time", "budget")
        )
    for name, value in given.items():
        if value is not None:
            raise ParameterError(
                f"'{name}' must be left out with a column of time: every other column is a state with an equation of "
                f"its own. Got {value}."
            )


def fit_trajectories(
    model: DynamicsRegressor,
    data: str | Path | IO[bytes],
    *,
    written: TableFormat | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    out: Path | None = None,
    verbose: bool | None = None,
) -> MotionSummary:
    """Fit equations of motion to a table.

    ``model``: its ``time`` and ``trajectory`` name columns of the table.
    ``data``, ``written``: see :func:`sobolev_novelty.tables.files.read_table`.
    ``features``: columns that are states; by default all numeric columns but those of time and trajectory, and
    ``drop``.
    ``out``: where the model goes; JSON.
    ``verbose``: see :meth:`SymbolicRegressor.fit`.
    """
    import pandas as pd

    if out is not None:
        check_output(out, (".json",))
    table = read_table(data, written)
    own = [] if model.trajectory is None else [model.trajectory]
    others = {"time": [model.time], "trajectory": own, "drop": drop}
    columns = input_columns(table, features=features, others=others)
    kept, notes = usable_columns(table, columns, unusable_columns([table], columns if features is None else []))
    frame = pd.DataFrame({name: table.numbers(name) for name in [model.time, *kept]})
    for name in own:
        frame[name] = table.frame[name].to_numpy()
    model.fit(frame, verbose=verbose)
    where, problem = (None, "") if out is None else write_or_rescue(out, model.save)
    return replace(_summary(model, table.notes + notes), out=where, problem=problem)


def _summary(model: DynamicsRegressor, notes: tuple[str, ...]) -> MotionSummary:
    table = model.equations_.assign(expression=model.equations_["expression"].astype(str))
    equations = tuple({str(name): json_value(value) for name, value in row.items()} for row in table.to_dict("records"))
    checks = tuple({**asdict(check), "followed": check.is_followed} for check in model.checks_)
    return MotionSummary(equations, checks, model.report(), notes)
