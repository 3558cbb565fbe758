"""The rows in which an equation is finite, with the weights that errors of measurement give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample, as_target
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.report.intervals.constants import Parametrised
from sobolev_novelty.report.intervals.profiles import Model, Scale


@dataclass(frozen=True, slots=True, eq=False)
class FittedRows:
    """The rows in which the equation is finite, weighted."""

    sample: Sample
    y: FloatArray  # times the root of the weights
    root: FloatArray | None
    is_noise_known: bool

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.y)

    @classmethod
    def of(
        cls, expressions: Sequence[Expression], sample: Sample, y: Any, sample_weight: Any, sigma: Any
    ) -> FittedRows:
        """Rows with a finite value of every expression and a positive weight."""
        target = as_target(y, sample.n_samples)
        root = _root_weights(sample.n_samples, sample_weight, sigma)
        with np.errstate(all="ignore"):
            used = np.asarray(np.isfinite(derivatives(expressions, sample, order=0)[:, 0]).all(axis=0))
        if root is not None:
            used &= root > 0.0
        if not used.any():
            raise DataError("The equation is not finite in any row of 'X'. Check its domain and the columns.")
        whole = cls(sample, target if root is None else target * root, root, sigma is not None)
        return whole.rows(used)

    def rows(self, used: npt.NDArray[np.bool_]) -> FittedRows:
        """Only these rows."""
        if used.all():
            return self
        root = None if self.root is None else self.root[used]
        return FittedRows(self.sample.rows(used), self.y[used], root, self.is_noise_known)

    def model(self, whole: Parametrised, scale: Scale | None = None) -> Model:
        """The equation on these rows."""
        return Model(whole.parts, whole.theta, self.sample.X, self.sample.names, self.root, scale=scale)

    def differentiable(self, whole: Parametrised) -> FittedRows:
        """The rows in which every derivative along a constant is finite: not the edge of a root's domain."""
        used = np.isfinite(self.model(whole).evaluate(whole.theta[None])[1][0]).all(axis=0)
        if not used.any():
            raise DataError("No row of 'X' has finite derivatives of the equation along its constants.")
        return self.rows(used)


def _root_weights(n_samples: int, sample_weight: Any, sigma: Any) -> FloatArray | None:
    if sample_weight is not None and sigma is not None:
        raise ParameterError("'sample_weight' and 'sigma' both say how well rows are known. Give one of them.")
    if sigma is not None:
        errors = as_target(np.full(n_samples, sigma) if np.ndim(sigma) == 0 else sigma, n_samples, "sigma")
        if (errors <= 0.0).any():
            raise ParameterError("'sigma' must be positive: the standard deviation of each measurement.")
        return np.asarray(1.0 / errors)
    if sample_weight is None:
        return None
    weights = as_target(sample_weight, n_samples, "sample_weight")
    if (weights < 0.0).any() or not (weights > 0.0).any():
        raise ParameterError("'sample_weight' must not be negative, and not all zero.")
    return np.asarray(np.sqrt(weights))


def weighted_spread(weighted: FloatArray, root: FloatArray | None) -> float:
    """Weighted standard deviation of values that are given times the root of the weights."""
    if root is None:
        return float(np.std(weighted))
    w = root**2
    values = weighted / root
    return float(np.sqrt(np.average((values - np.average(values, weights=w)) ** 2, weights=w)))
