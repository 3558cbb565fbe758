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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray, Sample, as_sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.evaluate import as_expression
from sobolev_novelty.expression import Expression
from sobolev_novelty.projection import TAU_ID, Residuals, conditional_residuals, residuals
from sobolev_novelty.signatures import Geometry, Signatures, Status, signatures, signatures_of_arrays
from sobolev_novelty.terms import Term, additive_terms

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Wraps a loop to show how far it is.
Progress = Callable[[range], Iterable[int]]

#: Why rows are not used, in the order in which a row is asked.
DROP_REASONS = (
    "an input is missing or not finite",
    "a term's value is not finite",
    "a term's derivative is not finite",
)
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
        left = f"leaves {self.residual:.1%} of its length ({self.residual**2:.1%} of its energy)."
        return f"{self.label} ≈ {' '.join(parts).removeprefix('+ ')}\n{left}"


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

    labels: tuple[str, ...]
    terms: tuple[Term, ...] | None
    coefficients: FloatArray
    nu: FloatArray
    lengths: FloatArray
    is_null: npt.NDArray[np.bool_]
    status: Status
    n_samples: int
    n_used: int
    dropped: dict[str, int]
    geometry: Geometry
    names: tuple[str, ...]
    tau: float
    expression: Expression | None
    residuals: Residuals | None
    bootstrap: Bootstrap | None
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

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
        """One row a term: term, coefficient, novelty, inflation, contribution, qualified; bootstrap if asked for."""
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
        """A booktabs table, one row a term."""
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
    progress: Progress | None = None,
) -> NoveltyReport:
    """Sobolev Novelty of every term of an equation on the observed inputs.

    Parameters
    ----------
    equation : str, Expression, SymPy expression, or a list of them
        An equation is split into its additive terms; a list is taken as the terms themselves (a :class:`Term` brings
        its coefficient).
    X : array of shape (n_samples, n_features) or DataFrame
        The observed inputs. No target is needed.
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
        Resamples of the rows for intervals; 0 for none.
    random_state : int or Generator, optional
        Seed of the bootstrap.
    progress : callable, optional
        Wraps the loop over resamples, for example ``tqdm.tqdm``.

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
    sample = as_sample(X, names)
    geometry = Geometry(order, three_weights(weights), coordinates)
    expression, terms, notes = terms_of(equation, sample.names)
    found = signatures([term.expression for term in terms], sample, geometry)
    report = _report(
        found, np.array([term.coefficient for term in terms]), tuple(str(t.expression) for t in terms),
        geometry=geometry, names=sample.names, tau=tau, terms=terms, expression=expression,
        dropped=_dropped(found, sample, terms), notes=notes + _data_notes(found, sample, geometry),
    )  # fmt: skip
    return _with_bootstrap(report, found, n_bootstrap, random_state, progress)


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

    For terms that are no expressions, and for vector- or tensor-valued ones.

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
        raise ParameterError(f"'coefficients' must have one entry a term, shape ({m},). Got shape {b.shape}.")
    texts = tuple(f"term {i}" for i in range(m)) if labels is None else tuple(str(label) for label in labels)
    if len(texts) != m:
        raise ParameterError(f"'labels' must have one entry a term: {m}. Got {len(texts)}.")
    report = _report(
        found, b, texts, geometry=geometry, names=(), tau=tau, terms=None, expression=None,
        dropped={"a value or derivative is not finite": len(found.used) - found.n_used},
        notes=_null_notes(found, texts),
    )  # fmt: skip
    return _with_bootstrap(report, found, n_bootstrap, random_state)


def conditional_novelty(
    new_terms: Sequence[Any], given: Sequence[Any], X: Any, *, names: Sequence[str] | None = None, order: int = 1
) -> FloatArray:
    """Novelty of each new term against the span of the given ones.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> conditional_novelty(["sin(x0)", "x0**2"], ["x0", "x0**3"], X).round(3)
    array([0.003, 1.   ])
    """
    sample = as_sample(X, names)
    expressions = [as_expression(term, sample.names) for term in (*given, *new_terms)]
    found = signatures(expressions, sample, Geometry(order))
    if found.status is not Status.OK:
        return np.full(len(new_terms), np.nan)
    return conditional_residuals(found.Psi[:, : len(given)], found.Psi[:, len(given) :])


def terms_of(equation: Any, names: tuple[str, ...]) -> tuple[Expression | None, tuple[Term, ...], tuple[str, ...]]:
    """The expression (None for a list of terms), its terms, and notes on how they were split."""
    if isinstance(equation, list | tuple):
        if not equation:
            raise ParameterError("'equation' is an empty list. Give at least one term.")
        parts = (p if isinstance(p, Term) else Term(1.0, as_expression(p, names)) for p in equation)
        return None, tuple(parts), ()
    expression = as_expression(equation, names)
    found = additive_terms(expression)
    notes = tuple(
        f"The factor {factor} was left undistributed: the cap on terms was reached." for factor in found.undistributed
    )
    return expression, found.terms, notes


def _report(
    found: Signatures, coefficients: FloatArray, labels: tuple[str, ...], *,
    geometry: Geometry, names: tuple[str, ...], tau: float, terms: tuple[Term, ...] | None,
    expression: Expression | None, dropped: dict[str, int], notes: tuple[str, ...],
) -> NoveltyReport:  # fmt: skip
    check_tau(tau)
    m = len(labels)
    if found.status is not Status.OK:
        result, nu, lengths, is_null = None, np.full(m, np.nan), np.full(m, np.nan), np.zeros(m, dtype=bool)
    else:
        result = residuals(found.Psi)
        nu, lengths, is_null = result.nu, result.lengths / _candidate_scale(found, coefficients), result.is_null
    return NoveltyReport(
        labels=labels, terms=terms, coefficients=coefficients, nu=nu, lengths=lengths, is_null=is_null,
        status=found.status, n_samples=len(found.used), n_used=found.n_used,
        dropped={why: n for why, n in dropped.items() if n}, geometry=geometry, names=names, tau=tau,
        expression=expression, residuals=result, bootstrap=None, notes=notes,
    )  # fmt: skip


def check_tau(tau: float) -> None:
    """Refuse a threshold that no novelty can have."""
    if not 0.0 <= tau <= 1.0:
        raise ParameterError(f"'tau' must lie between 0 and 1. Got {tau!r}.")


def _candidate_scale(found: Signatures, coefficients: FloatArray) -> float:
    """σ_s of Eq. 1: root mean square of the candidate over the used rows; 1 where the candidate vanishes."""
    with np.errstate(over="ignore", invalid="ignore"):
        s = np.tensordot(coefficients, found.values[:, found.used], axes=1)
        peak = float(np.abs(s).max(initial=0.0))
        if not np.isfinite(peak) or peak == 0.0:
            return 1.0
        return peak * float(np.sqrt(np.sum(np.square(s / peak)) / found.n_used))


def _with_bootstrap(
    report: NoveltyReport,
    found: Signatures,
    n_resamples: int,
    random_state: int | np.random.Generator | None,
    progress: Progress | None = None,
) -> NoveltyReport:
    if n_resamples < 0:
        raise ParameterError(f"'n_bootstrap' must be at least 0. Got {n_resamples}.")
    if n_resamples == 0 or report.residuals is None:
        return report
    rng = np.random.default_rng(random_state)
    n = report.n_used
    m = len(report)
    # (blocks, samples, components, terms): a resample picks whole samples.
    cube = found.Psi.reshape(found.n_blocks, n, -1, m)
    resamples = range(n_resamples) if progress is None else progress(range(n_resamples))
    draws = np.array([residuals(cube[:, rng.integers(0, n, n)].reshape(-1, m)).nu for _ in resamples])
    level = 0.95
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    stability = np.mean((draws > report.tau) == report.qualified, axis=0)
    bootstrap = Bootstrap(lower, upper, stability, level, n_resamples)
    fields = {name: getattr(report, name) for name in report.__dataclass_fields__}
    return NoveltyReport(**(fields | {"bootstrap": bootstrap}))


def _dropped(found: Signatures, sample: Sample, terms: tuple[Term, ...]) -> dict[str, int]:
    variables = {name for term in terms for name in term.expression.variables}
    columns = [k for k, name in enumerate(sample.names) if name in variables]
    bad_input = ~np.isfinite(sample.X[columns]).all(axis=0)
    bad_value = ~np.isfinite(found.values).all(axis=0) & ~bad_input
    bad_derivative = ~found.used & ~bad_value & ~bad_input
    rows = ((bad_input & ~found.used), bad_value, bad_derivative)
    return {why: int(bad.sum()) for why, bad in zip(DROP_REASONS, rows, strict=True) if bad.any()}


def _data_notes(found: Signatures, sample: Sample, geometry: Geometry) -> tuple[str, ...]:
    n_finite = np.isfinite(found.values).sum(axis=1)
    scales = sample.scales()
    notes = data_notes(
        sample.names, scales, geometry, status=found.status, n_finite=n_finite, n_samples=len(found.used)
    )
    return notes + _null_notes(found, ())


def data_notes(
    names: tuple[str, ...],
    scales: FloatArray,
    geometry: Geometry,
    *,
    status: Status,
    n_finite: npt.NDArray[np.integer[Any]],
    n_samples: int,
) -> tuple[str, ...]:
    """What a reader should know of the sample; ``n_finite`` counts the rows where each term's value is finite."""
    notes = [
        f"Column '{name}' is constant: it carries no derivative information along this input."
        for name, scale in zip(names, scales, strict=True)
        if scale == 0.0 and geometry.coordinates == "standardized"
    ]
    if status is Status.TOO_FEW_ROWS:
        worst = int(np.argmin(n_finite))
        notes.append(
            f"Term {worst} is finite in only {n_finite[worst]} of {n_samples} rows; give more rows or check its domain."
        )
    return tuple(notes)


def _null_notes(found: Signatures, labels: tuple[str, ...]) -> tuple[str, ...]:
    if found.status is not Status.OK:
        return ()
    null = np.flatnonzero(~found.Psi.any(axis=0))
    return tuple(null_note(labels[i] if labels else i) for i in null)


def null_note(term: object) -> str:
    """What is said of a term whose signature is zero."""
    return f"Term {term} is zero on the sample (null): its novelty is 0."


def three_weights(weights: tuple[float, ...]) -> tuple[float, float, float]:
    """λ₀, λ₁ and λ₂; those not given are 1."""
    padded = tuple(float(w) for w in weights) + (1.0,) * max(0, 3 - len(weights))
    if len(padded) != 3:
        raise ParameterError(f"'weights' takes at most three numbers (λ0, λ1, λ2). Got {len(weights)}.")
    return padded[0], padded[1], padded[2]


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
    "conditional_novelty",
    "novelty",
    "novelty_of_arrays",
]
