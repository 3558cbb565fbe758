r"""The 133 white-box tasks: formulas that generate their own data.

Notation
--------
``X``     inputs, shape (n_samples, n_features); ``y`` the target
``x, y``  the two states of a Strogatz system, ``f, g`` their rates, ``h`` its time step

The public Strogatz data are not solutions of their equations to integrator accuracy. They come from a fixed-step
simulation that samples the rate of the first state at the start of a step and holds it, and advances the second state
by Bogacki and Shampine's third-order rule. With :math:`r = f(x_k, y_k)`:

.. math::

    x_{k+1} &= x_k + h r, \\
    k_1 &= g(x_k, y_k), \quad
    k_2 = g(x_k + \tfrac{h}{2} r, y_k + \tfrac{h}{2} k_1), \quad
    k_3 = g(x_k + \tfrac{3h}{4} r, y_k + \tfrac{3h}{4} k_2), \\
    y_{k+1} &= y_k + \tfrac{h}{9} (2 k_1 + 3 k_2 + 4 k_3).

This rule gives the published states back to 1e-12; an accurate integration from the same starts is off by up to half of
their range (``lv``), because the held rate is a first-order error. A benchmark must run on the data that others ran on,
so ``sample`` follows the published rule.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, ParameterError, ParseError
from sobolev_novelty.kernels import compile_programs, derivatives
from sobolev_novelty.language.parsing import parse

#: Time between two rows of a Strogatz trajectory, and rows in each.
TIME_STEP = 0.1
N_STEPS = 100
STATES = ("x", "y")


@dataclass(frozen=True, slots=True)
class System:
    """Two coupled rates and the states from which the four published trajectories start."""

    name: str
    rates: tuple[str, str]  # formulas of dx/dt and dy/dt in ``x`` and ``y``
    starts: tuple[tuple[float, float], ...]  # tuple of (float, float): first state of each trajectory


class Law:
    """A formula with the names of its inputs: what all tasks with a known truth have in common."""

    __slots__ = ()
    formula: str
    variables: tuple[str, ...]

    @property
    def expression(self) -> Expression:
        """The truth, in the task's own names: an input called ``e`` is not Euler's number."""
        return parse(self.formula, names=self.variables, variables="names")

    @property
    def positional_expression(self) -> Expression:
        """The truth in the names ``x0, x1, …`` that engines use."""
        return self.expression.rename({name: f"x{k}" for k, name in enumerate(self.variables)})

    def values(self, X: FloatArray) -> FloatArray:
        """The truth at the rows of ``X``."""
        return _values(self.expression, self.variables, X)


@dataclass(frozen=True, slots=True)
class Task(Law):
    """One white-box task."""

    name: str  # its name in PMLB
    formula: str  # the truth, as infix text in ``variables``
    variables: tuple[str, ...]  # names of the columns of ``X``
    #: tuple of (float, float): where each input is drawn from; empty for a Strogatz task.
    ranges: tuple[tuple[float, float], ...] = ()
    system: System | None = None  # the system a Strogatz task belongs to

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Inputs and targets without noise.

        A Feynman task draws ``n_samples`` rows, uniform in its ranges. A Strogatz task has the 400 rows of its four
        trajectories and no more: it returns all of them, or, where fewer are asked for, ``n_samples`` of them drawn
        without replacement, in their order.

        Returns ``X``: shape (n_samples, n_features),
        and ``y``: shape (n_samples,).
        """
        if n_samples < 1:
            raise ParameterError(f"'n_samples' must be at least 1. Got {n_samples}.")
        if self.system is None:
            low, high = np.array(self.ranges, dtype=np.float64).T
            X = rng.uniform(low, high, size=(n_samples, len(low)))
        else:
            X = trajectories(self.system)
            if n_samples < len(X):
                X = X[np.sort(rng.choice(len(X), size=n_samples, replace=False))]
        return X, self.values(X)


def _own_table(file: str) -> dict[str, Any]:
    return tomllib.loads(
        resources.files("sobolev_novelty.lab.bench.problems").joinpath(file).read_text(encoding="utf-8")
    )


def task_units(name: str) -> dict[str, Any]:
    """The units of a Feynman task, as :class:`~sobolev_novelty.search.SymbolicRegressor` takes them."""
    try:
        row = _own_table("feynman_units.toml")[name.removeprefix("feynman_")]
    except KeyError:
        raise ParameterError(f"The units of the task '{name}' are not known: 'with_units' is for feynman_*.") from None
    return {"units": {f"x{k}": unit for k, unit in enumerate(row["inputs"].values())}, "y_units": row["target"]}


@cache
def whitebox_tasks() -> tuple[Task, ...]:
    """All 133 tasks: 119 Feynman, then 14 Strogatz, in a fixed order."""
    table = _own_table("whitebox.toml")
    tasks = [
        Task(
            f"feynman_{name}",
            row["formula"],
            tuple(row["inputs"]),
            tuple((float(low), float(high)) for low, high in row["inputs"].values()),
        )
        for name, row in table["feynman"].items()
    ]
    for name, row in table["strogatz"].items():
        starts = tuple((float(x), float(y)) for x, y in row["starts"])
        system = System(name, (row["x"], row["y"]), starts)
        tasks += [
            Task(f"strogatz_{name}{k}", formula, STATES, system=system)
            for k, formula in enumerate(system.rates, start=1)
        ]
    return tuple(tasks)


def formula_tasks(path: str | Path) -> tuple[Task, ...]:
    """Tasks from a TOML file with formulas of your own.

    .. code-block:: toml

        [manning]
        formula = "R**(2/3) * sqrt(S) / n"
        inputs = { R = [0.5, 5.0], S = [0.1, 2.0], n = [1.0, 3.0] }
    """
    table = read_toml(Path(path), "file of formulas")
    return tuple(_formula_task(name, row) for name, row in table.items())


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """A TOML file of the user's; ``kind`` says what it was meant to be."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"There is no {kind} '{path}'.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(
            f"'{path}' is not TOML in UTF-8: {error}. Correct that line, or save the file again."
        ) from error


def _formula_task(name: str, row: object) -> Task:
    if not isinstance(row, dict) or set(row) != {"formula", "inputs"} or not isinstance(row["inputs"], dict):
        raise DataError(f"[{name}] needs 'formula' and 'inputs' such as {{ x = [0.0, 1.0] }}, and nothing else.")
    for variable, limits in row["inputs"].items():
        if not (isinstance(limits, list) and len(limits) == 2 and limits[0] < limits[1]):
            raise DataError(f"[{name}] must give '{variable}' a range [low, high]. Got {limits!r}.")
    task = Task(
        name,
        str(row["formula"]),
        tuple(row["inputs"]),
        tuple((float(low), float(high)) for low, high in row["inputs"].values()),
    )
    try:
        _ = task.expression
    except ParseError as error:
        raise DataError(f"[{name}] has a formula that cannot be read: {error}") from error
    return task


def whitebox_task(name: str) -> Task:
    """The white-box task of this name."""
    for task in whitebox_tasks():
        if task.name == name:
            return task
    raise ParameterError(f"'{name}' is not a white-box task. 'whitebox_tasks()' lists all {len(whitebox_tasks())}.")


@cache
def _trajectories(system: System) -> FloatArray:
    f, g = (parse(rate) for rate in system.rates)
    h = TIME_STEP
    z = np.array(system.starts)  # shape (n_starts, 2): all trajectories advance together
    rows = [z]
    for _ in range(N_STEPS - 1):
        held = _values(f, STATES, z)
        k1 = _values(g, STATES, z)
        k2 = _values(g, STATES, z + h / 2 * np.column_stack([held, k1]))
        k3 = _values(g, STATES, z + 3 * h / 4 * np.column_stack([held, k2]))
        z = z + h * np.column_stack([held, (2 * k1 + 3 * k2 + 4 * k3) / 9])
        rows.append(z)
    X = np.stack(rows, axis=1).reshape(-1, 2)
    X.setflags(write=False)
    return X


def trajectories(system: System) -> FloatArray:
    """States of the published trajectories, one after the other.

    Returns shape (400, 2).
    """
    return _trajectories(system).copy()


def _values(expression: Expression, names: tuple[str, ...], X: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):  # outside its domain a law is not a number, and whoever draws rows looks for that
        return np.asarray(derivatives(compile_programs([expression], names), np.ascontiguousarray(X.T))[0, 0])
