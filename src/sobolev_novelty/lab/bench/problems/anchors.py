r"""Benchmarks beyond SRBench, where their facts are at hand: FastSRB and LSR-Synth.

The files are ``$SOBOLEV_DATA/anchors/fastsrb.json`` and ``lsr_synth.json``: formulas, ranges and how trajectories are
made, extracted from the public repositories that the files name. They are not part of the package.

*FastSRB* draws each input log-uniformly over decades (some uniformly, some as integers), in SI units. Rows where the
law is not defined are drawn again; other constraints of the source are not applied.

*LSR-Synth* takes 5,000 equally spaced points of a trajectory,

.. math:: \dot s = f(t, s), \qquad \ddot x = f(x, t, \dot x), \qquad \sigma = f(\epsilon, T),\ T = 273 + 500\,\epsilon,

in single precision. The last tenth is the source's test of extrapolation and is left out here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError
from sobolev_novelty.kernels import compile_programs, derivatives
from sobolev_novelty.lab.bench.problems.tasks import Law

ANCHORS = ("fastsrb", "lsr_synth")
#: Points of an LSR-Synth trajectory, and the share of them that is not extrapolation.
N_POINTS, KEPT_SHARE = 5000, 0.9
#: Times more rows than asked for that are drawn at most where a law is not defined everywhere.
MAX_REDRAWS = 100


@dataclass(frozen=True, slots=True, eq=False)
class AnchorTask(Law):
    """A law with its own way of making data."""

    name: str
    formula: str
    variables: tuple[str, ...]
    facts: Mapping[str, Any]  # what the file says of the inputs

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Inputs and targets without noise; of a trajectory ``n_samples`` points at most, in their order."""
        if "variables" in self.facts:
            return self._drawn(n_samples, rng)
        X, y = (rows[: int(KEPT_SHARE * N_POINTS)] for rows in _trajectory(self.name))
        if n_samples < len(y):
            rows = np.sort(rng.choice(len(y), size=n_samples, replace=False))
            X, y = X[rows], y[rows]
        return X.copy(), y.copy()

    def extrapolation(self) -> tuple[FloatArray, FloatArray]:
        """The last tenth of a trajectory of LSR-Synth, X (n_samples, n_features) and y."""
        X, y = (rows[int(KEPT_SHARE * N_POINTS) :] for rows in _trajectory(self.name))
        return X.copy(), y.copy()

    def _drawn(self, n_samples: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        rows: list[FloatArray] = []
        found = 0
        for _ in range(MAX_REDRAWS):
            X = np.column_stack([_column(variable, n_samples, rng) for variable in self.facts["variables"]])
            X = X[np.isfinite(self.values(X))]
            rows.append(X)
            found += len(X)
            if found >= n_samples:
                break
        X = np.concatenate(rows)[:n_samples]
        return X, self.values(X)


def anchor_tasks(suite: str) -> tuple[AnchorTask, ...]:
    """The tasks of ``"fastsrb"`` or ``"lsr_synth"``, in the order of the file."""
    return _tasks(suite, anchor_file(suite))


def anchor_file(suite: str) -> Path:
    """Where a suite's facts are; an error that says what to do where they are not."""
    return data_file(suite, f"{suite}.json")


def data_file(suite: str, name: str) -> Path:
    """A file of the folder ``anchors``; an error that says what to do where it is not."""
    folder = os.environ.get("SOBOLEV_DATA")
    path = Path(folder or ".") / "anchors" / name
    if folder is None or not path.is_file():
        raise DataError(
            f"The suite '{suite}' needs the file anchors/{name}, which is not part of the package. "
            "Set SOBOLEV_DATA to a folder that has it."
        )
    return path


@cache
def _tasks(suite: str, path: Path) -> tuple[AnchorTask, ...]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if suite == "fastsrb":
        return tuple(
            AnchorTask(f"fastsrb_{row['id']}", row["formula"], tuple(v["id"] for v in row["variables"]), row)
            for row in content["equations"]
        )
    return tuple(
        AnchorTask(f"lsr_{row['name']}", row["formula"], tuple(row["inputs"]), {**content["laws"][row["split"]], **row})
        for row in content["problems"]
    )


def _column(variable: Mapping[str, Any], n: int, rng: np.random.Generator) -> FloatArray:
    low, high = float(variable["low"]), float(variable["high"])
    if variable["law"] == "int":
        values = rng.integers(int(low), int(high), n, endpoint=True).astype(np.float64)
    elif variable["law"] == "log":
        values = np.exp(rng.uniform(np.log(low), np.log(high), n))
    else:
        values = rng.uniform(low, high, n)
    return values * rng.choice([-1.0, 1.0], n) if variable["sign"] == "pos_neg" else values


@cache
def _trajectory(name: str) -> tuple[FloatArray, FloatArray]:
    task = next(task for task in anchor_tasks("lsr_synth") if task.name == name)
    columns = _strain(task) if "epsilon" in task.facts else _motion(task)
    X = np.column_stack([columns[variable] for variable in task.variables])
    y = task.values(X)
    return X.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)


def _strain(task: AnchorTask) -> dict[str, FloatArray]:
    low, high = task.facts["epsilon"]
    epsilon = np.linspace(low, high, N_POINTS)
    return {"epsilon": epsilon, "T": 273.0 + 500.0 * epsilon}


def _motion(task: AnchorTask) -> dict[str, FloatArray]:
    """Time and states; the last state's rate is the formula, and that of a position the velocity."""
    from scipy.integrate import solve_ivp

    begin, end = task.facts["t"]
    t = np.linspace(begin, end, N_POINTS)
    states = dict(task.facts["initial"])
    names = tuple(states)
    programs = compile_programs([task.expression], ("t", *names))

    def rates(time: float, s: FloatArray) -> list[float]:
        with np.errstate(all="ignore"):
            rate = float(derivatives(programs, np.array([[time], *([value] for value in s)]))[0, 0, 0])
        return [*s[1:].tolist(), rate]

    found = solve_ivp(rates, (t[0], t[-1]), list(states.values()), t_eval=t, rtol=1e-9, atol=1e-11)
    return {"t": found.t, **dict(zip(names, found.y, strict=True))}
