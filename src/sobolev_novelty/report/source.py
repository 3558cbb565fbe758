"""What a report is made from, and gives only when it is asked: most readers of a novelty never do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Geometry, Signatures, Status
from sobolev_novelty.core.linear.projection import TAU_ID, Residuals
from sobolev_novelty.core.linear.tangent import Frame, tangent_frame
from sobolev_novelty.core.sample import FloatArray, Sample, abridged, as_target
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import FAR, on_own_inputs, standardized_derivatives
from sobolev_novelty.report.intervals.intervals import Interval, equation_intervals, term_intervals
from sobolev_novelty.report.measured import Measured
from sobolev_novelty.report.quality import FitQuality, quality_of_columns
from sobolev_novelty.report.resolution.rounding_errors import is_rounding
from sobolev_novelty.report.verdicts import TermVerdict, term_verdicts

#: Why rows are not used, in the order in which a row is asked.
DROP_REASONS = (
    "an input is missing or not finite",
    "a term's value is not finite",
    "a term's derivative is not finite",
)


#: Rows of a sample too large to be kept on which verdicts are found, at most.
MAX_VERDICT_ROWS = 50_000


#: The smallest float of full precision.
_SMALLEST = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What the equation is meant to give, and how well each value is known."""

    y: FloatArray  # shape (n_samples,)
    #: shape (n_samples,) or None: 1/σ_k² where the measurement errors are known, and then ``variance`` is 1.
    weights: FloatArray | None = None
    variance: float | None = None

    def intervals(
        self, expression: Expression | None, terms: tuple[Term, ...], sample: Sample
    ) -> tuple[Interval | None, ...]:
        """Of each coefficient; None for all where the rows allow none.

        Those of an equation are what :func:`sobolev_novelty.intervals` says of it as it is written. A list of terms is
        fitted beside a free intercept.
        """
        known = self.weights is not None and self.variance is not None
        options = {"sigma": 1.0 / np.sqrt(self.weights)} if known else {"sample_weight": self.weights}  # type: ignore[arg-type]
        try:
            if expression is not None:
                return equation_intervals(expression, terms, sample, self.y, **options)
            has_constant = any(not term.expression.variables for term in terms)
            asked = terms if has_constant else (*terms, Term(0.0, Expression.of(1.0)))
            return term_intervals(asked, sample, self.y, **options)[: len(terms)]
        except DataError:  # no row in which it is finite: the words say so without
            return (None,) * len(terms)

    def rows(self, keep: npt.NDArray[Any]) -> Target:
        """The target at some rows."""
        return replace(self, y=self.y[keep], weights=None if self.weights is None else self.weights[keep])


def as_known_target(y: Any, sigma: Any, sample_weight: Any, n_samples: int) -> Target | None:
    """A target with its measurement errors or weights, checked; None where there is none."""
    if y is None:
        if sigma is not None or sample_weight is not None:
            name = "sigma" if sigma is not None else "sample_weight"
            raise ParameterError(f"'{name}' says how well 'y' is known: give 'y' as well.")
        return None
    target = as_target(y, n_samples)
    if sample_weight is not None:
        if sigma is not None:
            raise ParameterError("Give 'sigma' (errors) or 'sample_weight' (their relative weights), not both.")
        weights = as_target(sample_weight, n_samples, "sample_weight")
        if not ((weights >= 0.0).all() and weights.any()):
            raise DataError(f"'sample_weight' must not be negative, nor all zero. Got {weights.min()!r}.")
        return Target(target, weights)
    if sigma is None:
        return Target(target)
    errors = as_target(np.full(n_samples, sigma) if np.ndim(sigma) == 0 else sigma, n_samples, "sigma")
    if not (errors > 0.0).all():
        raise DataError(f"'sigma' must be positive. Got {errors.min()!r} in row {int(errors.argmin())}.")
    return Target(target, 1.0 / errors**2, 1.0)


#: Why a row is not used where slopes are taken along the data.
NO_DIRECTION = "no direction of the data or no finite derivative was found at it"


@dataclass(frozen=True, slots=True, eq=False)
class WorkedOut:
    """What a report is made from: answers that are at hand, where the rows were not kept."""

    residuals: Residuals | None  # the geometry of the signatures
    scale: float  # σ_s of Eq. 1
    dropped: dict[str, int]  # reason -> number of rows not used
    notes: tuple[str, ...] = ()  # what a reader should know of the sample and of how the terms were split
    verdicts: tuple[TermVerdict, ...] = ()  # the words on every term; empty where they cannot be given
    frame: Frame | None = None  # dimension and directions of the inputs
    #: Novelty by values alone, with slopes along the data, and with all slopes; empty without rows.
    views: dict[str, FloatArray] = field(default_factory=dict)
    fit_quality: FitQuality | None = None  # how well the equation gives the target
    n_judged: int | None = None  # rows that the words come from, where these are not all rows used
    columns: FloatArray | None = None  # values of the terms at the rows used, shape (n_terms, n_used)


@dataclass(frozen=True, eq=False)
class SampledTerms:
    """The same answers, each worked out when it is asked for, from terms on a sample that is at hand."""

    sample: Sample
    terms: tuple[Term, ...]
    geometry: Geometry
    remarks: tuple[str, ...]
    target: Target | None = None
    tau: float = TAU_ID
    expression: Expression | None = None  # None for a list of terms
    status: Status = Status.OK

    @cached_property
    def measured(self) -> Measured:
        """The terms, evaluated once."""
        return Measured([term.expression for term in self.terms], self.sample, self.geometry)

    @property
    def verdicts(self) -> tuple[TermVerdict, ...]:
        """See :class:`WorkedOut`."""
        if self.target is None:
            return term_verdicts(self.terms, self.sample, tau=self.tau, measured=self.measured)
        known = (self.target.y, self.target.weights, self.target.variance)
        found = term_verdicts(self.terms, self.sample, *known, tau=self.tau, measured=self.measured)
        each = zip(found, self.target.intervals(self.expression, self.terms, self.sample), strict=True)
        return tuple(v if i is None else v.with_interval(i.low, i.high, i.verdict) for v, i in each)

    def signatures(self) -> Signatures:
        """The signatures themselves."""
        return self.measured.evaluated.signatures(self.geometry)

    @property
    def residuals(self) -> Residuals | None:
        """See :class:`WorkedOut`."""
        return self.measured.seen.residuals

    @property
    def scale(self) -> float:
        """See :class:`WorkedOut`."""
        return candidate_scale(self.columns, np.array([term.coefficient for term in self.terms]))

    @property
    def dropped(self) -> dict[str, int]:
        """See :class:`WorkedOut`."""
        found = self.measured.seen
        variables = {name for term in self.terms for name in term.expression.variables}
        columns = [k for k, name in enumerate(self.sample.names) if name in variables]
        bad_input = ~np.isfinite(self.sample.X[columns]).all(axis=0)
        bad_value = ~np.isfinite(found.values).all(axis=0) & ~bad_input
        bad_derivative = ~found.used & ~bad_value & ~bad_input
        reasons = (*DROP_REASONS[:2], NO_DIRECTION if self.geometry.is_along_data else DROP_REASONS[2])
        rows = ((bad_input & ~found.used), bad_value, bad_derivative)
        return {why: int(bad.sum()) for why, bad in zip(reasons, rows, strict=True)}

    @property
    def columns(self) -> FloatArray:
        """See :class:`WorkedOut`."""
        return self.measured.seen.values[:, self.measured.seen.used]

    @property
    def frame(self) -> Frame | None:
        """See :class:`WorkedOut`."""
        return tangent_frame(self.sample)

    @property
    def views(self) -> dict[str, FloatArray]:
        """See :class:`WorkedOut`."""
        unknown = np.full(len(self.terms), np.nan)
        return {name: unknown if nu is None else nu for name, nu in self.measured.views.items()}

    @property
    def fit_quality(self) -> FitQuality | None:
        """See :class:`WorkedOut`."""
        if self.target is None:
            return None
        rows = self._thin_rows()
        target, b = self.target.rows(rows), np.array([term.coefficient for term in self.terms])
        return quality_of_columns(self.measured.seen.values[:, rows], b, target.y, target.weights)

    @property
    def n_judged(self) -> int | None:
        """See :class:`WorkedOut`."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """See :class:`WorkedOut`."""
        n_finite = np.zeros(0, dtype=np.int64)
        if self.status is Status.TOO_FEW_ROWS:
            n_finite = np.isfinite(self.measured.seen.values).sum(axis=1)
        return self.remarks + data_notes(
            self.sample.names, self.sample.scales(), self.geometry, status=self.status, n_finite=n_finite,
            n_samples=self.sample.n_samples, empty=self._empty(), vanished=self._vanished_slopes(),
        )  + self._rounded()  # fmt: skip

    def _rounded(self) -> tuple[str, ...]:
        """Terms that are constant up to rounding, though no two of their values need be equal."""
        thin = self.thinned()
        varying = [i for i, term in enumerate(self.terms) if term.expression.variables]
        found = is_rounding([self.terms[i].expression for i in varying], thin.sample)
        if not found.any():
            return ()
        columns = thin.columns
        rounded = [i for i, is_so in zip(varying, found, strict=True) if is_so and len(set(columns[i].tolist())) > 1]
        return tuple(f"Term {i} is constant up to rounding: its novelty is that of rounding errors." for i in rounded)

    def _empty(self) -> set[str]:
        flat = np.flatnonzero(self.sample.scales() == 0.0)
        return {self.sample.names[j] for j in flat if not np.isfinite(self.sample.X[j]).any()}

    def _vanished_slopes(self) -> list[tuple[int, str]]:
        """Terms that depend on an input of which their slope is below the smallest float in every row."""
        expressions = [term.expression for term in self.terms]
        sample = on_own_inputs(expressions, self.sample)
        scales = self.geometry.scales(sample)
        far = np.flatnonzero(sample.scales() > FAR)
        if not len(far) or not self.geometry.order or self.status is not Status.OK:
            return []
        slopes = standardized_derivatives(expressions, sample, scales)[:, 1:]
        values = self.measured.seen.values
        found = []
        for i, term in enumerate(self.terms):
            for j in far:
                name = sample.names[j]
                is_flat = name in term.expression.variables and not (np.abs(slopes[i, j]) >= _SMALLEST).any()
                if is_flat and np.ptp(values[i][np.isfinite(values[i])]) > 0.0:
                    found.append((i, name))
        return found

    def worked_out(self) -> WorkedOut:
        """The answers without the sample."""
        is_known = self.status is Status.OK
        thin = self.thinned()
        seen = thin.views if is_known and thin.frame is not None and thin.frame.is_lower else {}
        return WorkedOut(
            self.residuals if is_known else None, self.scale, self.dropped, self.notes, thin.verdicts, thin.frame, seen,
            thin.fit_quality, None if thin is self else int(thin.measured.seen.used.sum()),
        )  # fmt: skip

    def thinned(self) -> SampledTerms:
        """The same on evenly spaced rows, few enough for what is asked of single rows."""
        rows = self._thin_rows()
        if len(rows) == self.sample.n_samples:
            return self
        return replace(
            self, sample=self.sample.rows(rows), target=None if self.target is None else self.target.rows(rows)
        )

    def _thin_rows(self) -> npt.NDArray[np.intp]:
        return np.arange(0, self.sample.n_samples, max(1, -(-self.sample.n_samples // MAX_VERDICT_ROWS)))


#: What a report is made from.
Source: TypeAlias = SampledTerms | WorkedOut


def candidate_scale(values: FloatArray, coefficients: FloatArray) -> float:
    """σ_s of Eq. 1: root mean square of the candidate over the rows used; 1 where the candidate vanishes.

    ``values``: shape (n_terms, n_used, ...).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        s = np.tensordot(coefficients, values, axes=1)
        peak = float(np.abs(s).max(initial=0.0))
        if not np.isfinite(peak) or peak == 0.0:
            return 1.0
        return peak * float(np.sqrt(np.sum(np.square(s / peak)) / values.shape[1]))


def data_notes(
    names: tuple[str, ...],
    scales: FloatArray,
    geometry: Geometry,
    *,
    status: Status,
    n_finite: npt.NDArray[np.integer[Any]],
    n_samples: int,
    empty: Collection[str] = (),
    vanished: Iterable[tuple[int, str]] = (),
) -> tuple[str, ...]:
    """What a reader should know of the sample.

    ``n_finite`` counts the rows where each term's value is finite; ``empty`` are columns without a finite entry,
    ``vanished`` the terms and columns whose slopes underflow.
    """
    flat = [
        f"Column '{name}' has no finite entry: it carries no information."
        if name in empty
        else f"Column '{name}' is constant: it carries no derivative information along this input."
        for name, scale in zip(names, scales, strict=True)
        if scale == 0.0 and geometry.coordinates == "standardized"
    ]
    notes = [*abridged(flat, "columns are constant or have no finite entry: they carry no derivative information.")]
    notes += [
        f"The slope of term {term} along '{name}' is smaller than floats can be, so that it counts as zero: give "
        f"'{name}' in other units."
        for term, name in vanished
    ]
    if status is Status.TOO_FEW_ROWS and n_finite.min() < n_samples:
        worst = int(np.argmin(n_finite))
        notes.append(
            f"Term {worst} is finite in only {n_finite[worst]} of {n_samples} rows; give more rows or check its domain."
        )
    return tuple(notes)


def null_note(term: object) -> str:
    """What is said of a term whose signature is zero."""
    return f"Term {term} is zero on the sample (null): its novelty is 0."
