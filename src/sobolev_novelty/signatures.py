r"""Terms, X -> signatures (Eq. 1).

Notation
--------
``N, d``  samples used and inputs;  ``m``  terms
``Psi``   signatures, shape (p, m), one column a term; p = N (1 + d) for order 1
``lam``   the weights λ₀, λ₁, λ₂ of values, first and second derivatives

.. math:: \Psi_X(\phi) = \frac1{\sigma_s}\Big[\sqrt{\lambda_0/N}\,\phi(X),\ \sqrt{\lambda_1/(Nd)}\,\nabla\phi(X),\
          \sqrt{\lambda_2/(Nd^2)}\,\nabla^2\phi(X)\Big]

All terms of a candidate share the rows where every value and every derivative of every term is finite. Derivatives are
along standardized inputs by default: ∂φ/∂x_j times the standard deviation of x_j. Matrices here leave σ_s out: novelty
does not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.evaluate import check_order, derivatives
from sobolev_novelty.expression import Expression
from sobolev_novelty.kernels import n_derivative_rows, second_order_pairs

#: Fewer common finite rows than this give no novelty (Appendix D.4).
MIN_ROWS = 32


class Status(Enum):
    """Why a report has numbers, or has none; ``sentence`` says it to a person."""

    OK = "ok"
    NO_TERMS = "no_terms"
    TOO_FEW_ROWS = "too_few_rows"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Status.OK: "Novelty was computed.",
    Status.NO_TERMS: "The expression is zero: it has no terms left after like terms are merged.",
    Status.TOO_FEW_ROWS: (
        f"Fewer than {MIN_ROWS} rows have finite values and derivatives of all terms: no novelty can be given."
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Signatures:
    """Weighted values and derivatives of the terms of one candidate.

    Parameters
    ----------
    Psi : ndarray of shape (p, n_terms)
    values : ndarray of shape (n_terms, n_samples, ...)
        Term values at all samples, finite or not.
    used : bool ndarray of shape (n_samples,)
        The common finite subset.
    n_blocks : int
        Values, derivatives along each input, second derivatives: ``Psi`` stacks this many blocks of samples ×
        components.
    """

    Psi: FloatArray
    values: FloatArray
    used: npt.NDArray[np.bool_]
    n_blocks: int

    @property
    def n_used(self) -> int:
        return int(self.used.sum())

    @property
    def status(self) -> Status:
        if self.Psi.shape[1] == 0:
            return Status.NO_TERMS
        return Status.OK if self.n_used >= MIN_ROWS else Status.TOO_FEW_ROWS


@dataclass(frozen=True, slots=True)
class Geometry:
    """How behaviour is measured: derivative order, weights and coordinates.

    Parameters
    ----------
    order : {0, 1, 2}
        Highest derivative in the signature. The paper uses 1.
    weights : tuple of float
        λ₀, λ₁ and λ₂; those beyond ``order`` are not used.
    coordinates : {"standardized", "raw"}
        Whether derivatives are taken along inputs divided by their standard deviation.
    """

    order: int = 1
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    coordinates: str = "standardized"

    def __post_init__(self) -> None:
        check_order(self.order)
        if len(self.weights) != 3 or not all(np.isfinite(w) and w > 0.0 for w in self.weights):
            raise ParameterError(f"'weights' must be three positive numbers (λ0, λ1, λ2). Got {self.weights!r}.")
        if self.coordinates not in ("standardized", "raw"):
            raise ParameterError(f"'coordinates' must be 'standardized' or 'raw'. Got {self.coordinates!r}.")

    def scales(self, sample: Sample) -> FloatArray:
        """Factor of each first derivative."""
        return sample.scales() if self.coordinates == "standardized" else np.ones(sample.n_features)

    def block_factors(self, scales: FloatArray) -> FloatArray:
        """Factor of each derivative row before the common 1/√N: values, gradient, second derivatives."""
        d = len(scales)
        factors = [np.sqrt(self.weights[0])]
        if self.order >= 1:
            factors.extend(np.sqrt(self.weights[1] / d) * scales)
        if self.order >= 2:
            # Off-diagonal entries of the symmetric Hessian are stored once and stand for two.
            factors.extend(
                np.sqrt(self.weights[2]) / d * scales[j] * scales[k] * (1.0 if j == k else np.sqrt(2.0))
                for j, k in second_order_pairs(d)
            )
        return np.array(factors)


#: The paper's: values and gradients, equal weights, standardized inputs.
DEFAULT_GEOMETRY = Geometry()


def signatures(expressions: Sequence[Expression], sample: Sample, geometry: Geometry = DEFAULT_GEOMETRY) -> Signatures:
    """Signatures of the terms of one candidate (Eq. 1, up to the common factor 1/σ_s).

    Parameters
    ----------
    expressions : sequence of Expression
        The terms φ_i, without coefficients.
    """
    rows = derivatives(expressions, sample, geometry.order)
    factors = geometry.block_factors(geometry.scales(sample))
    return _assemble(rows, factors)


def signatures_of_arrays(
    values: Any, gradients: Any = None, *, scales: Any = None, geometry: Geometry | None = None
) -> Signatures:
    """Signatures of terms given as numbers instead of expressions.

    Parameters
    ----------
    values : array of shape (n_terms, n_samples) or (n_terms, n_samples, ...)
        Trailing axes are components of vector- or tensor-valued terms.
    gradients : array of shape (n_terms, n_features, n_samples, ...), optional
        Without it the signature has values only (order 0).
    scales : array of shape (n_features,), optional
        Factor of each derivative, for example the inputs' standard deviations; 1 by default.
    """
    phi = _float_array(values, "values", at_least=2)
    if gradients is None:
        rows = phi[:, None]
        geometry = Geometry(order=0) if geometry is None else geometry
        d = 1
    else:
        grad = _float_array(gradients, "gradients", at_least=3)
        if grad.shape[:1] + grad.shape[2:] != phi.shape:
            raise DataError(
                "'gradients' must have the shape of 'values' with a feature axis after the first: "
                f"({phi.shape[0]}, n_features, {', '.join(map(str, phi.shape[1:]))}). Got {grad.shape}."
            )
        rows = np.concatenate([phi[:, None], grad], axis=1)
        geometry = Geometry() if geometry is None else geometry
        d = grad.shape[1]
    factor = np.ones(d) if scales is None else np.asarray(scales, dtype=np.float64)
    if factor.shape != (d,):
        raise DataError(f"'scales' must have one entry a feature, shape ({d},). Got shape {factor.shape}.")
    if not (np.isfinite(factor) & (factor >= 0.0)).all():
        raise DataError(f"'scales' must be finite and not negative. Got {factor.tolist()}.")
    if geometry.order > 1 or (geometry.order == 1) != (gradients is not None):
        raise ParameterError(
            f"Arrays carry {'values and gradients' if gradients is not None else 'values only'}; "
            f"order {geometry.order} needs other ones."
        )
    return _assemble(rows, geometry.block_factors(factor))


def _float_array(source: Any, name: str, *, at_least: int) -> FloatArray:
    try:
        array = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"'{name}' cannot be read as numbers: {error}.") from error
    if array.ndim < at_least:
        raise DataError(f"'{name}' needs at least {at_least} dimensions, terms first. Got shape {array.shape}.")
    return array


def _assemble(rows: FloatArray, factors: FloatArray) -> Signatures:
    """Keep the common finite subset, weight the blocks, stack them.

    ``rows`` has shape (m, n_blocks, N, ...): trailing axes are components of one sample.
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
    return Signatures(Psi, rows[:, 0], finite, n_blocks)


__all__ = [
    "MIN_ROWS",
    "Geometry",
    "Signatures",
    "Status",
    "n_derivative_rows",
    "signatures",
    "signatures_of_arrays",
]
