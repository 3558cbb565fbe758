r"""Profile likelihood of the constants of a sum, with Jacobians from the kernel.

Notation
--------
``theta``  parameters, shape (p,), or (m, p) for m points at once;  ``f``  prediction,  ``J``  its derivative along the
parameters, both times the square root of the weights;  ``S``  sum of squared residuals;  ``S_star``  its threshold

The end of the interval of parameter ``j`` is the farthest :math:`\theta_j` that some :math:`\theta` with
:math:`S(\theta) \le S^*` has. Linearised at a point, that is a linear function over an ellipsoid:

.. math:: \delta = (J^TJ)^{-1}J^Tr \pm \sqrt{S^* - S_0}\,\frac{(J^TJ)^{-1}e_j}{\sqrt{(J^TJ)^{-1}_{jj}}}

with :math:`S_0` the minimum of the linearised problem. The iteration stands still exactly where :math:`S = S^*` and the
other parameters are refitted: at the end of the profile. For a linear sum the first step is the answer, the t interval.
All ends move at once, one call of the kernel for each step. Where this does not settle, the profile is followed outward
and the others refitted at each value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty import kernels
from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.kernels.program import Programs

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

#: Levenberg–Marquardt steps of the first fit, and of a refit beside a fixed parameter.
FIT_STEPS, REFIT_STEPS = 60, 12
#: A relative gain below this ends a fit.
CONVERGED = 1e-12
#: Steps of all interval ends together.
END_STEPS = 14
#: An end is reached when a step moves it by less than this share of its distance from the estimate.
END_TOLERANCE = 2e-3
#: Directions with a singular value below this share of the largest change no prediction.
RANK_TOLERANCE = 1e-9
#: A parameter takes part in such a direction from this share on.
NULL_SHARE = 1e-5
#: A profile is followed in steps that grow by this factor, this many times; beyond, the side is open.
STRIDE, N_STRIDES = 3.0, 12
#: Steps that close in on a crossing, until it is known to this share of its distance from the estimate.
N_CLOSING, CLOSED = 40, 1e-3
#: Numbers in the Jacobians that are held at a time.
MAX_NUMBERS = 4_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """A summand of the model.

    Parameters
    ----------
    expression : Expression
    sign : float
        1 or -1.
    parameters : tuple of int
        For each constant of the expression the parameter it is, or -1 where it is fixed. Constants that are the same
        parameter move together.
    factors : tuple of float
        The constant is the parameter times this.
    is_linear : bool
        Whether the summand is its only parameter times something fixed.
    """

    expression: Expression
    sign: float
    parameters: tuple[int, ...]
    factors: tuple[float, ...]
    is_linear: bool


class Model:
    """A sum of parts on a sample.

    Parameters
    ----------
    parts : sequence of Part
    theta : ndarray of shape (p,)
        Where the linear parts are taken from, and the start of a fit.
    X : ndarray of shape (n_features, n_samples)
    names : tuple of str
    root : ndarray of shape (n_samples,) or None
        Square roots of the weights.
    """

    def __init__(
        self, parts: Sequence[Part], theta: FloatArray, X: FloatArray, names: tuple[str, ...], root: FloatArray | None
    ) -> None:
        self.n_parameters = len(theta)
        self.X, self.names, self.root = X, names, root
        self.parts = tuple(parts)
        self.linear: FloatArray = np.zeros((len(theta), X.shape[1]))
        self.moving = tuple(part for part in parts if not part.is_linear)
        still = [part for part in parts if part.is_linear]
        if still:
            slopes = kernels.jacobians(kernels.compile_programs([part.expression for part in still], names), X)[1]
            start = 0
            for part in still:
                for k, (j, factor) in enumerate(zip(part.parameters, part.factors, strict=True)):
                    if j >= 0:
                        self.linear[j] += part.sign * factor * slopes[start + k]
                start += len(part.parameters)
            if root is not None:
                self.linear *= root
        self.programs = kernels.compile_programs([part.expression for part in self.moving], names)
        self.places = np.array([j for part in self.moving for j in part.parameters], dtype=np.intp)
        self.factors = np.array([c for part in self.moving for c in part.factors])
        self.signs = np.array([part.sign for part in self.moving])
        self.owners = np.repeat(np.arange(len(self.moving)), [len(part.parameters) for part in self.moving])

    @property
    def is_linear(self) -> bool:
        """Whether the prediction is linear in all parameters."""
        return not self.moving

    def on(self, X: FloatArray, theta: FloatArray) -> Model:
        """The same sum on other rows, without weights."""
        return Model(self.parts, theta, X, self.names, None)

    def evaluate(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predictions (m, N) and derivatives (m, p, N) at the points ``theta`` (m, p)."""
        m = len(theta)
        values = theta @ self.linear
        slopes = np.broadcast_to(self.linear, (m, *self.linear.shape))
        if not self.moving:
            return values, slopes
        slopes = slopes.copy()
        constants = np.tile(self.programs.constants, (m, 1))
        free = self.places >= 0
        constants[:, free] = theta[:, self.places[free]] * self.factors[free]
        found, jacobian = kernels.jacobians(_repeated(self.programs, constants), self.X)
        found = found.reshape(m, len(self.moving), -1)
        jacobian = jacobian.reshape(m, len(self.places), -1)
        moved = np.einsum("k,mkn->mn", self.signs, found)
        values = values + (moved if self.root is None else moved * self.root)
        for c in np.flatnonzero(free):
            column = self.signs[self.owners[c]] * self.factors[c] * jacobian[:, c]
            slopes[:, self.places[c]] += column if self.root is None else column * self.root
        return values, slopes


def _repeated(programs: Programs, constants: FloatArray) -> Programs:
    """The programs once for each row of constants."""
    m = len(constants)

    def offsets(one: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        starts = np.arange(m)[:, None] * one[-1] + one[:-1]
        return np.append(starts.reshape(-1), m * one[-1]).astype(np.int64)

    return Programs(
        np.tile(programs.codes, m), offsets(programs.offsets), np.ascontiguousarray(constants.reshape(-1)),
        offsets(programs.constant_offsets), programs.n_features,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The best fit and its linearisation.

    Parameters
    ----------
    theta : ndarray of shape (p,)
    loss : float
        Weighted sum of squared residuals.
    inverse : ndarray of shape (p, p)
        Pseudo-inverse of :math:`J^TJ`.
    null : ndarray of shape (p, n_null)
        Directions that change no prediction, of the parameters times ``scale``.
    scale : ndarray of shape (p,)
        Length of each parameter's column of the Jacobian.
    rank : int
        Parameters that the rows tell apart.
    """

    theta: FloatArray
    loss: float
    inverse: FloatArray
    null: FloatArray
    scale: FloatArray
    rank: int

    @property
    def is_redundant(self) -> BoolArray:
        """Parameters that can move without any change of the prediction, others making up for it."""
        return np.asarray(np.linalg.norm(self.null, axis=1) > NULL_SHARE)

    @property
    def is_idle(self) -> BoolArray:
        """Parameters that do nothing where they are, alone: a saturated one, which may do something elsewhere."""
        return np.asarray(np.linalg.norm(self.null, axis=1) > 1.0 - NULL_SHARE)


def best_fit(model: Model, y: FloatArray, theta: FloatArray) -> Estimate | None:
    """Least squares from a start; None where the sum is not finite there. ``y`` is weighted as the model is."""
    found = refit(model, y, theta, np.ones(len(theta), dtype=bool), n_steps=FIT_STEPS)
    if found is None:
        return None
    theta, loss, J = _settled(model, y, *found)
    size = np.linalg.norm(J, axis=1)
    scale = np.where(size > 0.0, size, 1.0)
    s, Vt = _singular(J / scale[:, None])
    known = s > RANK_TOLERANCE * max(float(s[0]), 1e-300) if len(s) else np.zeros(0, dtype=bool)
    half = Vt[known] / s[known, None] / scale
    null = Vt[~known].T
    return Estimate(theta, loss, half.T @ half, null, scale, int(known.sum()))


def _settled(model: Model, y: FloatArray, theta: FloatArray, loss: float) -> tuple[FloatArray, float, FloatArray]:
    """Parameters, loss and Jacobian after a last step without damping, where the gradient falls by it.

    The loss itself is flat to rounding within a root of it, and damping leaves a linear fit that far from its minimum.
    """
    f, J = (found[0] for found in model.evaluate(theta[None]))
    size = np.linalg.norm(J, axis=1)
    size[size == 0.0] = 1.0
    trial = theta + np.linalg.lstsq((J / size[:, None]).T, y - f, rcond=RANK_TOLERANCE)[0] / size
    f_trial, J_trial = (found[0] for found in model.evaluate(trial[None]))
    trial_loss = float((y - f_trial) @ (y - f_trial))
    if not trial_loss <= loss * (1.0 + CONVERGED) or not np.isfinite(J_trial).all():
        return theta, loss, J
    before, after = (np.linalg.norm((A / size[:, None]) @ (y - g)) for A, g in ((J, f), (J_trial, f_trial)))
    return (trial, trial_loss, J_trial) if after < before else (theta, loss, J)


def _singular(J: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Singular values and right singular vectors of the transposed Jacobian, as many as parameters."""
    p, n = J.shape
    tall = np.linalg.qr(J.T, mode="r") if n > p else J.T
    s, Vt = np.linalg.svd(tall, full_matrices=True)[1:]
    return np.append(s, np.zeros(p - len(s))), Vt


def refit(
    model: Model, y: FloatArray, theta: FloatArray, free: BoolArray, *, n_steps: int = REFIT_STEPS
) -> tuple[FloatArray, float] | None:
    """Levenberg–Marquardt on the free parameters; None where the start is not finite."""
    theta = theta.copy()
    f, J = (found[0] for found in model.evaluate(theta[None]))
    loss = float((y - f) @ (y - f))
    if not math.isfinite(loss) or not np.isfinite(J).all():
        return None
    damping = 1e-8
    for _ in range(n_steps if free.any() else 0):
        A = J[free]
        size = np.linalg.norm(A, axis=1)
        size[size == 0.0] = 1.0
        A = A / size[:, None]
        gradient = A @ (y - f)
        step = np.linalg.lstsq(A @ A.T + damping * np.eye(len(A)), gradient, rcond=1e-15)[0]
        promised = float(step @ gradient)
        trial = theta.copy()
        trial[free] += step / size
        f_trial, J_trial = (found[0] for found in model.evaluate(trial[None]))
        trial_loss = float((y - f_trial) @ (y - f_trial))
        if not trial_loss < loss or not np.isfinite(J_trial).all():
            if promised <= CONVERGED * loss or damping > 1e8:
                break
            damping = max(10.0 * damping, 1e-4)
            continue
        gain = loss - trial_loss
        theta, f, J, loss = trial, f_trial, J_trial, trial_loss
        damping = max(0.1 * damping, 1e-12)
        if gain <= CONVERGED * loss:
            break
    return theta, loss


def profile_ends(
    model: Model, y: FloatArray, best: Estimate, slack: float, *, n_wanted: int | None = None
) -> FloatArray:
    """Ends of the intervals, shape (p, 2); infinite where a side is open.

    Parameters
    ----------
    slack : float
        How much the loss may rise above its minimum.
    n_wanted : int, optional
        Only of the first parameters; by default of all.
    """
    p = len(best.theta)
    ends = np.tile(np.array([-np.inf, np.inf]), (p, 1))
    known = np.flatnonzero(~best.is_redundant[:n_wanted])
    spread = np.sqrt(np.maximum(np.diag(best.inverse), 0.0) * slack)
    wald = best.theta[:, None] + spread[:, None] * np.array([-1.0, 1.0])
    if model.is_linear or slack <= 1e-18 * float(y @ y):  # a loss that is all rounding has no shape to follow
        ends[known] = wald[known]
        return ends
    profile = _Profile(model, y, best, slack)
    for idle in np.flatnonzero(best.is_idle[:n_wanted]).tolist():
        for side in (0, 1):
            ends[idle, side] = profile.followed(idle, side, abs(best.theta[idle]))
    sides = [(int(j), side) for j in known for side in (0, 1) if spread[j] > 0.0]
    chunk = max(1, MAX_NUMBERS // max(1, p * len(y)))
    for start in range(0, len(sides), chunk):
        some = sides[start : start + chunk]
        for (j, side), end in zip(some, profile.walked(some), strict=True):
            ends[j, side] = end if math.isfinite(end) else profile.followed(j, side, spread[j])
    return ends


@dataclass(frozen=True, slots=True, eq=False)
class _Profile:
    model: Model
    y: FloatArray
    best: Estimate
    slack: float

    @property
    def target(self) -> float:
        """S_star."""
        return self.best.loss + self.slack

    def walked(self, sides: Sequence[tuple[int, int]]) -> FloatArray:
        """The ends by the iteration of the module's notes; ``nan`` where it does not settle."""
        best, slack = self.best, self.slack
        places = np.array([j for j, _ in sides])
        sign = np.array([2.0 * side - 1.0 for _, side in sides])
        m, rows = len(sides), np.arange(len(sides))
        columns = best.inverse[:, places].T  # (m, p)
        accepted = np.tile(best.theta, (m, 1))
        theta = accepted + (sign * np.sqrt(slack / columns[rows, places]))[:, None] * columns
        ends = np.full(m, np.nan)
        active = np.ones(m, dtype=bool)
        for _ in range(END_STEPS):
            at = np.flatnonzero(active)
            if not len(at):
                break
            f, J = self.model.evaluate(theta[at])
            r = self.y - f
            S = np.einsum("mn,mn->m", r, r)
            good = np.isfinite(S) & np.isfinite(J.sum(axis=(1, 2))) & (best.loss + 16.0 * slack > S)
            theta[at[~good]] = 0.5 * (theta[at[~good]] + accepted[at[~good]])
            at, r, J, S = at[good], r[good], J[good], S[good]
            accepted[at] = theta[at]
            step, is_flat = self.step(J, r, S, places[at], sign=sign[at])
            moved = theta[at, places[at]] - best.theta[places[at]]
            change = step[np.arange(len(at)), places[at]]
            done = (np.abs(change) <= END_TOLERANCE * np.abs(moved)) & (np.abs(S - self.target) <= 0.02 * slack)
            theta[at] += step
            done &= sign[at] * (theta[at, places[at]] - best.theta[places[at]]) > 0.0
            ends[at[done]] = theta[at[done], places[at[done]]]
            active[at[done | is_flat]] = False
        return ends

    def step(
        self, J: FloatArray, r: FloatArray, S: FloatArray, places: IntArray, *, sign: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """δ of the module's notes at several points, and where the parameter in question does nothing any more."""
        rows = np.arange(len(J))
        G = J @ J.transpose(0, 2, 1)
        size = np.sqrt(np.einsum("mpp->mp", G))
        size[size == 0.0] = 1.0
        G = G / size[:, :, None] / size[:, None, :] + 1e-13 * np.eye(J.shape[1])
        try:
            inverse = np.linalg.inv(G)
        except np.linalg.LinAlgError:
            return np.zeros_like(size), np.ones(len(J), dtype=bool)
        gradient = (J @ r[:, :, None])[:, :, 0] / size
        toward_best = (inverse @ gradient[:, :, None])[:, :, 0]
        left = np.maximum(self.target - (S - np.einsum("mp,mp->m", gradient, toward_best)), 0.0)
        column = inverse[rows, :, places]
        own = column[rows, places]
        is_flat = ~(own > 0.0) | ~np.isfinite(column).all(axis=1) | (own > 1e12)
        own = np.where(is_flat, 1.0, own)
        step = (toward_best + (sign * np.sqrt(left / own))[:, None] * column) / size
        return np.where(is_flat[:, None], 0.0, step), is_flat

    def followed(self, j: int, side: int, spread: float) -> float:
        """The end of one side, by following the profile outward; infinite where it stays below the threshold."""
        sign = (-1.0, 1.0)[side]
        inside, theta, stride = float(self.best.theta[j]), self.best.theta, 0.5 * spread
        outside, is_wall = math.nan, False
        for _ in range(N_STRIDES):
            value = inside + sign * stride
            found = self.beside(theta, j, value)
            if found is None or found[1] > self.target:
                outside, is_wall = value, found is None
                break
            inside, theta, stride = value, found[0], STRIDE * stride
        if math.isnan(outside):
            return sign * math.inf
        for _ in range(N_CLOSING):
            if abs(outside - inside) <= CLOSED * abs(inside - self.best.theta[j]):
                break
            value = 0.5 * (inside + outside)
            found = self.beside(theta, j, value)
            if found is None or found[1] > self.target:
                outside, is_wall = value, found is None
            else:
                inside, theta = value, found[0]
        return inside if is_wall else 0.5 * (inside + outside)

    def beside(self, theta: FloatArray, j: int, value: float) -> tuple[FloatArray, float] | None:
        """The others refitted with parameter ``j`` at a value."""
        start = theta.copy()
        start[j] = value
        return refit(self.model, self.y, start, np.arange(len(theta)) != j)
