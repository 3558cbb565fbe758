r"""Exact relations in small families: polynomials and their quotients, also of sines, cosines and exponentials.

Greedy pursuit fails where columns are strongly correlated. A family of at most a hundred columns can be solved whole
instead: if the full least-squares problem is exact, columns are taken away as long as it stays exact.

Notation
--------
``P``  columns of a numerator;  ``t·Q`` columns of a denominator times the target: t = P/Q is a null vector of [P, −t·Q]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sobolev_novelty.algebra.writing import ONE, weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.linear.projection import factor
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.structure.dictionaries import (
    Dictionary,
    LazyDictionary,
    constant,
    joined,
    listed,
    monomials,
    products,
)
from sobolev_novelty.search.propose.subproblem import Variable

#: NMSE below which a relation counts as exact on the sample.
EXACT = 1e-15
#: Singular value, relative to unit columns, below which a null vector counts as exact.
_NULL = 1e-9
_DEGREES = {
    1: ((3, 2), (6, 5)),
    2: ((2, 1), (3, 2), (5, 4)),
    3: ((2, 1), (3, 2), (4, 3)),
    4: ((2, 1), (2, 2)),
    5: ((2, 1),),
}
_MAX_COLUMNS = 120
#: Parts of a sum this small compared with the largest are rounding.
_NEGLIGIBLE = 1e-10


def polynomials(variables: Sequence[Variable], degree: int) -> Dictionary:
    """1 and all monomials with non-negative exponents up to a total degree."""
    return constant(variables) + monomials(variables, max_total=degree, choices=tuple(range(1, degree + 1)))


def variants(variables: Sequence[Variable], operators: Sequence[str]) -> Iterator[list[Variable]]:
    """The variables themselves, and with one of them replaced by its sine, cosine, exponential or square root."""
    yield list(variables)
    for i, name in itertools.product(range(len(variables)), words.IN_QUOTIENTS):
        if name not in operators:
            continue
        with np.errstate(all="ignore"):
            values = OPERATORS[name].value(variables[i].values)
        if np.isfinite(values).all() and np.ptp(values) > 0.0:
            changed = list(variables)
            changed[i] = Variable(Expression.of(name, variables[i].expression), values)
            yield changed


def sums(variables: Sequence[Variable], t: FloatArray, operators: Sequence[str]) -> list[Expression]:
    """Exact sums: polynomials times 1, sin and cos of the variables and of their differences."""
    d = len(variables)
    if d > 5:
        return []
    forms = []
    for degree in (2, 3) if d <= 4 else (2,):
        forms.append(_eliminated(polynomials(variables, degree), t))
    laurent = monomials(variables, max_total=3 if d <= 3 else 2, choices=words.WHOLE)
    forms.append(_eliminated((constant(variables) + laurent).head(_MAX_COLUMNS), t))
    if d <= 4 and set(words.WAVES) <= set(operators):
        phases = _phases(variables)
        for degree in (1, 2):
            forms.append(_eliminated(joined([products(polynomials(variables, degree), phases)]).head(_MAX_COLUMNS), t))
        forms += [_eliminated(_waves(variables, v), t) for v in range(d)] if d > 1 else []
    return [form for form in forms if form is not None]


def _waves(variables: Sequence[Variable], place: int) -> Dictionary:
    """Powers of the other variables, roots among them, times 1, sin and cos of one."""
    others = [v for k, v in enumerate(variables) if k != place]
    amplitudes = constant(others) + monomials(others, max_total=2, choices=words.AMPLITUDES)
    return joined([products(amplitudes, _sines([variables[place]]))]).head(_MAX_COLUMNS)


def _phases(variables: Sequence[Variable]) -> Dictionary:
    arguments = list(variables)
    for a, b in itertools.combinations(variables, 2):
        arguments.append(Variable(Expression.of("sub", a.expression, b.expression), a.values - b.values))
        arguments.append(Variable(Expression.of("mul", a.expression, b.expression), a.values * b.values))
    return _sines(arguments[:8])


def _sines(arguments: Sequence[Variable]) -> Dictionary:
    """1, and the sine and cosine of each argument."""
    pairs = list(itertools.product(arguments, words.WAVES))
    expressions = [ONE, *(Expression.of(name, v.expression) for v, name in pairs)]
    values = [np.ones_like(arguments[0].values), *(OPERATORS[name].value(v.values) for v, name in pairs)]
    return listed(np.stack(values), expressions)


def _eliminated(dictionary: Dictionary, t: FloatArray) -> Expression | None:
    """The sparsest exact sum found by taking columns away, or None where the whole family is not exact."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(dictionary.values, axis=1)
    fine = np.flatnonzero((lengths > 0.0) & (lengths < np.inf))
    if len(fine) > len(t) // 2:
        fine = fine[: len(t) // 2]

    def exact(columns: list[int]) -> FloatArray | None:
        rows = dictionary.values[columns]
        if not unexplained(rows, t) <= EXACT:
            return None
        return least_squares(rows / np.linalg.norm(rows, axis=1)[:, None], t)

    found = _thinned(fine.tolist(), exact, 1)
    return None if found is None else fitted_sum(dictionary, found[0], t)


def _thinned(
    columns: list[int], still: Callable[[list[int]], FloatArray | None], least: int
) -> tuple[list[int], FloatArray] | None:
    """Columns taken away one by one, of the four that count least, while the rest ``still`` have coefficients."""
    found = still(columns)
    while found is not None and len(columns) > least:
        rests = [columns[:k] + columns[k + 1 :] for k in np.argsort(np.abs(found))[:4].tolist()]
        smaller = next(((rest, b) for rest in rests if (b := still(rest)) is not None), None)
        if smaller is None:
            break
        columns, found = smaller
    return None if found is None else (columns, found)


def fitted_sum(dictionary: Dictionary | LazyDictionary, columns: Sequence[int], t: FloatArray) -> Expression:
    """Σ b·column with least-squares coefficients; parts that are nothing but rounding are left out."""
    rows = dictionary.values[list(columns)]
    b = least_squares(rows, t)
    sizes = np.abs(b) * np.linalg.norm(rows, axis=1)
    parts = zip(b.tolist(), columns, (sizes > _NEGLIGIBLE * sizes.max()).tolist(), strict=True)
    return weighted_sum((c, dictionary.expression(j)) for c, j, keep in parts if keep)


def unexplained(rows: FloatArray, t: FloatArray) -> float:
    """Share of the target's variance that least squares on these columns leaves; ``inf`` where there is none."""
    left = t - least_squares(rows, t) @ rows
    spread = float(np.sum((t - t.mean()) ** 2))
    return float(left @ left) / spread if spread > 0.0 else np.inf


def quotients(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """Exact quotients of polynomials, by the null vectors of [P, −t·Q], lowest degrees first."""
    for above, below in _DEGREES.get(len(variables), ()):
        P, Q = polynomials(variables, above), polynomials(variables, below)
        if len(P) + len(Q) > min(_MAX_COLUMNS, len(t) // 2):
            break
        found = _null_quotient(P, Q, t)
        if found is not None:
            return [found]
    return []


def _null_quotient(P: Dictionary, Q: Dictionary, t: FloatArray) -> Expression | None:
    both = np.concatenate([P.values, -Q.values * t])
    lengths = np.linalg.norm(both, axis=1)
    if not np.isfinite(lengths).all() or not (lengths > 0.0).all():
        return None
    unit = (both / lengths[:, None]).T
    R = factor(unit)
    if np.linalg.svd(R[:, : len(P)], compute_uv=False)[-1] < 10 * _NULL:
        return None  # the numerator's columns are dependent by themselves: the null vector would say nothing about t

    def null_vector(columns: list[int]) -> FloatArray | None:
        _, s, Vt = np.linalg.svd(R[:, columns], full_matrices=False)
        is_quotient = any(j < len(P) for j in columns) and any(j >= len(P) for j in columns)
        return np.asarray(Vt[-1]) if s[-1] < _NULL and is_quotient else None

    found = _thinned(list(range(R.shape[1])), null_vector, 2)
    if found is None:
        return None
    kept, vector = found
    weights = vector / lengths[kept]
    weights = np.where(np.abs(weights) < _NEGLIGIBLE * np.abs(weights).max(), 0.0, weights)
    above = [(float(w), P.expression(j)) for j, w in zip(kept, weights, strict=True) if j < len(P) and w]
    below = [(float(w), Q.expression(j - len(P))) for j, w in zip(kept, weights, strict=True) if j >= len(P) and w]
    if not above or not below:
        return None
    unit_of_quotient = below[0][0]
    above = [(w / unit_of_quotient, e) for w, e in above]
    below = [(w / unit_of_quotient, e) for w, e in below]
    return Expression.of("div", weighted_sum(above), weighted_sum(below))
