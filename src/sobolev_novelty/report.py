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
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.batch import MAX_TERMS, check_tau, novelties_of, terms_of, three_weights
from sobolev_novelty.data import MAX_KEPT_BYTES, FloatArray, Sample, as_sample, is_dask
from sobolev_novelty.domains import domain_notes
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.explanation import Explanation
from sobolev_novelty.expression import Expression
from sobolev_novelty.fit_quality import FitQuality
from sobolev_novelty.function_terms import function_terms, is_function_list
from sobolev_novelty.geometry import Geometry, Signatures, Status, beside_constant, without_intercept
from sobolev_novelty.json_numbers import floats, json_number, json_rows, json_value
from sobolev_novelty.least_squares import collinearity
from sobolev_novelty.own_operators import own_derivative_notes
from sobolev_novelty.peers import for_every_equation
from sobolev_novelty.progress import OnProgress, silent
from sobolev_novelty.projection import TAU_ID, Residuals, factor, residuals
from sobolev_novelty.render.sentences import verdict
from sobolev_novelty.report_source import SampledTerms, Source, WorkedOut, as_known_target, candidate_scale, null_note
from sobolev_novelty.resampling import Bootstrap, resampled
from sobolev_novelty.signatures import signatures_of_arrays
from sobolev_novelty.tangent import Frame
from sobolev_novelty.terms import Term
from sobolev_novelty.verdicts import NO_VERDICT, TermVerdict, verdicts_of_factor

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Numbers of a verdict that need a target.
TARGET_NUMBERS = ("relative_error", "bits", "error_increase")
#: The matrix of who rebuilds whom is computed for at most this many terms.
MAX_MATRIX_TERMS = 60


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
    given_intervals: tuple[tuple[float, float, str] | None, ...] = ()  # low, high, word for each coefficient

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
        """Terms whose signature is zero on the sample; where the intercept is free, such a term is part of it."""
        return np.asarray((self.norms == 0.0) & (not self.geometry.is_free))

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
        curve = (self.frame.sentence,) if self.is_on_lower_dimension and self.frame is not None else ()
        made = own_derivative_notes([term.expression for term in self.terms or ()], self.geometry.order)
        return (*self.given_notes, *self.source.notes(self.status), *null, *curve, *made)

    @cached_property
    def frame(self) -> Frame | None:
        """Dimension and directions of the inputs; None where the rows were not kept."""
        return self.source.frame()

    @property
    def is_on_lower_dimension(self) -> bool:
        """Whether the inputs lie on a curve or surface of lower dimension than their columns."""
        return self.frame is not None and self.frame.is_lower

    @cached_property
    def views(self) -> pd.DataFrame:
        """Novelty with a free intercept by values alone, with slopes along the data, and with all slopes.

        Where the inputs lie on a curve, slopes that lead away from it tell terms apart that no row separates.
        """
        import pandas as pd

        seen = self.source.views() if self.status is Status.OK else {}
        return pd.DataFrame({"term": list(self.labels), **seen})

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Certain poles and the like within the range of the inputs; none are looked for where rows are not kept."""
        if self.terms is None or not isinstance(self.source, SampledTerms):
            return ()
        return domain_notes([term.expression for term in self.terms], self.source.sample)

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
        cost = np.abs(self.coefficients) * self.nu * self.lengths
        return np.where(self.norms == 0.0, 0.0, cost)  # an intercept that is free has no novelty and costs nothing

    @cached_property
    def verdicts(self) -> tuple[TermVerdict, ...]:
        """Three words on each term, distinct, needed and determined, with their numbers; worked out when asked for."""
        found = (self.source.verdicts() if self.status is Status.OK else ()) or (NO_VERDICT,) * len(self)
        if not self.given_intervals:
            return found
        each = zip(found, self.given_intervals, strict=True)
        return tuple(v if interval is None else v.with_interval(*interval) for v, interval in each)

    @cached_property
    def fit_quality(self) -> FitQuality | None:
        """R², cross-validated R², residuals and the effect of each term; None without a target."""
        return self.source.fit_quality() if self.status is Status.OK else None

    @property
    def summary(self) -> str:
        """What the verdicts say, in a sentence or two."""
        return verdict(self.to_dict())

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
        """One row per term: the words with their numbers, then novelty as the paper has it; bootstrap if asked for.

        ``distinct`` with ``nu_free``, ``needed`` with ``loss`` and, with a target, ``determined`` with the interval of
        the coefficient (``low``, ``high``), ``relative_error``, ``bits`` and ``error_increase``: see
        :class:`~sobolev_novelty.verdicts.TermVerdict`.
        """
        import pandas as pd

        columns: dict[str, Any] = {
            "term": list(self.labels),
            "coefficient": self.coefficients,
            "novelty": self.nu,
            "inflation": self.inflation,
            "contribution": self.contribution,
            "qualified": self.qualified,
            "distinct": [verdict.distinct for verdict in self.verdicts],
            "nu_free": [verdict.novelty for verdict in self.verdicts],
            "needed": [verdict.needed for verdict in self.verdicts],
            "loss": [verdict.loss for verdict in self.verdicts],
        }
        if any(verdict.determined is not None for verdict in self.verdicts):
            columns |= {
                "determined": [verdict.determined for verdict in self.verdicts],
                "low": floats(v.interval and v.interval[0] for v in self.verdicts),
                "high": floats(v.interval and v.interval[1] for v in self.verdicts),
                **{name: floats(getattr(v, name) for v in self.verdicts) for name in TARGET_NUMBERS},
            }
        if self.bootstrap is not None:
            columns |= {
                "lower": self.bootstrap.lower,
                "upper": self.bootstrap.upper,
                "stability": self.bootstrap.stability,
            }
        return pd.DataFrame(columns)

    @property
    def statistics(self) -> pd.DataFrame:
        """What statisticians look for: VIF, condition index with variance proportion (Belsley), and bits saved.

        ``condition_index`` is the one that most of the variance of the term's coefficient belongs to, ``proportion``
        how much (:func:`sobolev_novelty.least_squares.collinearity` has all of them); ``bits`` needs a target.
        """
        import pandas as pd

        columns = self.source.columns() if self.status is Status.OK else None
        if columns is None:
            raise ParameterError("The statistics need the rows, which this report has not kept. Give fewer rows.")
        found = collinearity(columns).by_term()
        return pd.DataFrame(
            {"term": list(self.labels), **found, "bits": floats(verdict.bits for verdict in self.verdicts)}
        )

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
            "n_judged": self.source.n_judged(),
            "dropped": dict(self.dropped),
            "features": list(self.names),
            "tau": self.tau,
            "order": self.geometry.order,
            "weights": list(self.geometry.weights[: self.geometry.order + 1]),
            "coordinates": self.geometry.coordinates,
            "intercept": self.geometry.intercept,
            "n_qualified": int(self.qualified.sum()),
            "has_target": any(verdict.determined is not None for verdict in self.verdicts),
            "fit": None if self.fit_quality is None else self.fit_quality.to_dict(),
            "terms": [self._term_dict(i) for i in range(len(self))],
            "gram": json_rows(self.gram) if small else None,
            "reconstruction": json_rows(self.reconstruction) if small else None,
            "dimension": self.frame.dimension if self.is_on_lower_dimension and self.frame is not None else None,
            "views": self._views_dict() if self.is_on_lower_dimension else None,
            "notes": [*self.notes, *self.problems],
        }

    def _views_dict(self) -> dict[str, list[float | None]]:
        return {name: [json_number(v) for v in self.views[name]] for name in self.views.columns if name != "term"}

    def _term_dict(self, i: int) -> dict[str, Any]:
        has_novelty = self.status is Status.OK
        entry: dict[str, Any] = {
            "term": self.labels[i],
            "coefficient": json_number(self.coefficients[i]),
            "novelty": json_number(self.nu[i]),
            "inflation": json_number(self.inflation[i]),
            "sensitivity": json_number(self.sensitivity[i]),
            "contribution": json_number(self.contribution[i]),
            "norm": json_number(self.lengths[i]),
            "is_null": bool(self.is_null[i]),
            "qualified": bool(self.qualified[i]) if has_novelty and not np.isnan(self.nu[i]) else None,
            "verdict": {name: json_value(value) for name, value in asdict(self.verdicts[i]).items()},
        }
        if self.bootstrap is not None:
            entry["interval"] = [json_number(self.bootstrap.lower[i]), json_number(self.bootstrap.upper[i])]
            entry["stability"] = json_number(self.bootstrap.stability[i])
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

    def plot(self, ax: Axes | None = None) -> Figure:
        """Novelty per term, who rebuilds whom and, with a target, the fit; only the novelty where ``ax`` is given."""
        from sobolev_novelty.render.figure import report_figure

        return report_figure(self._drawn(), ax)

    def _drawn(self) -> dict[str, Any]:
        """What is drawn beside ``to_dict``: statistics, and some rows of the fit."""
        columns = self.source.columns() if self.status is Status.OK else None
        statistics = {} if columns is None else collinearity(columns).by_term()
        return self.to_dict() | {
            "statistics": {name: [json_number(value) for value in values] for name, values in statistics.items()},
            "points": None if self.fit_quality is None else json_rows(self.fit_quality.points),
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page, readable on a phone and in the dark; written to ``path`` where one is given."""
        from sobolev_novelty.render.page import report_page

        page = report_page(self._drawn())
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def __str__(self) -> str:
        from sobolev_novelty.render.terminal import report_text

        return report_text(self.to_dict())

    def _repr_html_(self) -> str:
        from sobolev_novelty.render.page import report_fragment

        return report_fragment(self._drawn())


@for_every_equation
def novelty(
    equation: Any,
    X: Any,
    y: Any = None,
    *,
    sigma: Any = None,
    sample_weight: Any = None,
    names: Sequence[str] | None = None,
    order: int = 1,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0),
    coordinates: str = "standardized",
    intercept: str = "term",
    tau: float = TAU_ID,
    n_bootstrap: int = 0,
    random_state: int | np.random.Generator | None = None,
    max_terms: int | None = MAX_TERMS,
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
        The observed inputs. No target is needed for novelty. A Dask collection is read block by block where its blocks
        are; the work runs on the active Dask scheduler or cluster.
    y : array of shape (n_samples,), optional
        What the equation was fitted to. With it the verdicts say what each term saves and whether its coefficient is
        determined.
    sigma : float or array of shape (n_samples,), optional
        Measurement error of ``y``, one standard deviation; estimated from the residual where it is not given.
    sample_weight : array of shape (n_samples,), optional
        Relative weights of the rows, where their errors are known up to a common factor.
    names : sequence of str, optional
        Feature names; by default the DataFrame's columns, or ``x0, x1, …``.
    order : {0, 1, 2}
        Highest derivative in the signature; 1 is the paper's.
    weights : tuple of float
        λ₀, λ₁ and λ₂.
    coordinates : {"standardized", "raw", "tangent", "path"}
        Whether slopes are along standardized inputs, along inputs as they are, or only along the data: where inputs lie
        on a curve or surface (trajectories), on the tangent space of neighbouring rows, or from row to row in time.
    intercept : {"term", "free"}
        Whether the constant is a term among others, as in the paper, or projected out of every term: then ν does not
        depend on where an input's origin lies, and a constant has no ν (``nan``).
    tau : float
        Threshold of the verdict; 1/√10 by default.
    n_bootstrap : int
        Resamples of the rows for intervals; 0 for none. Needs the rows in memory, so not with Dask.
    random_state : int or Generator, optional
        Seed of the bootstrap.
    max_terms : int, optional
        More terms are refused: the work grows with a high power of their number, and a thousand take half a minute.
        None for no limit.
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
        if not (y is sigma is sample_weight is None) or intercept != "term":
            raise ParameterError("Terms that are functions are judged by 'X' alone, the constant a term among others.")
        geometry = Geometry(order, three_weights(weights), coordinates)
        return _of_functions(
            equation, as_sample(X, names), geometry, tau=tau, n_bootstrap=n_bootstrap, random_state=random_state
        )
    if is_dask(X):
        options = {"order": order, "weights": weights, "coordinates": coordinates, "intercept": intercept, "tau": tau}
        if not (y is sigma is sample_weight is None):
            raise ParameterError("'y' needs the rows in memory: give a part that fits, X.compute(), or leave 'y' out.")
        return _of_dask(equation, X, names, n_bootstrap, **options)
    sample = as_sample(X, names)
    target = as_known_target(y, sigma, sample_weight, sample.n_samples)
    geometry = Geometry(order, three_weights(weights), coordinates, intercept)
    expression, terms, notes = terms_of(equation, sample.names, max_terms)
    found = novelties_of([terms], sample, geometry)[0]
    sampled = SampledTerms(sample, terms, geometry, notes, target, tau)
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
    return replace(report, geometry=geometry, names=sample.names, given_notes=(found.note,) if has_slopes else ())


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
    words = () if result is None else _words_of_arrays(found, replace(geometry, intercept="free"), b, tau)
    report = NoveltyReport(
        terms=None, coefficients=b, nu=np.full(m, np.nan) if result is None else result.nu,
        norms=np.full(m, np.nan) if result is None else result.lengths, status=found.status, n_samples=len(found.used),
        n_used=found.n_used, geometry=geometry, names=(), tau=tau, given_labels=texts,
        source=WorkedOut(result, candidate_scale(found.values[:, found.used], b), dropped, (), words),
    )  # fmt: skip
    return _with_bootstrap(report, found, n_bootstrap, random_state)


def _words_of_arrays(found: Signatures, geometry: Geometry, b: FloatArray, tau: float) -> tuple[TermVerdict, ...]:
    """The words that need no target; every component of a sample has an intercept of its own."""
    free = beside_constant(found)
    result = residuals(free)
    nu = without_intercept(result.nu, result.lengths, geometry)
    return verdicts_of_factor(factor(free[: free.shape[0] // found.n_blocks]), b, nu, tau)


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
    is_free = report.geometry.is_free
    bootstrap = resampled(
        found, report.qualified, rng, tau=report.tau, is_free=is_free, n_resamples=n_resamples, on_progress=on_progress
    )
    return replace(report, bootstrap=bootstrap)


__all__ = [
    "TAU_ID",
    "Bootstrap",
    "Explanation",
    "NoveltyReport",
    "Status",
    "novelty",
    "novelty_of_arrays",
]
