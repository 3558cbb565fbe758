"""novelty(): Sobolev Novelty of the terms of an equation, of functions or of arrays, as a NoveltyReport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sobolev_novelty.core.geometry import Geometry, Signatures, Status, beside_constant, without_intercept
from sobolev_novelty.core.linear.projection import TAU_ID, factor, residuals
from sobolev_novelty.core.operators.function_terms import function_terms, is_function_list
from sobolev_novelty.core.parameters import COUNT, NOTHING, checked
from sobolev_novelty.core.progress import OnProgress, silent
from sobolev_novelty.core.sample import MAX_KEPT_BYTES, FloatArray, Sample, as_sample, is_dask, numeric_array
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.peers import for_every_equation
from sobolev_novelty.metric.batch import MAX_TERMS, novelties_of, terms_of, three_weights
from sobolev_novelty.metric.signatures import signatures_of_arrays
from sobolev_novelty.report.bootstrap import resampled
from sobolev_novelty.report.novelty_report import NoveltyReport
from sobolev_novelty.report.quality import quality_of_columns
from sobolev_novelty.report.source import SampledTerms, Target, WorkedOut, as_known_target, candidate_scale
from sobolev_novelty.report.verdicts import TermVerdict, verdicts_of_columns, verdicts_of_factor


@checked(max_terms=COUNT | NOTHING)
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
        its coefficient). Models are those of :mod:`sobolev_novelty.language.peers`; one with several targets gives a
        dict with a report for each. A list of functions of the table is differentiated by complex steps, or by
        differences where a function does not take complex numbers; a note says which.
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
        Told how many resamples are done (:class:`sobolev_novelty.core.progress.Progress`).

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
    if is_function_list(equation):
        if intercept != "term":
            raise ParameterError("'intercept' must be 'term' for terms that are functions. Got 'free'.")
        sample = as_sample(X, names)
        return _of_functions(
            equation, sample, Geometry(order, three_weights(weights), coordinates),
            as_known_target(y, sigma, sample_weight, sample.n_samples), tau=tau, n_bootstrap=n_bootstrap,
            random_state=random_state,
        )  # fmt: skip
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
    sampled = SampledTerms(sample, terms, geometry, notes, target, tau, expression, found.status)
    coefficients = np.array([term.coefficient for term in terms])
    is_small = sample.X.nbytes <= MAX_KEPT_BYTES
    report = NoveltyReport(
        terms=terms, coefficients=coefficients, nu=found.nu, norms=found.lengths, status=found.status,
        n_samples=sample.n_samples, n_used=found.n_used, geometry=geometry, names=sample.names, tau=tau,
        source=sampled if is_small else sampled.worked_out(), expression=expression,
    )  # fmt: skip
    if n_bootstrap == 0:
        return report
    return _with_bootstrap(report, sampled.signatures(), n_bootstrap, random_state, on_progress)


def _of_functions(
    functions: Sequence[Any], sample: Sample, geometry: Geometry, target: Target | None, *, tau: float, **options: Any
) -> NoveltyReport:
    if geometry.order > 1:
        raise ParameterError(f"'order' must be 0 or 1 for terms that are functions. Got {geometry.order}.")
    found = function_terms(functions, sample)
    has_slopes = geometry.order == 1
    report = novelty_of_arrays(
        found.values, found.gradients if has_slopes else None, labels=found.labels,
        scales=geometry.scales(sample) if has_slopes else None, weights=geometry.weights, tau=tau, **options,
    )  # fmt: skip
    if target is not None and isinstance(report.source, WorkedOut):
        used = np.asarray(np.isfinite(found.values).all(axis=0))
        if has_slopes:
            used = used & np.isfinite(found.gradients).all(axis=(0, 1))
        known, nu = target.rows(used), np.array([verdict.novelty for verdict in report.verdicts])
        words = verdicts_of_columns(found.values[:, used], nu, known.y, known.weights, known.variance, tau=tau)
        quality = quality_of_columns(found.values, report.coefficients, target.y, target.weights)
        report = replace(report, source=replace(report.source, verdicts=words, fit_quality=quality))
    return replace(report, geometry=geometry, names=sample.names, given_notes=(found.note,) if has_slopes else ())


def _of_dask(equation: Any, X: Any, names: Sequence[str] | None, n_bootstrap: int, **options: Any) -> NoveltyReport:
    from sobolev_novelty.report.streaming import novelty_of_dask

    if n_bootstrap:
        raise ParameterError(
            f"'n_bootstrap' must be 0 for a Dask collection: resampling needs the rows in memory. Got {n_bootstrap}. "
            "Give a part that fits in memory, X.compute()."
        )
    return novelty_of_dask(equation, X, names, **options)


@checked()
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
    b = np.ones(m) if coefficients is None else numeric_array(coefficients, "coefficients")
    if b.shape != (m,) or not np.isfinite(b).all():
        raise ParameterError(f"'coefficients' must have one finite number per term, {m} in all. Got {b.tolist()}.")
    texts = tuple(f"term {i}" for i in range(m)) if labels is None else tuple(labels)
    if len(texts) != m:
        raise ParameterError(f"'labels' must have one entry per term: {m}. Got {len(texts)}.")
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
    if n_resamples == 0 or report.status is not Status.OK:
        return report
    rng = np.random.default_rng(random_state)
    is_free = report.geometry.is_free
    bootstrap = resampled(
        found, report.qualified, rng, tau=report.tau, is_free=is_free, n_resamples=n_resamples, on_progress=on_progress
    )
    return replace(report, bootstrap=bootstrap)


__all__ = ["NoveltyReport", "novelty", "novelty_of_arrays"]
