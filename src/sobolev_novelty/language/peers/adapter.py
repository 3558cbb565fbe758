"""What one library's file offers: the chosen expression, and where there are more, the front and the system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sobolev_novelty.core.expression import Expression


@dataclass(frozen=True, slots=True)
class FrontEntry:
    """One line of a front: ``loss`` is the library's own, smaller is better; ``nan`` where it keeps none."""

    complexity: int
    loss: float
    expression: Expression


@dataclass(frozen=True, slots=True)
class Adapter:
    """How the models of one library are read; ``names`` are those of the inputs, by default ``x0, x1, …``."""

    #: callable ``(model, *, names=None) -> Expression``: the equation with which the model predicts.
    read: Callable[..., Expression]
    #: callable ``(model, *, names=None) -> tuple of FrontEntry``: all equations the model offers, simplest first;
    #: without it the front is the one equation.
    front: Callable[..., tuple[FrontEntry, ...]] | None = None
    #: callable ``(model, *, names=None) -> dict of str to Expression or None``: all equations of a model with several
    #: targets; None for a model with one.
    system: Callable[..., dict[str, Expression] | None] | None = None


def pareto(entries: list[FrontEntry]) -> tuple[FrontEntry, ...]:
    """Entries that no other one beats in both complexity and loss, simplest first; of equals the first stays.

    >>> x = Expression.of("x0")
    >>> [e.complexity for e in pareto([FrontEntry(3, 1.0, x), FrontEntry(1, 2.0, x), FrontEntry(5, 1.0, x)])]
    [1, 3]
    """
    kept: list[FrontEntry] = []
    for entry in sorted(entries, key=lambda entry: (entry.complexity, entry.loss)):
        if not kept or entry.loss < kept[-1].loss:
            kept.append(entry)
    return tuple(kept)


def monomial(exponents: Iterable[float], columns: Sequence[Expression]) -> Expression:
    """The product of the columns raised to the exponents, 1 where all of them are 0.

    >>> monomial([1, 0, 2], [Expression.of("a"), Expression.of("b"), Expression.of("c")])
    Expression('a*c**2')
    """
    product: Expression | None = None
    for exponent, column in zip(exponents, columns, strict=True):
        if exponent == 0:
            continue
        factor = column if exponent == 1 else Expression.of("pow", column, float(exponent))
        product = factor if product is None else Expression.of("mul", product, factor)
    return Expression.of(1.0) if product is None else product


def renamed(expression: Expression, names: Sequence[str] | None) -> Expression:
    """``x0, x1, …`` replaced by the names, where there are any."""
    return expression.rename({f"x{k}": name for k, name in enumerate(names or ())})
