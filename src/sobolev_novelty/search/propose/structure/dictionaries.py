r"""Bounded dictionaries over a few variables: monomials, functions of simple arguments, and their products.

Notation
--------
A *dictionary* is a matrix of values, (n_columns, n_rows), and a function that writes a column down when it is chosen:
most columns never are, so neither expressions nor recipes for them are made in advance.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sobolev_novelty.algebra.outer import INSIDE, composed, filled, value_at
from sobolev_novelty.algebra.writing import ONE, multiplied, product, respelled, scaled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels import JoinedColumns, LazyColumns, joined_lengths
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.subproblem import Variable

#: Index of a column -> its expression.
Recipe = Callable[[int], Expression]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    """Columns and how to write them down."""

    values: FloatArray  # shape (n_columns, n_rows)
    expression: Recipe  # index of a column -> its expression

    def __len__(self) -> int:
        return len(self.values)

    def __add__(self, other: Dictionary) -> Dictionary:
        return joined([self, other])

    @property
    def n_rows(self) -> int:
        """Rows of every column."""
        return int(self.values.shape[1])

    def head(self, n: int) -> Dictionary:
        """The first ``n`` columns at most."""
        return self if len(self) <= n else Dictionary(self.values[:n], self.expression)

    @property
    def columns(self) -> JoinedColumns:
        """What its columns are made of."""
        return JoinedColumns.of(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class LazyDictionary:
    """A dictionary whose columns are computed when they are asked for: most never are, once they have been screened."""

    values: LazyColumns
    expression: Recipe

    def __len__(self) -> int:
        return len(self.values)

    def head(self, n: int) -> Dictionary:
        """The first ``n`` columns at most."""
        return Dictionary(self.values[:n], self.expression)

    def dense(self) -> Dictionary:
        """All columns."""
        return self.head(len(self))


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Every column of one dictionary with every one of another, not yet computed: most of them repeat others.

    ``left``, ``right``: the first column of ``left`` comes with all of ``right``, then the second, and so on.
    """

    name: str  # the operator that joins two columns
    left: Dictionary
    right: Dictionary
    n: int  # pairs at most

    def __len__(self) -> int:
        return min(self.n, len(self.left) * len(self.right))

    @property
    def n_rows(self) -> int:
        """Rows of every column."""
        return self.left.n_rows

    @property
    def columns(self) -> JoinedColumns:
        """What its columns are made of."""
        first, second = np.divmod(np.arange(len(self)), max(1, len(self.right)))
        return JoinedColumns(self.name, self.left.values, self.right.values, first, second)

    def expression(self, j: int) -> Expression:
        """How to write a column down."""
        first, second = self.left.expression(j // len(self.right)), self.right.expression(j % len(self.right))
        return multiplied(first, second) if self.name == "mul" else Expression.of(self.name, first, second)


def joined(parts: Sequence[Dictionary | Pairs]) -> Dictionary:
    """All columns, one dictionary after the other."""
    values = [part.columns.values() if isinstance(part, Pairs) else part.values for part in parts]
    return Dictionary(np.concatenate(values), one_after_the_other(parts))


def chained(parts: Sequence[Dictionary | Pairs]) -> LazyDictionary:
    """The same, not yet computed."""
    return LazyDictionary(LazyColumns(tuple(part.columns for part in parts)), one_after_the_other(parts))


def one_after_the_other(parts: Sequence[Dictionary | Pairs]) -> Recipe:
    """How to write down the columns of several dictionaries, numbered through."""
    starts = list(itertools.accumulate((len(part) for part in parts), initial=0))
    writers = [part.expression for part in parts]

    def write(j: int) -> Expression:
        place = bisect_right(starts, j) - 1
        return writers[place](j - starts[place])

    return write


def empty(n_rows: int) -> Dictionary:
    """No columns."""
    return listed(np.zeros((0, n_rows)), [])


def constant(variables: Sequence[Variable]) -> Dictionary:
    """The column of ones."""
    return listed(np.ones((1, len(variables[0].values))), [ONE])


def listed(values: FloatArray, expressions: Sequence[Expression]) -> Dictionary:
    """Columns whose expressions are at hand."""
    return Dictionary(values, expressions.__getitem__)


def exponent_table(
    variables: Sequence[Variable], *, max_total: float | None = None, choices: tuple[float, ...] | None = None
) -> FloatArray:
    """Exponent vectors of the monomials of a dictionary, simplest first, the constant left out."""
    d = len(variables)
    default_choices, default_total = words.EXPONENTS.get(d, words.OF_MANY)
    choices = default_choices if choices is None else choices
    total = default_total if max_total is None else max_total
    return _exponents(tuple(v.is_positive for v in variables), total, choices)


@lru_cache(maxsize=1 << 8)
def _exponents(positive: tuple[bool, ...], total: float, choices: tuple[float, ...]) -> FloatArray:
    d = len(positive)
    allowed = [[float(k) for k in choices if is_positive or float(k).is_integer()] for is_positive in positive]
    rows: list[tuple[float, ...]] = []
    most_used = int(total // min(abs(k) for k in choices))  # more variables than this overdraw the total
    for n_used in range(1, min(d, 5, most_used) + 1):
        for used in itertools.combinations(range(d), n_used):
            for powers in itertools.product(*(allowed[v] for v in used)):
                if sum(abs(k) for k in powers) <= total:
                    by_variable = dict(zip(used, powers, strict=True))
                    rows.append(tuple(by_variable.get(v, 0.0) for v in range(d)))
    rows.sort(key=lambda row: (sum(abs(k) for k in row), sum(k < 0 for k in row)))
    table = np.array(rows).reshape(-1, d)
    table.flags.writeable = False  # every caller gets the same array
    return table


def monomials(
    variables: Sequence[Variable],
    *,
    max_total: float | None = None,
    choices: tuple[float, ...] | None = None,
    limit: int | None = None,
) -> Dictionary:
    """Products of powers of the variables, simplest first, without the constant."""
    return power_products(variables, exponent_table(variables, max_total=max_total, choices=choices)[:limit])


def power_products(variables: Sequence[Variable], exponents: FloatArray) -> Dictionary:
    """Products of the variables to given powers, shape (n_products, n_variables)."""
    stacked = np.stack([v.values for v in variables])
    with np.errstate(all="ignore"):
        size = np.exp(exponents @ np.log(np.abs(stacked)))
        odd = (np.abs(exponents) % 2.0 == 1.0).astype(float)
        sign = np.where(odd @ (stacked < 0.0) % 2.0 == 1.0, -1.0, 1.0)
    bases = [v.expression for v in variables]
    return Dictionary(size * sign, lambda j: product(zip(bases, exponents[j].tolist(), strict=True)))


def arguments(variables: Sequence[Variable], *, limit: int = 120) -> Dictionary:
    """Simple arguments of functions: small monomials, sums and differences of two variables."""
    d = len(variables)
    table = exponent_table(variables, max_total=3 if d <= 2 else 2, choices=words.WHOLE)
    if d > 2:
        # Larger products of first powers, such as a·b/(c·d), occur in exponents and phases.
        wide = exponent_table(variables, max_total=min(d, 4), choices=words.FIRST_POWERS)
        table = np.unique(np.vstack([table, wide]), axis=0)
        table = table[np.argsort(np.abs(table).sum(axis=1), kind="stable")]
    # w and 1/w carry the same information under most functions; a leading positive power is enough for phases.
    single = power_products(variables, np.eye(d))
    pairs = np.triu_indices(d, 1)
    return (power_products(variables, table) + _sums_and_differences(single, single, pairs)).head(limit)


def _sums_and_differences(left: Dictionary, right: Dictionary, pairs: tuple[Places, Places]) -> Dictionary:
    """A column of ``left`` plus one of ``right``, for given pairs; then all differences."""
    rows, columns = pairs
    first, second, n = left.expression, right.expression, len(rows)

    def write(j: int) -> Expression:
        name = "add" if j < n else "sub"
        return Expression.of(name, first(int(rows[j % n])), second(int(columns[j % n])))

    a, b = left.values[rows], right.values[columns]
    values = np.empty((2 * n, a.shape[1]))
    with np.errstate(all="ignore"):
        np.add(a, b, out=values[:n])
        np.subtract(a, b, out=values[n:])
    return Dictionary(values, write)


def products(left: Dictionary, right: Dictionary, *, limit: int = 60_000) -> Pairs:
    """All products of a column of ``left`` with one of ``right``, up to a limit: as many of ``left`` as it allows."""
    n_left = max(1, min(len(left), limit // max(1, len(right))))
    return Pairs("mul", left, right, n_left * len(right))


def functions(base: Dictionary, operators: Sequence[str], *, scales: tuple[float, ...] = (1.0,)) -> Dictionary:
    """Functions of the columns of ``base``: u(c·w)."""
    whole = [empty(base.values.shape[1])]
    for name in (name for name in words.IN_DICTIONARIES if name in operators):
        for c in (1.0, -1.0) if name == "exp" else scales if name in words.WAVES else (1.0,):
            whole.append(_images(base, filled(composed(name), scaled(c, Expression.of(INSIDE)))))
    return joined(whole)


def _images(base: Dictionary, template: Expression) -> Dictionary:
    """The function of all columns of ``base``."""
    write = base.expression
    return Dictionary(value_at(template, base.values), lambda j: filled(template, write(j)))


def additive_dictionary(
    variables: Sequence[Variable], operators: Sequence[str], *, limit: int = 40_000
) -> LazyDictionary:
    """Columns for sums: 1, monomials, functions of arguments, and products of the two."""
    d = len(variables)
    scales = words.SCALES if d <= 2 else (1.0,)
    inner = distinct(functions(arguments(variables, limit=60 if d <= 2 else 90), operators, scales=scales)).dense()
    small = monomials(variables, max_total=4 if d <= 2 else 2 if d > 4 else 3, limit=120)
    whole: list[Dictionary | Pairs] = [constant(variables), monomials(variables, limit=2500), inner]
    whole.append(products(small, inner, limit=limit))
    if d <= 2:
        whole.append(products(inner.head(80), inner.head(80), limit=6400))
    return distinct(*whole)


def simple_dictionary(variables: Sequence[Variable], functions_used: Sequence[str]) -> LazyDictionary:
    """The simplest columns for sums, with one family of functions: greed errs less often among few."""
    monos = monomials(variables, max_total=2, limit=80)
    inner = distinct(functions(arguments(variables, limit=12), functions_used)).dense()
    return distinct(constant(variables), monos, inner, products(monos, inner, limit=4000))


def algebraic_factors(variables: Sequence[Variable]) -> LazyDictionary:
    """Columns for products: q + p and q − p for monomials p, q without a common variable.

    Up to a monomial every sum of two monomials is one of these, so nothing is listed twice where powers of the
    variables are free.
    """
    most = words.IN_FACTORS.get(len(variables), words.IN_FACTORS_OF_MANY)
    table = exponent_table(variables, max_total=most, choices=words.WHOLE)
    # p/q and q/p give the same two columns: the first exponent decides which is kept.
    leading = np.take_along_axis(table, np.argmax(table != 0.0, axis=1)[:, None], axis=1)[:, 0]
    table = table[leading > 0.0][:4000]
    p, q = (power_products(variables, np.maximum(sign * table, 0.0)) for sign in (1.0, -1.0))
    every = np.arange(len(p))
    return distinct(_sums_and_differences(q, p, (every, every)))


def functional_factors(
    variables: Sequence[Variable], operators: Sequence[str], *, limit: int = 30_000
) -> LazyDictionary:
    """Columns for products: functions, and their sums with 1 and with the variables."""
    inner = distinct(functions(arguments(variables, limit=60), operators, scales=words.SLOW)).dense()
    few = monomials(variables, max_total=1, choices=words.FIRST_POWERS)
    left, right = constant(variables) + few, joined([inner, products(few, inner.head(150), limit=3000)])
    return distinct(inner, Pairs("add", left, right, limit // 2), Pairs("sub", left, right, limit // 2))


def plain_factors(variables: Sequence[Variable], operators: Sequence[str]) -> LazyDictionary:
    """A short list of columns for products: functions of simple arguments, and the arguments plus and minus 1."""
    inner = arguments(variables, limit=40)
    shifted = (Pairs(name, constant(variables), inner, len(inner)) for name in ("add", "sub"))
    return distinct(functions(inner, operators, scales=words.SLOW), *shifted)


def scanned_dictionary(variables: Sequence[Variable], operators: Sequence[str]) -> LazyDictionary:
    """Monomials times functions whose argument is scaled by a grid of constants."""
    d = len(variables)
    inner = arguments(variables, limit=8 if d == 1 else 14)
    templates = [template for template in words.SCANNED if respelled(template, operators) is not None]
    found = []
    for k, w in enumerate(inner.values):
        size = float(np.abs(w).max())
        if np.isfinite(size) and size > 0.0:
            argument = inner.expression(k)
            found += [_scaled_images(template, argument, w, size) for template in templates]
    scanned = joined(found) if found else empty(len(variables[0].values))
    if not len(scanned):
        return chained([scanned])
    small = monomials(variables, max_total=3 if d == 1 else 1, choices=words.UP_TO_CUBES)
    return chained([constant(variables), small, scanned, products(small.head(6), scanned, limit=40_000)])


def _scaled_images(template: Expression, argument: Expression, w: FloatArray, size: float) -> Dictionary:
    """u(c·w) over the grid of the function, where all values are finite."""
    grid = (words.CYCLES if template in words.WAVE_TEMPLATES else words.SIZES) / size
    values = value_at(template, np.multiply.outer(grid, w))
    fine = np.isfinite(values).all(axis=1)
    kept = grid[fine].tolist()
    return Dictionary(values[fine], lambda j: filled(template, Expression.of("mul", kept[j], argument)))


def distinct(*parts: Dictionary | Pairs) -> LazyDictionary:
    """All columns with finite values, each direction once: the first, which is the simplest, stays."""
    known: set[bytes] = set()
    places: list[int] = []
    kept: list[JoinedColumns] = []
    start = 0
    for part in parts:
        columns = part.columns
        fresh = _directions(columns)
        for key in known.intersection(fresh):
            del fresh[key]
        known.update(fresh)
        chosen = sorted(fresh.values())
        kept.append(columns.chosen(np.array(chosen, dtype=np.int64)))
        places += [start + j for j in chosen]
        start += len(part)
    write = one_after_the_other(parts)
    return LazyDictionary(LazyColumns(tuple(kept)), lambda j: write(places[j]))


def _directions(columns: JoinedColumns) -> dict[bytes, int]:
    """The directions of columns that have a length, on a few rows, rounded, and the first column of each."""
    lengths = joined_lengths(columns)
    fine = np.flatnonzero((lengths > 1e-100) & (lengths < 1e100))  # a value that is not finite spoils its length
    unit = columns.chosen(fine).values(8) / lengths[fine, None]
    unit *= np.where(unit[:, :1] < 0.0, -1.0, 1.0)
    rounded = np.round(unit, 9) + 0.0
    keys: list[bytes] = rounded.view(f"S{8 * rounded.shape[1]}")[::-1, 0].tolist()
    return dict(zip(keys, fine[::-1].tolist(), strict=True))
