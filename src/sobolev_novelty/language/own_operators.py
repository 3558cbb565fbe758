r"""Operators of the user's own: Python functions that join the operator table.

Derivatives are the user's where he gives them. Otherwise they are complex steps, :math:`\mathrm{Im} f(a + ih)/h`, where
the function takes complex numbers and they agree with differences; else central differences. Second derivatives
differentiate the first ones, by a complex step where the user's derivative takes it, else by central differences.

A registration holds for this process. Text and files only ever name operators; what is called was registered here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression, is_reserved, numbered_index
from sobolev_novelty.core.operators import OPERATORS, Function, Operator, enter, withdraw
from sobolev_novelty.core.operators.elementwise import Domain, Elementwise, check_elementwise, differentiated, sample_of
from sobolev_novelty.core.operators.function_terms import derivatives_note
from sobolev_novelty.core.parameters import FLAG, FUNCTION, NOTHING, TEXT, WORD, checked, read, whole
from sobolev_novelty.errors import ParameterError, shortened
from sobolev_novelty.language.parsing.functions import FUNCTIONS

_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z_0-9]*\Z")


@checked(
    name=WORD,
    function=FUNCTION,
    arity=whole(1, 2),
    derivative=read("a function, or one per operand, or None"),
    domain=read("a pair of numbers, the low one first, or one per operand, or None"),
    latex=TEXT | NOTHING,
    sympy=FUNCTION | NOTHING,
    replace=FLAG,
)
def register_operator(
    name: str,
    function: Function,
    *,
    arity: int = 1,
    derivative: Function | Sequence[Function] | None = None,
    domain: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
    latex: str | None = None,
    sympy: Function | None = None,
    replace: bool = False,
) -> None:
    r"""Make a Python function an operator: of formulas as text, of searches, reports, fits and saved models.

    Parameters
    ----------
    name : str
        What formulas call it: letters, digits and underscores. The name of an operator, a constant or a variable such
        as ``x0`` is refused; that of a formula of the parser (``softplus``, ``relu``) is not, and then means yours.
    function : callable
        Gets one float array per operand, of one dimension, and returns an array of the same shape, element by element.
        Values that are not finite are data.
    arity : {1, 2}
        Number of operands.
    derivative : callable, or a pair of them, optional
        Called like ``function``; for two operands the derivatives along the first and the second. Without it they are
        complex steps where the function takes complex numbers, else central differences, and reports say so.
    domain : (low, high), or a pair of such, optional
        Least and greatest argument. Outside the value is nan, and the function is not asked.
    latex : str, optional
        The function's name in LaTeX, ``r"\zeta"``; or the whole, with ``{0}`` and ``{1}`` for the operands.
    sympy : callable, optional
        SymPy operands -> SymPy expression. Without it SymPy gets an undefined function of this name.
    replace : bool
        Whether an own operator of this name may be replaced. Expressions made before keep the old one.

    Raises
    ------
    ParameterError
        Where the name is taken, or the function or a derivative fails on a sample of arguments.

    Examples
    --------
    >>> import numpy as np
    >>> import sobolev_novelty as sn
    >>> sn.register_operator("ramp", lambda a: np.log(1 + np.exp(a)), derivative=lambda a: 1 / (1 + np.exp(-a)))
    >>> e = sn.parse("2*ramp(x0) + 1")
    >>> round(e(x0=0.0), 6)
    2.386294
    >>> sn.unregister_operator("ramp")
    """
    _check_name(name, replace=replace)
    limits, points = _limits(domain, arity), sample_of(arity, _limits(domain, arity))
    value = Elementwise(name, _callable(function, "function"), limits)
    check_elementwise(value, points)
    found = differentiated(value, _given_derivatives(derivative, arity), points)
    row = Operator(
        name, arity, value, found.first, found.second, _template(name, latex, arity), "", "", _symbolic(name, sympy),
        domain=limits, derived_by=found.made_by,
    )  # fmt: skip
    enter(row)


@checked(name=WORD)
def unregister_operator(name: str) -> None:
    """Take an own operator out of the table. Expressions that hold it can still be evaluated.

    Examples
    --------
    >>> unregister_operator("sin")
    Traceback (most recent call last):
    ...
    sobolev_novelty.errors.ParameterError: 'name' must be an operator that was registered. Got 'sin'.
    """
    row = OPERATORS.get(name)
    if row is None or not row.is_own:
        raise ParameterError(f"'name' must be an operator that was registered. Got {name!r}.")
    withdraw(name)


def own_derivative_notes(expressions: Iterable[Expression], order: int) -> list[str]:
    """How the derivatives of own operators are made, up to this order, where they are not formulas."""
    tokens = (token for expression in expressions for token in expression.tokens)
    own = list(dict.fromkeys(token for token in tokens if isinstance(token, Operator) and token.is_own))
    notes = []
    for k, what in enumerate(("Derivatives", "Second derivatives")[:order]):
        made = [row.derived_by[k] for row in own]
        if any(made):
            notes.append(derivatives_note([row.name for row in own], made, what))
    return notes


# --- checks of what is given


def _check_name(name: str, *, replace: bool) -> None:
    if not isinstance(name, str) or not _PLAIN_NAME.match(name):
        raise ParameterError(f"'name' must be a word of letters, digits and underscores. Got {name!r}.")
    if numbered_index(name) is not None:
        raise ParameterError(f"'name' must not be that of a variable. Got '{name}'.")
    row = OPERATORS.get(name)
    if row is not None and row.is_own:
        if not replace:
            raise ParameterError(f"'name' must be new: '{name}' is registered. Give replace=True to replace it.")
        return
    known = FUNCTIONS.get(name) or FUNCTIONS.get(name.lower())
    # A formula of the parser is no operator: it may become one.
    is_formula = known is not None and known.name not in OPERATORS
    if is_reserved(name) or is_reserved(name.lower()) or (known is not None and not is_formula):
        raise ParameterError(f"'name' must be new: '{name}' has a meaning in formulas. Choose another one.")


def _callable(function: Any, argument: str) -> Function:
    if not callable(function):
        raise ParameterError(f"'{argument}' must be callable. Got {type(function).__name__}.")
    return function  # type: ignore[no-any-return]


def _given_derivatives(derivative: Any, arity: int) -> tuple[Function, ...]:
    if derivative is None:
        return ()
    functions = tuple(derivative) if isinstance(derivative, list | tuple) else (derivative,)
    if len(functions) != arity:
        raise ParameterError(f"'derivative' must be {arity} function(s), one per operand. Got {len(functions)}.")
    return tuple(_callable(f, "derivative") for f in functions)


def _limits(domain: Any, arity: int) -> Domain:
    if domain is None:
        return ()
    try:
        pairs = [domain] if arity == 1 and np.ndim(domain) == 1 else domain
        limits = tuple((float(low), float(high)) for low, high in pairs)
    except Exception:  # somebody else's object may raise anything
        limits = ()
    if len(limits) != arity or not all(low < high for low, high in limits):
        shape = "(low, high)" if arity == 1 else "((low, high), (low, high))"
        raise ParameterError(f"'domain' must be {shape} with low below high. Got {shortened(domain)}.")
    return limits


def _template(name: str, latex: str | None, arity: int) -> str:
    """The template of the table, whose braces are doubled."""
    if latex is not None and (not isinstance(latex, str) or "$" in latex or latex.count("{") != latex.count("}")):
        raise ParameterError(f"'latex' must be text with as many {{ as }}, without dollar signs. Got {latex!r}.")
    text = latex or rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}"
    if "{0}" not in text:
        text += r"\left({0}" + (r", {1}" if arity == 2 else "") + r"\right)"
    if arity == 2 and "{1}" not in text:
        raise ParameterError(f"'latex' must name both operands, {{0}} and {{1}}. Got {latex!r}.")
    doubled = text.replace("{", "{{").replace("}", "}}")
    return doubled.replace("{{0}}", "{0}").replace("{{1}}", "{1}" if arity == 2 else "{{1}}")


def _symbolic(name: str, sympy: Function | None) -> Function:
    if sympy is None:
        return lambda module, *operands: module.Function(name)(*operands)
    given = _callable(sympy, "sympy")
    return lambda module, *operands: module.sympify(given(*operands), strict=True)
