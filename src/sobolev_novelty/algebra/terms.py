r"""The additive terms of an expression.

The decomposition that reproduces the paper's ground-truth row: multiplication is distributed over addition,
recursively, through products only; powers of sums, functions and denominators stay as they are; like terms (equal up to
a numeric factor) are merged, terms that cancel are dropped, and the constant offset is a term (:math:`\phi = 1`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sobolev_novelty.algebra.sums import MAX_SUMMANDS, sum_of_products
from sobolev_novelty.algebra.writing import weighted_sum
from sobolev_novelty.core.expression import Expression, format_number
from sobolev_novelty.core.parameters import TERMS, TREE, checked


@dataclass(frozen=True, slots=True)
class Term:
    r"""One additive part: ``coefficient`` times ``expression`` (the paper's :math:`b_i\phi_i`)."""

    coefficient: float
    expression: Expression

    @property
    def is_constant(self) -> bool:
        """Whether this is the constant offset."""
        return self.expression.tokens == (1.0,)

    def __str__(self) -> str:
        if self.is_constant:
            return format_number(self.coefficient)
        return f"{format_number(self.coefficient)}*({self.expression})"


@dataclass(frozen=True, slots=True)
class AdditiveTerms:
    """The terms of one expression, in order of first appearance."""

    terms: tuple[Term, ...]
    undistributed: tuple[Expression, ...] = ()  # factors left whole because distributing them would exceed the cap

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        r"""The :math:`\phi_i`."""
        return tuple(term.expression for term in self.terms)

    @property
    def coefficients(self) -> tuple[float, ...]:
        """The :math:`b_i`."""
        return tuple(term.coefficient for term in self.terms)


@checked(expression=TREE)
def additive_terms(expression: Expression, *, max_terms: int = MAX_SUMMANDS) -> AdditiveTerms:
    """Split an expression into the terms it is a sum of.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(term) for term in additive_terms(parse("3*x0*(x1 - 2) + sin(x0) + x0*x1"))]
    ['4*(x0*x1)', '-6*(x0)', '1*(sin(x0))']
    """
    return _split(expression, max_terms)


# A search, a pruning and a reader of reports ask for the terms of the same expressions again and again.
@lru_cache(maxsize=4096)
def _split(expression: Expression, max_terms: int) -> AdditiveTerms:
    whole = sum_of_products(expression, max_summands=max_terms)
    terms = (Term(coefficient, whole.written(powers)) for coefficient, powers in whole.summands)
    return AdditiveTerms(tuple(terms), whole.undistributed)


@checked(terms=TERMS)
def sum_of_terms(terms: Sequence[Term]) -> Expression:
    """The expression that the terms add up to, as short as the operators allow.

    Examples
    --------
    >>> str(sum_of_terms([Term(2.0, Expression.of("x0")), Term(-1.0, Expression.of("x1"))]))
    '2*x0 - x1'
    """
    return weighted_sum((term.coefficient, term.expression) for term in terms)
