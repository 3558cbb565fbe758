"""Products of powers of the inputs and of factors, c · Π fᵏ: sums in the logarithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sobolev_novelty.algebra.writing import product, scaled, weighted_sum, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels import JoinedColumns, LazyColumns
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.power_law import common_sign, simple_exponent
from sobolev_novelty.search.propose.pursuit import EXACT, Combination, least_squares, promising, pursue
from sobolev_novelty.search.propose.structure.dictionaries import LazyDictionary, Variable, empty, monomials
from sobolev_novelty.search.propose.wide_beam import Terms, WideBeam


def product_forms(
    variables: Sequence[Variable],
    t: FloatArray,
    operators: Sequence[str],
    factors: Sequence[LazyDictionary],
    search: Callable[[LazyColumns, FloatArray, int], Sequence[Combination]],
) -> list[Expression]:
    """Products c · Π fᵏ: sums in the logarithms. ``search`` gets them, the target and the number of free columns."""
    size = np.abs(t)
    if not (size > 0.0).all():
        return []
    simple = [v for v in variables if (np.abs(v.values) > 1e-12).all()]
    n_free = len(simple) + 1
    exponents = monomials(variables, max_total=4, choices=words.WHOLE, limit=1500)
    powers_of_e = exponents if "exp" in operators else empty(len(t))
    free = np.stack([np.ones(len(t)), *(np.log(np.abs(v.values)) for v in simple)])
    parts = (part for factor in factors for part in factor.values.logarithms())
    logs = LazyColumns((JoinedColumns.of(free), *parts, JoinedColumns.of(powers_of_e.values)))
    n_logs = len(logs) - len(powers_of_e)

    def write(combination: Combination) -> Expression:
        columns = combination.columns
        powers = least_squares(logs[list(columns)], np.log(size))
        parts: list[tuple[Expression, float]] = []
        inside: list[tuple[float, Expression]] = []
        for j, k in zip(columns, powers, strict=True):
            if j >= n_logs:
                inside.append((float(k), powers_of_e.expression(j - n_logs)))
                continue
            power = simple_exponent(float(k))
            if j > 0 and power:
                base = simple[j - 1].expression if j < n_free else _positive_side(*_factor(factors, j - n_free))
                parts.append((base, power))
        scale = float(np.exp(powers[columns.index(0)])) if 0 in columns else 1.0
        if inside:
            parts.append((Expression.of("exp", weighted_sum(inside)), 1.0))
        return scaled((common_sign(t) or 1.0) * scale, product(parts))

    return writable(write, promising(search(logs, np.log(size), n_free)))


def by_pursuit(logs: LazyColumns, t: FloatArray, n_free: int, n_threads: int) -> list[Combination]:
    """Sums of up to three columns beside the free ones, by matching pursuit; for long lists."""
    return pursue(logs, t, n_terms=3, beam=24, start=range(n_free), exact=EXACT, n_threads=n_threads)[0]


def by_wide_beam(columns: LazyColumns, t: FloatArray, n_free: int) -> list[Combination]:
    """With a wide beam, which smooth factors of several variables do not lead astray; for short lists."""
    logs = columns[:]
    Q = np.linalg.qr(logs[:n_free].T)[0]
    rest = logs[n_free:] - (logs[n_free:] @ Q) @ Q.T
    lengths = np.linalg.norm(logs[n_free:], axis=1)
    fresh = np.flatnonzero(np.linalg.norm(rest, axis=1) > 1e-6 * lengths)
    found = WideBeam().search(
        Terms(rest[fresh], rest[:0], np.arange(len(fresh))), t - Q @ (Q.T @ t), n_terms=4, exact=EXACT
    )
    free = tuple(range(n_free))
    return [Combination(free + tuple((n_free + fresh[list(c.columns)]).tolist()), c.nmse) for c in found]


def _factor(factors: Sequence[LazyDictionary], j: int) -> tuple[LazyDictionary, int]:
    """The dictionary that holds the factor, and its place there."""
    for part in factors:
        if j < len(part):
            return part, j
        j -= len(part)
    raise IndexError(j)


def _positive_side(factors: LazyDictionary, j: int) -> Expression:
    """The factor, turned around where it is negative: a root of it must be real. The coefficient takes the sign."""
    expression = factors.expression(j)
    if not (factors.values[j] < 0.0).all():
        return expression
    if expression.head is OPERATORS["sub"]:
        return Expression.of("sub", expression.children[1], expression.children[0])
    return Expression.of("neg", expression)
