"""Forms for one problem in a few variables: products, sums out of dictionaries, quotients; in pieces for islands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from sobolev_novelty.algebra.outer import OUTERS
from sobolev_novelty.algebra.writing import weighted_sum, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels import LazyColumns, UnitColumns, unit_columns
from sobolev_novelty.search.contract.engine import Island
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.pursuit import EXACT, Combination, least_squares, promising, pursue
from sobolev_novelty.search.propose.structure.dictionaries import (
    Dictionary,
    LazyDictionary,
    Variable,
    additive_dictionary,
    algebraic_factors,
    constant,
    functional_factors,
    monomials,
    plain_factors,
    scanned_dictionary,
    simple_dictionary,
)
from sobolev_novelty.search.propose.structure.exact_relations import fitted_sum, quotients, sums, unexplained, variants
from sobolev_novelty.search.propose.structure.power_laws import offset_power_law, power_law
from sobolev_novelty.search.propose.structure.product_forms import by_pursuit, by_wide_beam, product_forms
from sobolev_novelty.search.propose.structure.reductions import Reduced, Wrap
from sobolev_novelty.search.propose.structure.single_terms import single_terms

Batches = Iterable[list[Expression]]

#: Rows on which small families are solved whole.
FAMILY_ROWS = 400
#: Targets whose sums are sought together.
AT_ONCE = 3


class Deal:
    """Deals the pieces of work out among islands, one after the other: each of them asks in the same order."""

    def __init__(self, island: Island) -> None:
        self._island = island
        self._n = 0

    def is_own(self) -> bool:
        """Whether the next piece is for this island."""
        self._n += 1
        return self._island.shares(self._n - 1)


def undone(y: FloatArray, operators: Sequence[str]) -> list[tuple[Wrap, FloatArray]]:
    """The target as it is, and with each outer function undone that can be undone on all rows."""
    targets: list[tuple[Wrap, FloatArray]] = [(lambda e: e, y)]
    for outer in (OUTERS[name] for name in words.OUTER):
        t = outer.undo(y)
        if outer.is_allowed(operators) and np.isfinite(t).all() and t.std() > 0.0:
            targets.append((outer.write, t))
    return targets


def first_rows(variables: Sequence[Variable], n_rows: int) -> list[Variable]:
    """The variables on their first rows."""
    return [Variable(v.expression, v.values[:n_rows]) for v in variables]


@dataclass(frozen=True, slots=True)
class Effort:
    """What forms may be made of and what finding them may take.

    Parameters
    ----------
    operators : tuple of str
    n_rows : int
        Rows on which dictionaries are screened.
    n_threads : int
    deal : Deal
        Islands share the pieces of each problem out, so that it is solved the sooner: this is what takes the time.
    """

    operators: tuple[str, ...]
    n_rows: int
    n_threads: int
    deal: Deal


def monomial_sums(variables: Sequence[Variable], t: FloatArray, effort: Effort) -> list[Expression]:
    """Sums of a few monomials."""
    few = first_rows(variables, effort.n_rows)
    screen = Screen.of(constant(few) + monomials(few, limit=3000), effort.n_threads)
    return screen.forms(t[: effort.n_rows], n_terms=5)[0]


def solve(reduced: Reduced, effort: Effort) -> Iterator[list[Expression]]:
    """Forms for one reduced problem, cheap and exact ones first."""
    if not np.ptp(reduced.target) > 1e-12 * np.abs(reduced.target).max():
        yield writable(reduced.wrap, [Expression.of(float(reduced.target.mean()))])
        return
    for piece in _Problem(reduced.variables, reduced.target, effort).pieces():
        for batch in piece() if effort.deal.is_own() else ():
            yield writable(reduced.wrap, batch)


@dataclass(frozen=True, eq=False)
class _Problem:
    """A target in a few variables; each piece of work stands by itself."""

    variables: Sequence[Variable]
    target: FloatArray
    effort: Effort

    def pieces(self) -> list[Callable[[], Batches]]:
        d = len(self.variables)
        pieces: list[Callable[[], Batches]] = [self.exact]
        if d <= 5:
            pieces += [self.algebraic_products, self.functional_products]
        if d > 4:
            return pieces
        pieces += [partial(self.simple_sums, family) for family in words.TOGETHER]
        pieces += [self.single] if d == 1 else []
        pieces += [self.sums, self.plain_products]
        pieces += [self.scanned] if d <= 2 else []
        return [*pieces, self.rational]

    @cached_property
    def few(self) -> list[Variable]:
        return first_rows(self.variables, self.effort.n_rows)

    @cached_property
    def t(self) -> FloatArray:
        return self.target[: self.effort.n_rows]

    @cached_property
    def undone(self) -> list[tuple[Wrap, FloatArray]]:
        return undone(self.t, self.effort.operators)

    @cached_property
    def algebraic(self) -> LazyDictionary:
        return algebraic_factors(self.few)

    @cached_property
    def additive(self) -> LazyDictionary:
        return additive_dictionary(self.few, self.effort.operators)

    def exact(self) -> Batches:
        some, t = first_rows(self.variables, FAMILY_ROWS), self.target[:FAMILY_ROWS]
        early = power_law(self.variables, self.target) + offset_power_law(self.variables, self.target)
        early += sums(some, t, self.effort.operators)
        for changed in variants(some, self.effort.operators) if len(some) <= 3 else [some]:
            early += quotients(changed, t)
        yield early

    def _products(self, *factors: LazyDictionary) -> list[Expression]:
        search = partial(by_pursuit, n_threads=self.effort.n_threads)
        return product_forms(self.few, self.t, self.effort.operators, factors, search)

    def algebraic_products(self) -> Batches:
        yield self._products(self.algebraic)

    def functional_products(self) -> Batches:
        yield self._products(functional_factors(self.few, self.effort.operators), self.algebraic)

    def plain_products(self) -> Batches:
        factors = [plain_factors(self.few, self.effort.operators)]
        yield product_forms(self.few, self.t, self.effort.operators, factors, by_wide_beam)

    def simple_sums(self, family: Sequence[str]) -> Batches:
        functions = [name for name in family if name in self.effort.operators]
        screen = Screen.of(simple_dictionary(self.few, functions), self.effort.n_threads)
        return screen.batches(self.undone[:4], n_terms=5)

    def single(self) -> Batches:
        yield single_terms(self.few[0], self.t, self.effort.operators)

    def sums(self) -> Batches:
        screen = Screen.of(self.additive, self.effort.n_threads)
        return screen.batches(self.undone, n_terms=4)

    def scanned(self) -> Batches:
        """A constant inside a function, found on a grid; the loop's fit does the rest."""
        screen = Screen.of(scanned_dictionary(self.few, self.effort.operators), self.effort.n_threads)
        yield screen.forms(self.t, n_terms=2, keep=6)[0]

    def rational(self) -> Batches:
        yield _rational_forms(self.t, self.additive, self.effort.n_threads)


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

    def batches(self, targets: Sequence[tuple[Wrap, FloatArray]], *, n_terms: int) -> Batches:
        """The same, a few targets at a time: together they cost less, and nobody waits long for the first."""
        for k in range(0, len(targets), AT_ONCE):
            some = targets[k : k + AT_ONCE]
            for (wrap, _), forms in zip(some, self.forms(*(u for _, u in some), n_terms=n_terms), strict=True):
                yield writable(wrap, forms)

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


def _rational_forms(t: FloatArray, additive: LazyDictionary, n_threads: int) -> list[Expression]:
    """P/Q from t = P − t·(Q − 1): linear in the coefficients of both."""
    base = additive.head(1500)
    if len(base) < 2:
        return []
    n = len(base)
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

    return writable(write, promising(pursue(both, t, n_terms=4, exact=EXACT, n_threads=n_threads)[0]))
