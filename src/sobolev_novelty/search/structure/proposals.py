"""Structural forms, cheapest ideas first, as a generator of batches for the loop to fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sobolev_novelty.algebra.numbers import nearest_simple
from sobolev_novelty.algebra.outer import OUTERS
from sobolev_novelty.algebra.writing import product, scaled, weighted_sum, writable
from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.expression import Expression
from sobolev_novelty.kernels import UnitColumns, unit_columns
from sobolev_novelty.search.engine import Problem
from sobolev_novelty.search.power_law import common_sign, fit_power_law, simple_exponent
from sobolev_novelty.search.pursuit import EXACT, Combination, least_squares, promising, pursue
from sobolev_novelty.search.structure.dictionaries import (
    Dictionary,
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
from sobolev_novelty.search.structure.exact_relations import fitted_sum, quotients, sums, unexplained, variants
from sobolev_novelty.search.structure.periodogram import waves
from sobolev_novelty.search.structure.product_forms import by_pursuit, by_wide_beam, product_forms
from sobolev_novelty.search.structure.reductions import (
    HARD,
    Interpolants,
    Reduced,
    Wrap,
    on_more_rows,
    reductions,
    root,
)
from sobolev_novelty.search.structure.single_terms import single_terms
from sobolev_novelty.search.structure.small_sums import small_sums

#: Rows on which dictionaries are screened, and those of a noisy target: of tens of thousands of columns the best
#: explains a tenth of what is noise on 200 rows, a thirtieth on 600.
SCREEN_ROWS, NOISY_SCREEN_ROWS = 200, 600
#: Rows on which small families are solved whole.
FAMILY_ROWS = 400
#: Variables up to which reductions are tried, for a target that an interpolant knows little of and for one that it
#: knows well: their cost grows with the cube of the number, and noise hides which of them are true.
MAX_REDUCED_VARIABLES = (6, 9)
#: Above this error of the interpolant hypotheses are hardly told apart: the problem as it is comes first.
HOPELESS = 0.5
#: Variables up to which an interpolant on more rows is affordable.
MAX_DENSE_VARIABLES = 4
#: Above this error of the interpolant the target is noisy or varies fast, and structural forms may be in vain.
DOUBTFUL = 0.05
#: Below this error the target is without noise worth speaking of: small corrections to a law can be seen.
CLEAN = 0.01
#: How near the factor of a power law is to a whole or half number, relative to it, where only a correction is missing.
SIMPLE_FACTOR = 0.01
#: Functions that are tried together in the simplest sums.
FAMILIES = (("sin", "cos"), ("exp",), ("log",))
#: Outer functions tried with every kind of form. The others are rarer, or within the reach of the dictionaries.
TRIED = ("sqrt", "inverse", "inverse sqrt", "exp", "square", "log", "arcsin", "arccos", "1/(exp - 1)")


def structural_forms(problem: Problem, rng: np.random.Generator) -> Iterator[list[Expression]]:
    """Batches of forms for a problem, cheapest ideas first, without those whose numbers no float can hold."""
    batches = _batches(problem, rng)
    while True:
        try:
            # Screening meets poles and overflows all the time; what is not finite is left out where it counts.
            with np.errstate(all="ignore"):
                batch = next(batches, None)
        except ExpressionError:
            return
        if batch is None:
            return
        yield batch


def is_doubtful(problem: Problem, rng: np.random.Generator) -> bool:
    """Whether an interpolant on a few rows knows the target badly: structure may be there, or only noise."""
    variables, y = _shuffled(problem, rng)
    with np.errstate(all="ignore"):
        return bool(variables) and root(variables, y, lambda e: e).error > DOUBTFUL


def _shuffled(problem: Problem, rng: np.random.Generator) -> tuple[list[Variable], FloatArray]:
    """Variables that vary, and the target, in random order: screening looks at the first rows only."""
    order = rng.permutation(problem.sample.n_samples)
    rows = zip(problem.sample.names, problem.sample.X, strict=True)
    variables = [Variable(Expression.of(name), np.ascontiguousarray(row[order])) for name, row in rows]
    return [v for v in variables if np.ptp(v.values) > 0.0], problem.y[order]


def _batches(problem: Problem, rng: np.random.Generator) -> Iterator[list[Expression]]:
    informative, y = _shuffled(problem, rng)
    if not informative or not np.ptp(y) > 0.0:
        return
    targets = _undone(y, problem.operators)
    for wrap, t in targets:
        yield writable(wrap, power_law(informative, t) + offset_power_law(informative, t))
    # Take turns between the outer functions: which of them untangles the problem is not known beforehand.
    interpolants = Interpolants()
    roots = [root(informative, t, wrap, interpolants) for wrap, t in targets[:4]]
    n_rows = NOISY_SCREEN_ROWS if roots[0].error > DOUBTFUL else SCREEN_ROWS
    if roots[0].error <= CLEAN:
        yield from _corrections(problem, informative, y, n_rows)
        # The others are roots of their own.
        for wrap, t in targets[len(roots) :] if len(informative) <= 3 else ():
            changed = variants(_screen(informative, FAMILY_ROWS), problem.operators)
            yield writable(wrap, (form for some in changed for form in quotients(some, t[:FAMILY_ROWS])))
    for wrap, t in targets:
        yield writable(wrap, sums(_screen(informative, FAMILY_ROWS), t[:FAMILY_ROWS], problem.operators))
        yield writable(wrap, _monomial_sums(informative, t, n_rows, problem.n_threads))
    if roots[0].error > HARD:
        yield waves(_screen(informative, NOISY_SCREEN_ROWS), y[:NOISY_SCREEN_ROWS], problem.operators)
    if roots[0].error > HARD and len(informative) <= MAX_DENSE_VARIABLES:
        roots[0] = on_more_rows(roots[0])
    if roots[0].error > HOPELESS:
        yield from solve(roots[0], problem.operators, n_rows, problem.n_threads)
    elementary = small_sums(_screen(informative, n_rows), y[:n_rows], problem.operators)
    yield from _in_reduced_problems(problem, roots, elementary, n_rows)


def _in_reduced_problems(
    problem: Problem, roots: Sequence[Reduced], elementary: Iterator[list[Expression]], n_rows: int
) -> Iterator[list[Expression]]:
    """Forms for reduced problems; after the first of them, which is solved in less time, sums of elementary terms.

    Solving is what takes the time: islands deal it out.
    """
    own, n_islands = problem.island
    n_reduced = 0
    for reduced in _in_turns([_explored(start, problem.operators) for start in roots]):
        if reduced is None:
            yield []
            continue
        n_reduced += 1
        if n_reduced % n_islands == own:
            yield from solve(reduced, problem.operators, n_rows, problem.n_threads)
        if own == 0:
            yield from elementary


def _in_turns(searches: list[Iterator[Reduced | None]]) -> Iterator[Reduced | None]:
    """One reduced problem of each search after the other, until all have ended; None where one needed a step more."""
    while searches:
        for explored in list(searches):
            for reduced in explored:
                yield reduced
                if reduced is not None:
                    break
            else:
                searches.remove(explored)


def _undone(y: FloatArray, operators: Sequence[str]) -> list[tuple[Wrap, FloatArray]]:
    """The target as it is, and with each outer function undone that can be undone on all rows."""
    targets: list[tuple[Wrap, FloatArray]] = [(lambda e: e, y)]
    for outer in (OUTERS[name] for name in TRIED):
        t = outer.undo(y)
        if outer.is_allowed(operators) and np.isfinite(t).all() and t.std() > 0.0:
            targets.append((outer.write, t))
    return targets


def _explored(start: Reduced, operators: Sequence[str], *, width: int = 2) -> Iterator[Reduced | None]:
    """Reduced problems worth solving: the most reduced first, then back up to the start.

    ``None`` says that work was done: a look at the clock is due.
    """
    levels = [[start]]
    seen = {start.key}
    is_affordable = len(start.variables) <= MAX_REDUCED_VARIABLES[start.error <= HARD]
    while is_affordable and levels[-1] and max(len(r.variables) for r in levels[-1]) > 1:
        offers: list[Reduced] = []
        for reduced in levels[-1]:
            for offer in reductions(reduced, operators) if len(reduced.variables) > 1 else ():
                if offer is None:
                    yield None
                elif offer.error <= 1.3 * reduced.error:
                    offers.append(offer)
        offers.sort(key=lambda r: r.error)
        level: list[Reduced] = []
        for offer in offers:
            if offer.key not in seen and len(level) < width:
                seen.add(offer.key)
                level.append(offer)
        levels.append(level)
    for level in reversed(levels):
        yield from level


def power_law(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """The law t = c · Π vᵏ with simple exponents, where the logarithms say so."""
    return writable(lambda law: scaled(law[0], law[1].expression), _power_law(variables, t))


def _power_law(variables: Sequence[Variable], t: FloatArray) -> list[tuple[float, Variable]]:
    positive = [v for v in variables if v.is_positive]
    sign = common_sign(t)
    if not positive or not sign:
        return []
    exponents, scale, misfit = fit_power_law(np.stack([v.values for v in positive]), t)
    if misfit > 0.05:
        return []
    powers = [simple_exponent(k) for k in exponents.tolist()]
    values = np.exp(powers @ np.log([v.values for v in positive]))
    monomial = product((v.expression, k) for v, k in zip(positive, powers, strict=True))
    return [(sign * scale, Variable(monomial, values))]


def _corrections(
    problem: Problem, variables: Sequence[Variable], t: FloatArray, n_rows: int
) -> Iterator[list[Expression]]:
    """A power law with a simple factor, plus forms for what it leaves: the large term hides a small correction."""
    for _, monomial in _power_law(variables, t):
        factor = nearest_simple(
            float(np.median(t / monomial.values)), SIMPLE_FACTOR, denominators=(1, 2), is_relative=True
        )
        if factor is None:
            continue
        law = scaled(factor, monomial.expression)
        rest = root(variables, t - factor * monomial.values, partial(Expression.of, "add", law))
        yield from solve(rest, problem.operators, n_rows, problem.n_threads)


def offset_power_law(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """The law t = a + c · Π vᵏ: the offset is found by a line search on how well the logarithms fit."""
    positive = [v for v in variables if v.is_positive]
    if not positive:
        return []
    basis = np.stack([np.log(v.values) for v in positive] + [np.ones(len(t))]).T
    Q, _ = np.linalg.qr(basis)
    spread = np.ptp(t)
    forms: list[Expression] = []
    for sign in (1.0, -1.0):
        edge = float((sign * t).min())

        def misfit(gap: float, sign: float = sign, edge: float = edge) -> float:
            logs = np.log(sign * t - edge + gap)
            left = logs - Q @ (Q.T @ logs)
            return float(left.std() / max(logs.std(), 1e-300))

        gaps = spread * np.logspace(-6, 1, 43)
        scores = [misfit(gap) for gap in gaps]
        best = int(np.argmin(scores))
        if scores[best] > 0.2 or best in (0, len(gaps) - 1):
            continue
        gap = _golden(misfit, gaps[best - 1], gaps[best + 1])
        forms.extend(
            Expression.of("add", form, sign * (edge - gap)) for form in power_law(variables, t - sign * (edge - gap))
        )
    return forms


def _golden(function: Callable[[float], float], low: float, high: float, n_steps: int = 60) -> float:
    """Minimum of a unimodal function by golden sections, in the logarithm."""
    a, b = np.log(low), np.log(high)
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(n_steps):
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        a, b = (a, d) if function(float(np.exp(c))) < function(float(np.exp(d))) else (c, b)
    return float(np.exp((a + b) / 2.0))


def _screen(variables: Sequence[Variable], n_rows: int) -> list[Variable]:
    return [Variable(v.expression, v.values[:n_rows]) for v in variables]


def _monomial_sums(variables: Sequence[Variable], t: FloatArray, n_rows: int, n_threads: int) -> list[Expression]:
    """Sums of a few monomials."""
    few = _screen(variables, n_rows)
    return Screen.of(constant(few) + monomials(few, limit=3000), n_threads).forms(t[:n_rows], n_terms=5)


def solve(
    reduced: Reduced, operators: Sequence[str], n_rows: int = SCREEN_ROWS, n_threads: int = 1
) -> Iterator[list[Expression]]:
    """Forms for one reduced problem, cheap and exact ones first."""
    if not np.ptp(reduced.target) > 1e-12 * np.abs(reduced.target).max():
        yield writable(reduced.wrap, [Expression.of(float(reduced.target.mean()))])
        return
    for batch in _solutions(reduced.variables, reduced.target, operators, n_rows, n_threads):
        yield writable(reduced.wrap, batch)


def _solutions(
    variables: Sequence[Variable], t: FloatArray, operators: Sequence[str], n_rows: int, n_threads: int
) -> Iterator[list[Expression]]:
    d = len(variables)
    some = _screen(variables, FAMILY_ROWS)
    early = power_law(variables, t) + offset_power_law(variables, t) + sums(some, t[:FAMILY_ROWS], operators)
    for changed in variants(some, operators) if d <= 3 else [some]:
        early += quotients(changed, t[:FAMILY_ROWS])
    yield early
    few, t = _screen(variables, n_rows), t[:n_rows]
    if d <= 5:
        algebraic = algebraic_factors(few)
        pursuit = partial(by_pursuit, n_threads=n_threads)
        yield product_forms(few, t, operators, [algebraic], pursuit)
        yield product_forms(few, t, operators, [functional_factors(few, operators), algebraic], pursuit)
    if d > 4:
        return
    undone = _undone(t, operators)
    for family in FAMILIES:
        simple = Screen.of(simple_dictionary(few, [name for name in family if name in operators]), n_threads)
        for wrap, u in undone[:4]:
            yield writable(wrap, simple.forms(u, n_terms=5))
    if d == 1:
        yield single_terms(few[0], t, operators)
    additive = Screen.of(additive_dictionary(few, operators), n_threads)
    for wrap, u in undone:
        yield writable(wrap, additive.forms(u, n_terms=4))
    yield product_forms(few, t, operators, [plain_factors(few, operators)], by_wide_beam)
    if d <= 2:  # a constant inside a function, found on a grid; the loop's fit does the rest
        yield Screen.of(scanned_dictionary(few, operators), n_threads).forms(t, n_terms=2, keep=6)
    yield _rational_forms(t, additive.dictionary, n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """A dictionary whose columns are laid out once for any number of targets."""

    dictionary: Dictionary
    columns: UnitColumns
    n_threads: int

    @classmethod
    def of(cls, dictionary: Dictionary, n_threads: int) -> Screen:
        """The dictionary, laid out."""
        return cls(dictionary, unit_columns(dictionary.values, n_threads=n_threads), n_threads)

    def forms(self, t: FloatArray, *, n_terms: int, keep: int = 4) -> list[Expression]:
        """The best sums of a few columns."""
        if not len(self.dictionary):
            return []
        found = pursue(self.columns, t, n_terms=n_terms, exact=EXACT, n_threads=self.n_threads)
        best = promising(found, keep)
        return writable(lambda c: fitted_sum(self.dictionary, _thinned(self.dictionary.values, t, c), t), best)


def _thinned(values: FloatArray, t: FloatArray, combination: Combination) -> list[int]:
    """The combination without columns an exact fit does not need."""
    columns = list(combination.columns)
    for j in combination.columns if combination.nmse <= EXACT else ():
        rest = [k for k in columns if k != j]
        if rest and unexplained(values[rest], t) <= EXACT:
            columns = rest
    return columns


def _rational_forms(t: FloatArray, additive: Dictionary, n_threads: int) -> list[Expression]:
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

    return writable(write, promising(pursue(both, t, n_terms=4, exact=EXACT, n_threads=n_threads)))
