r"""novelty(): the residuals of all terms and what follows from them, as NoveltyReport (Eq. 2, Appendix A).

Notation
--------
``b``      coefficients of the terms;  ``nu`` novelties;  ``l`` lengths ‖Ψ_X(φ_i)‖, with the scale 1/σ_s of Eq. 1
``1/nu²``  inflation of the squared attribution sensitivity: the variance inflation factor of the signatures, uncentred
``1/nu``   attribution sensitivity κ (Theorem A.5)
``|b| l nu``  deletion-and-refit cost (Theorem A.8), the term's independent contribution
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.batch import check_tau, novelties_of, terms_of, three_weights
from sobolev_novelty.data import MAX_KEPT_BYTES, FloatArray, Sample, as_sample, is_dask
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.expression import Expression
from sobolev_novelty.function_terms import function_terms, is_function_list
from sobolev_novelty.geometry import Geometry, Signatures, Status
from sobolev_novelty.peers import for_every_equation
from sobolev_novelty.progress import OnProgress, silent, tracked
from sobolev_novelty.projection import TAU_ID, Residuals, residuals
from sobolev_novelty.report_source import SampledTerms, Source, WorkedOut, candidate_scale, null_note
from sobolev_novelty.signatures import signatures_of_arrays
from sobolev_novelty.terms import Term

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The matrix of who rebuilds whom is computed for at most this many terms.
MAX_MATRIX_TERMS = 60


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Spread of the novelties over resampled rows.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_terms,)
        Bounds of the interval that holds ``level`` of the resampled novelties.
    stability : ndarray of shape (n_terms,)
        Share of the resamples in which the verdict is the reported one.
    """

    lower: FloatArray
    upper: FloatArray
    stability: FloatArray
    level: float
    n_resamples: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which other terms rebuild one term, with what weights, leaving what.

    ``parts`` holds (label, weight), largest share first: term ≈ Σ weight · label in value and derivative, with
    ``residual`` = ν left over.
    """

    label: str
    residual: float
    parts: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        if not self.parts:
            return f"{self.label}: no other term rebuilds any of it (novelty {self.residual:.3g})."
        parts = (f"{'-' if w < 0 else '+'} {abs(w):.4g}*({label})" for label, w in self.parts)
        left = f"leaving {self.residual:.1%} unexplained ({self.residual**2:.1%} of its energy)."
        return f"{self.label} ≈ {' '.join(parts).removeprefix('+ ')}\n{left}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False)
class NoveltyReport:
    """Everything the theory says about each term of one expression on one sample.

    Attributes
    ----------
    labels : tuple of str
        The terms, as text.
    coefficients, nu, lengths : ndarray of shape (n_terms,)
        b_i, ν_i and ‖Ψ_X(φ_i)‖; ν is ``nan`` where ``status`` is not OK.
    status : Status
        Why there are numbers, or none.
    n_samples, n_used : int
        Rows given, and rows on which every value and derivative is finite.
    dropped : dict
        Reason -> number of rows not used.
    notes : tuple of str
        What a reader should know: constant columns, null terms, factors left undistributed.
    """

    terms: tuple[Term, ...] | None
    coefficients: FloatArray
    nu: FloatArray
    norms: FloatArray  # ‖Ψ‖ without the common factor 1/σ_s of Eq. 1
    status: Status
    n_samples: int
    n_used: int
    geometry: Geometry
    names: tuple[str, ...]
    tau: float
    source: Source  # what follows is worked out from it when it is asked for
    expression: Expression | None = None
    given_labels: tuple[str, ...] = ()
    bootstrap: Bootstrap | None = None
    given_notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.nu)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The terms, as text."""
        return self.given_labels if self.terms is None else tuple(str(term.expression) for term in self.terms)

    @cached_property
    def lengths(self) -> FloatArray:
        """‖Ψ_X(φ_i)‖, relative to the size σ_s of the expression."""
        return np.asarray(self.norms / self.source.scale(self.coefficients))

    @property
    def is_null(self) -> npt.NDArray[np.bool_]:
        """Terms whose signature is zero on the sample."""
        return np.asarray(self.norms == 0.0)

    @cached_property
    def residuals(self) -> Residuals | None:
        """The geometry behind the novelties; None where there are none."""
        return self.source.residuals() if self.status is Status.OK else None

    @cached_property
    def dropped(self) -> dict[str, int]:
        """Reason -> number of rows not used."""
        return {} if self.n_used == self.n_samples else {why: n for why, n in self.source.dropped().items() if n}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        null = (null_note(i if self.terms else self.labels[i]) for i in np.flatnonzero(self.is_null))
        return (*self.given_notes, *self.source.notes(self.status), *null)

    @property
    def qualified(self) -> npt.NDArray[np.bool_]:
        """ν > τ, strictly (Sec. 3.2); false where there is no novelty."""
        return np.asarray(self.nu > self.tau)

    @property
    def inflation(self) -> FloatArray:
        """1/ν², infinite for a dependent term."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.nu**2)

    @property
    def sensitivity(self) -> FloatArray:
        """κ = 1/ν."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.nu)

    @property
    def contribution(self) -> FloatArray:
        """|b| ν ‖Ψ‖: what deleting the term and refitting the others costs, relative to the size of the expression."""
        return np.asarray(np.abs(self.coefficients) * self.nu * self.lengths)

    @property
    def gram(self) -> FloatArray:
        """Inner products of the normalised signatures."""
        return np.full((len(self),) * 2, np.nan) if self.residuals is None else self.residuals.gram

    @cached_property
    def reconstruction(self) -> FloatArray:
        """Row i: weights with which the other normalised signatures rebuild term i."""
        if self.residuals is None:
            return np.full((len(self),) * 2, np.nan)
        return np.array([self.residuals.reconstruction(i) for i in range(len(self))]).reshape(len(self), len(self))

    @property
    def table(self) -> pd.DataFrame:
        """One row per term: term, coefficient, novelty, inflation, contribution, qualified; bootstrap if asked for."""
        import pandas as pd

        columns: dict[str, Any] = {
            "term": list(self.labels),
            "coefficient": self.coefficients,
            "novelty": self.nu,
            "inflation": self.inflation,
            "contribution": self.contribution,
            "qualified": self.qualified,
        }
        if self.bootstrap is not None:
            columns |= {
                "lower": self.bootstrap.lower,
                "upper": self.bootstrap.upper,
                "stability": self.bootstrap.stability,
            }
        return pd.DataFrame(columns)

    def explain(self, i: int) -> Explanation:
        """Which other terms rebuild term ``i``, with what weights, leaving what residual."""
        if self.residuals is None:
            raise ParameterError(f"There is nothing to explain: {self.status.sentence}")
        if not -len(self) <= i < len(self):
            raise ParameterError(f"'i' must be the number of a term, 0 to {len(self) - 1}. Got {i}.")
        i %= len(self)
        weights = self.residuals.reconstruction(i)
        order = [j for j in np.argsort(-np.abs(weights)) if abs(weights[j]) > 1e-12]
        scale = np.where(self.lengths == 0.0, 1.0, self.lengths)
        parts = tuple((self.labels[j], float(weights[j] * scale[i] / scale[j])) for j in order)
        return Explanation(self.labels[i], float(self.nu[i]), parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON; what cannot be a JSON number is ``None``."""
        small = len(self) <= MAX_MATRIX_TERMS and self.residuals is not None
        return {
            "expression": None if self.expression is None else str(self.expression),
            "complexity": None if self.expression is None else self.expression.complexity,
            "status": self.status.value,
            "sentence": self.status.sentence,
            "n_samples": self.n_samples,
            "n_used": self.n_used,
            "dropped": dict(self.dropped),
            "features": list(self.names),
            "tau": self.tau,
            "order": self.geometry.order,
            "weights": list(self.geometry.weights[: self.geometry.order + 1]),
            "coordinates": self.geometry.coordinates,
            "n_qualified": int(self.qualified.sum()),
            "terms": [self._term_dict(i) for i in range(len(self))],
            "gram": _rows(self.gram) if small else None,
            "reconstruction": _rows(self.reconstruction) if small else None,
            "notes": list(self.notes),
        }

    def _term_dict(self, i: int) -> dict[str, Any]:
        has_novelty = self.status is Status.OK
        entry: dict[str, Any] = {
            "term": self.labels[i],
            "coefficient": _number(self.coefficients[i]),
            "novelty": _number(self.nu[i]),
            "inflation": _number(self.inflation[i]),
            "sensitivity": _number(self.sensitivity[i]),
            "contribution": _number(self.contribution[i]),
            "norm": _number(self.lengths[i]),
            "is_null": bool(self.is_null[i]),
            "qualified": bool(self.qualified[i]) if has_novelty else None,
        }
        if self.bootstrap is not None:
            entry["interval"] = [_number(self.bootstrap.lower[i]), _number(self.bootstrap.upper[i])]
            entry["stability"] = _number(self.bootstrap.stability[i])
        return entry

    def to_json(self, path: str | Path | None = None) -> str:
        """The report as JSON text, also written to ``path`` where one is given."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def latex_table(self) -> str:
        """A booktabs table, one row per term."""
        from sobolev_novelty.render.latex import report_table

        return report_table(self.to_dict(), None if self.terms is None else [t.expression for t in self.terms])

    def plot(self) -> Figure:
        """Novelty per term with the threshold, and the matrix of who rebuilds whom (matplotlib)."""
        from sobolev_novelty.render.figure import report_figure

        return report_figure(self.to_dict())

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page, readable on a phone and in the dark; written to ``path`` where one is given."""
        from sobolev_novelty.render.page import report_page

        page = report_page(self.to_dict())
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        from sobolev_novelty.render.terminal import report_text

        return report_text(self.to_dict())

    def _repr_html_(self) -> str:
        from sobolev_novelty.render.page import report_fragment

        return report_fragment(self.to_dict())


@for_every_equation
def novelty(
    equation: Any,
    X: Any,
    *,
    names: Sequence[str] | None = None,
    order: int = 1,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0),
    coordinates: str = "standardized",
    tau: float = TAU_ID,
    n_bootstrap: int = 0,
    random_state: int | np.random.Generator | None = None,
    on_progress: OnProgress = silent,
) -> NoveltyReport:
    """Sobolev Novelty of every term of an equation on the observed inputs.

    Parameters
    ----------
    equation : str, Expression, SymPy expression, a fitted model, or a list
        An equation is split into its additive terms; a list is taken as the terms themselves (a :class:`Term` brings
        its coefficient). Models are those of :mod:`sobolev_novelty.peers`; one with several targets gives a dict with a
        report for each. A list of functions of the table is differentiated by complex steps, or by differences where a
        function does not take complex numbers; a note says which.
    X : array of shape (n_samples, n_features) or DataFrame, of NumPy, pandas or Dask
        The observed inputs. No target is needed. A Dask collection is read block by block where its blocks are; the
        work runs on the active Dask scheduler or cluster.
    names : sequence of str, optional
        Feature names; by default the DataFrame's columns, or ``x0, x1, …``.
    order : {0, 1, 2}
        Highest derivative in the signature; 1 is the paper's.
    weights : tuple of float
        λ₀, λ₁ and λ₂.
    coordinates : {"standardized", "raw"}
        Whether derivatives are along standardized inputs.
    tau : float
        Threshold of the verdict; 1/√10 by default.
    n_bootstrap : int
        Resamples of the rows for intervals; 0 for none. Needs the rows in memory, so not with Dask.
    random_state : int or Generator, optional
        Seed of the bootstrap.
    on_progress : callable
        Told how many resamples are done (:class:`sobolev_novelty.progress.Progress`).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> report = novelty("2.1*sin(x0) + 0.3*x0 - 0.05*x0**3", X)
    >>> report.qualified.tolist()
    [False, False, False]
    >>> novelty("x0 + cos(3*x0)", X).nu.round(3).tolist()
    [1.0, 1.0]
    """
    check_tau(tau)
    if is_function_list(equation):
        geometry = Geometry(order, three_weights(weights), coordinates)
        return _of_functions(
            equation, as_sample(X, names), geometry, tau=tau, n_bootstrap=n_bootstrap, random_state=random_state
        )
    if is_dask(X):
        return _of_dask(equation, X, names, n_bootstrap, order=order, weights=weights, coordinates=coordinates, tau=tau)
    sample = as_sample(X, names)
    geometry = Geometry(order, three_weights(weights), coordinates)
    expression, terms, notes = terms_of(equation, sample.names)
    found = novelties_of([terms], sample, geometry)[0]
    sampled = SampledTerms(sample, terms, geometry, notes)
    coefficients = np.array([term.coefficient for term in terms])
    is_small = sample.X.nbytes <= MAX_KEPT_BYTES
    report = NoveltyReport(
        terms=terms, coefficients=coefficients, nu=found.nu, norms=found.lengths, status=found.status,
        n_samples=sample.n_samples, n_used=found.n_used, geometry=geometry, names=sample.names, tau=tau,
        source=sampled if is_small else sampled.worked_out(found.status, coefficients), expression=expression,
    )  # fmt: skip
    if n_bootstrap == 0:
        return report
    return _with_bootstrap(report, sampled.signatures(), n_bootstrap, random_state, on_progress)


def _of_functions(functions: Sequence[Any], sample: Sample, geometry: Geometry, **options: Any) -> NoveltyReport:
    if geometry.order > 1:
        raise ParameterError(f"'order' must be 0 or 1 for terms that are functions. Got {geometry.order}.")
    found = function_terms(functions, sample)
    has_slopes = geometry.order == 1
    report = novelty_of_arrays(
        found.values, found.gradients if has_slopes else None, labels=found.labels,
        scales=geometry.scales(sample) if has_slopes else None, weights=geometry.weights, **options,
    )  # fmt: skip
    note = (found.note,) if has_slopes else ()
    return replace(report, geometry=geometry, names=sample.names, given_notes=note)


def _of_dask(equation: Any, X: Any, names: Sequence[str] | None, n_bootstrap: int, **options: Any) -> NoveltyReport:
    from sobolev_novelty.streaming import novelty_of_dask

    if n_bootstrap:
        raise ParameterError(
            f"'n_bootstrap' must be 0 for a Dask collection: resampling needs the rows in memory. Got {n_bootstrap}. "
            "Give a part that fits in memory, X.compute()."
        )
    return novelty_of_dask(equation, X, names, **options)


def novelty_of_arrays(
    values: Any,
    gradients: Any = None,
    *,
    coefficients: Any = None,
    labels: Sequence[str] | None = None,
    scales: Any = None,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0),
    tau: float = TAU_ID,
    n_bootstrap: int = 0,
    random_state: int | np.random.Generator | None = None,
) -> NoveltyReport:
    """Sobolev Novelty of terms given as numbers: values and derivatives at the samples.

    For terms that are not expressions, and for vector- or tensor-valued ones.

    Parameters
    ----------
    values : array of shape (n_terms, n_samples, ...)
        Trailing axes are the components of one sample.
    gradients : array of shape (n_terms, n_features, n_samples, ...), optional
    coefficients : array of shape (n_terms,), optional
        1 by default.
    labels : sequence of str, optional
    scales : array of shape (n_features,), optional
        Factor of each derivative, for example the inputs' standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 50)
    >>> novelty_of_arrays([x, x**2], [[1 + 0 * x], [2 * x]]).nu.round(3)
    array([0.491, 0.491])
    """
    geometry = Geometry(
        0 if gradients is None else 1, three_weights(weights), "raw" if scales is None else "standardized"
    )
    found = signatures_of_arrays(values, gradients, scales=scales, geometry=geometry)
    m = found.Psi.shape[1]
    b = np.ones(m) if coefficients is None else np.asarray(coefficients, dtype=np.float64)
    if b.shape != (m,):
        raise ParameterError(f"'coefficients' must have one entry per term, shape ({m},). Got shape {b.shape}.")
    texts = tuple(f"term {i}" for i in range(m)) if labels is None else tuple(str(label) for label in labels)
    if len(texts) != m:
        raise ParameterError(f"'labels' must have one entry per term: {m}. Got {len(texts)}.")
    check_tau(tau)
    dropped = {"a value or derivative is not finite": len(found.used) - found.n_used}
    result = residuals(found.Psi) if found.status is Status.OK else None
    report = NoveltyReport(
        terms=None, coefficients=b, nu=np.full(m, np.nan) if result is None else result.nu,
        norms=np.full(m, np.nan) if result is None else result.lengths, status=found.status, n_samples=len(found.used),
        n_used=found.n_used, geometry=geometry, names=(), tau=tau, given_labels=texts,
        source=WorkedOut(result, candidate_scale(found.values[:, found.used], b), dropped),
    )  # fmt: skip
    return _with_bootstrap(report, found, n_bootstrap, random_state)


def _with_bootstrap(
    report: NoveltyReport,
    found: Signatures,
    n_resamples: int,
    random_state: int | np.random.Generator | None,
    on_progress: OnProgress = silent,
) -> NoveltyReport:
    if n_resamples < 0:
        raise ParameterError(f"'n_bootstrap' must be at least 0. Got {n_resamples}.")
    if n_resamples == 0 or report.status is not Status.OK:
        return report
    rng = np.random.default_rng(random_state)
    n = report.n_used
    m = len(report)
    # (blocks, samples, components, terms): a resample picks whole samples.
    cube = found.Psi.reshape(found.n_blocks, n, -1, m)
    resamples = tracked(range(n_resamples), on_progress, "resampling")
    draws = np.array([residuals(cube[:, rng.integers(0, n, n)].reshape(-1, m)).nu for _ in resamples])
    level = 0.95
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    stability = np.mean((draws > report.tau) == report.qualified, axis=0)
    bootstrap = Bootstrap(lower, upper, stability, level, n_resamples)
    return replace(report, bootstrap=bootstrap)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _rows(matrix: FloatArray) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in matrix]


__all__ = [
    "TAU_ID",
    "Bootstrap",
    "Explanation",
    "NoveltyReport",
    "Status",
    "novelty",
    "novelty_of_arrays",
]
