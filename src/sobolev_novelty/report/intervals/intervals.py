r"""How well data determine the constants of an equation: profile-likelihood intervals and confidence bands.

What counts as a constant: :mod:`sobolev_novelty.report.intervals.constants`. The interval of a constant holds the
values for which the others can be refitted so that the sum of squares stays below a threshold: :math:`S_{\min}(1 +
t^2/(n-p))` where the noise is estimated from the residuals, :math:`S_{\min} + \chi^2_1` where ``sigma`` says how large
it is. It need not be symmetric, and a side on which the threshold is never reached is open.

Verdicts: *determined* where both sides are closed, *one-sided* where one is open, *flat* where both are. A side of a
coefficient also counts as open where its end would move the term's part of the prediction by more than the target
itself varies: such an end says nothing (the others make up for it).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.digits import interval_text, number_text
from sobolev_novelty.core.expression import Expression, short_text, to_infix
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.parameters import TERMS, checked, instance, one_of
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample, as_target
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import as_expression, derivatives
from sobolev_novelty.price.noise import KNOWN_SHAPES, Noise, known_shape
from sobolev_novelty.report.intervals.constants import Constant, Parametrised, parametrised, parametrised_terms
from sobolev_novelty.report.intervals.profile_ends import Quantity, profile_ends
from sobolev_novelty.report.intervals.profiles import Estimate, Model, Scale, best_fit
from sobolev_novelty.report.intervals.rows import FittedRows, weighted_spread
from sobolev_novelty.report.intervals.term_coefficients import coefficients_of

if TYPE_CHECKING:
    import pandas as pd

Determination = Literal["determined", "one-sided", "flat"]

#: Share of an unwritten coefficient's effect that the constants of its summand must not be able to imitate.
OWN_SHARE = 1e-7
#: Constants of an equation at most: the time grows with the cube of their number.
MAX_CONSTANTS = 500
#: Fits whose weights follow the equation.
N_REWEIGHTED = 3


@dataclass(frozen=True, slots=True)
class Interval:
    """What the data say of one constant.

    Parameters
    ----------
    constant : str
        The summand that a coefficient stands before, or the summand with the constant between ‹ and ›.
    kind : str
        ``"coefficient"`` or ``"inner"``.
    given : float
        As the equation had it.
    estimate, low, high : float
        The best fit and the ends of the interval; an open end is infinite.
    verdict : str
        ``"determined"``, ``"one-sided"`` or ``"flat"``.
    """

    constant: str
    kind: str
    given: float
    estimate: float
    low: float
    high: float
    verdict: Determination

    @property
    def half_width(self) -> float | None:
        """Half the width; None where a side is open."""
        width = 0.5 * (self.high - self.low)
        return width if math.isfinite(width) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON; an open end is ``None``."""
        numbers = {name: getattr(self, name) for name in ("given", "estimate", "low", "high")}
        finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        return {"constant": self.constant, "kind": self.kind, **finite, "verdict": self.verdict}


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Intervals of all constants of an equation.

    Attributes
    ----------
    items : tuple of Interval
    expression : Expression
        The equation with its constants refitted to these rows.
    half_widths : tuple of float or None
        Half-widths of the numbers of ``expression``, in prefix order.
    level : float
    n_rows, n_parameters : int
        Rows used, and constants that the rows tell apart.
    noise : float
        Standard deviation of the residuals of a row of weight 1; 1 where ``sigma`` was given.
    is_noise_known : bool
        Whether ``sigma`` was given.
    shape : Noise
        How the noise goes with the value.
    unit_height : float
        The shape's value where a row has weight 1.
    """

    items: tuple[Interval, ...]
    expression: Expression
    half_widths: tuple[float | None, ...]
    level: float
    n_rows: int
    n_parameters: int
    noise: float
    is_noise_known: bool
    model: Model
    best: Estimate
    shape: Noise = field(default_factory=Noise)
    unit_height: float = 1.0

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Interval:
        return self.items[index]

    @property
    def table(self) -> pd.DataFrame:
        """One row per constant: constant, kind, given, estimate, low, high, verdict."""
        import pandas as pd

        names = ("constant", "kind", "given", "estimate", "low", "high", "verdict")
        return pd.DataFrame({name: [getattr(item, name) for item in self.items] for name in names})

    @property
    def text(self) -> str:
        """The refitted equation, each constant to the digits its interval allows."""
        return short_text(self.expression, self.half_widths)

    def latex(self) -> str:
        """The refitted equation as LaTeX, each constant to the digits its interval allows."""
        from sobolev_novelty.language.convert import to_latex

        return to_latex(self.expression, half_widths=self.half_widths)

    def band(self, X: Any, *, observation: bool = False) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Prediction and its confidence band at new rows, by the delta method.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or DataFrame
        observation : bool
            Whether the band is for a new observation, noise included, instead of for the law itself.

        Returns
        -------
        prediction, low, high : ndarray of shape (n_samples,)
            Infinite where a row asks for a combination of constants that the data leave open.
        """
        names = self.model.names
        sample = as_sample(X, None if hasattr(X, "columns") else names)
        missing = [name for name in names if name not in sample.names]
        if missing:
            raise DataError(f"'X' lacks columns of the data that the intervals come from: {', '.join(missing)}.")
        rows = np.ascontiguousarray(sample.X[[sample.names.index(name) for name in names]])
        with np.errstate(all="ignore"):
            values, slopes = (
                found[0] for found in self.model.on(rows, self.best.theta).evaluate(self.best.theta[None])
            )
            unit = self.model.scale.prediction
            variance = np.einsum("pn,pq,qn->n", slopes, self.best.inverse, slopes)
            relative = slopes / self.best.scale[:, None]
            loose = np.linalg.norm(self.best.null.T @ relative, axis=0) > 1e-6 * np.linalg.norm(relative, axis=0)
            noise = self.noise / unit
            height = self.shape.heights(unit * values) / self.unit_height if observation else 0.0
            spread = unit * noise * np.sqrt(variance + height**2)
        dof = None if self.is_noise_known else self.n_rows - self.n_parameters
        half = np.where(loose, np.inf, _quantile(self.level, dof) * spread)
        return unit * values, unit * values - half, unit * values + half

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON; an open end is ``None``."""
        return {
            "equation": self.text,
            "level": self.level,
            "n_rows": self.n_rows,
            "noise": self.noise if math.isfinite(self.noise) else None,
            "constants": [item.to_dict() for item in self.items],
        }

    def __repr__(self) -> str:
        known = "sigma given" if self.is_noise_known else f"noise {number_text(self.noise, digits=3)}"
        rows = [
            (
                item.constant if len(item.constant) <= 48 else item.constant[:47] + "…",
                number_text(item.estimate, item.half_width),
                interval_text(item.low, item.high, item.estimate),
                item.verdict,
            )
            for item in self.items
        ]
        head = ("constant", "estimate", f"{self.level * 100:g} % interval", "verdict")
        widths = [max(len(row[k]) for row in [head, *rows]) for k in range(3)]
        lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths)), row[3]]) for row in [head, *rows]]
        return "\n".join([self.text, f"{self.n_rows:,} rows, {known}", *lines])


@checked(noise=one_of(*KNOWN_SHAPES) | instance("a Noise", Noise))
def intervals(
    equation: Any,
    X: Any,
    y: Any,
    *,
    level: float = 0.95,
    sample_weight: Any = None,
    sigma: Any = None,
    noise: str | Noise = "constant",
    names: Sequence[str] | None = None,
) -> Intervals:
    """Profile-likelihood intervals of every constant of an equation.

    The constants are refitted to the rows first, from the values they have. Rows in which the equation is not finite
    are left out.

    Parameters
    ----------
    equation : str, Expression or SymPy expression
    X : array of shape (n_samples, n_features) or DataFrame
    y : array of shape (n_samples,)
    level : float
        Probability with which an interval covers the true value.
    sample_weight : array of shape (n_samples,), optional
        Relative precision of each row; the size of the noise is estimated.
    sigma : float or array of shape (n_samples,), optional
        Standard deviation of the measurement errors of ``y``. The size of the noise is then known.
    noise : {"constant", "relative", "counts"} or Noise
        How the noise goes with the value of the equation: not at all, as the value, as its root.
    names : sequence of str, optional
        Feature names, where ``X`` does not bring its own.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0.0, 3.0, 200)
    >>> y = 2.0 * np.exp(-0.7 * x) + 1.0 + 0.05 * rng.normal(size=200)
    >>> print(intervals("2*exp(-0.7*x0) + 1", x, y))
    2.027*exp(-0.673*x0) + 0.966
    200 rows, noise 0.0482
    constant                 estimate  95 % interval    verdict
    exp(-0.6729*x0)          2.027     1.988 … 2.068    determined
    2.027*exp(‹-0.6729›*x0)  -0.673    -0.711 … -0.635  determined
    1                        0.966     0.915 … 1.012    determined
    """
    sample = as_sample(X, names)
    expression = as_expression(equation, sample.names)
    shape = noise if isinstance(noise, Noise) else known_shape(noise, as_target(y, sample.n_samples))
    if not shape.is_constant:
        return _under(shape, expression, sample, y, level=level, sample_weight=sample_weight, sigma=sigma)
    n_constants = len(parametrised(expression).theta)
    if n_constants > MAX_CONSTANTS:
        raise ParameterError(
            f"'equation' has {n_constants} constants; intervals are found for at most {MAX_CONSTANTS}. Collect equal "
            "terms, or give a part of it."
        )
    data = FittedRows.of([expression], sample, y, sample_weight, sigma)
    whole = _without_repeated_coefficients(expression, data)
    found = _Solved.of(whole, data, level)
    items = found.intervals([_label(whole, constant, found.theta) for constant in whole.constants])
    return Intervals(
        items, whole.at(found.theta), whole.half_widths([item.half_width for item in items]), level, found.data.n_rows,
        found.best.rank, found.noise, data.is_noise_known, found.model, found.best,
    )  # fmt: skip


def _under(
    shape: Noise, expression: Expression, sample: Sample, y: Any, *, level: float, sample_weight: Any, sigma: Any
) -> Intervals:
    """The intervals where the weights of the rows follow the equation."""
    if sigma is not None:
        raise ParameterError("'sigma' says what the noise is: leave out 'noise', or give it alone.")
    given = np.ones(sample.n_samples) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    for _ in range(N_REWEIGHTED):
        with np.errstate(all="ignore"):
            h = shape.heights(derivatives([expression], sample, order=0)[0, 0])
            w = np.where(np.isfinite(h), given / h**2, 0.0)
        mean = float(w.mean())
        found = intervals(expression, sample, y, level=level, sample_weight=w / mean)
        expression = found.expression
    return replace(found, shape=shape, unit_height=mean**-0.5)


def equation_intervals(
    expression: Expression,
    terms: Sequence[Term],
    sample: Sample,
    y: FloatArray,
    *,
    level: float = 0.95,
    sample_weight: FloatArray | None = None,
    sigma: FloatArray | None = None,
) -> tuple[Interval | None, ...]:
    """What :func:`intervals` finds, for the coefficients of the additive terms of the equation.

    The fit and the profile are the same. A coefficient that is one of the equation's constants has its interval; one
    that several make up (``2*(x0 - 3)`` has the term -6) that of their product. None where a coefficient is not made up
    of constants, or its profile does not settle.

    >>> from sobolev_novelty.language.parsing import parse
    >>> from sobolev_novelty.algebra.terms import additive_terms
    >>> x = np.linspace(0.0, 4.0, 60)
    >>> y = 8.0 * x / (1.5 + x) + 0.1 * np.cos(40.0 * x)
    >>> law = parse("8*x0/(1.5 + x0)")
    >>> (found,) = equation_intervals(law, additive_terms(law).terms, as_sample(x), y)
    >>> (found.low, found.high) == (intervals(law, x, y)[0].low, intervals(law, x, y)[0].high)
    True
    """
    if not terms or len(parametrised(expression).theta) > MAX_CONSTANTS:
        return (None,) * len(terms)
    data = FittedRows.of([expression], sample, y, sample_weight, sigma)
    whole = _without_repeated_coefficients(expression, data)
    found = _Solved.of(whole, data, level)
    return found.of_terms(terms, coefficients_of(terms, whole))


@checked(terms=TERMS)
def term_intervals(
    terms: Sequence[Term],
    X: Any,
    y: Any,
    *,
    level: float = 0.95,
    sample_weight: Any = None,
    sigma: Any = None,
    names: Sequence[str] | None = None,
) -> tuple[Interval, ...]:
    """Intervals of the coefficients of additive terms, one for each, the constants inside the terms refitted too.

    Arguments are those of :func:`intervals`; ``constant`` of an interval is the term.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> y = 3.0 * x + 0.1 * np.cos(40.0 * x)
    >>> found = term_intervals([Term(3.0, Expression.of("x0")), Term(0.0, Expression.of(1.0))], x, y)
    >>> [interval.verdict for interval in found], found[0].low < 3.0 < found[0].high
    (['determined', 'determined'], True)
    """
    sample = as_sample(X, names)
    expressions = [term.expression for term in terms]
    if not expressions:
        return ()
    data = FittedRows.of(expressions, sample, y, sample_weight, sigma)
    whole = parametrised_terms([term.coefficient for term in terms], expressions)
    return _Solved.of(whole, data, level).intervals([short_text(e) for e in expressions])


def _quantile(level: float, dof: int | None) -> float:
    """Two-sided: the normal's, or Student's with ``dof`` degrees of freedom; infinite where there is none left."""
    from scipy.special import ndtri, stdtrit  # not with the module: reports must load fast

    upper = 0.5 * (1.0 + level)
    if dof is None:
        return float(ndtri(upper))
    return float(stdtrit(dof, upper)) if dof > 0 else math.inf


def _without_repeated_coefficients(expression: Expression, data: FittedRows) -> Parametrised:
    """The constants of an equation; a coefficient 1 counts only where other constants of its summand cannot imitate it.

    ``exp(2 - x)`` has its scale in the 2 already; ``sin(2*x)`` has none.
    """
    whole = parametrised(expression)
    implied = [(j, c.summand) for j, c in enumerate(whole.constants) if c.is_implied]
    shared = [(j, i) for j, i in implied if sum(k >= 0 for k in whole.parts[i].parameters) > 1]
    if not shared:
        return whole
    with np.errstate(all="ignore"):
        J = data.differentiable(whole).model(whole).evaluate(whole.theta[None])[1][0]
    repeated = set()
    for j, i in shared:
        others = [k for k in whole.parts[i].parameters if k >= 0 and k != j]
        A = J[others] / np.maximum(np.linalg.norm(J[others], axis=1), 1e-300)[:, None]
        rest = J[j] - A.T @ np.linalg.lstsq(A.T, J[j], rcond=None)[0]
        if np.linalg.norm(rest) <= OWN_SHARE * np.linalg.norm(J[j]):
            repeated.add(i)
    return parametrised(expression, repeated) if repeated else whole


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """The best fit; parameters, target and noise in the units of the model."""

    whole: Parametrised
    data: FittedRows
    model: Model
    best: Estimate
    slack: float
    noise: float  # in the unit of the target

    @classmethod
    def of(cls, whole: Parametrised, data: FittedRows, level: float) -> _Solved:
        with np.errstate(all="ignore"):
            data = data.differentiable(whole)
            scale = Scale.of(data.y, data.model(whole).evaluate(whole.theta[None])[1][0])
            model = data.model(whole, scale)
            best = best_fit(model, data.y / scale.prediction, whole.theta / scale.parameters)
            if best is None:
                raise DataError("The sum of squares of the equation's residuals is not finite. Rescale 'y' or 'X'.")
            dof = data.n_rows - best.rank
            own = 1.0 / scale.prediction if data.is_noise_known else math.sqrt(best.loss / dof) if dof > 0 else math.inf
            slack = (_quantile(level, None if data.is_noise_known else dof) * own) ** 2
        return cls(whole, data, model, best, slack, own * scale.prediction)

    @property
    def theta(self) -> FloatArray:
        """The best constants."""
        return self.best.theta * self.model.scale.parameters

    def intervals(self, labels: Sequence[str]) -> tuple[Interval, ...]:
        """Of the first constants, one for each label."""
        n = len(labels)
        ends = self._ends([Quantity.of_parameter(j, len(self.best.theta)) for j in range(n)])
        with np.errstate(all="ignore"):
            reach = self._reach(self.model.evaluate(self.best.theta[None])[1][0, :n])
        found = []
        for j, label in enumerate(labels):
            constant, unit = self.whole.constants[j], float(self.model.scale.parameters[j])
            kind = "coefficient" if constant.is_coefficient else "inner"
            farthest = float(reach[j]) if constant.is_coefficient else math.inf
            numbers = (self.best.theta[j], *ends[j])
            found.append(_interval(label, kind, float(self.whole.theta[j]), numbers, farthest, unit=unit))
        return tuple(found)

    def of_terms(self, terms: Sequence[Term], coefficients: Sequence[Quantity | None]) -> tuple[Interval | None, ...]:
        """Of the coefficients of the terms; of one that is a constant, that of the constant."""
        scale = self.model.scale
        known = [(i, q.in_units(scale.parameters)) for i, q in enumerate(coefficients) if q is not None]
        ends = self._ends([quantity for _, quantity in known])
        with np.errstate(all="ignore"):
            columns = derivatives([term.expression for term in terms], self.data.sample, order=0)[:, 0]
            reach = self._reach(columns if self.data.root is None else columns * self.data.root)
        found: list[Interval | None] = [None] * len(terms)
        for (i, quantity), (low, high) in zip(known, ends.tolist(), strict=True):
            if math.isnan(low) or math.isnan(high):
                continue
            label, given = short_text(terms[i].expression), terms[i].coefficient
            j = quantity.parameter
            is_inner = j is not None and not self.whole.constants[j].is_coefficient
            farthest = math.inf if is_inner else float(reach[i]) * scale.prediction
            found[i] = _interval(label, "coefficient", given, (quantity.value(self.best.theta), low, high), farthest)
        return tuple(found)

    def _ends(self, quantities: Sequence[Quantity]) -> FloatArray:
        if not math.isfinite(self.slack):
            return np.tile(np.array([-np.inf, np.inf]), (len(quantities), 1))
        with np.errstate(all="ignore"):
            y = self.data.y / self.model.scale.prediction
            return profile_ends(self.model, y, self.best, self.slack, quantities)

    def _reach(self, columns: FloatArray) -> FloatArray:
        """The change of each coefficient that moves the prediction by the target's spread."""
        spreads = np.array([weighted_spread(column, self.data.root) for column in columns])
        sizes = np.linalg.norm(columns, axis=1) / math.sqrt(self.data.n_rows)
        spread = weighted_spread(self.data.y / self.model.scale.prediction, self.data.root)
        return np.where(spreads > 1e-12 * sizes, spread / np.where(spreads > 0.0, spreads, 1.0), np.inf)


def _interval(
    label: str, kind: str, given: float, numbers: Sequence[float], reach: float, *, unit: float = 1.0
) -> Interval:
    """An interval from the estimate and its two ends; an end beyond ``reach`` counts as open."""
    estimate, low, high = (float(number) for number in numbers)
    n_closed = sum(math.isfinite(end) and abs(end - estimate) <= reach for end in (low, high))
    verdict: Determination = ("flat", "one-sided", "determined")[n_closed]
    return Interval(label, kind, given, estimate * unit, low * unit, high * unit, verdict)


def _label(whole: Parametrised, constant: Constant, theta: FloatArray) -> str:
    """The summand without its coefficient, or with the constant in question between ‹ and ›."""
    summand, n_before = whole.summand(constant.summand, theta)
    texts = [number_text(value) for value in summand.constants]
    place = constant.place - n_before
    if not constant.is_coefficient:
        texts[place] = f"‹{texts[place]}›"
        return to_infix(summand, texts)
    if len(summand) == 1 and not summand.variables:
        return "1"
    if summand.tokens[0] is OPERATORS["mul"] and isinstance(summand.tokens[1], float):
        return to_infix(summand.subtree(2), texts[1:])
    texts[place] = "1"
    text = to_infix(summand, texts)
    return text[2:] if text.startswith("1*") else text if text.endswith("**1") else text.removesuffix("*1")
