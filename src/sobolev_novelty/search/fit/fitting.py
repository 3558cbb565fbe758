r"""Linear coefficients and inner constants of fixed forms, for a whole population in one kernel call.

Notation
--------
A candidate is a list of terms :math:`\phi_j(x;\theta)`. A fit finds :math:`\min_{b,\theta}\sum_n w_n (y_n - \sum_j
b_j\phi_j(x_n;\theta))^2`:
``b`` by least squares, ``theta`` (the free constants inside the terms) by Levenberg–Marquardt with ``b`` projected out.

Iterations are counted, never timed, and every random start is drawn from a seed of its own candidate, so that a
result depends neither on the number of threads nor on the company a candidate is fitted in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample, as_target
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels import FitStatus

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """One fitted candidate."""

    terms: tuple[Expression, ...]  # the terms with their fitted constants
    #: shape (n_terms,): linear coefficients; 0 for terms that depend on the ones before them, and where the fit failed.
    coefficients: FloatArray
    loss: float  # weighted sum of squared residuals; ``inf`` where the fit is not finite
    status: FitStatus  # ``status.sentence`` says it to a person


def fit_terms(
    candidates: Sequence[Sequence[Expression]],
    X: Any,
    y: Any,
    *,
    names: Sequence[str] | None = None,
    sample_weight: Any = None,
    free: Sequence[Sequence[bool]] | None = None,
    n_iterations: int = 8,
    n_starts: int = 1,
    rng: np.random.Generator | None = None,
    n_threads: int = 1,
) -> list[Fit]:
    """Fit a population of sums of terms.

    ``candidates``: the terms of each candidate, without linear coefficients.
    ``X``: shape (n_samples, n_features), DataFrame or Sample.
    ``y``, ``sample_weight``: shape (n_samples,).
    ``names``: feature names, where ``X`` does not bring its own.
    ``free``: per candidate, which of its constants (in the order of its terms) the fit may change. All, by default.
    ``n_iterations``: steps on the inner constants; 0 fits linear coefficients only.
    ``n_starts``: starting points of the inner constants: the given ones, and random ones around them. The best result
    is kept.
    ``rng``: source of the random starts; needed where ``n_starts`` is above 1.

    >>> import numpy as np
    >>> x = np.linspace(0.0, 3.0, 50)[:, None]
    >>> form = [Expression.of("exp", Expression.of("mul", -1.0, "x0")), Expression.of(1.0)]
    >>> fit = fit_terms([form], x, 2.0 * np.exp(-0.7 * x[:, 0]) + 1.0, free=[[True, False]], n_iterations=20)[0]
    >>> fit.coefficients.round(6), fit.terms[0].constants[0].__round__(6)
    (array([2., 1.]), -0.7)
    """
    sample = as_sample(X, names)
    target = as_target(y, sample.n_samples)
    weights = None if sample_weight is None else as_target(sample_weight, sample.n_samples, "sample_weight")
    if n_starts < 1:
        raise ParameterError(f"'n_starts' must be at least 1. Got {n_starts}.")
    if n_starts > 1 and rng is None:
        raise ParameterError("'rng' is needed where 'n_starts' is above 1. Give a numpy.random.Generator.")
    masks = _masks(candidates, free)
    starts = _starts(candidates, masks, n_starts, rng)
    owners = [c for c, own in enumerate(starts) for _ in own]  # candidate of each start
    terms = [term for c in owners for term in candidates[c]]
    programs = kernels.compile_programs(terms, sample.names)
    constants = np.concatenate([theta for own in starts for theta in own]) if owners else np.zeros(0)
    fits = kernels.fit(
        kernels.with_constants(programs, constants),
        np.concatenate([[0], np.cumsum([len(candidates[c]) for c in owners], dtype=np.int64)]),
        np.concatenate([masks[c] for c in owners]) if owners else np.zeros(0, dtype=bool),
        sample.X,
        target,
        weights,
        n_iterations=n_iterations,
        n_threads=n_threads,
    )
    return _best(candidates, owners, fits)


def fit(expression: Expression, X: Any, y: Any, **options: Any) -> Fit:
    """Fit one expression as a single term: one linear factor, and its inner constants.

    Options are those of :func:`fit_terms`.

    >>> import numpy as np
    >>> x = np.linspace(0.5, 3.0, 50)[:, None]
    >>> fitted = fit(Expression.of("pow", "x0", 2.0), x, 3.0 * x[:, 0] ** 1.5, n_iterations=30)
    >>> round(fitted.terms[0].constants[0], 6)
    1.5
    """
    return fit_terms([[expression]], X, y, **options)[0]


def _masks(candidates: Sequence[Sequence[Expression]], free: Sequence[Sequence[bool]] | None) -> list[BoolArray]:
    counts = [sum(len(term.constants) for term in terms) for terms in candidates]
    if free is None:
        return [np.ones(count, dtype=bool) for count in counts]
    if len(free) != len(counts):
        raise DataError(f"'free' must have one entry per candidate, {len(counts)}. Got {len(free)}.")
    masks = [np.asarray(mask, dtype=bool).reshape(-1) for mask in free]
    for c, (mask, count) in enumerate(zip(masks, counts, strict=True)):
        if len(mask) != count:
            raise DataError(f"'free' has {len(mask)} entries for candidate {c}, which has {count} constants.")
    return masks


def _starts(
    candidates: Sequence[Sequence[Expression]], masks: list[BoolArray], n_starts: int, rng: np.random.Generator | None
) -> list[list[FloatArray]]:
    """Per candidate its starting points, the given constants first; one point where nothing is free."""
    seeds = rng.integers(2**63, size=len(candidates)).tolist() if rng is not None else [0] * len(candidates)
    starts = []
    for terms, mask, seed in zip(candidates, masks, seeds, strict=True):
        given = np.array([value for term in terms for value in term.constants], dtype=np.float64)
        own = [given]
        generator = np.random.default_rng(seed) if n_starts > 1 and mask.any() else None
        for s in range(1, n_starts if generator is not None else 1):
            assert generator is not None
            noise = generator.standard_normal(len(given))
            # In turn: another size, the same sign; and anywhere around.
            moved = given * np.exp(noise) if s % 2 else given + noise * np.maximum(np.abs(given), 1.0)
            own.append(np.where(mask, moved, given))
        starts.append(own)
    return starts


def _best(candidates: Sequence[Sequence[Expression]], owners: list[int], fits: kernels.Fits) -> list[Fit]:
    """Of the starts of each candidate the one with the smallest loss, the first of equals."""
    results: list[Fit | None] = [None] * len(candidates)
    term = constant = 0
    for start, c in enumerate(owners):
        counts = [len(expression.constants) for expression in candidates[c]]
        coefficients = fits.coefficients[term : term + len(counts)]
        theta = fits.constants[constant : constant + sum(counts)]
        term, constant = term + len(counts), constant + sum(counts)
        best = results[c]
        loss = float(fits.loss[start])
        if best is None or loss < best.loss:
            ends = np.cumsum([0, *counts]).tolist()
            fitted = tuple(
                expression.with_constants(theta[first:last].tolist())
                for expression, first, last in zip(candidates[c], ends[:-1], ends[1:], strict=True)
            )
            results[c] = Fit(fitted, coefficients.copy(), loss, FitStatus(int(fits.status[start])))
    return [result for result in results if result is not None]


__all__ = ["Fit", "FitStatus", "Sample", "fit", "fit_terms"]
