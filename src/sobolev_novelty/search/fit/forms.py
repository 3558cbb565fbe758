"""Forms: which numbers of an expression a fit may change.

The top-level sum is split into terms, whose coefficients are linear: the fit finds them exactly. Nothing is
distributed: ``2*(x0 + x1)`` is one term.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sobolev_novelty.algebra.canonical import canonical_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS

_POW, _DIV = OPERATORS["pow"], OPERATORS["div"]


@dataclass(frozen=True, slots=True)
class Form:
    """The terms of a form, without their coefficients, and which of the terms' constants are free.

    Parameters
    ----------
    terms : tuple of Expression
        The constant offset is the term ``1``.
    free : tuple of bool
        One entry per constant, term after term.
    """

    terms: tuple[Expression, ...]
    free: tuple[bool, ...]

    @property
    def n_free(self) -> int:
        """Constants that a fit may change."""
        return sum(self.free)


def split_form(expression: Expression) -> Form:
    """The terms whose coefficients and inner constants are to be fitted.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> form = split_form(parse("3*x0*(x1 + 2) - sqrt(4*x0 + 8) + 5"))
    >>> [str(term) for term in form.terms], form.free
    (['x0*(x1 + 2)', 'sqrt(x0 + 2)', '1'], (True, True, False))
    """
    terms = canonical_terms(expression)
    return Form(terms, tuple([flag for term in terms for flag in free_constants(term)]))


@lru_cache(maxsize=1 << 15)
def free_constants(expression: Expression) -> tuple[bool, ...]:
    """Which constants of a term a fit may change, in prefix order.

    Fixed are: the exponent of a power, the 1 in ``1/q``, and the term ``1`` itself. All others are free.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> free_constants(parse("sin(2*x0)/x1**3")), free_constants(parse("1/(x0 + 1)"))
    ((True, False), (False, True))
    """
    tokens = expression.tokens
    if len(tokens) == 1:
        return (False,) if isinstance(tokens[0], float) else ()
    fixed: set[int] = set()
    for position, token in enumerate(tokens):
        if token is _DIV and tokens[position + 1] == 1.0:
            fixed.add(position + 1)
        elif token is _POW:
            exponent = expression.end(position + 1)
            if isinstance(tokens[exponent], float):
                fixed.add(exponent)
    return tuple(position not in fixed for position, token in enumerate(tokens) if isinstance(token, float))
