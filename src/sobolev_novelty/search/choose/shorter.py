"""What leading equations look like with an operator or an input less, fitted again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.search.choose.weighted import fitted
from sobolev_novelty.search.propose.neighbours import shortened

#: Forms longer than this are not shortened: there are too many of them.
MAX_NODES = 60


def shorter_forms(expression: Expression) -> list[Expression]:
    """Forms with one operator less, or with a constant in the place of an input.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> [str(e) for e in shorter_forms(parse("x0*exp(x1)"))]
    ['x0', 'exp(x1)', 'x0*x1', '1.5*exp(x1)', 'x0*exp(1.5)']
    """
    if expression.complexity > MAX_NODES:
        return []
    found = dict.fromkeys(shortened(expression))
    for place, token in enumerate(expression.tokens):
        if isinstance(token, str):
            found[expression.replace(place, Expression.of(1.5))] = None
    return [e for e in found if e.variables]


def shorter_fits(
    leaders: Sequence[Expression], rows: Rows, allowed: Callable[[Expression], bool], seen: set[Expression]
) -> list[Expression]:
    """The shorter forms of leaders that were not seen before, fitted."""
    forms = [form for e in leaders for form in shorter_forms(e) if form not in seen]
    seen.update(forms)
    return [e for e in fitted(list(dict.fromkeys(forms)), rows) if e is not None and allowed(e)]
