r"""Least squares on the constants of a sum, with Jacobians from the kernel: the fit that a profile starts from.

Notation
--------
``theta``  parameters, shape (p,), or (m, p) for m points at once;  ``f``  prediction,  ``J``  its derivative along the
parameters, both times the square root of the weights
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.program import Programs

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

#: Levenberg–Marquardt steps of the first fit, and of a refit beside a fixed parameter.
FIT_STEPS, REFIT_STEPS = 60, 12
#: A relative gain below this ends a fit.
CONVERGED = 1e-12
#: Directions with a singular value below this share of the largest change no prediction.
RANK_TOLERANCE = 1e-9
#: A parameter takes part in such a direction from this share on.
NULL_SHARE = 1e-5
#: Sizes beyond two to this power are scaled: fourth powers leave the range of floats.
FAR = 200


@dataclass(frozen=True, slots=True)
class Part:
    """A summand of the model."""

    expression: Expression
    sign: float  # 1 or -1
    #: For each constant of the expression the parameter it is, or -1 where it is fixed. Constants that are the same
    #: parameter move together.
    parameters: tuple[int, ...]
    factors: tuple[float, ...]  # the constant is the parameter times this
    is_linear: bool  # whether the summand is its only parameter times something fixed


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """Units of what is far from one, so that squares stay in the range of floats; powers of two."""

    prediction: float  # what predictions are divided by
    parameters: FloatArray  # shape (p,): a parameter is a number times its unit

    @classmethod
    def of(cls, y: FloatArray, slopes: FloatArray) -> Scale:
        """One, but for targets and parameters beyond :data:`FAR`.

        ``slopes``: shape (p, n_samples).
        """
        peaks = np.abs(slopes).max(axis=1, initial=0.0)
        prediction = _unit(float(np.abs(y).max(initial=0.0)))
        with np.errstate(all="ignore"):
            return cls(prediction, np.array([1.0 / _unit(peak / prediction) for peak in peaks.tolist()]))


def _unit(size: float) -> float:
    is_far = 0.0 < size < math.inf and abs(math.log2(size)) > FAR
    return 2.0 ** max(-1000, min(1000, round(math.log2(size)))) if is_far else 1.0


class Model:
    """A sum of parts on a sample.

    ``theta``: shape (p,), where the linear parts are taken from, and the start of a fit.
    ``X``: shape (n_features, n_samples).
    ``root``: shape (n_samples,) or None, square roots of the weights.
    ``scale``: units in which predictions and parameters are of order one.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        theta: FloatArray,
        X: FloatArray,
        names: tuple[str, ...],
        root: FloatArray | None,
        *,
        scale: Scale | None = None,
    ) -> None:
        self.n_parameters = len(theta)
        self.scale = scale or Scale(1.0, np.ones(len(theta)))
        if self.scale.prediction != 1.0:
            root = (np.ones(X.shape[1]) if root is None else root) / self.scale.prediction
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
            self.linear *= self.scale.parameters[:, None]
            if root is not None:
                self.linear *= root
        self.programs = kernels.compile_programs([part.expression for part in self.moving], names)
        self.places = np.array([j for part in self.moving for j in part.parameters], dtype=np.intp)
        self.factors = np.array([c for part in self.moving for c in part.factors]) * self.scale.parameters[self.places]
        self.signs = np.array([part.sign for part in self.moving])
        self.owners = np.repeat(np.arange(len(self.moving)), [len(part.parameters) for part in self.moving])

    @property
    def is_linear(self) -> bool:
        """Whether the prediction is linear in all parameters."""
        return not self.moving

    def on(self, X: FloatArray, theta: FloatArray) -> Model:
        """The same sum on other rows, without weights."""
        return Model(self.parts, theta, X, self.names, None, scale=self.scale)

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
    """The best fit and its linearisation."""

    theta: FloatArray  # shape (p,)
    loss: float  # weighted sum of squared residuals
    inverse: FloatArray  # shape (p, p): pseudo-inverse of :math:`J^TJ`
    null: FloatArray  # shape (p, n_null): directions that change no prediction, of the parameters times ``scale``
    scale: FloatArray  # shape (p,): length of each parameter's column of the Jacobian
    rank: int  # parameters that the rows tell apart

    def is_redundant(self, slopes: FloatArray) -> BoolArray:
        """Quantities with these slopes that can move without any change of the prediction, others making up for it."""
        return np.asarray(self._null_share(slopes) > NULL_SHARE)

    def is_idle(self, slopes: FloatArray) -> BoolArray:
        """Quantities that do nothing where they are, alone: a saturated one, which may do something elsewhere."""
        return np.asarray(self._null_share(slopes) > 1.0 - NULL_SHARE)

    def _null_share(self, slopes: FloatArray) -> FloatArray:
        along = slopes / self.scale
        length = np.linalg.norm(along, axis=1)
        return np.asarray(np.linalg.norm(along @ self.null, axis=1) / np.where(length > 0.0, length, 1.0))


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
