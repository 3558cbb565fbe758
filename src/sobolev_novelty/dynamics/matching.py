r"""Forms and constants of one equation judged by what was measured, not by derivatives.

*Integral matching* compares one equation with the states that were measured, without any derivative:

.. math:: x_i(t_k) \approx a_s + \int f_i(\hat x(\tau), \theta)\,d\tau, \qquad k \text{ in stretch } s,

where :math:`\hat x` are the smoothed states and the offset of every stretch is free. It is a least-squares problem in
θ, so that every equation of a front can be refitted and compared by its description length,

.. math:: L = n \ln(\mathrm{RSS}/n) + p \ln n + 2\,C \ln v ,

with p constants, C nodes and v words (operators and inputs) a node is chosen from.

Notation
--------
``theta``  θ, see :mod:`sobolev_novelty.dynamics.rates`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.dynamics.differentiation import SmoothCurve
from sobolev_novelty.dynamics.rates import RateForms, minimised
from sobolev_novelty.dynamics.trajectories import Trajectory

#: Stretches of a trajectory in integral matching, and the fewest points of one.
N_STRETCHES, MIN_STRETCH = 8, 12
#: Words that a node is chosen from, beside the inputs.
N_OPERATORS = 12
#: Errors below this share of a state's spread are those of the smoothing, not of the equation.
SMOOTHING_ERROR = 1e-4


def description_length(error: float, n: int, expression: Expression, n_inputs: int) -> float:
    """L of an equation whose misfit at n points is ``error`` of the state's spread, in units of -2 ln(likelihood).

    >>> description_length(0.01, 500, Expression.of("x0"), 1) < description_length(0.01, 500, Expression.of(2.5), 1)
    True
    """
    misfit = 2.0 * n * math.log(math.hypot(error, SMOOTHING_ERROR))
    words = 2.0 * expression.complexity * math.log(N_OPERATORS + n_inputs)
    return misfit + words + len(expression.constants) * math.log(n)


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """An equation after integral matching."""

    expression: Expression  # with its constants refitted
    error: float  # root mean square of the misfit, relative to the state's spread
    length: float  # description length, in units of -2 ln(likelihood)


class IntegralMatching:
    """Compares equations of one state with what was measured.

    ``trajectories``, ``curves``: measured and smoothed.
    ``names``: the inputs of the equations.
    """

    def __init__(
        self, trajectories: Sequence[Trajectory], curves: Sequence[SmoothCurve], state: int, names: Sequence[str]
    ) -> None:
        self.names = tuple(names)
        with_time = len(self.names) > trajectories[0].x.shape[1]
        inputs, self._steps, self._stretch, y, n = [], [], [], [], 0
        for trajectory, curve in zip(trajectories, curves, strict=True):
            t = trajectory.t
            grid = np.sort(np.concatenate([t, 0.5 * (t[1:] + t[:-1])]))
            x = curve.at(grid).T
            inputs.append(np.vstack([x, grid]) if with_time else x)
            self._steps.append(np.diff(t))
            parts = max(1, min(N_STRETCHES, len(t) // MIN_STRETCH))
            self._stretch.append(n + np.arange(len(t)) * parts // len(t))
            n += parts
            y.append(trajectory.x[:, state])
        self._inputs = np.ascontiguousarray(np.concatenate(inputs, axis=1))
        self._labels = np.concatenate(self._stretch)
        self._counts = np.bincount(self._labels)
        self._y = np.concatenate(y)
        self.spread = float(np.std(self._y)) or 1.0
        self._target = self._centred(self._y[None])[0]

    def _centred(self, rows: FloatArray) -> FloatArray:
        """Rows without the mean of each stretch: the offsets are fitted."""
        sums = np.array([np.bincount(self._labels, weights=row, minlength=len(self._counts)) for row in rows])
        return np.asarray(rows - (sums / self._counts)[:, self._labels])

    def _integrals(self, f: FloatArray) -> FloatArray:
        """Integrals from the start of each trajectory, by Simpson's rule on the doubled grid."""
        found, begin = [], 0
        for steps in self._steps:
            end = begin + 2 * len(steps) + 1
            own = f[:, begin:end]
            parts = steps / 6.0 * (own[:, :-1:2] + 4.0 * own[:, 1::2] + own[:, 2::2])
            found.append(np.concatenate([np.zeros((len(f), 1)), np.cumsum(parts, axis=1)], axis=1))
            begin = end
        return np.concatenate(found, axis=1)

    def fit(self, expression: Expression) -> Matched | None:
        """The equation with its constants refitted; None where it is not finite along the trajectories."""
        forms = RateForms.of([expression], self.names)
        m = len(forms.terms)
        theta = np.concatenate([np.zeros(m), forms.constants()])

        def misfit(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
            f, f_theta = forms.along_parameters(theta, self._inputs)
            with np.errstate(all="ignore"):  # a step may leave the domain of the equation
                model = self._centred(self._integrals(np.vstack([f, f_theta[0]])))
            return model[0] - self._target, model[1:].T

        _, jacobian = misfit(theta)
        if not np.isfinite(jacobian).all():
            return None
        theta[:m] = np.linalg.lstsq(jacobian[:, :m], self._target, rcond=1e-12)[0]
        if len(forms.free):
            theta = minimised(misfit, theta)
        residual = misfit(theta)[0]
        if not np.isfinite(residual).all():
            return None
        (fitted,) = forms.expressions(theta)
        n = len(residual)
        error = math.sqrt(float(residual @ residual) / n) / self.spread
        return Matched(fitted, error, description_length(error, n, fitted, len(self.names)))

    def best(self, expressions: Sequence[Expression]) -> list[Matched]:
        """The equations with the shortest description first; each also tried without one of its terms."""
        found: dict[Expression, Matched] = {}
        for expression in expressions:
            matched = self.fit(expression)
            while matched is not None:
                found[matched.expression] = matched
                shorter = [other for other in map(self.fit, without_a_term(matched.expression)) if other is not None]
                better = min(shorter, key=lambda other: other.length, default=None)
                matched = better if better is not None and better.length < matched.length else None
        return sorted(found.values(), key=lambda matched: matched.length)


def without_a_term(expression: Expression) -> Iterator[Expression]:
    """The expression with each of its terms left out in turn, the other coefficients to be fitted anew."""
    forms = RateForms.of([expression], expression.variables)
    if len(forms.terms) < 2:
        return
    for i in range(len(forms.terms)):
        b = np.ones(len(forms.terms))
        b[i] = 0.0
        yield forms.expressions(np.concatenate([b, forms.constants()]))[0]
