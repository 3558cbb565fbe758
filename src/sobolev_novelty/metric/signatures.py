r"""Terms, X -> signatures (Eq. 1), from expressions or from numbers; ``core.geometry`` has the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import DEFAULT_GEOMETRY, Geometry, Signatures, n_derivative_rows, stacked
from sobolev_novelty.core.linear.tangent import frame_of
from sobolev_novelty.core.sample import MAX_KEPT_BYTES, FloatArray, Sample, numeric_array
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import (
    derivatives,
    is_far,
    on_own_inputs,
    standardized,
    standardized_derivatives,
)


def signatures(expressions: Sequence[Expression], sample: Sample, geometry: Geometry = DEFAULT_GEOMETRY) -> Signatures:
    """Signatures of the terms of one candidate (Eq. 1, up to the common factor 1/σ_s).

    ``expressions`` are the terms φ_i, without coefficients. Of many inputs, those that no term uses are left out of
    ``Psi``: their blocks are zero.
    """
    return Evaluated(expressions, sample, geometry.order).signatures(geometry)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Terms of which derivatives, and signatures of several geometries, are worked out once.

    They are kept until :meth:`let_go`.
    """

    expressions: Sequence[Expression]
    sample: Sample
    order: int = 1
    _rows: dict[bool, FloatArray] = field(default_factory=dict, init=False, repr=False)  # whether in extended range
    _made: dict[Geometry, Signatures] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def own(self) -> Sample:
        """The inputs that derivatives are taken along."""
        return on_own_inputs(self.expressions, self.sample)

    def raw(self) -> FloatArray:
        """Values and derivatives along the inputs as they are."""
        if False not in self._rows:
            self._rows[False] = derivatives(self.expressions, self.own, self.order)
        return self._rows[False]

    def standardized(self, order: int) -> FloatArray:
        """Values and derivatives along inputs that are divided by their spread."""
        scales = self.own.scales()
        n_rows = n_derivative_rows(len(scales), order)
        if not is_far(scales):
            return standardized(self.raw()[:, :n_rows], scales, order)
        if True not in self._rows:
            self._rows[True] = standardized_derivatives(self.expressions, self.own, scales, self.order)
        return self._rows[True][:, :n_rows]

    def signatures(self, geometry: Geometry) -> Signatures:
        """Those of a geometry of at most this order."""
        if geometry not in self._made:
            is_along = geometry.is_along_data and geometry.order
            self._made[geometry] = self._along_data(geometry) if is_along else self._along_inputs(geometry)
        return self._made[geometry]

    def _along_inputs(self, geometry: Geometry) -> Signatures:
        scales = geometry.scales(self.own)
        if is_far(scales):
            rows, scales = self.standardized(geometry.order), np.ones(self.own.n_features)
        else:
            rows = self.raw()[:, : n_derivative_rows(len(scales), geometry.order)]
        return stacked(rows, geometry.block_factors(scales, self.sample.n_features), is_free=geometry.is_free)

    def _along_data(self, geometry: Geometry) -> Signatures:
        """Values, and slopes along the directions of the data; rows without a direction are not used."""
        frame = frame_of(self.sample, geometry.coordinates)
        rows = self.standardized(1)
        with np.errstate(over="ignore", invalid="ignore"):
            along = frame.along(rows[:, 1:], self.sample.places(self.own.names))
        found = np.full((len(rows), 1 + along.shape[1], self.sample.n_samples), np.nan)
        found[:, 0] = rows[:, 0]
        found[:, 1:, frame.rows] = along
        slope = geometry.weights[1] / max(frame.dimension, 1)
        factors = np.sqrt([geometry.weights[0], *[slope] * along.shape[1]])
        return stacked(found, factors, is_free=geometry.is_free)

    def let_go(self) -> None:
        """Forget what takes much memory; it is worked out again when somebody asks."""
        if sum(rows.nbytes for rows in self._rows.values()) > MAX_KEPT_BYTES:
            self._rows.clear()
            self._made.clear()


def signatures_of_arrays(
    values: Any, gradients: Any = None, *, scales: Any = None, geometry: Geometry | None = None
) -> Signatures:
    """Signatures of terms given as numbers instead of expressions.

    ``values``: shape (n_terms, n_samples) or (n_terms, n_samples, ...), trailing axes are components of vector- or
    tensor-valued terms.
    ``gradients``: shape (n_terms, n_features, n_samples, ...), without it the signature has values only (order 0).
    ``scales``: shape (n_features,), factor of each derivative, for example the inputs' standard deviations; 1 by
    default.
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
    factor = np.ones(d) if scales is None else numeric_array(scales, "scales")
    if factor.shape != (d,):
        raise DataError(f"'scales' must have one entry per feature, shape ({d},). Got shape {factor.shape}.")
    if not (np.isfinite(factor) & (factor >= 0.0)).all():
        raise DataError(f"'scales' must be finite and not negative. Got {factor.tolist()}.")
    if geometry.order > 1 or (geometry.order == 1) != (gradients is not None):
        raise ParameterError(
            f"'geometry' has order {geometry.order}, but the arrays hold "
            f"{'values and gradients: give order 1' if gradients is not None else 'values only: give order 0'}."
        )
    return stacked(rows, geometry.block_factors(factor), is_free=geometry.is_free)


def _float_array(source: Any, name: str, *, at_least: int) -> FloatArray:
    array = numeric_array(source, name)
    if array.ndim < at_least:
        raise DataError(f"'{name}' needs at least {at_least} dimensions, terms first. Got shape {array.shape}.")
    return array
