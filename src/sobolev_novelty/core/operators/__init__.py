r"""The operator table: one row per primitive, from which everything else is derived.

Notation
--------
``a, b``  operand values, ``v`` the operator's value; a row's ``first`` are :math:`(f_a, f_b)`, its ``second``
:math:`(f_{aa}, f_{ab}, f_{bb})` (for one operand :math:`(f_a,)` and :math:`(f_{aa},)`), each a function of ``(a[, b], v)``.

Values follow IEEE arithmetic: nothing is protected, a value outside the domain is ``nan`` or ``inf``. At a kink the
derivative is the one of the branch that was taken (``abs`` has 0 at 0). The protected operators of other packages are rows of
their own, so that a foreign model is evaluated as its author did.

The position of a row is its opcode: append new rows at the end, and to ``kernels/native/operators.h``. Operators that a
user registers (:mod:`~sobolev_novelty.language.own_operators`) join the table with opcodes below 0, which only the NumPy kernel
knows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """One primitive. Operators are compared by identity: the table holds the only instance of each.

    ``value``, ``first``, ``second``: numPy functions: the value, the first and the second partial derivatives.
    ``latex``, ``numpy``, ``cpp``: templates with ``{0}`` and ``{1}`` for the operands.
    ``symbol``, ``precedence``: for infix operators.
    """

    name: str  # canonical name, valid in function-call notation: ``sin(x0)``, ``add(x0, x1)``
    arity: int  # number of operands, 1 or 2
    value: Function
    first: tuple[Function, ...]
    second: tuple[Function, ...]
    latex: str
    numpy: str
    cpp: str
    sympy: Function  # ``(sympy_module, *operands) -> sympy expression``
    aliases: tuple[str, ...] = ()  # other spellings the parser accepts
    symbol: str = ""
    precedence: int = 9
    is_commutative: bool = False
    #: tuple of (float, float): least and greatest argument of each operand; empty for the whole line.
    domain: tuple[tuple[float, float], ...] = ()
    #: How the first and the second derivatives of an own operator are made; empty text where they are formulas.
    derived_by: tuple[str, str] = ("", "")
    opcode: int = field(default=0)  # position in the table, from 1; below 0 for an own operator

    @property
    def is_own(self) -> bool:
        """Whether a user registered it."""
        return self.opcode < 0

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Function, tuple[str]]:
        return operator, (self.name,)


def _zero(a: Any, *rest: Any) -> Any:
    return np.zeros_like(np.asarray(a, dtype=float))


def _one(a: Any, *rest: Any) -> Any:
    return np.ones_like(np.asarray(a, dtype=float))


def _pow_a(a: Any, b: Any, v: Any) -> Any:
    return np.where(b == 0.0, 0.0, b * np.power(a, b - 1.0))


def _pow_b(a: Any, b: Any, v: Any) -> Any:
    return np.where((a == 0.0) & (b > 0.0), 0.0, v * np.log(a))


def _pow_aa(a: Any, b: Any, v: Any) -> Any:
    factor = b * (b - 1.0)
    return np.where(factor == 0.0, 0.0, factor * np.power(a, b - 2.0))


def _pow_ab(a: Any, b: Any, v: Any) -> Any:
    return np.where((a == 0.0) & (b > 1.0), 0.0, np.power(a, b - 1.0) * (1.0 + b * np.log(a)))


def _pow_bb(a: Any, b: Any, v: Any) -> Any:
    return np.where((a == 0.0) & (b > 0.0), 0.0, v * np.log(a) ** 2)


def _powabs_a(a: Any, b: Any, v: Any) -> Any:
    return _pow_a(np.abs(a), b, v) * np.sign(a)


def _powabs_ab(a: Any, b: Any, v: Any) -> Any:
    return _pow_ab(np.abs(a), b, v) * np.sign(a)


#: Threshold below which gplearn's protected operators switch to a constant.
GPLEARN_GUARD = 1e-3


def _gpdiv(a: Any, b: Any) -> Any:
    return np.where(np.abs(b) > GPLEARN_GUARD, a / b, 1.0)


def _gp_guarded(formula: Function) -> Function:
    """``formula`` where the last operand is outside gplearn's guard, 0 inside."""

    def guarded(*args: Any) -> Any:
        return np.where(np.abs(args[-2]) > GPLEARN_GUARD, formula(*args), 0.0)

    return guarded


def _sigmoid(a: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-a))


_LN2 = float(np.log(2.0))
_LN10 = float(np.log(10.0))

_ROWS: tuple[Operator, ...] = (
    Operator(
        "add", 2, lambda a, b: a + b, (_one, _one), (_zero, _zero, _zero),
        "{0} + {1}", "({0} + {1})", "({0} + {1})", lambda s, a, b: s.Add(a, b), (), "+", 1, True,
    ),
    Operator(
        "sub", 2, lambda a, b: a - b, (_one, lambda a, b, v: -_one(a)), (_zero, _zero, _zero),
        "{0} - {1}", "({0} - {1})", "({0} - {1})", lambda s, a, b: s.Add(a, -b), ("subtract",), "-", 1,
    ),
    Operator(
        "mul", 2, lambda a, b: a * b, (lambda a, b, v: b, lambda a, b, v: a), (_zero, _one, _zero),
        r"{0} \, {1}", "({0} * {1})", "({0} * {1})", lambda s, a, b: s.Mul(a, b), ("multiply", "mult"), "*", 2, True,
    ),
    Operator(
        "div", 2, lambda a, b: a / b, (lambda a, b, v: 1.0 / b, lambda a, b, v: -v / b),
        (_zero, lambda a, b, v: -1.0 / (b * b), lambda a, b, v: 2.0 * v / (b * b)),
        r"\frac{{{0}}}{{{1}}}", "({0} / {1})", "({0} / {1})", lambda s, a, b: s.Mul(a, s.Pow(b, -1)), ("divide",), "/", 2,
    ),
    Operator(
        "pow", 2, np.power, (_pow_a, _pow_b), (_pow_aa, _pow_ab, _pow_bb),
        "{0}^{{{1}}}", "({0} ** {1})", "std::pow({0}, {1})", lambda s, a, b: s.Pow(a, b), ("power",), "**", 4,
    ),
    Operator(
        "neg", 1, lambda a: -a, (lambda a, v: -_one(a),), (_zero,), "-{0}", "(-{0})", "(-{0})", lambda s, a: -a,
        ("negative",), "-", 3,
    ),
    Operator(
        "sqrt", 1, np.sqrt, (lambda a, v: 0.5 / v,), (lambda a, v: -0.25 / (v * v * v),),
        r"\sqrt{{{0}}}", "np.sqrt({0})", "std::sqrt({0})", lambda s, a: s.sqrt(a),
    ),
    Operator(
        "cbrt", 1, np.cbrt, (lambda a, v: 1.0 / (3.0 * v * v),), (lambda a, v: -2.0 / (9.0 * v**5),),
        r"\sqrt[3]{{{0}}}", "np.cbrt({0})", "std::cbrt({0})", lambda s, a: s.sign(a) * s.Abs(a) ** s.Rational(1, 3),
    ),
    Operator(
        "square", 1, lambda a: a * a, (lambda a, v: 2.0 * a,), (lambda a, v: 2.0 * _one(a),),
        "{0}^{{2}}", "np.square({0})", "std::pow({0}, 2)", lambda s, a: s.Pow(a, 2), ("pow2",),
    ),
    Operator(
        "cube", 1, lambda a: a * a * a, (lambda a, v: 3.0 * a * a,), (lambda a, v: 6.0 * a,),
        "{0}^{{3}}", "(({0}) ** 3)", "std::pow({0}, 3)", lambda s, a: s.Pow(a, 3), ("pow3",),
    ),
    Operator(
        "inv", 1, lambda a: 1.0 / a, (lambda a, v: -v * v,), (lambda a, v: 2.0 * v * v * v,),
        r"\frac{{1}}{{{0}}}", "(1.0 / ({0}))", "(1.0 / ({0}))", lambda s, a: s.Pow(a, -1), ("inverse", "recip", "reciprocal"),
    ),
    Operator(
        "exp", 1, np.exp, (lambda a, v: v,), (lambda a, v: v,),
        r"\exp\left({0}\right)", "np.exp({0})", "std::exp({0})", lambda s, a: s.exp(a),
    ),
    Operator(
        "log", 1, np.log, (lambda a, v: 1.0 / a,), (lambda a, v: -1.0 / (a * a),),
        r"\log\left({0}\right)", "np.log({0})", "std::log({0})", lambda s, a: s.log(a), ("ln",),
    ),
    Operator(
        "log2", 1, np.log2, (lambda a, v: 1.0 / (a * _LN2),), (lambda a, v: -1.0 / (a * a * _LN2),),
        r"\log_2\left({0}\right)", "np.log2({0})", "std::log2({0})", lambda s, a: s.log(a) / s.log(2),
    ),
    Operator(
        "log10", 1, np.log10, (lambda a, v: 1.0 / (a * _LN10),), (lambda a, v: -1.0 / (a * a * _LN10),),
        r"\log_{{10}}\left({0}\right)", "np.log10({0})", "std::log10({0})", lambda s, a: s.log(a) / s.log(10),
    ),
    Operator(
        "sin", 1, np.sin, (lambda a, v: np.cos(a),), (lambda a, v: -v,),
        r"\sin\left({0}\right)", "np.sin({0})", "std::sin({0})", lambda s, a: s.sin(a),
    ),
    Operator(
        "cos", 1, np.cos, (lambda a, v: -np.sin(a),), (lambda a, v: -v,),
        r"\cos\left({0}\right)", "np.cos({0})", "std::cos({0})", lambda s, a: s.cos(a),
    ),
    Operator(
        "tan", 1, np.tan, (lambda a, v: 1.0 + v * v,), (lambda a, v: 2.0 * v * (1.0 + v * v),),
        r"\tan\left({0}\right)", "np.tan({0})", "std::tan({0})", lambda s, a: s.tan(a),
    ),
    Operator(
        "cot", 1, lambda a: 1.0 / np.tan(a), (lambda a, v: -(1.0 + v * v),), (lambda a, v: 2.0 * v * (1.0 + v * v),),
        r"\cot\left({0}\right)", "(1.0 / np.tan({0}))", "(1.0 / std::tan({0}))", lambda s, a: s.cot(a),
    ),
    Operator(
        "arcsin", 1, np.arcsin, (lambda a, v: 1.0 / np.sqrt(1.0 - a * a),), (lambda a, v: a / ((1.0 - a * a) * np.sqrt(1.0 - a * a)),),
        r"\arcsin\left({0}\right)", "np.arcsin({0})", "std::asin({0})", lambda s, a: s.asin(a), ("asin",),
    ),
    Operator(
        "arccos", 1, np.arccos, (lambda a, v: -1.0 / np.sqrt(1.0 - a * a),), (lambda a, v: -a / ((1.0 - a * a) * np.sqrt(1.0 - a * a)),),
        r"\arccos\left({0}\right)", "np.arccos({0})", "std::acos({0})", lambda s, a: s.acos(a), ("acos",),
    ),
    Operator(
        "arctan", 1, np.arctan, (lambda a, v: 1.0 / (1.0 + a * a),), (lambda a, v: -2.0 * a / (1.0 + a * a) ** 2,),
        r"\arctan\left({0}\right)", "np.arctan({0})", "std::atan({0})", lambda s, a: s.atan(a), ("atan",),
    ),
    Operator(
        "sinh", 1, np.sinh, (lambda a, v: np.cosh(a),), (lambda a, v: v,),
        r"\sinh\left({0}\right)", "np.sinh({0})", "std::sinh({0})", lambda s, a: s.sinh(a),
    ),
    Operator(
        "cosh", 1, np.cosh, (lambda a, v: np.sinh(a),), (lambda a, v: v,),
        r"\cosh\left({0}\right)", "np.cosh({0})", "std::cosh({0})", lambda s, a: s.cosh(a),
    ),
    Operator(
        "tanh", 1, np.tanh, (lambda a, v: 1.0 - v * v,), (lambda a, v: -2.0 * v * (1.0 - v * v),),
        r"\tanh\left({0}\right)", "np.tanh({0})", "std::tanh({0})", lambda s, a: s.tanh(a),
    ),
    Operator(
        "abs", 1, np.abs, (lambda a, v: np.sign(a),), (_zero,),
        r"\left|{0}\right|", "np.abs({0})", "std::abs({0})", lambda s, a: s.Abs(a), ("Abs", "fabs"),
    ),
    Operator(
        "sign", 1, np.sign, (_zero,), (_zero,),
        r"\operatorname{{sign}}\left({0}\right)", "np.sign({0})", "({0} > 0 ? 1.0 : {0} < 0 ? -1.0 : {0})", lambda s, a: s.sign(a), ("sgn",),
    ),
    Operator(
        "min", 2, np.minimum, (lambda a, b, v: (a <= b) * 1.0, lambda a, b, v: 1.0 - (a <= b)), (_zero, _zero, _zero),
        r"\min\left({0}, {1}\right)", "np.minimum({0}, {1})", "(std::isnan({0}) || {0} <= {1} ? {0} : {1})", lambda s, a, b: s.Min(a, b),
        ("Min", "fmin", "minimum"), "", 9, True,
    ),
    Operator(
        "max", 2, np.maximum, (lambda a, b, v: (a >= b) * 1.0, lambda a, b, v: 1.0 - (a >= b)), (_zero, _zero, _zero),
        r"\max\left({0}, {1}\right)", "np.maximum({0}, {1})", "(std::isnan({0}) || {0} >= {1} ? {0} : {1})", lambda s, a, b: s.Max(a, b),
        ("Max", "fmax", "maximum"), "", 9, True,
    ),
    Operator(
        "arcsinh", 1, np.arcsinh, (lambda a, v: 1.0 / np.sqrt(a * a + 1.0),), (lambda a, v: -a / (a * a + 1.0) ** 1.5,),
        r"\operatorname{{arsinh}}\left({0}\right)", "np.arcsinh({0})", "std::asinh({0})", lambda s, a: s.asinh(a), ("asinh",),
    ),
    Operator(
        "arccosh", 1, np.arccosh, (lambda a, v: 1.0 / np.sqrt(a * a - 1.0),), (lambda a, v: -a / (a * a - 1.0) ** 1.5,),
        r"\operatorname{{arcosh}}\left({0}\right)", "np.arccosh({0})", "std::acosh({0})", lambda s, a: s.acosh(a), ("acosh",),
    ),
    Operator(
        "arctanh", 1, np.arctanh, (lambda a, v: 1.0 / (1.0 - a * a),), (lambda a, v: 2.0 * a / (1.0 - a * a) ** 2,),
        r"\operatorname{{artanh}}\left({0}\right)", "np.arctanh({0})", "std::atanh({0})", lambda s, a: s.atanh(a), ("atanh",),
    ),
    Operator(
        "log1p", 1, np.log1p, (lambda a, v: 1.0 / (1.0 + a),), (lambda a, v: -1.0 / (1.0 + a) ** 2,),
        r"\log\left(1 + {0}\right)", "np.log1p({0})", "std::log1p({0})", lambda s, a: s.log(1 + a), ("logp1",),
    ),
    Operator(
        "sigmoid", 1, _sigmoid, (lambda a, v: v * (1.0 - v),), (lambda a, v: v * (1.0 - v) * (1.0 - 2.0 * v),),
        r"\sigma\left({0}\right)", "(1.0 / (1.0 + np.exp(-({0}))))", "(1.0 / (1.0 + std::exp(-({0}))))",
        lambda s, a: 1 / (1 + s.exp(-a)), ("logistic", "expit"),
    ),
    # The protected operators of other packages.
    Operator(
        "gpdiv", 2, _gpdiv, (_gp_guarded(lambda a, b, v: 1.0 / b), _gp_guarded(lambda a, b, v: -v / b)),
        (_zero, _gp_guarded(lambda a, b, v: -1.0 / (b * b)), _gp_guarded(lambda a, b, v: 2.0 * v / (b * b))),
        r"\operatorname{{gpdiv}}\left({0}, {1}\right)", "np.where(np.abs({1}) > 1e-3, ({0}) / ({1}), 1.0)",
        "(std::abs({1}) > 1e-3 ? ({0}) / ({1}) : 1.0)", lambda s, a, b: s.Piecewise((a / b, s.Abs(b) > GPLEARN_GUARD), (1, True)),
    ),
    Operator(
        "gplog", 1, lambda a: np.where(np.abs(a) > GPLEARN_GUARD, np.log(np.abs(a)), 0.0), (_gp_guarded(lambda a, v: 1.0 / a),),
        (_gp_guarded(lambda a, v: -1.0 / (a * a)),),
        r"\operatorname{{gplog}}\left({0}\right)", "np.where(np.abs({0}) > 1e-3, np.log(np.abs({0})), 0.0)",
        "(std::abs({0}) > 1e-3 ? std::log(std::abs({0})) : 0.0)",
        lambda s, a: s.Piecewise((s.log(s.Abs(a)), s.Abs(a) > GPLEARN_GUARD), (0, True)),
    ),
    Operator(
        "gpinv", 1, lambda a: np.where(np.abs(a) > GPLEARN_GUARD, 1.0 / a, 0.0), (lambda a, v: -v * v,),
        (lambda a, v: 2.0 * v * v * v,),
        r"\operatorname{{gpinv}}\left({0}\right)", "np.where(np.abs({0}) > 1e-3, 1.0 / ({0}), 0.0)",
        "(std::abs({0}) > 1e-3 ? 1.0 / ({0}) : 0.0)", lambda s, a: s.Piecewise((1 / a, s.Abs(a) > GPLEARN_GUARD), (0, True)),
    ),
    Operator(
        "logabs", 1, lambda a: np.log(np.abs(a)), (lambda a, v: 1.0 / a,), (lambda a, v: -1.0 / (a * a),),
        r"\log\left|{0}\right|", "np.log(np.abs({0}))", "std::log(std::abs({0}))", lambda s, a: s.log(s.Abs(a)), ("log_abs", "logAbs"),
    ),
    Operator(
        "sqrtabs", 1, lambda a: np.sqrt(np.abs(a)), (lambda a, v: 0.5 * np.sign(a) / v,), (lambda a, v: -0.25 / (v * v * v),),
        r"\sqrt{{\left|{0}\right|}}", "np.sqrt(np.abs({0}))", "std::sqrt(std::abs({0}))", lambda s, a: s.sqrt(s.Abs(a)),
        ("sqrt_abs", "sqrtAbs", "gpsqrt"),
    ),
    Operator(
        "powabs", 2, lambda a, b: np.power(np.abs(a), b), (_powabs_a, lambda a, b, v: _pow_b(np.abs(a), b, v)),
        (lambda a, b, v: _pow_aa(np.abs(a), b, v), _powabs_ab, lambda a, b, v: _pow_bb(np.abs(a), b, v)),
        r"\left|{0}\right|^{{{1}}}", "(np.abs({0}) ** {1})", "std::pow(std::abs({0}), {1})", lambda s, a, b: s.Abs(a) ** b,
        ("pow_abs", "PowerAbs", "powAbs"),
    ),
    Operator(
        "aq", 2, lambda a, b: a / np.sqrt(1.0 + b * b),
        (lambda a, b, v: 1.0 / np.sqrt(1.0 + b * b), lambda a, b, v: -a * b / (1.0 + b * b) ** 1.5),
        (_zero, lambda a, b, v: -b / (1.0 + b * b) ** 1.5, lambda a, b, v: a * (2.0 * b * b - 1.0) / (1.0 + b * b) ** 2.5),
        r"\frac{{{0}}}{{\sqrt{{1 + \left({1}\right)^2}}}}", "(({0}) / np.sqrt(1.0 + np.square({1})))",
        "(({0}) / std::sqrt(1.0 + std::pow({1}, 2)))", lambda s, a, b: a / s.sqrt(1 + b**2), ("analytic_quotient",),
    ),
)  # fmt: skip


def _numbered(rows: tuple[Operator, ...]) -> dict[str, Operator]:
    for opcode, row in enumerate(rows, start=1):
        object.__setattr__(row, "opcode", opcode)
    return {row.name: row for row in rows}


#: Canonical name -> operator, in opcode order.
OPERATORS: dict[str, Operator] = _numbered(_ROWS)

#: Every accepted spelling -> operator.
SPELLINGS: dict[str, Operator] = {spelling: row for row in _ROWS for spelling in (row.name, *row.aliases)}

#: Operator -> opcode and back. Own operators stay here when they leave the table: expressions may still hold them.
OPCODES: dict[object, int] = {row: row.opcode for row in _ROWS}
BY_OPCODE: dict[int, Operator] = {row.opcode: row for row in _ROWS}

_lock = threading.Lock()


def enter(row: Operator) -> None:
    """Add a user's operator to the table, under an opcode that no other one had; one of the same name leaves it."""
    with _lock:
        opcode = min(*BY_OPCODE, 0) - 1
        object.__setattr__(row, "opcode", opcode)
        BY_OPCODE[opcode] = row
        OPCODES[row] = opcode
        OPERATORS[row.name] = SPELLINGS[row.name] = row


def withdraw(name: str) -> None:
    """Take a user's operator out of the table."""
    with _lock:
        del OPERATORS[name], SPELLINGS[name]


def own_operators() -> tuple[Operator, ...]:
    """The operators that users registered, in their order."""
    return tuple(row for row in tuple(OPERATORS.values()) if row.is_own)


def operator(name: str) -> Operator:
    """The operator with this canonical name or alias.

    >>> operator("asin")
    arcsin
    """
    from sobolev_novelty.errors import ExpressionError

    try:
        return SPELLINGS[name]
    except KeyError:
        known = ", ".join(OPERATORS)
        raise ExpressionError(
            f"'{name}' is not an operator. Known: {known}. One of your own is registered in every process that uses it: "
            "sobolev_novelty.register_operator."
        ) from None
