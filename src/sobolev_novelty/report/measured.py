"""Terms on a sample, evaluated once for all that a report says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import DEFAULT_GEOMETRY, Geometry, Signatures, Status, beside_constant
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
    judged: Mask  # the rows with a finite value and slopes, whatever the signatures are made of
    residuals: Residuals | None  # None where the rows are too few
    free: FloatArray | None  # novelties beside a free intercept, nan for a constant; None where the rows are too few


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
        judged = np.asarray(np.isfinite(self.evaluated.standardized(1)).all(axis=(0, 1)))
        found = self.evaluated.signatures(self.geometry)
        self.evaluated.let_go()
        known = residuals(found.Psi) if found.status is Status.OK else None
        return Seen(np.array(found.values), found.used, judged, known, _free(found, is_free=self.geometry.is_free))

    @cached_property
    def views(self) -> dict[str, FloatArray | None]:
        """Novelty beside a free intercept by values alone, with slopes along the data, and with all slopes."""
        kinds = {"values": Geometry(0), "tangent": Geometry(coordinates="tangent"), "full": Geometry()}
        found = {name: _free(self.evaluated.signatures(kind)) for name, kind in kinds.items()}
        self.evaluated.let_go()
        return found

    @property
    def free_novelties(self) -> FloatArray | None:
        """Those behind *distinct*: slopes count only along the data where the inputs lie on a curve or surface."""
        is_default = replace(self.geometry, intercept="term") == DEFAULT_GEOMETRY
        return self.views["tangent"] if is_default and tangent_frame(self.sample).is_lower else self.seen.free


def _free(found: Signatures, *, is_free: bool = False) -> FloatArray | None:
    """Novelties beside a free intercept, ``nan`` for a constant; None where the rows are too few."""
    if found.status is not Status.OK:
        return None
    result = residuals(found.Psi if is_free else beside_constant(found))
    return np.where(result.lengths == 0.0, np.nan, result.nu)
