"""The families of structural forms: one row each, in the order in which they are tried.

To switch a family off, to change the order, or to add one: a row of the table, or a :class:`Schedule` that an engine is
given as ``structural=``. Nothing else knows their names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.numbers import nearest_simple
from sobolev_novelty.algebra.writing import scaled
from sobolev_novelty.core.parameters import FLAG, TEXT, instance
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.structure.dictionaries import (
    LazyDictionary,
    constant,
    functional_factors,
    monomials,
    plain_factors,
    scanned_dictionary,
    simple_dictionary,
)
from sobolev_novelty.search.propose.structure.exact_relations import quotients, sums, variants
from sobolev_novelty.search.propose.structure.family import Bench, Family, Forms, Level, solve
from sobolev_novelty.search.propose.structure.interactions import interactions
from sobolev_novelty.search.propose.structure.periodogram import waves
from sobolev_novelty.search.propose.structure.power_laws import log_linear_laws, offset_power_law, power_law, power_laws
from sobolev_novelty.search.propose.structure.reductions import HARD, root
from sobolev_novelty.search.propose.structure.small_sums import single_terms, small_sums
from sobolev_novelty.search.propose.structure.solving import multiplied, rational, screened
from sobolev_novelty.search.propose.subproblem import Known

#: Rows on which small families are solved whole, interactions are looked for, and fast waves.
FAMILY_ROWS, INTERACTION_ROWS, WAVE_ROWS = 400, 1000, 600
#: Outer functions whose problems are reduced, the target as it is among them.
N_ROOTS = 4
#: Below this error the target has negligible noise: small corrections to a law can be seen.
CLEAN = 0.01
#: How near the factor of a power law is to a whole or half number, relative to it, where only a correction is missing.
SIMPLE_FACTOR = 0.01


def _exponentials(bench: Bench) -> Forms:
    yield log_linear_laws(bench.inner.variables, bench.inner.target)


def _power_laws(bench: Bench) -> Forms:
    problem = bench.inner
    yield power_law(problem.variables, problem.target) + offset_power_law(problem.variables, problem.target)


def _corrections(bench: Bench) -> Forms:
    """A power law with a simple factor, plus forms for what it leaves: the large term hides a small correction."""
    problem = bench.inner
    for _, monomial in power_laws(problem.variables, problem.target):
        ratio = float(np.median(problem.target / monomial.values))
        factor = nearest_simple(ratio, SIMPLE_FACTOR, denominators=(1, 2), is_relative=True)
        if factor is not None:
            law = Known(scaled(factor, monomial.expression))
            yield from solve(root(problem.behind(law, factor * monomial.values)), bench.effort)


def _quotients(bench: Bench) -> Forms:
    some = bench.inner.first(FAMILY_ROWS)
    changed = variants(some.variables, bench.effort.operators)
    yield [form for variables in changed for form in quotients(variables, some.target)]


def _exact_sums(bench: Bench) -> Forms:
    some = bench.inner.first(FAMILY_ROWS)
    yield sums(some.variables, some.target, bench.effort.operators)
    yield from _monomial_sums(bench)


def _exact(bench: Bench) -> Forms:
    some, problem = bench.inner.first(FAMILY_ROWS), bench.inner
    early = power_law(problem.variables, problem.target) + offset_power_law(problem.variables, problem.target)
    early += sums(some.variables, some.target, bench.effort.operators)
    is_few = len(some.variables) <= 3
    for changed in variants(some.variables, bench.effort.operators) if is_few else [list(some.variables)]:
        early += quotients(changed, some.target)
    yield early


def _interactions(bench: Bench) -> Forms:
    some = bench.inner.first(INTERACTION_ROWS)
    yield interactions(some.variables, some.target, bench.effort.operators)


def _waves(bench: Bench) -> Forms:
    some = bench.inner.first(WAVE_ROWS)
    yield waves(some.variables, some.target)


def _elementary(bench: Bench) -> Forms:
    yield from small_sums(bench.few.variables, bench.few.target, bench.effort.operators)


def _single_terms(bench: Bench) -> Forms:
    yield single_terms(bench.few.variables[0], bench.few.target, bench.effort.operators)


_monomial_sums = screened(
    lambda bench: constant(bench.few.variables) + monomials(bench.few.variables, limit=3000), n_terms=5
)


def _simple_sums(functions: tuple[str, ...]) -> Family:
    def columns(bench: Bench) -> LazyDictionary:
        allowed = [name for name in functions if name in bench.effort.operators]
        return simple_dictionary(bench.few.variables, allowed)

    return Family(
        name=f"simple sums with {' and '.join(functions)}", level=Level.REDUCED, inputs=4,
        columns="monomials, the functions of simple arguments, products of both",
        selection="pursuit with a beam: five terms; three outer functions undone as well",
        forms=screened(columns, n_terms=5, n_targets=4),
    )  # fmt: skip


#: In the order in which they are tried.
FAMILIES: tuple[Family, ...] = (
    Family(
        name="exponentials of sums", level=Level.AT_ONCE, needs=("exp", "log", "add", "mul"), shares_itself=True,
        columns="ln v, v, 1/v, v² for ln |y|", selection="one by one: up to four", forms=_exponentials,
    ),
    Family(
        name="power laws", level=Level.AT_ONCE, targets=(0, None), shares_itself=True,
        columns="ln |v| for ln |y|, and for ln |y - a|", selection="all at once, exponents rounded", forms=_power_laws,
    ),
    Family(
        name="corrections", tasks="white-box laws",
        level=Level.INPUTS, error=(-np.inf, CLEAN), shares_itself=True,
        columns="what a power law with a simple factor leaves", selection="as a reduced problem", forms=_corrections,
    ),
    Family(
        name="quotients of rarer outer functions", tasks="white-box laws",
        level=Level.INPUTS, error=(-np.inf, CLEAN), inputs=3,
        targets=(N_ROOTS, None),
        columns="P, -t·Q of polynomials; an input may be its sine, cosine, exponential, root",
        selection="null vector, columns taken away", forms=_quotients,
    ),
    Family(
        name="exact sums and sums of monomials", level=Level.INPUTS, targets=(0, None),
        columns="polynomials, times sines and cosines; monomials",
        selection="whole, columns taken away; pursuit with a beam: five terms", forms=_exact_sums,
    ),
    Family(
        name="parabolas and one interaction", tasks="Friedman's sets",
        level=Level.INPUTS, error=(CLEAN, np.inf), needs=("add", "mul", "square"),
        columns="x, x² of each input; sin, cos, exp of a product of two shifted inputs",
        selection="inputs one by one; 16 starting points", forms=_interactions,
    ),
    Family(
        name="fast waves", tasks="white-box laws",
        level=Level.INPUTS, error=(HARD, np.inf), inputs=8, needs=words.WAVES,
        columns="sin, cos of products, quotients, sums at 300 frequencies", selection="8 highest peaks", forms=_waves,
    ),
    Family(
        name="exact relations", level=Level.REDUCED,
        columns="ln |v|; polynomials, times sines and cosines; P, -t·Q", selection="whole, columns taken away",
        forms=_exact,
    ),
    Family(
        name="products of sums", level=Level.REDUCED, inputs=5,
        columns="ln of sums and differences of two monomials", selection="pursuit with a beam: three factors",
        forms=multiplied(lambda bench: [bench.algebraic]),
    ),
    Family(
        name="products of functions", level=Level.REDUCED, inputs=5,
        columns="ln of functions of simple arguments, of their sums with 1 and inputs; the same as before",
        selection="pursuit with a beam: three factors",
        forms=multiplied(
            lambda bench: [functional_factors(bench.few.variables, bench.effort.operators), bench.algebraic]
        ),
    ),
    *(_simple_sums(functions) for functions in words.TOGETHER),
    Family(
        name="one term of one input", tasks="white-box laws",
        level=Level.REDUCED, inputs=1,
        columns="a power times a function with a constant inside, on a grid", selection="24 kinds", forms=_single_terms,
    ),
    Family(
        name="sums", level=Level.REDUCED, inputs=4,
        columns="monomials, functions of arguments, products of both",
        selection="pursuit with a beam: four terms; every outer function undone as well",
        forms=screened(lambda bench: bench.additive, n_terms=4, n_targets=None),
    ),
    Family(
        name="products of simple functions", tasks="white-box laws",
        level=Level.REDUCED, inputs=4,
        columns="ln of functions of few arguments, and of these plus and minus 1", selection="wide beam: four factors",
        forms=multiplied(lambda bench: [plain_factors(bench.few.variables, bench.effort.operators)], is_short=True),
    ),
    Family(
        name="sums with a constant inside", level=Level.REDUCED, inputs=2,
        columns="monomials times functions of c·w on a grid of c", selection="pursuit with a beam: two terms",
        forms=screened(
            lambda bench: scanned_dictionary(bench.few.variables, bench.effort.operators), n_terms=2, keep=6
        ),
    ),
    Family(
        name="quotients of sums", level=Level.REDUCED, inputs=4,
        columns="the columns of sums, and these times -t", selection="pursuit with a beam: four terms", forms=rational,
    ),
    Family(
        name="sums of elementary terms", tasks="LSR-Synth",
        level=Level.LATER, inputs=3, shares_itself=True,
        columns="powers, waves, decays, saturations of an input, times an input; then with a constant on a grid",
        selection="wide beam: five terms; four", forms=_elementary,
    ),
)  # fmt: skip
NAMES = tuple(family.name for family in FAMILIES)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which families of forms are proposed beside an engine, in which order, and how often.

    >>> Schedule.of("power laws, sums").families
    ('power laws', 'sums')
    >>> len(NAMES) - len(Schedule.of("-fast waves, -sums").families)
    2
    """

    #: Names of :data:`FAMILIES`. Those of a level are tried in this order, and the levels one after the other.
    families: tuple[str, ...] = NAMES
    #: Batches that have a turn in each round; later ones have it in every third where the target may be noise.
    n_first: int = 100
    n_relevant: int = 2  # batches in the inputs that matter for each in all inputs, where some do not

    def __post_init__(self) -> None:
        unknown = [name for name in self.families if name not in NAMES]
        if unknown:
            raise ParameterError(
                f"'structural' names unknown families: {', '.join(unknown)}. Known: {', '.join(NAMES)}."
            )

    @classmethod
    def of(cls, asked: bool | str | Schedule | None) -> Schedule | None:
        """What an option says: True for the usual one, names for these alone, names with a minus for all others."""
        if isinstance(asked, Schedule):
            return asked
        if not isinstance(asked, str):
            return cls() if asked else None
        names = [name.strip() for name in asked.split(",") if name.strip()]
        without = [name.removeprefix("-").strip() for name in names if name.startswith("-")]
        cls(tuple(without))  # they must be known too
        if len(without) == len(names):
            return cls(tuple(name for name in NAMES if name not in without))
        return cls(tuple(name for name in names if not name.startswith("-")))

    @property
    def rows(self) -> tuple[Family, ...]:
        """The families."""
        return tuple(FAMILIES[NAMES.index(name)] for name in self.families)


#: What the option ``structural`` of an engine may be; unknown names are refused when it is read.
STRUCTURAL = FLAG | TEXT | instance("a Schedule", Schedule)
