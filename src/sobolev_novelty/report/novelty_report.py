r"""NoveltyReport: the residuals of all terms and what follows from them (Eq. 2, Appendix A).

Notation
--------
``b``      coefficients of the terms;  ``nu`` novelties;  ``l`` lengths ‖Ψ_X(φ_i)‖, with the scale 1/σ_s of Eq. 1
``1/nu²``  inflation of the squared attribution sensitivity: the variance inflation factor of the signatures, uncentred
``1/nu``   attribution sensitivity κ (Theorem A.5)
``|b| l nu``  deletion-and-refit cost (Theorem A.8), the term's independent contribution
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.digits import floats, json_number, json_rows, json_value, short_numbers
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import MIN_ROWS, MIN_WORD_ROWS, Geometry, Status
from sobolev_novelty.core.linear.least_squares import collinearity
from sobolev_novelty.core.linear.projection import Residuals
from sobolev_novelty.core.linear.tangent import Frame
from sobolev_novelty.core.output import write_whole
from sobolev_novelty.core.parameters import NOTHING, PATH, checked_methods
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.own_operators import own_derivative_notes
from sobolev_novelty.metric.batch import terms_and_novelties
from sobolev_novelty.report.bootstrap import Bootstrap
from sobolev_novelty.report.quality import FitQuality
from sobolev_novelty.report.render.sentences import verdict
from sobolev_novelty.report.resolution.domains import domain_notes
from sobolev_novelty.report.source import SampledTerms, Source, null_note
from sobolev_novelty.report.verdicts import NO_VERDICT, TermVerdict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Numbers of a verdict that need a target.
TARGET_NUMBERS = ("relative_error", "bits", "error_increase")
#: The matrix of who rebuilds whom is computed for at most this many terms.
MAX_MATRIX_TERMS = 60


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
        label = short_numbers(self.label)
        if not self.parts:
            return f"{label}: no other term rebuilds any of it (novelty {self.residual:.3g})."
        parts = (f"{'-' if w < 0 else '+'} {abs(w):.4g}*({short_numbers(part)})" for part, w in self.parts)
        left = f"leaving {self.residual:.1%} unexplained ({self.residual**2:.1%} of its energy)."
        return f"{label} ≈ {' '.join(parts).removeprefix('+ ')}\n{left}"

    def __repr__(self) -> str:
        return str(self)


@checked_methods(explain={}, to_json={"path": PATH | NOTHING}, to_html={"path": PATH | NOTHING})
@dataclass(frozen=True, eq=False, repr=False)
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
    n_known : int or None
        Rows of the table that a search took these from.
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
    n_known: int | None = None

    def __len__(self) -> int:
        return len(self.nu)

    def __repr__(self) -> str:
        return f"NoveltyReport({terms_and_novelties(self.labels, self.nu)}, {self.n_used} of {self.n_samples} rows)"

    def taken_from(self, n_known: int) -> NoveltyReport:
        """The same report, of rows that were taken from a table of this length."""
        return replace(self, n_known=n_known)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The terms, as text."""
        return self.given_labels if self.terms is None else tuple(str(term.expression) for term in self.terms)

    @cached_property
    def lengths(self) -> FloatArray:
        """‖Ψ_X(φ_i)‖, relative to the size σ_s of the expression."""
        return np.asarray(self.norms / self.source.scale)

    @property
    def is_null(self) -> npt.NDArray[np.bool_]:
        """Terms whose signature is zero on the sample; where the intercept is free, such a term is part of it."""
        return np.asarray((self.norms == 0.0) & (not self.geometry.is_free))

    @cached_property
    def residuals(self) -> Residuals | None:
        """The geometry behind the novelties; None where there are none."""
        return self.source.residuals if self.status is Status.OK else None

    @cached_property
    def dropped(self) -> dict[str, int]:
        """Reason -> number of rows not used."""
        return {} if self.n_used == self.n_samples else {why: n for why, n in self.source.dropped.items() if n}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        null = (null_note(i if self.terms else self.labels[i]) for i in np.flatnonzero(self.is_null))
        curve = (self.frame.sentence,) if self.is_on_lower_dimension and self.frame is not None else ()
        made = own_derivative_notes([term.expression for term in self.terms or ()], self.geometry.order)
        return (*self.given_notes, *self.source.notes, *null, *curve, *made)

    @cached_property
    def frame(self) -> Frame | None:
        """Dimension and directions of the inputs; None where the rows were not kept."""
        return self.source.frame

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

        seen = self.source.views if self.status is Status.OK else {}
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
        found = self.source.verdicts or (NO_VERDICT,) * len(self)
        if not self.given_intervals:
            return found
        each = zip(found, self.given_intervals, strict=True)
        return tuple(v if interval is None else v.with_interval(*interval) for v, interval in each)

    @cached_property
    def fit_quality(self) -> FitQuality | None:
        """R², cross-validated R², residuals and the effect of each term; None without a target."""
        return self.source.fit_quality

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
        :class:`~sobolev_novelty.report.verdicts.TermVerdict`.
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
        how much (:func:`sobolev_novelty.core.linear.least_squares.collinearity` has all of them); ``bits`` needs a
        target.
        """
        import pandas as pd

        columns = self._columns()
        if columns is None:
            raise ParameterError(
                f"The statistics need the rows, which this report has not kept, and at least {MIN_WORD_ROWS} of them."
            )
        found = collinearity(columns).by_term()
        return pd.DataFrame(
            {"term": list(self.labels), **found, "bits": floats(verdict.bits for verdict in self.verdicts)}
        )

    def _columns(self) -> FloatArray | None:
        return self.source.columns if self.n_used >= MIN_WORD_ROWS and len(self) else None

    @property
    def has_words(self) -> bool:
        """Whether anything is said of the terms; on fewer than 32 rows they may still be needed and determined."""
        return self.status is Status.OK or any(v.needed not in ("unknown", "constant") for v in self.verdicts)

    @property
    def sentence(self) -> str:
        """Why there are numbers, or none; on few rows, which there are."""
        if self.status is not Status.TOO_FEW_ROWS:
            return self.status.sentence
        if not self.has_words:
            is_full = any(verdict.determined == "flat" for verdict in self.verdicts)
            return f"{self.n_used} rows leave none to judge the fit by." if is_full else self.status.sentence
        others = "needed, determined, R² and intervals" if self.fit_quality is not None else "needed"
        return (
            f"{self.n_used} rows are too few for novelty and the word distinct, which need {MIN_ROWS}: what is said of "
            f"{others} needs no more than {MIN_WORD_ROWS}."
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
            "sentence": self.sentence,
            "n_samples": self.n_samples,
            "n_known": self.n_known,
            "n_used": self.n_used,
            "n_judged": self.source.n_judged,
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
            write_whole(Path(path), text + "\n")
        return text

    def latex_table(self) -> str:
        """A booktabs table, one row per term."""
        from sobolev_novelty.report.render.latex import report_table

        return report_table(self.to_dict(), None if self.terms is None else [t.expression for t in self.terms])

    def plot(self, ax: Axes | None = None) -> Figure:
        """Novelty per term, who rebuilds whom and, with a target, the fit; only the novelty where ``ax`` is given."""
        from sobolev_novelty.report.render.figures.figure import report_figure

        return report_figure(self._drawn(), ax)

    def _drawn(self) -> dict[str, Any]:
        """What is drawn beside ``to_dict``: statistics, and some rows of the fit."""
        columns = self._columns()
        statistics = {} if columns is None else collinearity(columns).by_term()
        return self.to_dict() | {
            "statistics": {name: [json_number(value) for value in values] for name, values in statistics.items()},
            "points": None if self.fit_quality is None else json_rows(self.fit_quality.points),
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page, readable on a phone and in the dark; written to ``path`` where one is given."""
        from sobolev_novelty.report.render.page import report_page

        page = report_page(self._drawn())
        if path is not None:
            write_whole(Path(path), page)
        return page

    def __str__(self) -> str:
        from sobolev_novelty.report.render.terminal import report_text

        return report_text(self.to_dict())

    def _repr_html_(self) -> str:
        from sobolev_novelty.report.render.page import report_fragment

        return report_fragment(self._drawn())
