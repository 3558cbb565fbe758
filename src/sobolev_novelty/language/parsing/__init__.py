"""Text of any dialect -> Expression, safely.

Equations arrive from files, web forms and language models. They are read by a grammar of our own: no ``eval``, no
``sympify``, no recursion, limits on length, nesting, size and numbers, and errors that point at the character.

::

    functions.py   what may be called, and formulas for what is not a primitive
    variables.py   x0, x_0, X1, x[:,0] or column names -> the names of the expression
    machine.py     the tokenizer and the operator-precedence machine
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import checked, instance, one_of, read
from sobolev_novelty.errors import ParameterError, ParseError
from sobolev_novelty.language.parsing.functions import DIALECTS
from sobolev_novelty.language.parsing.machine import DEFAULT_LIMITS, Machine, ParseLimits
from sobolev_novelty.language.parsing.variables import CONVENTIONS, Mention, resolve

__all__ = ["DEFAULT_LIMITS", "ParseLimits", "parse", "parse_together"]

#: Between formulas that are read together, where an error shows them.
_BETWEEN = "; "


@checked(
    text=read("text"),
    variables=one_of(*CONVENTIONS),
    dialect=one_of(*DIALECTS),
    limits=instance("ParseLimits", ParseLimits),
)
def parse(
    text: str,
    *,
    names: Sequence[str] | None = None,
    variables: str = "auto",
    dialect: str = "plain",
    limits: ParseLimits = DEFAULT_LIMITS,
) -> Expression:
    """Read a formula.

    Infix (``**`` or ``^``), function calls (``add(mul(X0, 2.5), sin(X1))``), a space for a product (``2.0 x0^2``),
    ``pi`` and ``e``, names between backticks where they are not plain words.

    Parameters
    ----------
    text : str
        The formula.
    names : sequence of str, optional
        The variables there are, in the order of the data's columns. Any other variable is then an error.
    variables : {"auto", "x0", "x1", "names"}
        How the text writes variables: numbered from 0 (``x0``, ``x_0``, ``X0``, ``x[:,0]``), numbered from 1, or by
        name. ``"auto"`` takes exact names first; numbers count from 0 where index 0 appears (or the text says
        ``x[:,i]``), from 1 where the number of names appears, and are an error otherwise. Without ``names`` no number
        changes: ``X0, X1`` become ``x0, x1`` where index 0 appears, and ``X1, X2`` stay as they are.
    dialect : {"plain", "gplearn", "bingo", "pysr"}
        ``"gplearn"`` reads the calls ``div``, ``log``, ``sqrt`` and ``inv`` as gplearn's protected operators,
        ``"bingo"`` reads ``log`` and ``sqrt`` as those of absolute values. In all but ``"plain"`` numbers count from 0.
    limits : ParseLimits
        What is refused as too large.

    Returns
    -------
    Expression

    Raises
    ------
    ParseError
        With the text and a caret under the character.

    Examples
    --------
    >>> parse("2.1*sin(x_0) - 0.05 x_1^3")
    Expression('2.1*sin(x0) - 0.05*x1**3')
    >>> parse("X1 + X2", names=["mass", "speed"])
    Expression('mass + speed')
    >>> parse("div(X0, X1)", dialect="gplearn")
    Expression('gpdiv(x0, x1)')
    >>> parse("2*(x0 + 1")
    Traceback (most recent call last):
    ...
    sobolev_novelty.errors.ParseError: This '(' is never closed.
      2*(x0 + 1
        ^
    """
    if not isinstance(text, str):
        raise ParseError(f"An expression is text. Got {type(text).__name__}; for SymPy objects use from_sympy.")
    convention = "x0 or names" if dialect != "plain" and variables == "auto" else variables
    return _read([text], _checked_names(names), convention, dialect, limits)[0]


def parse_together(texts: Sequence[str], *, names: Sequence[str] | None = None) -> list[Expression]:
    """Several formulas in which a variable is the same column: what numbers count from is said once, by all of them.

    >>> parse_together(["x1", "cos(x2)"], names=["mass", "speed"])
    [Expression('mass'), Expression('cos(speed)')]
    """
    return _read(texts, _checked_names(names), "auto", "plain", DEFAULT_LIMITS)


def _read(
    texts: Sequence[str], known: tuple[str, ...] | None, convention: str, dialect: str, limits: ParseLimits
) -> list[Expression]:
    machines = [Machine(text, frozenset(known or ()), DIALECTS[dialect], limits) for text in texts]
    roots = [machine.run() for machine in machines]
    mentions: dict[str, Mention] = {}
    start = 0
    for text, machine in zip(texts, machines, strict=True):
        for key, mention in machine.mentions.items():
            mentions.setdefault(key, replace(mention, position=start + mention.position))
        start += len(text) + len(_BETWEEN)
    renamed = resolve(mentions, known, convention, _BETWEEN.join(texts))
    found = [Expression.from_nested(root, renamed) for root in roots]
    for text, expression in zip(texts, found, strict=True):
        if len(expression) > limits.max_nodes:
            raise ParseError(
                f"The expression has {len(expression)} nodes; more than {limits.max_nodes} are refused.", text
            )
    return found


def _checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    known = tuple(names)
    if len(set(known)) < len(known):
        twice = next(name for k, name in enumerate(known) if name in known[:k])
        raise ParameterError(f"'names' must differ. Got {twice!r} twice.")
    return known
