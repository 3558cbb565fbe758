"""Terms on a sample, evaluated once for all that a report says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import DEFAULT_GEOMETRY, Geometry, Status, beside_constant
from sobolev_novelty.core.linear.projection import Residuals, residuals
from sobolev_novelty.core.linear.tangent import tangent_frame
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.metric.signatures import Evaluated

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the signatures of a report say, in less memory than they take."""

    values: FloatArray  # shape (n_terms, n_samples), finite or not
    used: Mask  # the rows of the signatures
    residuals: Residuals | None  # None where the rows are too few


@dataclass(frozen=True, eq=False)
class Measured:
    """Terms on a sample; everything is worked out when it is first asked for, and once."""

    expressions: Sequence[Expression]
    sample: Sample
    geometry: Geometry = DEFAULT_GEOMETRY

    @cached_property
    def evaluated(self) -> Evaluated:
        """Values and slopes; second derivatives where the signatures have them."""
        return Evaluated(self.expressions, self.sample, max(self.geometry.order, 1))

    @cached_property
    def seen(self) -> Seen:
        """What the signatures say."""
        found = self.evaluated.signatures(self.geometry)
        known = residuals(found.Psi) if found.status is Status.OK else None
        self.evaluated.let_go()
        return Seen(np.array(found.values), found.used, known)

    @cached_property
    def judged(self) -> Mask:
        """The rows with a finite value and slopes, whatever the signatures are made of."""
        found = np.asarray(np.isfinite(self.evaluated.standardized(1)).all(axis=(0, 1)))
        self.evaluated.let_go()
        return found

    @cached_property
    def views(self) -> dict[str, FloatArray | None]:
        """Novelty beside a free intercept by values alone, with slopes along the data, and with all slopes."""
        kinds = {"values": Geometry(0), "tangent": Geometry(coordinates="tangent"), "full": DEFAULT_GEOMETRY}
        return {name: self._free(kind) for name, kind in kinds.items()}

    @cached_property
    def free_novelties(self) -> FloatArray | None:
        """Those behind *distinct*: slopes count only along the data where the inputs lie on a curve or surface."""
        is_default = replace(self.geometry, intercept="term") == DEFAULT_GEOMETRY
        is_on_curve = is_default and tangent_frame(self.sample).is_lower
        return self.views["tangent"] if is_on_curve else self._free(self.geometry)

    def _free(self, geometry: Geometry) -> FloatArray | None:
        """Novelties beside a free intercept, ``nan`` for a constant; None where the rows are too few."""
        found = self.evaluated.signatures(geometry)
        self.evaluated.let_go()
        if found.status is not Status.OK:
            return None
        result = residuals(found.Psi if geometry.is_free else beside_constant(found))
        return np.where(result.lengths == 0.0, np.nan, result.nu)
