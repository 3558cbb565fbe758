"""To and from SymPy: the only module that knows it. The tree is walked; no text goes through ``sympify``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sobolev_novelty.algebra.numbers import repeating_fraction
from sobolev_novelty.core.expression import Expression, Nested
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.core.parameters import FLAG, TREE, checked
from sobolev_novelty.errors import ExpressionError

#: A constant subtree beyond this magnitude becomes its value, as doubles have it: SymPy's numbers have no bound, its
#: patience has.
_LARGEST_EVALUATED = 1e100


@checked(expression=TREE, evaluate=FLAG)
def to_sympy(expression: Expression, *, evaluate: bool = True) -> Any:
    """The expression as a SymPy object.

    Parameters
    ----------
    expression : Expression
    evaluate : bool
        Whether SymPy may combine and reorder (``x + x`` becomes ``2*x``). Constant subtrees of huge or no finite value
        become that value.

    Returns
    -------
    sympy.Expr
        Over plain symbols named like the variables; integral constants are ``Integer``, 0.3333333333333333 is
        ``Rational(1, 3)``, others are ``Float``. Text of it is only for people where names come from strangers:
        ``sympify`` runs what it reads. ``expression.to("sympy")`` renames such inputs.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> to_sympy(parse("x0 + x0*sin(x1)"))
    x0*sin(x1) + x0
    """
    import sympy

    def leaf(token: float | str) -> tuple[Any, float | None]:
        if isinstance(token, str):
            return sympy.Symbol(token), None
        if token.is_integer() and abs(token) < 2**53:
            return sympy.Integer(int(token)), token
        fraction = repeating_fraction(token)
        return (sympy.Float(token) if fraction is None else sympy.Rational(fraction)), token

    def node(op: Operator, args: tuple[tuple[Any, float | None], ...]) -> tuple[Any, float | None]:
        operands = [operand for operand, _ in args]
        if sympy.nan in operands:
            return sympy.nan, math.nan
        values = [value for _, value in args if value is not None]
        value: float | None = None
        if len(values) == len(args):
            with np.errstate(all="ignore"):
                value = float(op.value(*(np.float64(v) for v in values)))
        if value is not None and not abs(value) < _LARGEST_EVALUATED:
            # Even unevaluated it would be evaluated, to be compared or printed: max(x, sin(exp(1e15))) takes minutes.
            return sympy.Float(value), value
        with contextlib.nullcontext() if evaluate else sympy.evaluate(False):
            return op.sympy(sympy, *operands), value

    try:
        return expression.fold(leaf, node)[0]
    except RecursionError:
        raise ExpressionError(f"The expression is nested too deeply for SymPy (depth {expression.depth}).") from None


def from_sympy(obj: Any) -> Expression:
    """A SymPy object as an expression.

    Sums and products become chains of two operands; negative powers in a product become a quotient, a power of one
    half a square root; rational numbers become floats.

    Raises
    ------
    ExpressionError
        Where a node has no counterpart; the message names it.

    Examples
    --------
    >>> import sympy
    >>> x, y = sympy.symbols("x y")
    >>> from_sympy(3*sympy.sin(x)/y - sympy.sqrt(x))
    Expression('3*sin(x)/y - sqrt(x)')
    """
    import sympy

    if isinstance(obj, bool) or not isinstance(obj, sympy.Expr | int | float):
        hint = " Use parse for text." if isinstance(obj, str) else ""
        raise ExpressionError(f"from_sympy takes a SymPy expression. Got {type(obj).__name__}.{hint}")
    if isinstance(obj, int | float):
        return Expression((obj,))
    try:
        return Expression.from_nested(_walk(obj))
    except RecursionError:
        raise ExpressionError("The SymPy expression is nested too deeply.") from None


def _o(name: str, *operands: Nested) -> Nested:
    return (OPERATORS[name], *operands)


def _walk(obj: Any) -> Nested:
    if obj.is_Symbol:
        return str(obj.name)
    if obj.is_number and obj.is_Atom:
        return _number(obj)
    kind = type(obj).__name__
    if kind in _SHAPED:
        return _SHAPED[kind](obj)
    if kind in _FUNCTIONS and len(obj.args) == 1:
        return _FUNCTIONS[kind](_walk(obj.args[0]))
    own = OPERATORS.get(kind)
    if own is not None and own.is_own and len(obj.args) == own.arity:
        return (own, *map(_walk, obj.args))
    raise ExpressionError(f"SymPy's '{kind}' has no counterpart here: {str(obj)[:80]}.")


def _number(obj: Any) -> float:
    try:
        value = float(obj)
    except (TypeError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ExpressionError(f"SymPy's '{obj}' is not a finite real number.")
    return value


def _minus_split(obj: Any) -> tuple[bool, Any]:
    """Whether a minus sign stands in front, and the rest: -2*x is (True, 2*x)."""
    coefficient = obj.args[0] if obj.is_Mul else obj
    if not (coefficient.is_Number and coefficient.is_negative):
        return False, obj
    if not obj.is_Mul:
        return True, -obj
    rest = obj.args[1:]
    positive = -coefficient
    factors = rest if positive == 1 and rest else (positive, *rest)
    return True, factors[0] if len(factors) == 1 else obj.func(*factors, evaluate=False)


def _add(obj: Any) -> Nested:
    # A term without a minus leads, where there is one: y - x, not -x + y.
    terms = sorted((_minus_split(term) for term in obj.args), key=lambda split: split[0])
    is_negative, first = terms[0]
    total = _walk(first) if not is_negative else _negated(_walk(first))
    for is_minus, term in terms[1:]:
        total = _o("sub" if is_minus else "add", total, _walk(term))
    return total


def _mul(obj: Any) -> Nested:
    is_negative, positive = _minus_split(obj)
    if not positive.is_Mul:
        product = _walk(positive)
        return _negated(product) if is_negative else product
    above: list[Nested] = []
    below: list[Nested] = []
    for factor in positive.args:
        if factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative:
            below.append(_power(factor.base, -factor.exp))
        else:
            above.append(_walk(factor))
    if is_negative and above and isinstance(above[0], float):
        above[0], is_negative = -above[0], False
    product = _chain(above) if above else 1.0
    if is_negative:
        product = _negated(product)
    return _o("div", product, _chain(below)) if below else product


def _chain(factors: list[Nested]) -> Nested:
    product = factors[0]
    for factor in factors[1:]:
        product = _o("mul", product, factor)
    return product


def _negated(node: Nested) -> Nested:
    return -node if isinstance(node, float) else _o("neg", node)


def _pow(obj: Any) -> Nested:
    base, exponent = obj.args
    if exponent.is_Number and exponent.is_negative:
        return _o("div", 1.0, _power(base, -exponent))
    return _power(base, exponent)


def _power(base: Any, exponent: Any) -> Nested:
    if exponent == 1:
        return _walk(base)
    if exponent.is_Rational and (exponent.p, exponent.q) == (1, 2):
        return _o("sqrt", _walk(base))
    return _o("pow", _walk(base), _walk(exponent))


def _fold_left(name: str) -> Callable[[Any], Nested]:
    def fold(obj: Any) -> Nested:
        total, *others = (_walk(arg) for arg in obj.args)
        for other in others:
            total = _o(name, total, other)
        return total

    return fold


def _primitive(name: str) -> Callable[[Nested], Nested]:
    return lambda a: _o(name, a)


def _inverse(name: str) -> Callable[[Nested], Nested]:
    return lambda a: _o("inv", _o(name, a))


_SHAPED: dict[str, Callable[[Any], Nested]] = {
    "Add": _add,
    "Mul": _mul,
    "Pow": _pow,
    "Min": _fold_left("min"),
    "Max": _fold_left("max"),
}

#: Name of SymPy's class -> what it becomes.
_FUNCTIONS: dict[str, Callable[[Nested], Nested]] = {
    **{name: _primitive(name) for name in ("exp", "log", "sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "sign")},
    **{f"a{name}": _primitive(f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "Abs": _primitive("abs"),
    "sec": _inverse("cos"),
    "csc": _inverse("sin"),
    "sech": _inverse("cosh"),
    "csch": _inverse("sinh"),
    "coth": _inverse("tanh"),
}
