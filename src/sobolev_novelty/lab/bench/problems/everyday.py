r"""Everyday tables: laws of a laboratory, few rows, noise, idle columns, levels, decades, replicates.

The suites ``everyday`` and ``everyday_held`` are two halves of the laws of ``everyday.toml``: one for building, one
that is looked at once. The tables are a fractional design: every law gets as many cells of the full product

    noise × rows × idle columns × how inputs are set

as every other, drawn by :data:`DESIGN_SEED`. Besides, every law whose inputs can span decades has a table of 200 rows
over three decades with 1 % relative noise (:data:`DECADES_CELL`). The name of a task says its cell:
``tide-constant30-n40-idle3-levels``.

Noise has a known standard deviation: a share of the target's spread (constant), or of its value in each row (relative).
Test rows have no noise and lie in the box that inputs are drawn from, levels included: a law is asked between them.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.bench.problems.tasks import Law, _own_table

EVERYDAY = ("everyday", "everyday_held")
#: Seed of the design, and tables of the fractional design in each half.
DESIGN_SEED, N_TABLES = 2611, 1200
NOISES = {"constant10": 0.1, "constant30": 0.3, "relative1": 0.01, "relative10": 0.1}
ROWS = (15, 40, 120, 250, 1000)
IDLE = (0, 3, 10)
SETTINGS = ("uniform", "decades", "levels", "replicates")
#: Rows and noise of the table over decades that every law has besides.
DECADES_CELL = ("relative1", 200, 0, "decades")
DECADES = 3.0
#: Levels of an input, and times that a row is repeated.
LEVELS, REPLICATES = (4, 8), (3, 5)
N_TEST = 1000


@dataclass(frozen=True, slots=True)
class EverydayLaw(Law):
    """A law and how its inputs may be set."""

    name: str
    formula: str
    variables: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]  # tuple of (float, float): of a uniform table
    lowest: tuple[float | None, ...]  # where three decades of an input begin; None for one that cannot span them

    @property
    def is_held(self) -> bool:
        """Whether the law is in the half that is looked at once."""
        order = sorted(_laws(), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        return order.index(self.name) % 2 == 1


@dataclass(frozen=True, slots=True)
class EverydayTask:
    """One table to be drawn."""

    law: EverydayLaw
    noise: str  # one of :data:`NOISES`
    n_rows: int
    n_idle: int
    setting: str  # one of :data:`SETTINGS`

    @property
    def name(self) -> str:
        """The task's name in stores."""
        return f"{self.law.name}-{self.noise}-n{self.n_rows}-idle{self.n_idle}-{self.setting}"

    @property
    def is_relative(self) -> bool:
        """Whether the noise is a share of the value in each row."""
        return self.noise.startswith("relative")

    def sigma(self, truth: FloatArray, spread: float) -> FloatArray:
        """Standard deviation of the noise where the law has these values."""
        share = NOISES[self.noise]
        return share * np.abs(truth) if self.is_relative else np.full(len(truth), share * spread)


@dataclass(frozen=True, slots=True, eq=False)
class EverydayTable:
    """A drawn table.

    ``X``, ``y``: rows with noise.
    ``X_test``, ``y_test``: rows without.
    """

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    columns: tuple[str, ...]  # ``idle_0`` … are columns that the law does not know
    sigma: FloatArray  # shape (n_rows,): standard deviation of each row's noise. For judges.
    spread: float  # standard deviation of the law in the test rows


@cache
def _laws() -> Mapping[str, EverydayLaw]:
    found = {}
    for name, row in _own_table("everyday.toml").items():
        inputs = [tuple(map(float, limits)) for limits in row["inputs"].values()]
        ranges = tuple((low, high) for low, high, *_ in inputs)
        lowest = tuple(rest[0] if rest else None for _, _, *rest in inputs)
        found[name] = EverydayLaw(name, row["formula"], tuple(row["inputs"]), ranges, lowest)
    return found


@cache
def everyday_tasks(suite: str) -> tuple[EverydayTask, ...]:
    """The tables of a half: those of the fractional design, then one over decades for each law that allows it."""
    if suite not in EVERYDAY:
        raise ParameterError(f"'suite' must be one of {', '.join(EVERYDAY)}. Got '{suite}'.")
    laws = [law for law in _laws().values() if law.is_held == (suite == EVERYDAY[1])]
    rng = np.random.default_rng([DESIGN_SEED, EVERYDAY.index(suite)])
    cells = list(product(NOISES, ROWS, IDLE, SETTINGS))
    tasks: list[EverydayTask] = []
    for law in laws:
        allowed = [cell for cell in cells if cell[3] != "decades" or any(law.lowest)]
        chosen = np.sort(rng.choice(len(allowed), N_TABLES // len(laws), replace=False))
        tasks += [EverydayTask(law, *allowed[k]) for k in chosen]
    tasks += [EverydayTask(law, *DECADES_CELL) for law in laws if any(law.lowest)]
    return tuple(tasks)


def everyday_task(suite: str, name: str) -> EverydayTask:
    """The table of this name."""
    for task in everyday_tasks(suite):
        if task.name == name:
            return task
    raise ParameterError(f"The suite '{suite}' has no table '{name}'.")


def drawn_table(task: EverydayTask, seed: int) -> EverydayTable:
    """The rows of a table: a function of its name and the seed."""
    rng = np.random.default_rng([seed, zlib.crc32(task.name.encode())])
    law, n_idle = task.law, task.n_idle
    sources = rng.integers(0, len(law.variables), n_idle)
    X, X_test = (_inputs(task, n, rng, sources, setting=setting) for n, setting in _sizes(task))
    d = len(law.variables)
    truth, y_test = law.values(X[:, :d]), law.values(X_test[:, :d])
    spread = float(np.std(y_test))
    sigma = task.sigma(truth, spread)
    y = truth + sigma * rng.normal(size=len(truth))
    places = rng.permutation(d + n_idle)
    names = np.array([*law.variables, *(f"idle_{k}" for k in range(n_idle))])[places]
    return EverydayTable(X[:, places], y, X_test[:, places], y_test, tuple(names.tolist()), sigma, spread)


def _sizes(task: EverydayTask) -> tuple[tuple[int, str], tuple[int, str]]:
    return (task.n_rows, task.setting), (N_TEST, "decades" if task.setting == "decades" else "uniform")


def _inputs(task: EverydayTask, n: int, rng: np.random.Generator, sources: np.ndarray, *, setting: str) -> FloatArray:
    """Columns of the law, then idle ones, which are set as one of the law's columns is."""
    places = [*range(len(task.law.variables)), *sources.tolist()]
    if setting == "replicates":
        times = int(rng.integers(REPLICATES[0], REPLICATES[1], endpoint=True))
        few = np.column_stack([_column(task.law, k, -(-n // times), rng, "uniform") for k in places])
        return np.repeat(few, times, axis=0)[:n]
    return np.column_stack([_column(task.law, k, n, rng, setting) for k in places])


def _column(law: EverydayLaw, k: int, n: int, rng: np.random.Generator, setting: str) -> FloatArray:
    (low, high), lowest = law.ranges[k], law.lowest[k]
    if setting == "decades" and lowest is not None:
        return np.asarray(lowest * 10.0 ** rng.uniform(0.0, DECADES, n))
    if setting == "levels":
        m = int(rng.integers(LEVELS[0], LEVELS[1], endpoint=True))
        # Doses are doubled from one to the next, temperatures raised by as many degrees.
        is_geometric = lowest is not None and bool(rng.integers(2))
        levels = np.geomspace(max(low, high / 2.0 ** (m - 1)), high, m) if is_geometric else np.linspace(low, high, m)
        return np.asarray(levels[rng.integers(m, size=n)])
    return rng.uniform(low, high, n)
