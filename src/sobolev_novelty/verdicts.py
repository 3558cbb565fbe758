r"""Three words on each term, each with its number: distinct, needed, determined.

Notation
--------
``nu``      novelty with a free intercept: values and slopes, the constant projected out of every term
``loss``    share of the prediction's spread that is lost when a term is left out and the others are refitted to it
``t``       the coefficient, refitted to the target, in standard errors
``B``       bits in which the constants inside a term are written: Σ log₂(1 + |c|/s_c), s_c the error to which the rows fix c
``chance``  √(2 B ln 2): the |t| that the best of 2ᴮ terms has on noise alone, so many as its constants allow to try
``bits``    (n/2) log₂(RSS₋ᵢ/RSS) − ½ log₂ n − B: what a term saves in describing the target, less its own price

*Distinct* needs no target and does not depend on units or origins. *Needed* is ``loss`` without a target; with one, a
term must also pay for itself in bits. *Determined* needs a target: the coefficient stands out of its error by more than
chance would give to a term that brings constants of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.batch import novelties_of
from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.evaluation import derivatives
from sobolev_novelty.expression import Expression
from sobolev_novelty.geometry import Geometry, Status
from sobolev_novelty.least_squares import TermFit, fit_columns
from sobolev_novelty.projection import TAU_ID
from sobolev_novelty.terms import Term

#: Below this novelty less than one per cent of a term's energy is its own: the others imitate it.
IMITATED = 0.1
#: A term whose removal moves the prediction by less than this share of its spread hardly matters.
SMALL_LOSS = 0.01
#: Standard errors that a coefficient must stand out by, beyond chance.
STANDS_OUT = 2.0
#: A term that rests on fewer rows than this has not been seen often enough to be told from an accident.
FEW_ROWS = 5.0
#: Radians or standard deviations that a term may change from one row to the next along an input (Nyquist).
RESOLVED = math.pi
#: The signature behind *distinct*, whatever geometry a report has.
REFERENCE = Geometry(intercept="free")
#: Constants that belong to a form rather than to a fit: small integers, halves, thirds and quarters.
_SMALL, _DENOMINATOR = 10.0, 4


@dataclass(frozen=True, slots=True)
class TermVerdict:
    """The words on one term, and the numbers behind them; what was not asked or cannot be known is None.

    Parameters
    ----------
    distinct : str
        ``yes`` (ν > 1/√10), ``partly``, ``no`` (ν ≤ 0.1); ``few rows`` or ``unresolved`` where the rows cannot say,
        ``constant`` for the intercept, ``unknown`` where there is no novelty.
    novelty : float
        ν with a free intercept; ``nan`` for a constant.
    needed : str
        ``yes``, ``little`` (it pays, but moves the prediction by less than 1 %), ``shared`` (without it another term
        takes over, without both much is lost), ``no``.
    loss : float
        Share of the prediction's spread that is lost without the term, the others refitted.
    partner : int or None
        The term it is shared with; ``pair_loss`` is the loss without both.
    rows : float
        Rows the term rests on: (Σ z²)² / Σ z⁴ of its centred values.
    determined : str or None
        ``yes`` or ``no``; one-sided or flat where an interval says so.
    interval : (float, float) or None
        Of the coefficient.
    t, chance, bits, error_increase : float or None
        See the notation; ``error_increase`` is RMSE₋ᵢ/RMSE − 1.
    """

    distinct: str
    novelty: float
    needed: str
    loss: float
    rows: float
    partner: int | None = None
    pair_loss: float | None = None
    determined: str | None = None
    interval: tuple[float, float] | None = None
    t: float | None = None
    chance: float | None = None
    bits: float | None = None
    error_increase: float | None = None

    @property
    def relative_error(self) -> float | None:
        """Standard error of the coefficient as a share of it."""
        return None if self.t is None else (1.0 / self.t if self.t > 0.0 else math.inf)

    @property
    def score(self) -> float:
        """The smallest of the three margins; above 1 where all three words are good.

        Distinct: ν/τ, or, where others imitate the term but the target determines it all the same, |t|/2. Needed:
        loss / 1 %. Determined: (|t| − chance)/2; without a target there is no such margin.
        """
        nu = 1.0 if math.isnan(self.novelty) else self.novelty
        needed = self.loss / SMALL_LOSS
        if self.t is None or self.chance is None:
            return min(nu / TAU_ID, needed)
        return min(max(nu / TAU_ID, self.t / STANDS_OUT), needed, (self.t - self.chance) / STANDS_OUT)

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the term."""
        return self.distinct in ("yes", "constant") and self.needed == "yes" and self.determined in (None, "yes")


def term_verdicts(
    terms: Sequence[Term],
    sample: Sample,
    y: FloatArray | None = None,
    weights: FloatArray | None = None,
    variance: float | None = None,
) -> tuple[TermVerdict, ...]:
    """The words on every term.

    Parameters
    ----------
    y : ndarray of shape (n_samples,), optional
    weights : ndarray of shape (n_samples,), optional
        1/σ_k² where measurement errors are known, and then ``variance`` is 1.

    Examples
    --------
    >>> from sobolev_novelty.data import as_sample
    >>> from sobolev_novelty.terms import additive_terms
    >>> from sobolev_novelty.parsing import parse
    >>> celsius = np.linspace(5.0, 35.0, 100)[:, None]
    >>> [v.distinct for v in term_verdicts(additive_terms(parse("3*x0 + 2")).terms, as_sample(celsius + 273.15))]
    ['yes', 'constant']
    """
    found = novelties_of([terms], sample, REFERENCE)[0]
    if found.status is not Status.OK:
        nothing = TermVerdict("unknown", math.nan, "unknown", math.nan, math.nan)
        return (nothing,) * len(terms)
    expressions = [term.expression for term in terms]
    rows = derivatives(expressions, sample, 1)
    used = np.isfinite(rows).all(axis=(0, 1))
    columns = rows[:, 0, used]
    b = np.array([term.coefficient for term in terms])
    w = None if weights is None else weights[used]
    resting, is_resolved = _resting_rows(columns), _is_resolved(columns, found.lengths, sample.n_features)
    prediction = fit_columns(columns, b @ columns, w)
    loss = _shares(prediction.drop_one, prediction)
    common = [
        TermVerdict(_distinct_word(nu, n, ok), float(nu), "yes" if share >= SMALL_LOSS else "no", float(share), float(n))
        for nu, n, ok, share in zip(found.nu, resting, is_resolved, loss, strict=True)
    ]
    if y is None:
        return tuple(_shared(common, prediction))
    fit = fit_columns(columns, y[used], w, variance)
    bits = constant_bits(expressions, sample.rows(used), fit)
    refitted = fit_columns(columns, fit.coefficients @ columns, w)
    common = [replace(v, loss=float(s)) for v, s in zip(common, _shares(refitted.drop_one, refitted), strict=True)]
    return tuple(_shared([_with_target(v, i, fit, bits[i]) for i, v in enumerate(common)], refitted))


def _distinct_word(nu: float, n_rows: float, is_resolved: bool) -> str:
    if math.isnan(nu):
        return "constant"
    if n_rows < FEW_ROWS:
        return "few rows"
    if not is_resolved:
        return "unresolved"
    return "yes" if nu > TAU_ID else "partly" if nu > IMITATED else "no"


def _with_target(verdict: TermVerdict, i: int, fit: TermFit, constants: float) -> TermVerdict:
    t, chance = float(fit.t[i]), math.sqrt(2.0 * math.log(2.0) * constants)
    if verdict.distinct == "constant":
        return verdict
    cost, rss = float(fit.drop_one[i]), max(fit.residual_floor, 1e-300)
    known = fit.known_variance
    gain = cost / known if known is not None else fit.n_rows * math.log1p(cost / rss)
    bits = gain / (2.0 * math.log(2.0)) - 0.5 * math.log2(fit.n_rows) - constants
    increase = math.sqrt((rss + cost) / rss * fit.n_free / (fit.n_free + 1)) - 1.0
    word = "no" if bits <= 0.0 else "yes" if verdict.loss >= SMALL_LOSS else "little"
    return replace(
        verdict, needed=word, t=t, chance=chance, bits=bits, error_increase=increase,
        determined="yes" if t - chance >= STANDS_OUT else "no",
    )  # fmt: skip


def _shared(verdicts: Sequence[TermVerdict], prediction: TermFit) -> list[TermVerdict]:
    """Terms of which one alone can be spared, but not both."""
    out = list(verdicts)
    spared = [i for i, v in enumerate(verdicts) if v.needed == "no" and v.distinct != "constant"]
    for i in spared:
        best = max(((_pair_loss(prediction, i, j), j) for j in spared if j != i), default=None)
        if best is not None and best[0] >= max(SMALL_LOSS, 3.0 * (verdicts[i].loss + verdicts[best[1]].loss)):
            out[i] = replace(out[i], needed="shared", partner=best[1], pair_loss=best[0])
    return out


def _pair_loss(prediction: TermFit, i: int, j: int) -> float:
    return float(_shares(np.array([prediction.drop_pair(i, j)]), prediction)[0])


def _shares(cost: FloatArray, fit: TermFit) -> FloatArray:
    return np.sqrt(cost / fit.tss) if fit.tss > 0.0 else np.zeros(len(cost))


def _resting_rows(columns: FloatArray) -> FloatArray:
    """Rows that carry a term: n where all do alike, about 1 where one row stands out from all others."""
    z = columns - columns.mean(axis=1, keepdims=True)
    peak = np.abs(z).max(axis=1, keepdims=True)
    square = np.square(z / np.where(peak == 0.0, 1.0, peak))
    fourth = np.square(square).sum(axis=1)
    return np.where(fourth > 0.0, square.sum(axis=1) ** 2 / np.where(fourth > 0.0, fourth, 1.0), columns.shape[1])


def _is_resolved(columns: FloatArray, lengths: FloatArray, n_features: int) -> FloatArray:
    """Whether the rows are close enough for a term's slopes: rms slope × range / n against its spread."""
    spread = columns.std(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.sqrt(np.maximum(lengths**2 - spread**2, 0.0) * n_features)
        return np.asarray(slope * math.sqrt(12.0) / columns.shape[1] <= RESOLVED * spread)


def constant_bits(terms: Sequence[Expression], sample: Sample, fit: TermFit) -> FloatArray:
    """B of every term: the price of the constants inside it, to the precision that the rows ask for."""
    programs = kernels.compile_programs(terms, sample.names)
    bits = np.zeros(len(terms))
    counted = [k for k, c in enumerate(programs.constants.tolist()) if not _belongs_to_the_form(c)]
    if not counted:
        return bits
    slopes = kernels.jacobians(programs, sample.X)[1]
    owner = np.repeat(np.arange(len(terms)), np.diff(programs.constant_offsets))
    for k in counted:
        slope = slopes[k] - slopes[k].mean()
        with np.errstate(over="ignore", invalid="ignore"):
            steps = abs(programs.constants[k] * fit.coefficients[owner[k]]) * float(np.linalg.norm(slope))
            price = math.log2(1.0 + steps / math.sqrt(fit.variance)) if fit.variance > 0.0 else 0.0
        bits[owner[k]] += price if math.isfinite(price) else 64.0
    return bits


def _belongs_to_the_form(constant: float) -> bool:
    if not abs(constant) <= _SMALL:
        return False
    return abs(float(Fraction(constant).limit_denominator(_DENOMINATOR)) - constant) <= 1e-12
