"""Trajectories: times and states, checked once at the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.parameters import POSITIVE, check
from sobolev_novelty.core.sample import FloatArray, as_sample, numeric_array
from sobolev_novelty.errors import DataError

#: Fewer points do not determine a derivative.
MIN_POINTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """States at increasing times.

    Parameters
    ----------
    t : ndarray of shape (n_points,)
    x : ndarray of shape (n_points, n_states)
    names : tuple of str
        One name per state.
    """

    t: FloatArray
    x: FloatArray
    names: tuple[str, ...]


def as_trajectories(
    X: Any, t: Any = None, *, time: str = "t", trajectory: str | None = None
) -> tuple[tuple[Trajectory, ...], tuple[str, ...]]:
    """Check tables of states.

    ``X``: shape (n_points, n_states), DataFrame, or list of them, one table per trajectory.
    ``t``: shape (n_points,), float, or list of them, times, or the step between rows; not needed for DataFrames that
    have the column ``time``.
    ``time``: column of time in a DataFrame.
    ``trajectory``: column that tells the trajectories of one DataFrame apart.

    Returns the trajectories, and notes on rows that were left out.
    """
    tables = _tables(X, trajectory)
    times = list(t) if isinstance(t, list | tuple) and len(tables) > 1 else [t] * len(tables)
    if len(times) != len(tables):
        raise DataError(f"'t' must have one entry per trajectory, {len(tables)}. Got {len(times)}.")
    notes: list[str] = []
    found = []
    for k, (table, own) in enumerate(zip(tables, times, strict=True)):
        where = f"Trajectory {k}" if len(tables) > 1 else "The trajectory"
        one, n_left_out = _one(table, own, time, where)
        found.append(one)
        if n_left_out:
            notes.append(f"{where}: {n_left_out} rows with a missing value were left out.")
    names = found[0].names
    for k, one in enumerate(found):
        if one.names != names:
            raise DataError(
                f"Trajectory {k} has the states {', '.join(one.names)}, the first one {', '.join(names)}. "
                "Give every table the same columns in the same order."
            )
    return tuple(found), tuple(notes)


def _tables(X: Any, trajectory: str | None) -> list[Any]:
    if trajectory is not None:
        if not hasattr(X, "groupby") or trajectory not in X.columns:
            raise DataError(f"'trajectory' must be a column of 'X', which is a DataFrame then. Got {trajectory!r}.")
        return [rows.drop(columns=[trajectory]) for _, rows in X.groupby(trajectory, sort=False)]
    if isinstance(X, list | tuple) and len(X) and (hasattr(X[0], "columns") or np.ndim(X[0]) == 2):
        return list(X)
    if isinstance(X, np.ndarray) and X.ndim == 3:
        return list(X)
    return [X]


def _one(table: Any, t: Any, time: str, where: str) -> tuple[Trajectory, int]:
    if t is None and hasattr(table, "columns"):
        if time not in table.columns:
            raise DataError(
                f"{where} has no column '{time}'. Name the column of time, or give 't'. Its columns: "
                f"{', '.join(map(str, table.columns))}.",
                arguments=("time",),
            )
        t = numeric_array(table[time], time)
        table = table.drop(columns=[time])
    sample = as_sample(table)
    x = sample.X.T
    if t is None:
        raise DataError("'t' is missing: give the times of the rows, or the step between them.")
    times = numeric_array(t, "t")
    if times.ndim == 0:
        check("t", times.item(), POSITIVE)
    times = np.asarray(np.arange(len(x)) * float(times) if times.ndim == 0 else times.reshape(-1), dtype=np.float64)
    if len(times) != len(x):
        raise DataError(f"'t' must have one value per row, {len(x)}. Got {len(times)}.")
    complete = np.isfinite(times) & np.isfinite(x).all(axis=1)
    times, x = times[complete], x[complete]
    if len(times) < MIN_POINTS:
        raise DataError(f"{where} has {len(times)} complete rows. At least {MIN_POINTS} are needed.")
    steps = np.diff(times)
    if not (steps > 0.0).all():
        row = int(np.argmin(steps > 0.0)) + 1
        raise DataError(
            f"{where}: times must increase; row {row} is not later than the row before it. Sort the rows by time, and "
            "give several trajectories as a list of tables or with the column that tells them apart."
        )
    return Trajectory(times, np.ascontiguousarray(x), sample.names), int((~complete).sum())


def state_rows(X: Any, names: Sequence[str], time: str | None = None) -> FloatArray:
    """Rows of states, shape (n_rows, n_states); a DataFrame's columns by their names."""
    if hasattr(X, "columns"):
        wanted = [*names] if time is None else [*names, time]
        missing = [name for name in wanted if name not in X.columns]
        if missing:
            raise DataError(f"'X' lacks the columns {', '.join(missing)}.")
        X = X[wanted]
    rows = np.asarray(as_sample(X).X.T)
    n = len(names) + (time is not None)
    if rows.shape[1] != n:
        raise DataError(f"'X' must have {n} columns: {', '.join(names)}. Got {rows.shape[1]}.")
    return rows
