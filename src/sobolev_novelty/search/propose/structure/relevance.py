r"""Which inputs a target depends on, read off a Gaussian process with a length scale for each of them.

Inputs that have nothing to do with the target hide a law: dictionaries grow with a power of their number, and
interpolants see the rows lie far apart. The marginal likelihood prefers a process that does not vary along such an
input; how much worse it becomes without an input says, in nats, what the rows know of it.

Notation
--------
``z``  an input's ranks as normal scores, ``t`` those of the target: no unit and no heavy tail matters, and whether the
target depends on an input survives;  ``w``  inverse squared length scales;  ``s``, ``v``  variances of process and
noise;  K_ij = s·exp(−½ Σ_k w_k (z_ik − z_jk)²) + v δ_ij;  ``L`` = ½ tᵀK⁻¹t + ½ ln |K|
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.special import ndtri

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose.subproblem import Variable

#: Rows that are looked at, at most and at least; of many inputs so few that all differences are not more than this.
MAX_ROWS, MIN_ROWS = 300, 40
MAX_DIFFERENCES = 3_000_000
#: Steps of the search for length scales; a few more change no verdict.
MAX_STEPS = 40
#: Nats by which L must rise without an input for it to count, where noise is this share of the target or more. A
#: process that fits exact data badly grasps at any input: with less noise more is asked for.
REQUIRED_NATS, USUAL_NOISE = 5.0, 0.05
#: Nats that all inputs together must be worth; otherwise the process has not seen what the target depends on.
LEAST_NATS = 10.0
#: Bounds of ln(1/√w), ln s and ln v.
_BOUNDS = ((-2.0, 4.6), (-2.0, 4.0), (-12.0, 0.5))


def relevant_inputs(variables: Sequence[Variable], target: FloatArray) -> list[Variable]:
    """The variables that the rows say the target depends on; all of them where the rows do not say.

    >>> from sobolev_novelty.core.expression import Expression
    >>> X = np.random.default_rng(0).uniform(1.0, 3.0, (5, 200))
    >>> inputs = [Variable(Expression.of(f"x{k}"), x) for k, x in enumerate(X)]
    >>> [str(v.expression) for v in relevant_inputs(inputs, X[1] * np.sin(3.0 * X[3]))]
    ['x1', 'x3']
    """
    n = min(MAX_ROWS, len(target), math.isqrt(MAX_DIFFERENCES // max(1, len(variables))))
    if len(variables) < 2 or n < MIN_ROWS or not np.ptp(target[:n]) > 0.0:
        return list(variables)
    process = _Process.of([v.values[:n] for v in variables], target[:n])
    best, least = process.fitted()
    if process.nothing() - least < LEAST_NATS:
        return list(variables)
    required = REQUIRED_NATS * max(1.0, USUAL_NOISE / math.exp(best[-1]))
    kept = [v for k, v in enumerate(variables) if process.without(best, k) - least > required]
    return kept or list(variables)


def _scores(values: FloatArray) -> FloatArray:
    """Ranks as normal scores, with unit variance; equal values have equal ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - 0.5 * counts
    scores = ndtri(middle[inverse.reshape(-1)] / len(values))
    spread = float(scores.std())
    return np.asarray((scores - scores.mean()) / spread if spread > 0.0 else scores)


@dataclass(frozen=True, slots=True, eq=False)
class _Process:
    """A Gaussian process of ``n`` rows; its parameters are ln(1/√w_1) … ln(1/√w_d), ln s, ln v."""

    differences: FloatArray  # shape (d, n * n): squared, for each input
    t: FloatArray  # shape (n,)

    @classmethod
    def of(cls, inputs: Sequence[FloatArray], target: FloatArray) -> _Process:
        """The process of inputs and a target in any units."""
        scores = [_scores(x) for x in inputs]
        return cls(np.array([np.square(z[:, None] - z).reshape(-1) for z in scores]), _scores(target))

    def fitted(self) -> tuple[FloatArray, float]:
        """The parameters with the least L, and L."""
        from scipy.optimize import minimize  # not with the module: islands must start fast

        d = len(self.differences)
        begin = np.array([*[math.log(1.5 * math.sqrt(d))] * d, 0.0, math.log(0.05)])
        bounds = [_BOUNDS[0]] * d + list(_BOUNDS[1:])
        found = minimize(self._cost, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MAX_STEPS})
        return np.asarray(found.x), float(found.fun)

    def without(self, parameters: FloatArray, k: int) -> float:
        """L where the process does not vary along an input."""
        changed = parameters.copy()
        changed[k] = np.inf
        return self._cost(changed)[0]

    def nothing(self) -> float:
        """L where the target is noise."""
        return 0.5 * float(self.t @ self.t)

    def _cost(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """L and its gradient."""
        n, d = len(self.t), len(self.differences)
        w, s, v = np.exp(-2.0 * parameters[:d]), math.exp(parameters[d]), math.exp(parameters[d + 1])
        smooth = s * np.exp(-0.5 * (w @ self.differences)).reshape(n, n)
        K = smooth + v * np.eye(n)
        lower, failed = dpotrf(K, lower=1)
        if failed:
            return math.inf, np.zeros(d + 2)
        inverse, _ = dpotri(lower, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        alpha = inverse @ self.t
        cost = 0.5 * float(self.t @ alpha) + float(np.log(np.diagonal(lower)).sum())
        slope = np.outer(alpha, alpha) - inverse
        weighted = (slope * smooth).reshape(-1)
        by_scale = -0.5 * w * (self.differences @ weighted)
        return cost, np.array([*by_scale, -0.5 * weighted.sum(), -0.5 * v * np.trace(slope)])
