"""Columns of a dictionary screened for a target: sums of a few of them, products of factors, quotients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sobolev_novelty.algebra.writing import product, scaled, weighted_sum, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels import JoinedColumns, LazyColumns, UnitColumns, unit_columns
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.pursuit import EXACT, Combination, promising, pursue
from sobolev_novelty.search.propose.structure.dictionaries import Dictionary, LazyDictionary, empty, monomials
from sobolev_novelty.search.propose.structure.exact_relations import fitted_sum, unexplained
from sobolev_novelty.search.propose.structure.family import Bench, Forms
from sobolev_novelty.search.propose.structure.power_laws import common_sign, simple_exponent
from sobolev_novelty.search.propose.subproblem import Subproblem, Variable
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


#: Targets whose sums are sought together.
AT_ONCE = 3


def screened(
    columns: Callable[[Bench], Dictionary | LazyDictionary], *, n_terms: int, keep: int = 4, n_targets: int | None = 1
) -> Callable[[Bench], Forms]:
    """A family: sums of a few columns, for the target and for some with an outer function undone."""

    def forms(bench: Bench) -> Forms:
        screen = Screen.of(columns(bench), bench.effort.n_threads)
        yield from screen.batches([bench.few] if n_targets == 1 else bench.undone[:n_targets], n_terms, keep)

    return forms


def multiplied(
    factors: Callable[[Bench], Sequence[LazyDictionary]], *, is_short: bool = False
) -> Callable[[Bench], Forms]:
    """A family: products of powers of factors, by pursuit; with a wide beam where the lists of factors are short."""

    def forms(bench: Bench) -> Forms:
        effort, (variables, t) = bench.effort, (bench.few.variables, bench.few.target)
        search = by_wide_beam if is_short else partial(by_pursuit, n_threads=effort.n_threads)
        yield product_forms(variables, t, effort.operators, factors(bench), search)

    return forms


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """A dictionary whose columns are laid out once for any number of targets."""

    dictionary: Dictionary | LazyDictionary
    columns: UnitColumns
    n_threads: int

    @classmethod
    def of(cls, dictionary: Dictionary | LazyDictionary, n_threads: int) -> Screen:
        """The dictionary, laid out."""
        return cls(dictionary, unit_columns(dictionary.values, n_threads=n_threads), n_threads)

    def forms(self, *targets: FloatArray, n_terms: int, keep: int = 4) -> list[list[Expression]]:
        """The best sums of a few columns, for each target."""
        if not len(self.dictionary):
            return [[] for _ in targets]
        found = pursue(self.columns, *targets, n_terms=n_terms, exact=EXACT, n_threads=self.n_threads)
        return [self._written(t, promising(best, keep)) for t, best in zip(targets, found, strict=True)]

    def batches(self, problems: Sequence[Subproblem], n_terms: int, keep: int = 4) -> Forms:
        """The same, a few targets at a time: together they cost less, and the first are not kept waiting."""
        for k in range(0, len(problems), AT_ONCE):
            some = problems[k : k + AT_ONCE]
            found = self.forms(*(p.target for p in some), n_terms=n_terms, keep=keep)
            yield from (p.written(forms) for p, forms in zip(some, found, strict=True))

    def _written(self, t: FloatArray, best: Sequence[Combination]) -> list[Expression]:
        return writable(lambda c: fitted_sum(self.dictionary, _thinned(self.dictionary.values, t, c), t), best)


def _thinned(values: FloatArray | LazyColumns, t: FloatArray, combination: Combination) -> list[int]:
    """The combination without columns an exact fit does not need."""
    columns = list(combination.columns)
    for j in combination.columns if combination.nmse <= EXACT else ():
        rest = [k for k in columns if k != j]
        if rest and unexplained(values[rest], t) <= EXACT:
            columns = rest
    return columns


def rational(bench: Bench) -> Forms:
    """P/Q from t = P − t·(Q − 1): linear in the coefficients of both."""
    base, t = bench.additive.head(1500), bench.few.target
    n = len(base)
    if n < 2:
        yield []
        return
    # Column 0 is the constant, and t·1 would explain everything.
    both = np.concatenate([base.values, base.values[1:] * t])

    def write(combination: Combination) -> Expression | None:
        columns = _thinned(both, t, combination)
        b = least_squares(both[columns], t).tolist()
        above = [(c, base.expression(j)) for c, j in zip(b, columns, strict=True) if j < n]
        below = [(-c, base.expression(j - n + 1)) for c, j in zip(b, columns, strict=True) if j >= n]
        if not above or not below:
            return None
        return Expression.of("div", weighted_sum(above), Expression.of("add", weighted_sum(below), 1.0))

    yield writable(write, promising(pursue(both, t, n_terms=4, exact=EXACT, n_threads=bench.effort.n_threads)[0]))
