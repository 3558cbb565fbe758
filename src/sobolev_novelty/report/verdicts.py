r"""Three words on each term, each with its number: distinct, needed, determined.

Notation
--------
``nu``      novelty with a free intercept: values and slopes, the constant projected out of every term
``loss``    share of the prediction's spread that is lost when a term is left out and the others are refitted to it
``t``       the coefficient, refitted to the target, in standard errors
``B``       bits that the constants inside a term take: Σ log₂(1 + |c|/s_c), s_c the error to which the rows fix c
``chance``  √(2 B ln 2): the |t| that the best of 2ᴮ terms has on noise alone, so many as its constants allow to try;
           more by what Student's quantile exceeds the normal's, where few rows are left to know the noise from
``bits``    (n/2) log₂(RSS₋ᵢ/RSS) − ½ log₂ n − B: what a term saves in describing the target, less its own price

*Distinct* needs no target and does not depend on units or origins; where the inputs lie on a curve, slopes count only
along it. *Needed* is ``loss`` without a target; with one, a term must also pay for itself in bits. *Determined* needs a
target: the coefficient stands out of its error by more than chance would give to a term that brings constants of its
own. Novelty needs 32 rows; *needed* and *determined* need three and, with a target, more than there are coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sobolev_novelty import kernels
from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import MIN_WORD_ROWS
from sobolev_novelty.core.linear.least_squares import TermFit, fit_columns
from sobolev_novelty.core.linear.projection import TAU_ID
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.report.measured import Measured
from sobolev_novelty.report.resolution.rounding_errors import is_rounding
from sobolev_novelty.report.resolution.turning_points import are_resolved

#: Below this share of the threshold (ν = 0.1) less than one per cent of a term's energy is its own: it is imitated.
IMITATED = 1.0 / math.sqrt(10.0)
#: A term whose removal moves the prediction by less than this share of its spread hardly matters.
SMALL_LOSS = 0.01
#: Standard errors that a coefficient must stand out by, beyond chance.
STANDS_OUT = 2.0
#: A term that rests on fewer rows than this has not been seen often enough to be told from an accident.
FEW_ROWS = 5.0
#: Constants that belong to a form rather than to a fit: small integers, halves, thirds and quarters.
_SMALL, _DENOMINATOR = 10.0, 4


@dataclass(frozen=True, slots=True)
class TermVerdict:
    """The words on one term, and the numbers behind them; what was not asked or cannot be known is None.

    Parameters
    ----------
    distinct : str
        ``yes`` (ν > 1/√10), ``partly``, ``no`` (ν ≤ 0.1); ``few rows`` or ``unresolved`` where the rows cannot say,
        ``constant`` for the intercept, ``unknown`` where there is no novelty: on fewer than 32 rows.
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
        ``yes`` or ``no``; ``one-sided`` or ``flat`` where an interval says so.
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

    def with_interval(self, low: float, high: float, word: str) -> TermVerdict:
        """The verdict with an interval of the coefficient; ``word`` is determined, one-sided or flat.

        An interval can take *determined* away, but not give it to a term that stands out no more than chance would.

        Examples
        --------
        >>> found = TermVerdict("yes", 1.0, "yes", 0.5, 100.0, determined="yes")
        >>> found.with_interval(-1.0, math.inf, "one-sided").determined
        'one-sided'
        """
        judged = self.determined == "yes" and word != "determined"
        return replace(self, interval=(low, high), determined=word if judged else self.determined)

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the term."""
        return self.distinct in ("yes", "constant") and self.needed == "yes" and self.determined in (None, "yes")


#: Where nothing can be said.
NO_VERDICT = TermVerdict("unknown", math.nan, "unknown", math.nan, math.nan)


def term_verdicts(
    terms: Sequence[Term],
    sample: Sample,
    y: FloatArray | None = None,
    weights: FloatArray | None = None,
    variance: float | None = None,
    *,
    tau: float = TAU_ID,
    measured: Measured | None = None,
) -> tuple[TermVerdict, ...]:
    """The words on every term.

    ``weights``: shape (n_samples,), 1/σ_k² where measurement errors are known, and then ``variance`` is 1.
    ``tau``: threshold of *distinct*.
    ``measured``: the terms on this sample, where somebody has them; it says of which geometry the novelty behind
    *distinct* is.

    >>> from sobolev_novelty.core.sample import as_sample
    >>> from sobolev_novelty.algebra.terms import additive_terms
    >>> from sobolev_novelty.language.parsing import parse
    >>> celsius = np.linspace(5.0, 35.0, 100)[:, None]
    >>> [v.distinct for v in term_verdicts(additive_terms(parse("3*x0 + 2")).terms, as_sample(celsius + 273.15))]
    ['yes', 'constant']
    """
    expressions = [term.expression for term in terms]
    measured = Measured(expressions, sample) if measured is None else measured
    own, used = measured.evaluated.own, measured.judged
    if not terms or used.sum() < MIN_WORD_ROWS:
        return (NO_VERDICT,) * len(terms)
    is_resolved = are_resolved(expressions, own.rows(used))
    is_constant = is_rounding(expressions, own.rows(used)) & is_resolved  # sin(pi*x) at whole x is no constant
    columns = np.where(is_constant[:, None], 0.0, measured.seen.values[:, used])
    b = np.array([term.coefficient for term in terms])
    w = None if weights is None else weights[used]
    nu = measured.free_novelties
    with np.errstate(over="ignore"):
        prediction = fit_columns(columns, _of_order_one(b @ columns)[0], w)
    words = _distinct_words(
        np.full(len(terms), math.nan) if nu is None else nu,
        is_constant | (prediction.lengths == 0.0 if nu is None else np.isnan(nu)),
        _resting_rows(columns),
        is_resolved,
        n_rows=columns.shape[1],
        tau=tau,
    )
    if y is None:
        return _without_target(words, prediction)
    fit, _ = _fitted(columns, y[used], w, variance)
    return _judged(words, columns, w, fit, constant_bits(expressions, own.rows(np.flatnonzero(used)), fit))


def verdicts_of_columns(
    columns: FloatArray,
    nu: FloatArray,
    y: FloatArray,
    weights: FloatArray | None = None,
    variance: float | None = None,
    *,
    tau: float = TAU_ID,
) -> tuple[TermVerdict, ...]:
    """The words on terms that are columns of numbers, with the t intervals of their coefficients.

    ``columns``: shape (m, n_used).
    ``nu``: shape (m,), novelties with a free intercept; ``nan`` where there are none.
    """
    if columns.shape[1] < MIN_WORD_ROWS:
        return (NO_VERDICT,) * len(columns)
    fit, unit = _fitted(columns, y, weights, variance)
    is_resolved = np.ones(len(columns), dtype=bool)
    words = _distinct_words(
        nu, fit.lengths == 0.0, _resting_rows(columns), is_resolved, n_rows=columns.shape[1], tau=tau
    )
    found = _judged(words, columns, weights, fit, np.zeros(len(columns)))
    ends = zip(unit * fit.coefficients, unit * _quantile(fit) * fit.standard_errors, strict=True)
    each = zip(found, ends, strict=True)
    return tuple(
        verdict if fit.lengths[i] == 0.0 else verdict.with_interval(
            float(b - half), float(b + half), "determined" if math.isfinite(half) else "flat"
        )
        for i, (verdict, (b, half)) in enumerate(each)
    )  # fmt: skip


def _fitted(columns: FloatArray, y: FloatArray, w: FloatArray | None, variance: float | None) -> tuple[TermFit, float]:
    """The terms refitted to the target beside a free intercept, and the unit that the target was divided by."""
    target, unit = _of_order_one(y)
    return fit_columns(columns, target, w, None if variance is None else variance / unit**2), unit


def _judged(
    words: Sequence[TermVerdict], columns: FloatArray, w: FloatArray | None, fit: TermFit, bits: FloatArray
) -> tuple[TermVerdict, ...]:
    refitted = fit_columns(columns, fit.coefficients @ columns, w)
    common = _without_target(words, refitted)
    return _shared([_with_target(v, i, fit, bits[i]) for i, v in enumerate(common)], refitted)


def verdicts_of_factor(R: FloatArray, b: FloatArray, nu: FloatArray, tau: float = TAU_ID) -> tuple[TermVerdict, ...]:
    """The words that need no single rows, from a factor R of the centred values of the terms.

    ``R``: shape (k, m).
    ``b``, ``nu``: shape (m,), coefficients, and novelties with a free intercept.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        prediction = fit_columns(R.T, _of_order_one(R @ b)[0], is_centred=True)
    everywhere, is_resolved = np.full(len(b), math.inf), np.ones(len(b), dtype=bool)
    return _without_target(_distinct_words(nu, np.isnan(nu), everywhere, is_resolved, tau=tau), prediction)


def _of_order_one(values: FloatArray) -> tuple[FloatArray, float]:
    """Values divided by the largest, so that their squares stay in the range of floats; zero where they leave it."""
    peak = float(np.abs(values).max(initial=0.0))
    if not math.isfinite(peak) or peak == 0.0:
        return np.zeros_like(values), 1.0
    return values / peak, peak


def _distinct_words(
    nu: FloatArray,
    is_constant: npt.NDArray[np.bool_],
    resting: FloatArray,
    is_resolved: npt.NDArray[np.bool_],
    *,
    n_rows: float = math.inf,
    tau: float,
) -> list[TermVerdict]:
    """The first word on each term, with its numbers; nothing is said of the others yet."""
    few = min(FEW_ROWS, 0.5 * n_rows)
    found = []
    for i, number in enumerate(nu.tolist()):
        word = "yes" if number > tau else "partly" if number > IMITATED * tau else "no"
        word = "unknown" if math.isnan(number) else word
        word = "few rows" if resting[i] < few else word if is_resolved[i] else "unresolved"
        word = "constant" if is_constant[i] else word
        known = math.nan if is_constant[i] else number
        found.append(TermVerdict(word, known, "unknown", math.nan, float(resting[i])))
    return found


def _without_target(found: Sequence[TermVerdict], prediction: TermFit) -> tuple[TermVerdict, ...]:
    each = zip(found, _shares(prediction.drop_one, prediction).tolist(), strict=True)
    return _shared([replace(v, needed=_needed_word(v.distinct, loss), loss=loss) for v, loss in each], prediction)


def _needed_word(distinct: str, loss: float, bits: float = math.inf) -> str:
    if distinct == "constant":
        return "constant"
    return "no" if bits <= 0.0 else "yes" if loss >= SMALL_LOSS else "no" if math.isinf(bits) else "little"


def _with_target(verdict: TermVerdict, i: int, fit: TermFit, constants: float) -> TermVerdict:
    if verdict.distinct == "constant":
        return verdict
    known, n_spare = fit.known_variance, _n_spare(fit)
    if known is None and n_spare < 1:  # any target is fitted exactly
        return replace(verdict, needed="unknown", partner=None, pair_loss=None, determined="flat")
    t, chance = float(fit.t[i]), math.sqrt(2.0 * math.log(2.0) * constants)
    if known is None:
        chance += _beyond_normal(n_spare)
    cost, rss = float(fit.drop_one[i]), max(fit.residual_floor, 1e-300)
    gain = cost / known if known is not None else fit.n_rows * math.log1p(cost / rss)
    bits = gain / (2.0 * math.log(2.0)) - 0.5 * math.log2(fit.n_rows) - constants
    increase = math.sqrt((rss + cost) / rss * fit.n_free / (fit.n_free + 1)) - 1.0
    return replace(
        verdict, needed=_needed_word(verdict.distinct, verdict.loss, bits), partner=None, pair_loss=None, t=t,
        chance=chance, bits=bits, error_increase=increase, determined="yes" if t - chance >= STANDS_OUT else "no",
    )  # fmt: skip


def _n_spare(fit: TermFit) -> int:
    """Rows beyond the coefficients and the intercept."""
    return fit.n_rows - 1 - int((~fit.is_dependent).sum())


def _quantile(fit: TermFit) -> float:
    """Standard errors of half a 95 % interval."""
    from scipy.special import ndtri, stdtrit  # not with the module: reports must load fast

    if fit.known_variance is not None:
        return float(ndtri(0.975))
    return float(stdtrit(_n_spare(fit), 0.975)) if _n_spare(fit) > 0 else math.inf


def _beyond_normal(n_spare: int) -> float:
    """How many standard errors farther out Student's quantile is than two of the normal's."""
    from scipy.special import ndtr, stdtrit  # not with the module: reports must load fast

    return float(stdtrit(n_spare, ndtr(STANDS_OUT))) - STANDS_OUT


def _shared(verdicts: Sequence[TermVerdict], prediction: TermFit) -> tuple[TermVerdict, ...]:
    """Terms of which one alone can be spared, but not both."""
    out = list(verdicts)
    spared = np.array([i for i, v in enumerate(verdicts) if v.needed == "no" and v.distinct != "constant"], dtype=int)
    for i in spared if len(spared) > 1 else ():
        others = spared[spared != i]
        losses = _shares(prediction.drop_pairs(i, others), prediction)
        best = len(others) - 1 - int(losses[::-1].argmax())  # the last of equal ones
        loss, partner = float(losses[best]), int(others[best])
        if loss >= max(SMALL_LOSS, 3.0 * (verdicts[i].loss + verdicts[partner].loss)):
            out[i] = replace(out[i], needed="shared", partner=partner, pair_loss=loss)
    return tuple(out)


def _shares(cost: FloatArray, fit: TermFit) -> FloatArray:
    return np.sqrt(cost / fit.tss) if fit.tss > 0.0 else np.zeros(len(cost))


def _resting_rows(columns: FloatArray) -> FloatArray:
    """Rows that carry a term: n where all do alike, about 1 where one row stands out from all others."""
    z = columns - columns.mean(axis=1, keepdims=True)
    peak = np.abs(z).max(axis=1, keepdims=True)
    square = np.square(z / np.where(peak == 0.0, 1.0, peak))
    fourth = np.asarray(np.square(square).sum(axis=1))
    resting = square.sum(axis=1) ** 2 / np.where(fourth > 0.0, fourth, 1.0)
    return np.where(fourth > 0.0, resting, float(columns.shape[1]))


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
