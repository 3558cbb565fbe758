r"""ODEBench: systems of ordinary differential equations, with two trajectories each.

The file is ``$SOBOLEV_DATA/anchors/odebench.json.gz``: equations with their constants, two initial conditions and the
noise-free trajectories from them, extracted from the public repository. It is not part of the package.

*Found by numbers.* Under noise no method gives constants to six digits, so beside the rule of
:mod:`sobolev_novelty.lab.bench.judging.exact` the *form* is judged. An equation has the form of the truth if

1. its values lie within :data:`NEAR` of the truth's, relative to the truth's spread,
2. with its constants refitted to the truth's values it leaves less than
   :data:`~sobolev_novelty.lab.bench.judging.exact.NUMERIC_TOLERANCE` unexplained, and
3. no term and no constant of it vanishes in that fit: what the truth does not have must not be there.

The points of comparison fill the box that both noise-free trajectories visit.
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
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.exact import NUMERIC_TOLERANCE
from sobolev_novelty.lab.bench.problems.anchors import data_file
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import split_form

#: Largest error of a found equation, as a share of the truth's spread.
NEAR = 0.1
#: A term or constant below this share of what it was, or of the truth, has vanished.
VANISHED = 1e-5
#: Points of the box at which equations are compared.
N_POINTS = 500
REFIT_ITERATIONS = 300


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


def has_form(found: Expression, truth: Expression, X: FloatArray) -> tuple[bool, str]:
    """Whether an equation has the form of the truth, and which rule decided.

    ``X``: shape (n_points, n_states).

    >>> X = np.random.default_rng(0).uniform(0, 4, size=(50, 2))
    >>> has_form(parse("1.02*x0 - 0.49*x0*x1"), parse("x0 - x0*x1/2"), X)[0]
    True
    >>> has_form(parse("1.02*x0 - 0.49*x0*x1 + 0.001*x1"), parse("x0 - x0*x1/2"), X)
    (False, 'A term or constant vanishes when the constants are refitted.')
    """
    with np.errstate(all="ignore"):
        t, m = evaluate(truth, X), evaluate(found, X)
    usable = np.isfinite(t)
    X, t, m = X[usable], t[usable], m[usable]
    spread = float(np.std(t)) or float(np.abs(t).max()) or 1.0
    off = float(np.sqrt(np.mean((m - t) ** 2))) / spread
    if not off <= NEAR:
        return False, f"Its values are {off:.2g} of the spread away."
    total = len(t) * spread**2
    fitter = Fitter(Rows.of(X, t))
    form = split_form(found)
    fitted = fitter.fit([form], REFIT_ITERATIONS)[0]
    left = math.sqrt(fitted.loss / total)
    if left > NUMERIC_TOLERANCE:
        return False, f"Refitted, it leaves {left:.1e} unexplained."
    sizes = np.abs(fitted.coefficients) * np.sqrt(np.mean(fitter.values(fitted.terms) ** 2, axis=1))
    before = np.array([c for term in form.terms for c in term.constants])
    after = np.array([c for term in fitted.terms for c in term.constants])
    if (sizes <= VANISHED * spread).any() or (np.abs(after) <= VANISHED * np.abs(before)).any():
        return False, "A term or constant vanishes when the constants are refitted."
    return True, f"Refitted, it leaves {left:.1e} unexplained."


def integration_error(truth: FloatArray, found: FloatArray) -> float:
    """Root mean square of the misfit, each state relative to its spread; infinite where the solution broke off."""
    if not np.isfinite(found).all():
        return math.inf
    spread = truth.std(axis=0)
    return float(np.sqrt(np.mean(((found - truth) / np.where(spread > 0.0, spread, 1.0)) ** 2)))
