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

from sobolev_novelty.errors import ParameterError, ParseError
from sobolev_novelty.expression import Expression
from sobolev_novelty.parsing.functions import DIALECTS
from sobolev_novelty.parsing.machine import DEFAULT_LIMITS, Machine, ParseLimits
from sobolev_novelty.parsing.variables import CONVENTIONS, resolve

__all__ = ["DEFAULT_LIMITS", "ParseLimits", "parse"]


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
    if variables not in CONVENTIONS:
        raise ParameterError(f"'variables' must be one of {', '.join(CONVENTIONS)}. Got {variables!r}.")
    if dialect not in DIALECTS:
        raise ParameterError(f"'dialect' must be one of {', '.join(DIALECTS)}. Got {dialect!r}.")
    known = _checked_names(names)
    machine = Machine(text, frozenset(known or ()), DIALECTS[dialect], limits)
    root = machine.run()
    convention = "x0 or names" if dialect != "plain" and variables == "auto" else variables
    expression = Expression.from_nested(root, resolve(machine.mentions, known, convention, text))
    if len(expression) > limits.max_nodes:
        raise ParseError(f"The expression has {len(expression)} nodes; more than {limits.max_nodes} are refused.", text)
    return expression


def _checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise ParameterError(f"'names' must be a sequence of names. Got the text {names!r}; write [{names!r}].")
    known = tuple(names)
    wrong = [name for name in known if not isinstance(name, str) or not name]
    if wrong:
        raise ParameterError(f"'names' must hold non-empty text. Got {wrong[0]!r}.")
    if len(set(known)) < len(known):
        twice = next(name for k, name in enumerate(known) if name in known[:k])
        raise ParameterError(f"'names' must differ. Got {twice!r} twice.")
    return known
