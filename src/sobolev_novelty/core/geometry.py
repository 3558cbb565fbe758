r"""How behaviour is measured: which rows, derivatives and weights make up a signature (Eq. 1).

Notation
--------
``N, d``     rows used and inputs;  ``m``  terms
``rows``     derivatives of the terms, shape (m, n_blocks, N, ...): values, then the gradient, then second derivatives
``factors``  one number per block: √λ₀, √(λ₁/d) s_j, (√λ₂/d) s_j s_k (times √2 for j < k)
``Psi``      signatures, shape (p, m), one column per term; p = N (1 + d) for order 1

.. math:: \Psi_X(\phi) = \frac1{\sigma_s}\Big[\sqrt{\lambda_0/N}\,\phi(X),\ \sqrt{\lambda_1/(Nd)}\,\nabla\phi(X),\
          \sqrt{\lambda_2/(Nd^2)}\,\nabla^2\phi(X)\Big]

All terms of a candidate share the rows where every weighted value and derivative of every term is finite. Derivatives
are along standardized inputs by default: ∂φ/∂x_j times the standard deviation of x_j. Matrices here leave σ_s out:
novelty does not see it.

With a *free intercept* the constant is projected out of every term. Its signature has ones in the value block and zeros
elsewhere, so this centres the values over the rows used and leaves the derivatives alone. What is left does not change
when an input or the target is counted from another origin, as far as the formula follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import ParameterError

#: Fewer common finite rows than this give no novelty (Appendix D.4).
MIN_ROWS = 32
#: Fewer than this give no word on a term either.
MIN_WORD_ROWS = 3
#: A column of which centring leaves no more than this share is constant: the rest is rounding.
CONSTANT_SHARE = 1e-13
#: Whether the constant is a rival of the other terms, as in the paper, or projected out of all of them.
INTERCEPTS = ("term", "free")
#: Along what slopes are taken: the inputs, standardized or raw; the directions of the data at each row, from its
#: neighbours; or the way from row to row, for rows in the order of a time.
COORDINATES = ("standardized", "raw", "tangent", "path")


class Status(Enum):
    """Why there are novelties, or none; ``sentence`` says it to a person. The kernels give a member's place here."""

    OK = "ok"
    TOO_FEW_ROWS = "too_few_rows"
    NO_TERMS = "no_terms"

    @property
    def sentence(self) -> str:
        """The status in words."""
        return _SENTENCES[self]

    @property
    def code(self) -> int:
        """The kernels' number of this status."""
        return STATUSES.index(self)


STATUSES = tuple(Status)

_SENTENCES = {
    Status.OK: "Novelty was computed.",
    Status.NO_TERMS: "The expression is zero: it has no terms left after like terms are merged.",
    Status.TOO_FEW_ROWS: (
        f"Fewer than {MIN_ROWS} rows have finite values and derivatives of all terms: no novelty can be given."
    ),
}


def check_order(order: int) -> int:
    """Refuse a derivative order that the kernels do not have."""
    if order not in (0, 1, 2):
        raise ParameterError(f"'order' must be 0, 1 or 2. Got {order!r}.")
    return int(order)


def second_order_pairs(n_features: int) -> list[tuple[int, int]]:
    """Pairs (j, k), j ≤ k, in the order in which second derivatives are stored."""
    return [(j, k) for j in range(n_features) for k in range(j, n_features)]


def n_derivative_rows(n_features: int, order: int) -> int:
    """1, 1 + d, or 1 + d + d(d+1)/2 rows for orders 0, 1 and 2."""
    return 1 + (n_features if order >= 1 else 0) + (n_features * (n_features + 1) // 2 if order >= 2 else 0)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Derivative order, weights and coordinates of a signature."""

    order: int = 1  # {0, 1, 2}: highest derivative in the signature. The paper uses 1.
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)  # λ₀, λ₁ and λ₂; those beyond ``order`` are not used
    #: {"standardized", "raw", "tangent", "path"}: whether derivatives are taken along inputs divided by their standard
    #: deviation, along inputs as they are, or only along the data (:mod:`~sobolev_novelty.core.linear.tangent`): on the
    #: tangent space of neighbouring rows, or from row to row.
    coordinates: str = "standardized"
    #: {"term", "free"}: whether the constant is a term among others, as in the paper, or projected out of every term.
    intercept: str = "term"

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", check_order(self.order))  # 1.0 is 1
        if len(self.weights) != 3 or not all(math.isfinite(w) and w > 0.0 for w in self.weights):
            raise ParameterError(f"'weights' must be three positive numbers (λ0, λ1, λ2). Got {self.weights!r}.")
        if self.coordinates not in COORDINATES:
            raise ParameterError(f"'coordinates' must be one of {', '.join(COORDINATES)}. Got {self.coordinates!r}.")
        if self.is_along_data and self.order > 1:
            raise ParameterError(f"'order' must be 0 or 1 with coordinates='{self.coordinates}'. Got {self.order}.")
        if self.intercept not in INTERCEPTS:
            raise ParameterError(f"'intercept' must be 'term' or 'free'. Got {self.intercept!r}.")

    @property
    def is_free(self) -> bool:
        """Whether the constant is projected out of every term."""
        return self.intercept == "free"

    @property
    def is_along_data(self) -> bool:
        """Whether slopes are taken along directions that differ from row to row."""
        return self.coordinates in ("tangent", "path")

    def scales(self, sample: Sample) -> FloatArray:
        """Factor of each first derivative."""
        return np.ones(sample.n_features) if self.coordinates == "raw" else sample.scales()

    def block_factors(self, scales: FloatArray, n_features: int | None = None) -> FloatArray:
        """Factor of each derivative row before the common 1/√N: values, gradient, second derivatives.

        ``n_features`` is d, where ``scales`` are those of some inputs only.
        """
        d = len(scales) if n_features is None else n_features
        s = scales.tolist()
        factors = [math.sqrt(self.weights[0])]
        if self.order >= 1:
            slope = math.sqrt(self.weights[1] / d)
            factors += [slope * s_j for s_j in s]
        if self.order >= 2:
            # Off-diagonal entries of the symmetric Hessian are stored once and stand for two.
            curvature = math.sqrt(self.weights[2]) / d
            pairs = second_order_pairs(len(s))
            factors += [curvature * s[j] * s[k] * (1.0 if j == k else math.sqrt(2.0)) for j, k in pairs]
        return np.array(factors)


#: The paper's: values and gradients, equal weights, standardized inputs.
DEFAULT_GEOMETRY = Geometry()


@dataclass(frozen=True, slots=True, eq=False)
class Signatures:
    """Weighted values and derivatives of the terms of one candidate."""

    Psi: FloatArray  # shape (p, n_terms)
    values: FloatArray  # shape (n_terms, n_samples, ...): term values at all samples, finite or not
    used: npt.NDArray[np.bool_]  # bool, shape (n_samples,): the common finite subset
    #: Values, derivatives along each input, second derivatives: ``Psi`` stacks this many blocks of samples ×
    #: components.
    n_blocks: int

    @property
    def n_used(self) -> int:
        """Rows of the common finite subset."""
        return int(self.used.sum())

    @property
    def status(self) -> Status:
        """Whether these signatures give novelties."""
        return status_of(self.Psi.shape[1], self.n_used)


def status_of(n_terms: int, n_used: int) -> Status:
    """Whether this many terms on this many common finite rows have novelties."""
    if n_terms == 0:
        return Status.NO_TERMS
    return Status.OK if n_used >= MIN_ROWS else Status.TOO_FEW_ROWS


def stacked(rows: FloatArray, factors: FloatArray, *, is_free: bool = False) -> Signatures:
    """Keep the common finite subset, weight the blocks, stack them; take the constant out where the intercept is free.

    ``rows``: shape (n_terms, n_blocks, n_samples, ...), trailing axes are components of one sample.
    ``factors``: shape (n_blocks,).
    """
    m, n_blocks, n_samples = rows.shape[:3]
    # A finite derivative can overflow when it is standardized, so finiteness is judged after weighting.
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = rows * factors.reshape((1, n_blocks) + (1,) * (rows.ndim - 2))
    axes = tuple(axis for axis in range(rows.ndim) if axis != 2)
    finite = np.asarray(np.isfinite(weighted).all(axis=axes))
    n_used = int(finite.sum())
    kept = weighted if n_used == n_samples else weighted[:, :, finite]
    Psi = (kept / np.sqrt(max(n_used, 1))).reshape(m, int(np.prod(kept.shape[1:]))).T
    found = Signatures(Psi, rows[:, 0], finite, n_blocks)
    return replace(found, Psi=beside_constant(found)) if is_free and n_used else found


def beside_constant(found: Signatures) -> FloatArray:
    """Signatures less what the constant rebuilds of them; exactly zero for a term that is constant up to rounding.

    Every component of a vector- or tensor-valued term has a constant of its own.
    """
    Psi, n_used, n_values = found.Psi, found.n_used, found.Psi.shape[0] // found.n_blocks
    peak = np.abs(Psi).max(axis=0, initial=0.0)  # squares of 1e200 leave the range of floats
    unit = Psi / np.where(peak == 0.0, 1.0, peak)
    before = np.linalg.norm(unit, axis=0)
    values = unit[:n_values].reshape(n_used, n_values // n_used, Psi.shape[1])  # (samples, components, terms)
    unit[:n_values] = (values - values.mean(axis=0)).reshape(n_values, Psi.shape[1])
    return np.asarray(zero_where_constant(unit, before) * peak)


def zero_where_constant(columns: FloatArray, before: FloatArray) -> FloatArray:
    """Columns beside the constant; zero where no more than rounding is left of the length that they had before."""
    return np.where(np.linalg.norm(columns, axis=0) <= CONSTANT_SHARE * before, 0.0, columns)


def without_intercept(nu: FloatArray, lengths: FloatArray, geometry: Geometry) -> FloatArray:
    """Novelties, ``nan`` for terms that are constant on the rows where the intercept is free: they are part of it."""
    return np.where(lengths == 0.0, np.nan, nu) if geometry.is_free else nu
