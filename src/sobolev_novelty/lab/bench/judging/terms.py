r"""Which terms of a law were found: precision and recall, coefficients, and what holds beyond the data.

Notation
--------
``φ_i, ψ_j``  terms of the law and of what was found, as unit columns of values

A found term *is* a true one if one column leaves at most :data:`SAME` of the other, far beyond the data (each term
answers for one other, the nearest first). It is *in class* if the span of the true terms leaves at most :data:`SAME` of
it on rows like the data: there the law says as much with other words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.terms import Term, additive_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.projection import conditional_residuals
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.exact import NUMERIC_TOLERANCE
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import split_form

#: What a unit column may leave of another, or a span of it.
SAME = 0.05
#: Found terms smaller than this share of the law's spread are not counted.
NEGLIGIBLE = 1e-6
#: Largest error of a found equation, as a share of the truth's spread.
NEAR = 0.1
#: A term or constant below this share of what it was, or of the truth, has vanished.
VANISHED = 1e-5
REFIT_ITERATIONS = 300


@dataclass(frozen=True, slots=True)
class TermScores:
    """How the terms of a found expression compare with the true ones.

    ``precision``, ``recall``: share of found terms that are true ones, and of true terms that were found.
    ``precision_in_class``, ``recall_in_class``: share of found terms in the span of the true ones on rows like the
    data, and of true terms in that of the found.
    """

    precision: float
    recall: float
    precision_in_class: float
    recall_in_class: float
    #: Median over the true terms that were found of the relative error of the coefficient.
    coefficient_error: float | None
    #: Root mean square error beyond the data, in spreads of the law there; None where it is not finite.
    far_error: float | None


def term_scores(found: Expression, truth: Expression, X: FloatArray, X_far: FloatArray) -> TermScores:
    """The comparison on rows like the data (``X``) and beyond them.

    >>> from sobolev_novelty.language.parsing import parse
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> scores = term_scores(parse("2.1*x0 + cos(3*x1)"), parse("2*x0 - x1**2"), X, 2 * X)
    >>> scores.precision, scores.recall, round(scores.coefficient_error, 3)
    (0.5, 0.5, 0.05)
    """
    least = NEGLIGIBLE * float(np.std(evaluate(truth, X))) * math.sqrt(len(X))
    true = additive_terms(truth).terms
    own = tuple(t for t in additive_terms(found).terms if not abs(t.coefficient) * _length(_values(t, X)) < least)
    here = [np.column_stack([_unit(_values(term, X)) for term in terms]) for terms in (true, own) if terms]
    if len(here) < 2:
        return TermScores(0.0, 0.0, 0.0, 0.0, None, _far_error(found, truth, X_far))
    pairs = _matched(true, own, X_far)
    errors = [abs(own[j].coefficient * c / true[i].coefficient - 1.0) for i, j, c in pairs]
    found_in, true_in = (float(np.mean(_outside(of, span) <= SAME)) for of, span in (here[::-1], here))
    return TermScores(
        len(pairs) / len(own), len(pairs) / len(true), found_in, true_in,
        float(np.median(errors)) if errors else None, _far_error(found, truth, X_far),
    )  # fmt: skip


def is_law(found: Expression, truth: Expression, X: FloatArray) -> tuple[bool, str]:
    """Whether an expression has the form of the law, and which rule decided: noise leaves no constant exact.

    Two terms that all but coincide can be refitted as one; that is not the law.

    >>> from sobolev_novelty.language.parsing import parse
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 1))
    >>> truth = parse("sin(2*x0) + 2*sin(2.00001*x0)")
    >>> [is_law(parse(text), truth, X)[0] for text in ("3*sin(2*x0)", "sin(2*x0) + 2*sin(2.00001*x0)")]
    [False, True]
    """
    has, note = has_form(found, truth, X)
    n_found, n_true = (len(additive_terms(e).terms) for e in (found, truth))
    return (False, f"It has {n_found} of {n_true} terms.") if has and n_found < n_true else (has, note)


def _values(term: Term, X: FloatArray) -> FloatArray:
    return np.asarray(evaluate(term.expression, X))


def _length(values: FloatArray) -> float:
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(values))


def _unit(values: FloatArray) -> FloatArray:
    length = _length(values)
    return values / length if math.isfinite(length) and length > 0.0 else np.zeros(len(values))


def _outside(columns: FloatArray, span: FloatArray) -> FloatArray:
    """What the span leaves of each unit column; 1 of one that is not finite."""
    left = conditional_residuals(span[:, np.abs(span).any(axis=0)], columns)
    return np.where(np.abs(columns).any(axis=0), left, 1.0)


def _matched(true: tuple[Term, ...], own: tuple[Term, ...], X: FloatArray) -> list[tuple[int, int, float]]:
    """Pairs of a true and a found term, the nearest first, and the multiple of the true one that the found one is."""
    phi, psi = ([_values(term, X) for term in terms] for terms in (true, own))
    left = np.array([[np.linalg.norm(_unit(q) - (_unit(q) @ _unit(p)) * _unit(p)) for q in psi] for p in phi])
    left[:, [not _unit(q).any() for q in psi]] = np.inf
    pairs = []
    while left.size and left.min() <= SAME:
        i, j = (int(k) for k in np.unravel_index(np.argmin(left), left.shape))
        pairs.append((i, j, float(psi[j] @ phi[i] / (phi[i] @ phi[i]))))
        left[i, :] = left[:, j] = np.inf
    return pairs


def _far_error(found: Expression, truth: Expression, X: FloatArray) -> float | None:
    t = evaluate(truth, X)
    with np.errstate(all="ignore"):
        error = float(np.sqrt(np.mean((evaluate(found, X) - t) ** 2)) / np.std(t))
    return error if math.isfinite(error) else None


def has_form(found: Expression, truth: Expression, X: FloatArray) -> tuple[bool, str]:
    """Whether an equation has the form of the truth, and which rule decided.

    Under noise no method gives constants to six digits. An equation has the form of the truth if its values at the rows
    of ``X`` lie within :data:`NEAR` of the truth's, if with its constants refitted to the truth it leaves less than
    :data:`~sobolev_novelty.lab.bench.judging.exact.NUMERIC_TOLERANCE` unexplained, and if no term and no constant of it
    vanishes in that fit: what the truth does not have must not be there.
    """
    with np.errstate(all="ignore"):
        t, m = evaluate(truth, X), evaluate(found, X)
    usable = np.isfinite(t)
    X, t, m = X[usable], t[usable], m[usable]
    spread = float(np.std(t)) or float(np.abs(t).max()) or 1.0
    off = float(np.sqrt(np.mean((m - t) ** 2))) / spread
    if not off <= NEAR:
        return False, f"Its values are {off:.2g} of the spread away."
    total = len(t) * spread**2
    fitter = Fitter(Rows.of(X, t))
    form = split_form(found)
    fitted = fitter.fit([form], REFIT_ITERATIONS)[0]
    left = math.sqrt(fitted.loss / total)
    if left > NUMERIC_TOLERANCE:
        return False, f"Refitted, it leaves {left:.1e} unexplained."
    sizes = np.abs(fitted.coefficients) * np.sqrt(np.mean(fitter.values(fitted.terms) ** 2, axis=1))
    before = np.array([c for term in form.terms for c in term.constants])
    after = np.array([c for term in fitted.terms for c in term.constants])
    if (sizes <= VANISHED * spread).any() or (np.abs(after) <= VANISHED * np.abs(before)).any():
        return False, "A term or constant vanishes when the constants are refitted."
    return True, f"Refitted, it leaves {left:.1e} unexplained."
