"""Fitting a batch of forms, and the clean-up of the few that matter.

More iterations, terms that vanish, numbers that are simple.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.algebra.numbers import SIMPLE_PAIRS, nearest_simple
from sobolev_novelty.algebra.waves import with_small_phases
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.fit.forms import Form, free_constants

#: Levenberg–Marquardt iterations of every candidate, and, after as many again, of those that reach for the front and
#: whose error fell to this share by them.
FIT_ITERATIONS = 8
POLISH_ITERATIONS = 60
STILL_MOVING = 0.98
#: A term whose size is below this share of the target's is dropped where the error allows it.
NEGLIGIBLE = 1e-7
#: Fits better than this have their constants moved to simple numbers where the error allows it.
SNAP_NMSE = 1e-10
#: Relative distance within which a constant is taken for a simple number.
SNAP_DISTANCE = 1e-7
#: Constants smaller than this are tried as 0.
VANISHING = 1e-9
#: A clean-up may raise the error by this factor, or to this level: rounding.
ROUNDING_FACTOR, ROUNDING_LEVEL = 4.0, 1e-26

#: Constants above this may be phases of many periods.
LARGE_PHASE = 30.0

#: Numbers that are held at once where terms are looked at.
_VALUES_AT_ONCE = 1 << 22
_OUT_OF_ITERATIONS = int(kernels.FitStatus.MAX_ITERATIONS)

#: Numerator times denominator at most: of 50 numbers drawn at random one would lie near a larger fraction.
_MAX_PARTS = 0.02 / SNAP_DISTANCE


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A fitted form.

    Its terms with fitted constants, their coefficients, the squared error, and that relative to the target's variance.
    """

    terms: tuple[Expression, ...]
    coefficients: FloatArray
    loss: float
    nmse: float
    is_converged: bool

    @property
    def form(self) -> Form:
        """The fitted terms as a form, to be fitted further."""
        return Form(self.terms, tuple(flag for term in self.terms for flag in free_constants(term)))


@dataclass(frozen=True, slots=True, eq=False)
class Fitter:
    """Fits forms to rows."""

    rows: Rows
    n_threads: int = 1

    def fit(self, forms: Sequence[Form], n_iterations: int = FIT_ITERATIONS) -> list[Fitted]:
        """Fit all forms in one call of the kernel."""
        return [self.with_small_phases(found) for found in self._as_found(forms, n_iterations)] if forms else []

    def _as_found(self, forms: Sequence[Form], n_iterations: int = FIT_ITERATIONS) -> list[Fitted]:
        terms = [term for form in forms for term in form.terms]
        rows = self.rows
        programs = kernels.compile_programs(terms, rows.names)
        offsets = np.cumsum([0, *(len(form.terms) for form in forms)], dtype=np.int64)
        free = np.array([flag for form in forms for flag in form.free], dtype=bool)
        fits = kernels.fit(
            programs, offsets, free, rows.sample.X, rows.y, rows.weights, n_iterations=n_iterations,
            n_threads=self.n_threads,
        )  # fmt: skip
        results = []
        constants, losses, statuses = fits.constants.tolist(), fits.loss.tolist(), fits.status.tolist()
        starts = programs.constant_offsets.tolist()
        for c, (begin, end) in enumerate(pairwise(offsets.tolist())):
            fitted = forms[c].terms
            if math.isfinite(losses[c]) and any(forms[c].free):
                fitted = tuple(
                    [
                        terms[i].with_constants(constants[starts[i] : starts[i + 1]])
                        if starts[i + 1] > starts[i]
                        else terms[i]
                        for i in range(begin, end)
                    ]
                )
            results.append(
                Fitted(
                    fitted,
                    fits.coefficients[begin:end],
                    losses[c],
                    relative_loss(losses[c], rows.total),
                    statuses[c] != _OUT_OF_ITERATIONS,
                )
            )
        return results

    def with_small_phases(self, fitted: Fitted) -> Fitted:
        """The fit with its phases within one period: of a step that went astray they may be anywhere.

        Rounding ties phases of many periods to the rows, so that the coefficients are fitted anew.
        """
        if not any(abs(c) > LARGE_PHASE for term in fitted.terms for c in term.constants):
            return fitted
        terms = tuple(with_small_phases(term) for term in fitted.terms)
        if terms == fitted.terms:
            return fitted
        frozen = Form(terms, (False,) * sum(len(term.constants) for term in terms))
        return replace(self._as_found([frozen])[0], is_converged=fitted.is_converged)

    def values(self, terms: Sequence[Expression], X: FloatArray | None = None) -> FloatArray:
        """Values of terms at all rows, or at those of ``X``: shape (n_terms, n_rows)."""
        programs = kernels.compile_programs(terms, self.rows.names)
        return np.asarray(kernels.derivatives(programs, self.rows.sample.X if X is None else X)[:, 0])

    def sizes(self, fits: Sequence[Fitted]) -> list[FloatArray]:
        """Root mean square of each term of each fit, many in one call of the kernel."""
        sizes: list[FloatArray] = []
        step = max(1, _VALUES_AT_ONCE // (8 * len(self.rows)))
        for some in (fits[start : start + step] for start in range(0, len(fits), step)):
            with np.errstate(all="ignore"):
                found = np.sqrt(np.mean(self.values([term for f in some for term in f.terms]) ** 2, axis=1))
            sizes += np.split(found, np.cumsum([len(f.terms) for f in some[:-1]], dtype=np.intp))
        return [np.abs(f.coefficients) * own for f, own in zip(fits, sizes, strict=True)]

    def with_coefficients(self, fitted: Fitted, coefficients: FloatArray) -> Fitted:
        """The same terms with coefficients given instead of fitted."""
        with np.errstate(all="ignore"):
            residual, w = self.rows.y - coefficients @ self.values(fitted.terms), self.rows.weights
            loss = float(np.sum(residual**2 if w is None else w * residual**2))
        return Fitted(fitted.terms, coefficients, loss, relative_loss(loss, self.rows.total), True)


def relative_loss(loss: float, total: float) -> float:
    """A loss as a share of the target's sum of squares; infinite where it is not finite."""
    if not math.isfinite(loss):
        return math.inf
    return loss / total if total > 0.0 else (0.0 if loss == 0.0 else math.inf)


def clean_up(fitter: Fitter, fitted: Sequence[Fitted]) -> list[Fitted]:
    """Polish fits that reach for the front: iterate on, drop terms that vanish, move constants to simple numbers.

    A step is kept only if it does not raise the error beyond rounding.
    """
    result = list(fitted)
    open_ones = [i for i, f in enumerate(fitted) if not f.is_converged]
    for n_iterations in (FIT_ITERATIONS, POLISH_ITERATIONS):
        refitted = fitter.fit([result[i].form for i in open_ones], n_iterations)
        going_on = []
        for i, better in zip(open_ones, refitted, strict=True):
            # Of a fit that hardly moves any more nothing is to be had; most of them do not.
            if better.nmse < STILL_MOVING * result[i].nmse and not better.is_converged:
                going_on.append(i)
            result[i] = min(result[i], better, key=lambda f: f.nmse)
        open_ones = going_on
    several = [i for i, f in enumerate(result) if len(f.terms) > 1 and math.isfinite(f.nmse)]
    for i, sizes in zip(several, fitter.sizes([result[i] for i in several]), strict=True):
        result[i] = _without_negligible(fitter, result[i], sizes)
    return [_snapped(fitter, f) if f.nmse < SNAP_NMSE else f for f in result]


def _allowed(before: Fitted, after: Fitted) -> bool:
    return after.nmse <= max(ROUNDING_FACTOR * before.nmse, ROUNDING_LEVEL)


def _without_negligible(fitter: Fitter, fitted: Fitted, sizes: FloatArray) -> Fitted:
    kept = sizes > NEGLIGIBLE * np.sqrt(np.mean(fitter.rows.y**2))
    if kept.all() or not kept.any():
        return fitted
    rest = tuple(term for term, keep in zip(fitted.terms, kept, strict=True) if keep)
    smaller = Fitted(rest, fitted.coefficients[kept], fitted.loss, fitted.nmse, True)
    refitted = fitter.fit([smaller.form])[0]
    return refitted if _allowed(fitted, refitted) else fitted


def simple_number(value: float) -> float:
    """The simple fraction, or multiple of a power of pi, within rounding of a value; otherwise the value itself.

    >>> simple_number(0.49999999999993), simple_number(0.3183098861837), simple_number(0.4123456)
    (0.5, 0.3183098861837907, 0.4123456)
    """
    if abs(value) < VANISHING:
        return 0.0
    found = nearest_simple(value, SNAP_DISTANCE, pairs=SIMPLE_PAIRS, is_relative=True, max_parts=_MAX_PARTS)
    return found or value


def _snapped(fitter: Fitter, fitted: Fitted) -> Fitted:
    """Inner constants first, with the coefficients refitted; then the coefficients. All at once, or one by one."""
    terms = fitted.terms
    simple = [_with_simple_constants(term) for term in terms]
    moved = [i for i, term in enumerate(terms) if simple[i] != term]

    def with_terms(before: Fitted, places: list[int]) -> Fitted:
        changed = tuple(simple[i] if i in places else term for i, term in enumerate(before.terms))
        return fitter.fit([Form(changed, (False,) * sum(len(term.constants) for term in changed))])[0]

    fitted = _moved_to(fitted, moved, with_terms)
    near = np.array([simple_number(b) if abs(b) > VANISHING else b for b in fitted.coefficients.tolist()])

    def with_coefficients(before: Fitted, places: list[int]) -> Fitted:
        b = before.coefficients.copy()
        b[places] = near[places]
        return fitter.with_coefficients(before, b)

    return _moved_to(fitted, np.flatnonzero(near != fitted.coefficients).tolist(), with_coefficients)


def _with_simple_constants(term: Expression) -> Expression:
    numbers = zip(term.constants, free_constants(term), strict=True)
    return term.with_constants([simple_number(c) if is_free else c for c, is_free in numbers])


def _moved_to(fitted: Fitted, places: list[int], step: Callable[[Fitted, list[int]], Fitted]) -> Fitted:
    """The fit after the steps at all places together, or else at those places where one alone is allowed."""
    together = step(fitted, places) if places else fitted
    if _allowed(fitted, together):
        return together
    for place in places:
        alone = step(fitted, [place])
        fitted = alone if _allowed(fitted, alone) else fitted
    return fitted
