r"""Bounded dictionaries over a few variables: monomials, functions of simple arguments, and their products.

Notation
--------
A *dictionary* is a matrix of values, (n_columns, n_rows), and for each column a recipe that builds its expression when
it is chosen: most
columns never are, so expressions are not built in advance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.operators import OPERATORS
from sobolev_novelty.search.structure.algebra import product

Recipe = Callable[[], Expression]

#: Functions of one argument a dictionary may use, if the problem's operators allow them.
UNARY = ("sin", "cos", "exp", "log", "tanh", "sqrt")


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An input, or a combination of inputs that stands for one."""

    expression: Expression
    values: FloatArray

    @property
    def is_positive(self) -> bool:
        return bool((self.values > 0.0).all())


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    """Columns and how to write them down."""

    values: FloatArray
    recipes: list[Recipe]

    def __len__(self) -> int:
        return len(self.recipes)

    def __add__(self, other: Dictionary) -> Dictionary:
        return Dictionary(np.concatenate([self.values, other.values]), self.recipes + other.recipes)

    def expression(self, j: int) -> Expression:
        return self.recipes[j]()

    def head(self, n: int) -> Dictionary:
        return self if len(self) <= n else Dictionary(self.values[:n], self.recipes[:n])


def empty(n_rows: int) -> Dictionary:
    """No columns."""
    return Dictionary(np.zeros((0, n_rows)), [])


def constant(n_rows: int) -> Dictionary:
    """The column of ones."""
    return Dictionary(np.ones((1, n_rows)), [lambda: Expression.of(1.0)])


#: Exponents tried for each variable, and the largest sum of their sizes, by number of variables.
_EXPONENTS: dict[int, tuple[tuple[float, ...], float]] = {
    1: ((-4, -3, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3, 4), 4),
    2: ((-3, -2, -1, -0.5, 0.5, 1, 2, 3, 4), 6),
    3: ((-2, -1, -0.5, 0.5, 1, 2, 3), 6),
    4: ((-2, -1, 1, 2), 5),
    5: ((-2, -1, 1, 2), 4),
}
_MANY: tuple[tuple[float, ...], float] = ((-2, -1, 1, 2), 3)


def exponent_table(
    n_variables: int,
    positive: Sequence[bool],
    *,
    max_total: float | None = None,
    choices: tuple[float, ...] | None = None,
) -> FloatArray:
    """Exponent vectors of the monomials of a dictionary, simplest first, the constant left out."""
    default_choices, default_total = _EXPONENTS.get(n_variables, _MANY)
    choices = default_choices if choices is None else choices
    total = default_total if max_total is None else max_total
    rows: list[tuple[float, ...]] = []
    most_used = int(total // min(abs(k) for k in choices))  # more variables than this overdraw the total
    for n_used in range(1, min(n_variables, 5, most_used) + 1):
        for used in itertools.combinations(range(n_variables), n_used):
            allowed = [[k for k in choices if positive[v] or float(k).is_integer()] for v in used]
            for powers in itertools.product(*allowed):
                if sum(abs(k) for k in powers) <= total:
                    row = [0.0] * n_variables
                    for v, k in zip(used, powers, strict=True):
                        row[v] = float(k)
                    rows.append(tuple(row))
    rows.sort(key=lambda row: (sum(abs(k) for k in row), sum(k < 0 for k in row)))
    return np.array(rows).reshape(-1, n_variables)


def monomials(variables: Sequence[Variable], exponents: FloatArray) -> Dictionary:
    """Products of powers of the variables."""
    values = monomial_values(variables, exponents)

    def recipe(powers: tuple[float, ...]) -> Recipe:
        return lambda: product([(v.expression, k) for v, k in zip(variables, powers, strict=True)])

    return Dictionary(values, [recipe(tuple(float(k) for k in row)) for row in exponents])


def monomial_values(variables: Sequence[Variable], exponents: FloatArray) -> FloatArray:
    """Values of the monomials, shape (n_monomials, n_rows)."""
    stacked = np.stack([v.values for v in variables])
    with np.errstate(all="ignore"):
        size = np.exp(exponents @ np.log(np.abs(stacked)))
        odd = (np.abs(exponents) % 2.0 == 1.0).astype(float)
        sign = np.where(odd @ (stacked < 0.0) % 2.0 == 1.0, -1.0, 1.0)
    return np.asarray(size * sign)


def arguments(variables: Sequence[Variable], *, limit: int = 120) -> Dictionary:
    """Simple arguments of functions: small monomials, sums and differences of two variables."""
    d = len(variables)
    positive = [v.is_positive for v in variables]
    table = exponent_table(d, positive, max_total=3 if d <= 2 else 2, choices=(-2, -1, 1, 2))
    if d > 2:
        # Larger products of first powers, such as a·b/(c·d), occur in exponents and phases.
        wide = exponent_table(d, positive, max_total=min(d, 4), choices=(-1, 1))
        table = np.unique(np.vstack([table, wide]), axis=0)
        table = table[np.argsort(np.abs(table).sum(axis=1), kind="stable")]
    # w and 1/w carry the same information under most functions; a leading positive power is enough for phases.
    return (monomials(variables, table) + _pair_sums(variables)).head(limit)


def _pair_sums(variables: Sequence[Variable]) -> Dictionary:
    values: list[FloatArray] = []
    recipes: list[Recipe] = []
    for a, b in itertools.combinations(variables, 2):
        for name in ("sub", "add"):
            values.append(OPERATORS[name].value(a.values, b.values))
            recipes.append(partial(Expression.of, name, a.expression, b.expression))
    n_rows = len(variables[0].values)
    return Dictionary(np.array(values).reshape(-1, n_rows), recipes)


def functions(base: Dictionary, operators: Sequence[str], *, scales: tuple[float, ...] = (1.0,)) -> Dictionary:
    """Functions of the columns of ``base``: u(c·w)."""
    values: list[FloatArray] = []
    recipes: list[Recipe] = []
    for name in UNARY:
        if name not in operators:
            continue
        op = OPERATORS[name]
        for scale in _scales(name, scales):
            with np.errstate(all="ignore"):
                values.append(op.value(scale * base.values))
            recipes.extend(partial(_function_of, name, scale, recipe) for recipe in base.recipes)
    n_rows = base.values.shape[1]
    return Dictionary(np.concatenate(values) if values else np.zeros((0, n_rows)), recipes)


def _function_of(name: str, scale: float, recipe: Recipe) -> Expression:
    return Expression.of(name, _scaled(scale, recipe()))


def _product_of(left: Recipe, right: Recipe) -> Expression:
    return _multiplied(left(), right())


def _sum_of(name: str, left: Recipe, right: Recipe) -> Expression:
    return Expression.of(name, left(), right())


def _scanned_of(name: str, c: float, recipe: Recipe) -> Expression:
    return _scanned_expression(name, Expression.of("mul", c, recipe()))


def _scales(name: str, scales: tuple[float, ...]) -> tuple[float, ...]:
    if name == "exp":
        return (1.0, -1.0)
    return scales if name in ("sin", "cos") else (1.0,)


def _scaled(scale: float, expression: Expression) -> Expression:
    if scale == 1.0:
        return expression
    return Expression.of("neg", expression) if scale == -1.0 else Expression.of("mul", scale, expression)


def products(left: Dictionary, right: Dictionary, *, limit: int = 60_000) -> Dictionary:
    """All products of a column of ``left`` with one of ``right``, up to a limit."""
    n_left = max(1, min(len(left), limit // max(1, len(right))))
    left = left.head(n_left)
    with np.errstate(all="ignore"):
        values = (left.values[:, None, :] * right.values[None, :, :]).reshape(-1, left.values.shape[1])
    recipes: list[Recipe] = [partial(_product_of, p, q) for p in left.recipes for q in right.recipes]
    return Dictionary(values, recipes)


def _multiplied(a: Expression, b: Expression) -> Expression:
    """a·b, with 1/q as a division."""
    if a.head is OPERATORS["inv"]:
        return Expression.of("div", b, a.children[0])
    return Expression.of("mul", a, b)


def additive_dictionary(variables: Sequence[Variable], operators: Sequence[str], *, limit: int = 40_000) -> Dictionary:
    """Columns for sums: 1, monomials, functions of arguments, and products of the two."""
    d = len(variables)
    n_rows = len(variables[0].values)
    positive = [v.is_positive for v in variables]
    monos = monomials(variables, exponent_table(d, positive)).head(2500)
    inner = functions(
        arguments(variables, limit=60 if d <= 2 else 90), operators, scales=(1.0, 0.5, 2.0) if d <= 2 else (1.0,)
    )
    inner = distinct(inner)
    small = monomials(variables, exponent_table(d, positive, max_total=4 if d <= 2 else 2 if d > 4 else 3)).head(120)
    whole = constant(n_rows) + monos + inner + products(small, inner, limit=limit)
    if d <= 2:
        whole = whole + products(inner.head(80), inner.head(80), limit=6400)
    return distinct(whole)


def simple_dictionary(variables: Sequence[Variable], functions_used: Sequence[str]) -> Dictionary:
    """The simplest columns for sums, with one family of functions: greed errs less often among few."""
    d = len(variables)
    n_rows = len(variables[0].values)
    positive = [v.is_positive for v in variables]
    monos = monomials(variables, exponent_table(d, positive, max_total=2)).head(80)
    inner = distinct(functions(arguments(variables, limit=12), functions_used))
    return distinct(constant(n_rows) + monos + inner + products(monos, inner, limit=4000))


def algebraic_factors(variables: Sequence[Variable]) -> Dictionary:
    """Columns for products: q + p and q − p for monomials p, q without a common variable.

    Up to a monomial every sum of two monomials is one of these, so nothing is listed twice where powers of the
    variables are free.
    """
    d = len(variables)
    table = exponent_table(d, [False] * d, max_total={1: 4, 2: 6, 3: 6, 4: 5, 5: 5}.get(d, 4), choices=(-2, -1, 1, 2))
    # p/q and q/p give the same two columns: the first exponent decides which is kept.
    leading = np.take_along_axis(table, np.argmax(table != 0.0, axis=1)[:, None], axis=1)[:, 0]
    table = table[leading > 0.0][:4000]
    above, below = np.maximum(table, 0.0), np.maximum(-table, 0.0)
    p, q = monomials(variables, above), monomials(variables, below)
    with np.errstate(all="ignore"):
        values = np.concatenate([q.values + p.values, q.values - p.values])
    recipes: list[Recipe] = []
    for name in ("add", "sub"):
        recipes.extend(partial(_sum_of, name, q.recipes[i], p.recipes[i]) for i in range(len(p)))
    return distinct(Dictionary(values, recipes))


def functional_factors(variables: Sequence[Variable], operators: Sequence[str], *, limit: int = 30_000) -> Dictionary:
    """Columns for products: functions, and their sums with 1 and with the variables."""
    n_rows = len(variables[0].values)
    positive = [v.is_positive for v in variables]
    inner = distinct(functions(arguments(variables, limit=60), operators, scales=(1.0, 0.5)))
    few = monomials(variables, exponent_table(len(variables), positive, max_total=1, choices=(-1, 1)))
    turned = inner + products(few, inner.head(150), limit=3000)
    return distinct(inner + _sums_of_two(constant(n_rows) + few, turned, limit=limit))


#: Functions scanned over a constant inside: u(c·w).
_SCANNED = ("sin", "cos", "exp", "tanh", "log1p", "1/(1+w)", "1/(exp-1)", "sqrt(1+w)")


def scanned_dictionary(variables: Sequence[Variable], operators: Sequence[str]) -> Dictionary:
    """Monomials times functions whose argument is scaled by a grid of constants."""
    d = len(variables)
    n_rows = len(variables[0].values)
    inner = arguments(variables, limit=8 if d == 1 else 14)
    values: list[FloatArray] = []
    recipes: list[Recipe] = []
    for w, recipe in zip(inner.values, inner.recipes, strict=True):
        size = float(np.abs(w).max())
        if not np.isfinite(size) or not size > 0.0:
            continue
        for name in _SCANNED:
            if not _scannable(name, operators):
                continue
            grid = (
                np.linspace(0.3, 40.0, 150)
                if name in ("sin", "cos")
                else np.concatenate([-np.logspace(-2, 1.2, 24), np.logspace(-2, 1.2, 24)])
            )
            for c in grid / size:
                column = _scanned_value(name, c * w)
                if np.isfinite(column).all():
                    values.append(column)
                    recipes.append(partial(_scanned_of, name, float(c), recipe))
    if not values:
        return empty(n_rows)
    scanned = Dictionary(np.array(values), recipes)
    small = monomials(
        variables,
        exponent_table(d, [False] * d, max_total=3 if d == 1 else 1, choices=(-3.0, -2.0, -1.0, 1.0, 2.0, 3.0)),
    )
    return constant(n_rows) + small + scanned + products(small.head(6), scanned, limit=40_000)


def _scannable(name: str, operators: Sequence[str]) -> bool:
    needs = {"log1p": ("log",), "1/(1+w)": ("inv",), "1/(exp-1)": ("exp", "inv"), "sqrt(1+w)": ("sqrt",)}.get(
        name, (name,)
    )
    return all(need in operators for need in needs)


def _scanned_value(name: str, w: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        if name == "1/(1+w)":
            return np.asarray(1.0 / (1.0 + w))
        if name == "1/(exp-1)":
            return np.asarray(1.0 / np.expm1(w))
        if name == "sqrt(1+w)":
            return np.asarray(np.sqrt(1.0 + w))
        return np.asarray(OPERATORS[name].value(w))


def _scanned_expression(name: str, w: Expression) -> Expression:
    if name == "1/(1+w)":
        return Expression.of("inv", Expression.of("add", w, 1.0))
    if name == "1/(exp-1)":
        return Expression.of("inv", Expression.of("sub", Expression.of("exp", w), 1.0))
    if name == "sqrt(1+w)":
        return Expression.of("sqrt", Expression.of("add", w, 1.0))
    if name == "log1p":
        return Expression.of("log", Expression.of("add", w, 1.0))
    return Expression.of(name, w)


def _sums_of_two(left: Dictionary, right: Dictionary, *, limit: int) -> Dictionary:
    """a + b and a − b for all pairs of different columns."""
    same = left is right
    pairs = [(i, j) for i in range(len(left)) for j in range(i + 1 if same else 0, len(right))][: limit // 2]
    n_rows = left.values.shape[1]
    if not pairs:
        return empty(n_rows)
    rows, cols = np.array(pairs).T
    with np.errstate(all="ignore"):
        values = np.concatenate([left.values[rows] + right.values[cols], left.values[rows] - right.values[cols]])
    recipes: list[Recipe] = []
    for name in ("add", "sub"):
        recipes.extend(partial(_sum_of, name, left.recipes[i], right.recipes[j]) for i, j in pairs)
    return Dictionary(values, recipes)


def distinct(dictionary: Dictionary) -> Dictionary:
    """Columns with finite values, each direction once: the first, which is the simplest, stays."""
    values = dictionary.values
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
        spread = np.ptp(values, axis=1) if values.shape[1] else np.zeros(len(values))
        fine = np.isfinite(lengths) & (lengths > 1e-100) & (lengths < 1e100)
        unit = values[:, : min(8, values.shape[1])] / np.where(fine, lengths, 1.0)[:, None]
    seen: set[bytes] = set()
    keep = []
    keys = np.round(unit * np.where(unit[:, :1] < 0.0, -1.0, 1.0), 9) + 0.0
    for j in np.flatnonzero(fine & (spread >= 0.0)):
        key = keys[j].tobytes()
        if key not in seen:
            seen.add(key)
            keep.append(int(j))
    return Dictionary(values[keep], [dictionary.recipes[j] for j in keep])
