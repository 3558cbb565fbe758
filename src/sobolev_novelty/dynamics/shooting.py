r"""Multiple shooting: the constants of all equations refitted to whole trajectories.

Every stretch of a trajectory is integrated from a free state of its own, first short stretches, then longer ones for as
long as they follow the data. The classical Runge–Kutta method carries the derivatives along: with
:math:`\dot x = f(x, \theta)`,

.. math:: \dot Z = f_x Z + [f_\theta, 0], \qquad Z(0) = [0, I].

Notation
--------
``theta``  θ, see :mod:`sobolev_novelty.dynamics.rates`;  ``z``  states at the starts of the stretches
``Z``      derivatives of the states along (θ, own start), (d, p + d, n_stretches)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.dynamics.differentiation import SmoothCurve
from sobolev_novelty.dynamics.matching import MIN_STRETCH, description_length
from sobolev_novelty.dynamics.rates import RateForms, minimised
from sobolev_novelty.dynamics.trajectories import Trajectory

#: Stretches of a trajectory, from short to long; longer ones are kept while the error grows by less than this.
SHOOTING = (16, 4, 1)
FOLLOWS = 1.05
#: Points of the longest stretch, and most stretches: of longer records some evenly spread stretches are enough.
MAX_STRETCH, MAX_STRETCHES = 512, 48
#: Steps of the integrator on a whole trajectory, at least.
MIN_SOLVER_STEPS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """Equations after multiple shooting."""

    expressions: tuple[Expression, ...]
    errors: FloatArray  # shape (n_states,): root mean square of the misfit, relative to each state's spread
    n_stretches: int  # stretches that each trajectory was cut into; 1 where the whole of it is followed
    n_points: int  # points that were compared

    @property
    def error(self) -> float:
        """Root mean square over all states."""
        return float(np.sqrt(np.mean(self.errors**2)))

    def length(self, n_inputs: int) -> float:
        """Description length of the system, in units of -2 ln(likelihood)."""
        return sum(
            description_length(error, self.n_points, expression, n_inputs)
            for error, expression in zip(self.errors.tolist(), self.expressions, strict=True)
        )


def shoot(
    expressions: Sequence[Expression],
    names: Sequence[str],
    trajectories: Sequence[Trajectory],
    curves: Sequence[SmoothCurve],
    *,
    only_short: bool = False,
) -> Refined | None:
    """Refit the constants of all equations to the trajectories; None where they cannot be followed.

    ``names``: the states, and time where the equations depend on it.
    ``only_short``: stop after the shortest stretches: enough to compare equations.
    """
    best: Refined | None = None
    current = tuple(expressions)
    for n_stretches in SHOOTING[:1] if only_short else SHOOTING:
        found = _Shooting(current, names, trajectories, curves, n_stretches).fit()
        if found is None or (best is not None and found.error > FOLLOWS * best.error):
            break
        best, current = found, found.expressions
    return best


class _Shooting:
    """One least-squares problem of multiple shooting: all stretches are integrated side by side."""

    def __init__(
        self,
        expressions: Sequence[Expression],
        names: Sequence[str],
        trajectories: Sequence[Trajectory],
        curves: Sequence[SmoothCurve],
        n_stretches: int,
    ) -> None:
        self.forms = RateForms.of(expressions, names)
        self.d = trajectories[0].x.shape[1]
        self.with_time = len(names) > self.d
        self.n_stretches = 1
        pieces = []
        for trajectory, curve in zip(trajectories, curves, strict=True):
            n = len(trajectory.t)
            parts = max(1, min(max(n_stretches, math.ceil(n / MAX_STRETCH)), n // MIN_STRETCH))
            self.n_stretches = max(self.n_stretches, parts)
            # A stretch also has the first point of the next one: no step between points is left out.
            edges = np.linspace(0, n - 1, parts + 1).astype(int)
            pieces += [(trajectory, curve, slice(a, b + 1)) for a, b in pairwise(edges.tolist())]
        if len(pieces) > MAX_STRETCHES:
            pieces = [pieces[k] for k in np.linspace(0, len(pieces) - 1, MAX_STRETCHES).astype(int)]
        self.n_points = max(len(trajectory.t[rows]) for trajectory, _, rows in pieces)
        S = len(pieces)
        self.t = np.zeros((self.n_points, S))
        self.y = np.full((self.n_points, self.d, S), np.nan)
        self.start = np.zeros((self.d, S))
        for s, (trajectory, curve, rows) in enumerate(pieces):
            n = rows.stop - rows.start
            self.t[:n, s], self.t[n:, s] = trajectory.t[rows], trajectory.t[rows.stop - 1]
            self.y[:n, :, s] = trajectory.x[rows]
            self.start[:, s] = curve.x[rows.start]
        steps = sum(len(trajectory.t) for trajectory in trajectories) / len(trajectories)
        self.n_inner = max(1, math.ceil(MIN_SOLVER_STEPS / steps))
        spread = np.std(np.concatenate([trajectory.x for trajectory in trajectories]), axis=0)
        self.weight = 1.0 / np.where(spread > 0.0, spread, 1.0)
        self.known = np.isfinite(self.y)
        x = np.concatenate([curve.x.T for curve in curves], axis=1)
        times = np.concatenate([curve.t for curve in curves])
        self.theta = self.forms.parameters(expressions, names, np.vstack([x, times]) if self.with_time else x)

    def fit(self) -> Refined | None:
        p = self.forms.n_parameters
        theta = minimised(self._misfit, np.concatenate([self.theta, self.start.ravel()]))
        residual = self._misfit(theta)[0]
        if not np.isfinite(residual).all():
            return None
        squares = np.zeros(self.y.shape)
        squares[self.known] = residual**2
        n = int(self.known[:, 0].sum())
        errors = np.sqrt(squares.sum(axis=(0, 2)) / n)
        return Refined(tuple(self.forms.expressions(theta[:p])), errors, self.n_stretches, n)

    def _misfit(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residuals at all points, and their Jacobian along θ and the starts."""
        p, (d, S) = self.forms.n_parameters, self.start.shape
        theta, x = parameters[:p], parameters[p:].reshape(d, S)
        Z = np.zeros((d, p + d, S))
        Z[np.arange(d), p + np.arange(d)] = 1.0
        residual = np.zeros(self.y.shape)
        J = np.zeros((self.n_points, d, p, S))
        J_start = np.zeros((self.n_points, d, d, S))
        with np.errstate(all="ignore"):
            for k in range(self.n_points):
                if k:
                    x, Z = self._advanced(theta, x, Z, k)
                residual[k] = x - self.y[k]
                J[k], J_start[k] = Z[:, :p], Z[:, p:]
        whole = np.zeros((self.n_points, d, S, p + d * S))
        whole[..., :p] = J.transpose(0, 1, 3, 2)
        places = p + np.arange(d)[:, None] * S + np.arange(S)  # column of each start
        for s in range(S):
            whole[:, :, s, places[:, s]] = J_start[..., s]
        weight = self.weight[None, :, None]
        return (residual * weight)[self.known], (whole * weight[..., None])[self.known]

    def _advanced(self, theta: FloatArray, x: FloatArray, Z: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
        """States and their derivatives at the next point, in steps of the classical Runge–Kutta method."""
        h = (self.t[k] - self.t[k - 1]) / self.n_inner
        for step in range(self.n_inner):
            time = self.t[k - 1] + step * h
            x1, Z1 = self._rates(theta, x, Z, time)
            x2, Z2 = self._rates(theta, x + 0.5 * h * x1, Z + 0.5 * h * Z1, time + 0.5 * h)
            x3, Z3 = self._rates(theta, x + 0.5 * h * x2, Z + 0.5 * h * Z2, time + 0.5 * h)
            x4, Z4 = self._rates(theta, x + h * x3, Z + h * Z3, time + h)
            x = x + h / 6.0 * (x1 + 2.0 * (x2 + x3) + x4)
            Z = Z + h / 6.0 * (Z1 + 2.0 * (Z2 + Z3) + Z4)
        return x, Z

    def _rates(
        self, theta: FloatArray, x: FloatArray, Z: FloatArray, time: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        inputs = np.vstack([x, time]) if self.with_time else x
        f, f_theta = self.forms.along_parameters(theta, inputs)
        f_x = self.forms.along_inputs(theta, inputs)[:, : len(x)]
        slopes = np.einsum("ijs,jqs->iqs", f_x, Z)
        slopes[:, : f_theta.shape[1]] += f_theta
        return f, slopes
