r"""Profile likelihood: how far a constant, or a function of several, can go while the others make up for it.

Notation
--------
``theta``  parameters, shape (p,), or (m, p) for m points at once;  ``g``  a function of them, often one of them
``f``, ``J``  prediction and its derivative along the parameters, both times the square root of the weights
``S``  sum of squared residuals;  ``S_star``  its threshold

The end of the interval of g is the farthest value that it has at some :math:`\theta` with :math:`S(\theta) \le S^*`.
Linearised at a point, that is a linear function over an ellipsoid:

.. math:: \delta = (J^TJ)^{-1}J^Tr
          \pm \sqrt{S^* - S_0}\,\frac{(J^TJ)^{-1}\nabla g}{\sqrt{\nabla g^T(J^TJ)^{-1}\nabla g}}

with :math:`S_0` the minimum of the linearised problem. The iteration stands still exactly where :math:`S = S^*` and the
parameters are refitted beside g: at the end of the profile. For a linear sum the first step is the answer, the t
interval. All ends move at once, one call of the kernel for each step. Where this does not settle, the profile of a
parameter is followed outward and the others refitted at each value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.report.intervals.profiles import BoolArray, Estimate, Model, refit

#: Steps of all interval ends together.
END_STEPS = 14
#: An end is reached when a step moves it by less than this share of its distance from the estimate.
END_TOLERANCE = 2e-3
#: A profile is followed in steps that grow by this factor, this many times; beyond, the side is open.
STRIDE, N_STRIDES = 3.0, 12
#: Steps that close in on a crossing, until it is known to this share of its distance from the estimate.
N_CLOSING, CLOSED = 40, 1e-3
#: Numbers in the Jacobians that are held at a time.
MAX_NUMBERS = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A sum of products of powers of the parameters: of one parameter, that parameter."""

    factors: FloatArray  # shape (n_products,)
    powers: FloatArray  # shape (n_products, p)

    @classmethod
    def of_parameter(cls, j: int, n_parameters: int) -> Quantity:
        """The parameter itself."""
        return cls(np.ones(1), np.eye(1, n_parameters, j))

    def in_units(self, units: FloatArray) -> Quantity:
        """The same of parameters that are given in units."""
        return Quantity(self.factors * self._products(units, self.powers), self.powers)

    @property
    def parameter(self) -> int | None:
        """The only parameter, where the quantity is a multiple of it."""
        places = np.flatnonzero(self.powers.any(axis=0))
        is_one = len(places) == 1 and bool((self.powers[:, places[0]] == 1.0).all())
        return int(places[0]) if is_one else None

    def value(self, theta: FloatArray) -> float:
        """Its value."""
        with np.errstate(all="ignore"):
            return float(self.factors @ self._products(theta, self.powers))

    def slope(self, theta: FloatArray) -> FloatArray:
        """Its derivatives along the parameters."""
        found = np.zeros(len(theta))
        with np.errstate(all="ignore"):
            for j in np.flatnonzero(self.powers.any(axis=0)):
                lowered = self.powers.copy()
                lowered[:, j] -= self.powers[:, j] != 0.0
                found[j] = (self.factors * self.powers[:, j]) @ self._products(theta, lowered)
        return found

    @staticmethod
    def _products(theta: FloatArray, powers: FloatArray) -> FloatArray:
        return np.asarray(np.prod(np.where(powers == 0.0, 1.0, theta) ** powers, axis=1))


def profile_ends(
    model: Model, y: FloatArray, best: Estimate, slack: float, quantities: Sequence[Quantity]
) -> FloatArray:
    """Ends of the intervals, shape (n_quantities, 2); infinite where a side is open.

    Those of a quantity that is no single parameter are ``nan`` where the iteration does not settle.

    ``slack``: how much the loss may rise above its minimum.
    """
    ends = np.tile(np.array([-np.inf, np.inf]), (len(quantities), 1))
    values = np.array([quantity.value(best.theta) for quantity in quantities])
    slopes = np.array([quantity.slope(best.theta) for quantity in quantities]).reshape(-1, len(best.theta))
    spread = np.sqrt(np.maximum(np.einsum("qp,pr,qr->q", slopes, best.inverse, slopes), 0.0) * slack)
    known = np.flatnonzero(~best.is_redundant(slopes))
    wald = values[:, None] + spread[:, None] * np.array([-1.0, 1.0])
    if model.is_linear or slack <= 1e-18 * float(y @ y):  # a loss that is all rounding has no shape to follow
        ends[known] = wald[known]
        return ends
    profile = _Profile(model, y, best, slack, tuple(quantities))
    for idle in np.flatnonzero(best.is_idle(slopes)).tolist():
        for side in (0, 1):
            ends[idle, side] = profile.followed(idle, side, abs(values[idle]))
    sides = [(int(q), side) for q in known for side in (0, 1) if spread[q] > 0.0]
    chunk = max(1, MAX_NUMBERS // max(1, len(best.theta) * len(y)))
    for start in range(0, len(sides), chunk):
        some = sides[start : start + chunk]
        for (q, side), end in zip(some, profile.walked(some), strict=True):
            ends[q, side] = end if math.isfinite(end) else profile.followed(q, side, spread[q])
    return ends


@dataclass(frozen=True, slots=True, eq=False)
class _Profile:
    model: Model
    y: FloatArray
    best: Estimate
    slack: float
    quantities: tuple[Quantity, ...]

    @property
    def target(self) -> float:
        """S_star."""
        return self.best.loss + self.slack

    def walked(self, sides: Sequence[tuple[int, int]]) -> FloatArray:
        """The ends by the iteration of the module's notes; ``nan`` where it does not settle."""
        best, slack = self.best, self.slack
        wanted = [self.quantities[q] for q, _ in sides]
        sign = np.array([2.0 * side - 1.0 for _, side in sides])
        m = len(sides)
        start = np.array([quantity.value(best.theta) for quantity in wanted])
        slopes = np.array([quantity.slope(best.theta) for quantity in wanted])
        columns = slopes @ best.inverse  # (m, p)
        accepted = np.tile(best.theta, (m, 1))
        theta = accepted + (sign * np.sqrt(slack / np.einsum("mp,mp->m", columns, slopes)))[:, None] * columns
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
            here = [wanted[k] for k in at]
            slope = np.array([q.slope(t) for q, t in zip(here, theta[at], strict=True)]).reshape(theta[at].shape)
            step, is_flat = self.step(J, r, S, slope, sign=sign[at])
            moved = np.array([q.value(t) for q, t in zip(here, theta[at], strict=True)]) - start[at]
            change = np.einsum("mp,mp->m", step, slope)
            done = (np.abs(change) <= END_TOLERANCE * np.abs(moved)) & (np.abs(S - self.target) <= 0.02 * slack)
            theta[at] += step
            reached = np.array([q.value(t) for q, t in zip(here, theta[at], strict=True)])
            done &= sign[at] * (reached - start[at]) > 0.0
            ends[at[done]] = reached[done]
            active[at[done | is_flat]] = False
        return ends

    def step(
        self, J: FloatArray, r: FloatArray, S: FloatArray, slope: FloatArray, *, sign: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """δ of the module's notes at several points, and where the quantity in question stands still."""
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
        along = slope / size
        along /= np.maximum(np.linalg.norm(along, axis=1), 1e-300)[:, None]
        column = (inverse @ along[:, :, None])[:, :, 0]
        own = np.einsum("mp,mp->m", column, along)
        is_flat = ~(own > 0.0) | ~np.isfinite(column).all(axis=1) | (own > 1e12)
        own = np.where(is_flat, 1.0, own)
        step = (toward_best + (sign * np.sqrt(left / own))[:, None] * column) / size
        return np.where(is_flat[:, None], 0.0, step), is_flat

    def followed(self, q: int, side: int, spread: float) -> float:
        """The end of one side, by following the profile outward; infinite where it stays below the threshold."""
        j = self.quantities[q].parameter
        if j is None:
            return math.nan  # no single parameter can be held
        factor = float(self.quantities[q].factors.sum())
        sign = (-1.0, 1.0)[side] * math.copysign(1.0, factor)
        inside, theta, stride = float(self.best.theta[j]), self.best.theta, 0.5 * spread / abs(factor)
        outside, is_wall = math.nan, False
        for _ in range(N_STRIDES):
            value = inside + sign * stride
            found = self.beside(theta, j, value)
            if found is None or found[1] > self.target:
                outside, is_wall = value, found is None
                break
            inside, theta, stride = value, found[0], STRIDE * stride
        if math.isnan(outside):
            return sign * factor * math.inf
        for _ in range(N_CLOSING):
            if abs(outside - inside) <= CLOSED * abs(inside - self.best.theta[j]):
                break
            value = 0.5 * (inside + outside)
            found = self.beside(theta, j, value)
            if found is None or found[1] > self.target:
                outside, is_wall = value, found is None
            else:
                inside, theta = value, found[0]
        return factor * (inside if is_wall else 0.5 * (inside + outside))

    def beside(self, theta: FloatArray, j: int, value: float) -> tuple[FloatArray, float] | None:
        """The others refitted with parameter ``j`` at a value."""
        start = theta.copy()
        start[j] = value
        return refit(self.model, self.y, start, np.arange(len(theta)) != j)
