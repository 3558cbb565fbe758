r"""ODEBench: systems of ordinary differential equations, with two trajectories each.

The file is ``$SOBOLEV_DATA/anchors/odebench.json.gz``: equations with their constants, two initial conditions and the
noise-free trajectories from them, extracted from the public repository. It is not part of the package.
"""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.lab.bench.problems.anchors import data_file
from sobolev_novelty.language.parsing import parse

#: Points of the box at which equations are compared.
N_POINTS = 500


@dataclass(frozen=True, slots=True, eq=False)
class OdeSystem:
    """One system."""

    name: str
    equations: tuple[Expression, ...]  # the truth: one rate per state, in ``x0, x1, …``. Only the judge reads it.
    t: FloatArray  # shape (n_points,)
    #: tuple of two ndarrays of shape (n_points, n_states): noise-free, from the first and from the second initial
    #: condition.
    trajectories: tuple[FloatArray, FloatArray]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the states."""
        return tuple(f"x{k}" for k in range(len(self.equations)))

    def measured(self, noise: float, seed: int) -> FloatArray:
        """The first trajectory with Gaussian noise, a share of each state's root mean square."""
        x = self.trajectories[0]
        rng = np.random.default_rng(seed)
        return np.asarray(x + noise * np.sqrt(np.mean(x**2, axis=0)) * rng.standard_normal(x.shape))

    def box(self) -> FloatArray:
        """Points in the box that both trajectories visit, shape (n_points, n_states)."""
        both = np.concatenate(self.trajectories)
        return np.random.default_rng(0).uniform(both.min(axis=0), both.max(axis=0), (N_POINTS, both.shape[1]))


def ode_systems() -> tuple[OdeSystem, ...]:
    """The systems, in the order of the file."""
    return _systems(data_file("odebench", "odebench.json.gz"))


@cache
def _systems(path: Path) -> tuple[OdeSystem, ...]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return tuple(_system(row) for row in json.load(file))


def _system(row: dict[str, Any]) -> OdeSystem:
    names = [f"x_{k}" for k in range(row["dim"])]
    plain = {name: f"x{k}" for k, name in enumerate(names)}
    equations = tuple(parse(text, names=names, variables="names").rename(plain) for text in row["substituted"][0])
    first, second = (np.array(solution["y"]).T for solution in row["solutions"][0])
    return OdeSystem(f"ode_{row['id']}", equations, np.array(row["solutions"][0][0]["t"]), (first, second))


def integration_error(truth: FloatArray, found: FloatArray) -> float:
    """Root mean square of the misfit, each state relative to its spread; infinite where the solution broke off."""
    if not np.isfinite(found).all():
        return math.inf
    spread = truth.std(axis=0)
    return float(np.sqrt(np.mean(((found - truth) / np.where(spread > 0.0, spread, 1.0)) ** 2)))
