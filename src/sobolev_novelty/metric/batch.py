"""Novelty of the terms of many expressions on one sample, in one call of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.algebra.terms import Term, additive_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import DEFAULT_GEOMETRY, Geometry, Status, without_intercept
from sobolev_novelty.core.linear.projection import TAU_ID, conditional_residuals
from sobolev_novelty.core.parameters import COUNT, EQUATIONS, TERM, check, checked
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import as_expression, is_far, on_own_inputs, read_together
from sobolev_novelty.language.peers import is_model
from sobolev_novelty.metric.signatures import signatures

#: Terms of one equation that a report is made of, unless more are allowed: of a thousand it takes half a minute.
MAX_TERMS = 300


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TermNovelties:
    """Novelty of every term of one expression, as :func:`novelties` gives it.

    Parameters
    ----------
    terms : tuple of Term
    nu : ndarray of shape (n_terms,)
        ``nan`` where ``status`` is not OK, and, with a free intercept, for terms that are constant on the rows.
    lengths : ndarray of shape (n_terms,)
        ‖Ψ(φ_i)‖, without the common factor 1/σ_s of Eq. 1.
    status : Status
    n_used : int
        Rows on which every value and derivative of every term is finite.
    """

    terms: tuple[Term, ...]
    nu: FloatArray
    lengths: FloatArray
    status: Status
    n_used: int

    def __len__(self) -> int:
        return len(self.terms)

    def __repr__(self) -> str:
        labels = [str(term.expression) for term in self.terms]
        return f"TermNovelties({terms_and_novelties(labels, self.nu)}, {self.n_used} rows)"

    @property
    def contribution(self) -> FloatArray:
        """|b| ν ‖Ψ‖, what deleting a term and refitting the others costs, up to the common factor 1/σ_s."""
        cost = np.abs([term.coefficient for term in self.terms]) * self.nu * self.lengths
        return np.where(self.lengths == 0.0, 0.0, cost)

    def penalty(self, tau: float = TAU_ID) -> float:
        """Mean squared shortfall below the threshold: (1/m) Σ max(0, 1 − ν_i/τ)² (Eq. D.1 without its weight).

        1 where there is no novelty.
        """
        return novelty_penalty(self.nu, tau) if self.status is Status.OK else 1.0


def terms_and_novelties(labels: Sequence[str], nu: FloatArray) -> str:
    """Terms with their novelties on one line, for lists and dictionaries of results.

    >>> terms_and_novelties(["x0", "sin(x0)"], np.array([0.1234, 1.0]))
    'ν of x0: 0.123, sin(x0): 1'
    """
    each = [f"{label if len(label) <= 24 else label[:23] + '…'}: {v:.3g}" for label, v in zip(labels, nu[:4])]
    more = f", {len(labels) - 4} more" if len(labels) > 4 else ""
    return f"ν of {', '.join(each)}{more}" if each else "no terms"


def novelty_penalty(nu: FloatArray, tau: float = TAU_ID) -> float:
    """Mean squared shortfall below the threshold: (1/m) Σ max(0, 1 − ν_i/τ)² (Eq. D.1 without its weight).

    >>> import numpy as np
    >>> novelty_penalty(np.array([1.0, 0.0]))
    0.5
    """
    if not 0.0 < tau <= 1.0:
        raise ParameterError(f"'tau' must be above 0 and at most 1. Got {tau!r}.")
    nu = nu[~np.isnan(nu)]  # an intercept that is free has no novelty
    return float(np.mean(np.maximum(0.0, 1.0 - nu / tau) ** 2)) if len(nu) else 0.0


@checked(equations=EQUATIONS, n_jobs=COUNT)
def novelties(
    equations: Sequence[Any],
    X: Any,
    *,
    names: Sequence[str] | None = None,
    order: int = 1,
    weights: tuple[float, ...] = (1.0, 1.0, 1.0),
    coordinates: str = "standardized",
    intercept: str = "term",
    n_jobs: int = 1,
) -> list[TermNovelties]:
    """Sobolev Novelty of every term of many equations on the same inputs, in one call.

    Parameters
    ----------
    equations : sequence of str, Expression, SymPy expression, or lists of terms
        Each is read as by :func:`sobolev_novelty.novelty`.
    X : array of shape (n_samples, n_features) or DataFrame
    names, order, weights, coordinates, intercept
        See :func:`sobolev_novelty.novelty`.
    n_jobs : int
        Threads; the result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> [found.nu.round(2).tolist() for found in novelties(["x0 + cos(3*x0)", "x0 + sin(x0)"], X)]
    [[1.0, 1.0], [0.12, 0.12]]
    """
    sample = as_sample(X, names)
    geometry = Geometry(order, three_weights(weights), coordinates, intercept)
    each = [terms_of(equation, sample.names)[1] for equation in read_together(equations, sample.names)]
    return novelties_of(each, sample, geometry, n_jobs=n_jobs)


def novelties_of(
    candidates: Sequence[Sequence[Term]], sample: Sample, geometry: Geometry = DEFAULT_GEOMETRY, *, n_jobs: int = 1
) -> list[TermNovelties]:
    """Novelty of every term of candidates that are already split into terms."""
    found = evaluated([[term.expression for term in terms] for terms in candidates], sample, geometry, n_jobs=n_jobs)
    results = []
    end = 0
    for c, (terms, n_used) in enumerate(zip(candidates, found.rows.tolist(), strict=True)):
        start, end = end, end + len(terms)
        results.append(
            TermNovelties(
                tuple(terms), without_intercept(found.nu[start:end], found.lengths[start:end], geometry),
                found.lengths[start:end], found.status_of(c), n_used,
            )
        )  # fmt: skip
    return results


def evaluated(
    candidates: Sequence[Sequence[Expression]],
    sample: Sample,
    geometry: Geometry = DEFAULT_GEOMETRY,
    *,
    with_triangles: bool = False,
    n_jobs: int = 1,
) -> kernels.Novelties:
    """The kernel's answer; terms that candidates share are evaluated once."""
    places: dict[Expression, int] = {}
    members = [places.setdefault(term, len(places)) for terms in candidates for term in terms]
    own = on_own_inputs(list(places), sample)
    if geometry.is_along_data or is_far(geometry.scales(own)):
        return _by_signatures(candidates, sample, geometry, with_triangles)
    return kernels.novelties(
        kernels.compile_programs(list(places), own.names),
        np.cumsum([0, *map(len, candidates)], dtype=np.int64),
        own.X,
        members=np.array(members, dtype=np.int64),
        geometry=geometry,
        scales=geometry.scales(own),
        n_features=sample.n_features,
        with_triangles=with_triangles,
        n_threads=n_jobs,
    )


def _by_signatures(
    candidates: Sequence[Sequence[Expression]], sample: Sample, geometry: Geometry, with_triangles: bool
) -> kernels.Novelties:
    """The same from signatures: the kernel knows no directions that differ from row to row and no extended range."""
    offsets = np.cumsum([0, *map(len, candidates)], dtype=np.int64)
    found, places = kernels.no_novelties(offsets, with_triangles=with_triangles)
    for c, terms in enumerate(candidates):
        kernels.fill_in(
            found, c, slice(int(offsets[c]), int(offsets[c + 1])), places, signatures(terms, sample, geometry)
        )
    return found


def normalised_factor(
    terms: Sequence[Expression], sample: Sample, geometry: Geometry = DEFAULT_GEOMETRY
) -> FloatArray | None:
    """R of the unit signatures of the terms, shape (m, m); None where too few rows are finite."""
    found = evaluated([terms], sample, geometry, with_triangles=True)
    if found.status_of(0) is not Status.OK:
        return None
    assert found.triangles is not None
    return found.triangles.reshape(len(terms), len(terms))


@checked(new_terms=EQUATIONS, given=EQUATIONS)
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
    expressions = [as_expression(term, sample.names) for term in read_together((*given, *new_terms), sample.names)]
    R = normalised_factor(expressions, sample, Geometry(order))
    if R is None:
        return np.full(len(new_terms), np.nan)
    return conditional_residuals(R[:, : len(given)], R[:, len(given) :])


def terms_of(
    equation: Any, names: tuple[str, ...], max_terms: int | None = None
) -> tuple[Expression | None, tuple[Term, ...], tuple[str, ...]]:
    """The expression (None for a list of terms), its terms, and notes on how they were split; too many are refused."""
    expression, terms, notes = _split(equation, names)
    if max_terms is not None and len(terms) > max_terms:
        raise ParameterError(
            f"'equation' has {len(terms)} terms, and 'max_terms' is {max_terms}. Give fewer terms, or a larger "
            "'max_terms' if you can wait."
        )
    return expression, terms, notes


def _split(equation: Any, names: tuple[str, ...]) -> tuple[Expression | None, tuple[Term, ...], tuple[str, ...]]:
    if isinstance(equation, list | tuple) and not is_model(equation):  # a tree of DEAP is a list too
        if not equation:
            raise ParameterError("'equation' is an empty list. Give at least one term.")
        for part in equation:
            if isinstance(part, Term):
                check("equation", part, TERM)
        read = read_together(equation, names)
        return None, tuple(p if isinstance(p, Term) else Term(1.0, as_expression(p, names)) for p in read), ()
    expression = as_expression(equation, names)
    found = additive_terms(expression)
    notes = tuple(
        f"The factor {factor} was left undistributed: the cap on terms was reached." for factor in found.undistributed
    )
    return expression, found.terms, notes


def three_weights(weights: tuple[float, ...]) -> tuple[float, float, float]:
    """λ₀, λ₁ and λ₂; those not given are 1."""
    padded = tuple(float(w) for w in weights) + (1.0,) * max(0, 3 - len(weights))
    if len(padded) != 3:
        raise ParameterError(f"'weights' takes at most three numbers (λ0, λ1, λ2). Got {len(weights)}.")
    return padded[0], padded[1], padded[2]
