r"""Derivatives of measured curves; how much they are smoothed is chosen by cross-validation.

Every method of ours is linear in the data, :math:`\hat x = S y`, so leaving a point out needs no second fit:

.. math:: \mathrm{CV}(\lambda) = \frac{1}{n}\sum_k \Big(\frac{y_k - \hat x_k}{1 - S_{kk}}\Big)^2 .

Notation
--------
``y``  one measured state, (n,);  ``S``  the smoother;  ``lam``  λ, the strength of smoothing
``B``  B-splines at the times, (n, K);  ``P``  integrals of products of their third derivatives, (K, K)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import BSpline, CubicHermiteSpline
from scipy.linalg import eigh

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.dynamics.trajectories import Trajectory
from sobolev_novelty.errors import ParameterError

#: A method of the user's own: states (n, d) and times (n,) to derivatives (n, d), as PySINDy's objects are called.
Differentiator = Callable[[FloatArray, FloatArray], Any]

METHODS = ("spline", "local", "finite")
#: Degree of the splines, and the derivative whose square is penalised: rates are smooth where the penalty reaches
#: beyond them.
DEGREE, PENALISED = 5, 3
#: Most splines of a curve; more points than this share them.
MAX_SPLINES = 300
#: Strengths tried: from hardly any smoothing at the finest scale of the splines to a parabola.
N_STRENGTHS, WEAKEST, STRONGEST = 60, 1e-3, 1e-2
#: Degree of local polynomials, and the shares of the points that their windows may hold.
LOCAL_DEGREE = 3
LARGEST_WINDOW = 0.35


@dataclass(frozen=True, slots=True, eq=False)
class SmoothCurve:
    """A trajectory with its noise taken out.

    ``x``, ``rates``: shape (n_points, n_states), smoothed states, and their derivatives.
    """

    t: FloatArray  # shape (n_points,)
    x: FloatArray
    rates: FloatArray
    noise: FloatArray  # shape (n_states,): estimated standard deviation of the noise
    #: shape (n_points, n_states): inverse variance of the rates, relative to the best known one: small at the ends.
    trust: FloatArray
    strength: tuple[str, ...]  # how much each state was smoothed, in words

    def at(self, t: FloatArray) -> FloatArray:
        """States between the points, shape (n_times, n_states)."""
        return np.asarray(CubicHermiteSpline(self.t, self.x, self.rates, axis=0)(t))


def smooth(trajectory: Trajectory, method: str | Differentiator = "spline") -> SmoothCurve:
    """The smoothed states and their derivatives.

    Parameters
    ----------
    trajectory : Trajectory
    method : {"spline", "local", "finite"} or callable
        Penalised quintic splines; local cubics, which on equal steps are Savitzky–Golay filters; central differences,
        which do not smooth. A callable gets states and times and returns the rates, as an object of
        ``pysindy.differentiation`` does; its ``smoothed_x_`` is used where it has one.

    Examples
    --------
    >>> t = np.linspace(0.0, 6.0, 80)
    >>> curve = smooth(Trajectory(t, np.sin(t)[:, None], ("x",)))
    >>> bool(np.median(np.abs(curve.rates[:, 0] - np.cos(t))) < 1e-6)
    True
    """
    if callable(method):
        return _by_callable(trajectory, method)
    if method not in METHODS:
        raise ParameterError(f"'derivative' must be one of {', '.join(METHODS)}, or a callable. Got {method!r}.")
    if method == "finite":
        rates = np.gradient(trajectory.x, trajectory.t, axis=0, edge_order=2)
        return _unweighted(trajectory, trajectory.x, rates, "not smoothed")
    columns = [_SMOOTHERS[method](trajectory.t, y) if np.ptp(y) > 0.0 else _at_rest(y) for y in trajectory.x.T]
    return SmoothCurve(
        trajectory.t,
        np.column_stack([column.x for column in columns]),
        np.column_stack([column.rates for column in columns]),
        np.array([column.noise for column in columns]),
        np.column_stack([column.trust for column in columns]),
        tuple(column.strength for column in columns),
    )


def _by_callable(trajectory: Trajectory, method: Differentiator) -> SmoothCurve:
    rates = np.asarray(method(trajectory.x, trajectory.t), dtype=np.float64)
    if rates.shape != trajectory.x.shape or not np.isfinite(rates).any(axis=1).all():
        raise ParameterError(
            f"'derivative' must return finite rates of shape {trajectory.x.shape}. Got shape {rates.shape}."
        )
    x = np.asarray(getattr(method, "smoothed_x_", trajectory.x), dtype=np.float64)
    return _unweighted(trajectory, x, rates, "by the caller's method")


def _unweighted(trajectory: Trajectory, x: FloatArray, rates: FloatArray, strength: str) -> SmoothCurve:
    # Second differences of a smooth curve are noise: their variance is 6 σ² for equal steps.
    noise = np.sqrt(np.mean(np.diff(trajectory.x, 2, axis=0) ** 2, axis=0) / 6.0)
    return SmoothCurve(trajectory.t, x, rates, noise, np.ones_like(x), (strength,) * x.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One state of a :class:`SmoothCurve`."""

    x: FloatArray
    rates: FloatArray
    noise: float
    trust: FloatArray
    strength: str


def _at_rest(y: FloatArray) -> _Column:
    return _Column(y, np.zeros_like(y), 0.0, np.ones_like(y), "constant")


# --- penalised splines


def _spline(t: FloatArray, y: FloatArray) -> _Column:
    """Quintic splines with a penalty on the third derivative, in the basis that makes both matrices diagonal."""
    n = len(t)
    scale = t[-1] - t[0]
    u = (t - t[0]) / scale
    n_inner = min(n - DEGREE, MAX_SPLINES)
    inner = np.quantile(u, np.linspace(0.0, 1.0, n_inner + 1))
    knots = np.concatenate([[0.0] * DEGREE, inner, [1.0] * DEGREE])
    B = BSpline.design_matrix(u, knots, DEGREE).toarray()
    K = B.shape[1]
    P = _penalty(knots, K)
    # All strengths from one factorisation: Vᵀ(BᵀB + λ₀P)V = I and VᵀPV = μ, so that
    # V⁻¹(BᵀB + λP)V⁻ᵀ = 1 - λ₀μ + λμ. A λ₀ between the extremes keeps the smooth and the rough directions apart from
    # rounding: roughnesses, (frequency)⁶, span twenty decades.
    weakest, strongest = WEAKEST * n / (np.pi * K) ** 6, STRONGEST * n
    lam_0 = np.sqrt(weakest * strongest)
    mu, V = eigh(P, B.T @ B + lam_0 * P)
    mu = np.clip(mu, 0.0, 1.0 / lam_0)
    mass = 1.0 - lam_0 * mu
    basis = B @ V
    z = basis.T @ y
    squares = basis**2
    fits = [1.0 / (mass + lam * mu) for lam in np.geomspace(weakest, strongest, N_STRENGTHS)]
    shrink = min(fits, key=lambda own: _score(y - basis @ (own * z), squares @ own))
    slopes = (BSpline(knots, np.eye(K), DEGREE).derivative()(u) @ V) / scale
    x, rates = basis @ (shrink * z), slopes @ (shrink * z)
    n_effective = float(shrink @ mass)
    noise = float(np.sqrt(np.sum((y - x) ** 2) / max(n - n_effective, 1.0)))
    return _Column(x, rates, noise, _trust((slopes**2) @ (shrink**2 * mass)), f"{n_effective:.1f} effective parameters")


def _penalty(knots: FloatArray, K: int) -> FloatArray:
    """Integrals of products of third derivatives: Gauss's rule on every knot interval is exact."""
    nodes, weights = np.polynomial.legendre.leggauss(DEGREE - PENALISED + 1)
    edges = np.unique(knots)
    half = np.diff(edges) / 2.0
    places = (edges[:-1] + half)[:, None] + half[:, None] * nodes
    third = BSpline(knots, np.eye(K), DEGREE).derivative(PENALISED)(places.ravel())
    return np.asarray(third.T @ ((half[:, None] * weights).ravel()[:, None] * third))


# --- local polynomials


def _local(t: FloatArray, y: FloatArray) -> _Column:
    """A cubic through the nearest points of each point; their number by cross-validation."""
    n = len(t)
    least, most = LOCAL_DEGREE + 2, max(LOCAL_DEGREE + 2, int(LARGEST_WINDOW * n))
    widths = np.unique(np.geomspace(least, most, 15).astype(int) // 2 * 2 + 1)
    widths = widths[widths <= n]
    fits = [(width, *_local_fit(t, y, int(width))) for width in widths]
    width, x, rates, own, variance = min(fits, key=lambda fit: _score(y - fit[1], fit[3]))
    noise = float(np.sqrt(np.sum((y - x) ** 2) / max(n - float(np.sum(own)), 1.0)))
    return _Column(x, rates, noise, _trust(variance), f"windows of {width} points")


def _local_fit(t: FloatArray, y: FloatArray, width: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Values, rates, the weight of each point in its own value, and the variance of a rate for noise of size 1."""
    n = len(t)
    first = np.clip(np.arange(n) - width // 2, 0, n - width)
    rows = first[:, None] + np.arange(width)
    distance = t[rows] - t[:, None]
    reach = np.abs(distance).max(axis=1)
    powers = (distance / reach[:, None])[:, :, None] ** np.arange(LOCAL_DEGREE + 1)
    weights = np.linalg.pinv(powers)  # (n, degree + 1, width)
    x = np.einsum("nw,nw->n", weights[:, 0], y[rows])
    rates = np.einsum("nw,nw->n", weights[:, 1], y[rows]) / reach
    own = weights[np.arange(n), 0, np.arange(n) - first]
    return x, rates, own, np.sum(weights[:, 1] ** 2, axis=1) / reach**2


_SMOOTHERS: dict[str, Callable[[FloatArray, FloatArray], _Column]] = {"spline": _spline, "local": _local}


def _score(residual: FloatArray, leverage: FloatArray) -> float:
    """Mean squared error of leaving one point out."""
    # Rounding alone decides where a point is its own prediction: a curve through all points must not win by that.
    return float(np.mean((residual / np.clip(1.0 - leverage, 1e-8, None)) ** 2))


def _trust(variance: FloatArray) -> FloatArray:
    """Relative weights of the rates: 1 for most points, less where a rate is known worse than they are."""
    typical = float(np.median(variance))
    return np.minimum(1.0, typical / np.maximum(variance, 1e-300)) if typical > 0.0 else np.ones_like(variance)
