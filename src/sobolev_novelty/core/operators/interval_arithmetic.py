"""Bounds of every operator on intervals, many at a time, and where an operand may leave its domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.operators import GPLEARN_GUARD, Operator
from sobolev_novelty.core.sample import FloatArray

BoolArray = npt.NDArray[np.bool_]
Interval = tuple[FloatArray, FloatArray]

#: Relative outward rounding; zeros stay zeros, so that 1 − cos x keeps its lower bound.
ULP = 4.0 * 2.0**-52
#: An angle's sine may be beyond one by this much before it counts: rounding of a quotient.
ROUNDING = 1e-12

POLE = "has a pole"
OVERFLOW = "overflows"


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Bounds of a result, and on which intervals something may go wrong.

    ``low``, ``high``: shape (n,).
    """

    low: FloatArray
    high: FloatArray
    trouble: BoolArray
    problem: str = ""  # what may happen, as the end of a sentence


def applied(op: Operator, operands: Sequence[Interval]) -> Bounds:
    """The bounds of an operator; infinite ones for an operator without a rule and where something may go wrong.

    Bounds of a rule that are not finite are trouble by themselves: the numbers may overflow there. An operator without
    a rule is taken to be finite in its domain.

    >>> from sobolev_novelty.core.operators import OPERATORS
    >>> one, two = np.array([1.0]), np.array([2.0])
    >>> found = applied(OPERATORS["div"], [(one, two), (-one, two)])
    >>> found.trouble, found.problem
    (array([ True]), 'has a pole')
    """
    rule = _RULES.get(op.name)
    n = len(operands[0][0])
    if rule is None:
        trouble = np.zeros(n, dtype=bool)
        for (low, high), (least, greatest) in zip(operands, op.domain, strict=False):
            trouble |= (low < least) | (high > greatest)
        return Bounds(np.full(n, -np.inf), np.full(n, np.inf), trouble, f"leaves the domain of {op.name}")
    with np.errstate(all="ignore"):  # what leaves a domain is trouble, not a warning
        low, high, trouble, problem = rule(*operands)
    unknown = np.isnan(low) | np.isnan(high) | trouble
    low = np.where(unknown, -np.inf, low - ULP * np.abs(low))
    high = np.where(unknown, np.inf, high + ULP * np.abs(high))
    bounds = _RANGES.get(op.name)
    if bounds is not None:
        low, high = np.clip(low, *bounds), np.clip(high, *bounds)
    beyond = ~(np.isfinite(low) & np.isfinite(high)) & ~trouble
    return Bounds(low, high, np.broadcast_to(trouble | beyond, low.shape), problem if np.any(trouble) else OVERFLOW)


_Found = tuple[FloatArray, FloatArray, BoolArray, str]
_RANGES = {"sin": (-1.0, 1.0), "cos": (-1.0, 1.0), "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0)}


def _fine(low: FloatArray, high: FloatArray) -> _Found:
    return low, high, np.zeros(len(low), dtype=bool), ""


def _mul(a: Interval, b: Interval) -> _Found:
    products = np.array([x * y for x in a for y in b])
    products = np.where(np.isnan(products), 0.0, products)  # 0 · ∞ of bounds is 0
    return _fine(products.min(axis=0), products.max(axis=0))


def _inverse(b: Interval) -> _Found:
    crosses = (b[0] <= 0.0) & (b[1] >= 0.0)
    return 1.0 / b[1], 1.0 / b[0], crosses, POLE


def _div(a: Interval, b: Interval) -> _Found:
    low, high, crosses, problem = _inverse(b)
    low, high, *_ = _mul(a, (low, high))
    return low, high, crosses, problem


def _abs(a: Interval) -> Interval:
    inside = (a[0] <= 0.0) & (a[1] >= 0.0)
    sizes = np.abs(a[0]), np.abs(a[1])
    return np.where(inside, 0.0, np.minimum(*sizes)), np.maximum(*sizes)


def _even(a: Interval, exponent: float) -> _Found:
    low, high = _abs(a)
    return _fine(low**exponent, high**exponent)


def _pow(a: Interval, b: Interval) -> _Found:
    exponent = float(b[0][0]) if np.all(b[0] == b[1]) and np.all(b[0] == b[0][0]) else None
    if exponent is None:
        low, high = np.log(a[0]), np.log(a[1])
        low, high, *_ = _mul((low, high), b)
        outside = a[0] <= 0.0
        return np.exp(low), np.exp(high), outside, "raises a number that is not positive to a power"
    if exponent < 0.0 and not exponent.is_integer():
        low, high, outside, _ = _power(a, -exponent)
        outside = a[0] <= 0.0
        return 1.0 / high, 1.0 / low, outside, "takes a root of a number that is not positive"
    if exponent < 0.0:
        return _inverse(_power(a, -exponent)[:2])
    return _power(a, exponent)


def _power(a: Interval, exponent: float) -> _Found:
    if exponent.is_integer():
        return _even(a, exponent) if exponent % 2.0 == 0.0 else _fine(a[0] ** exponent, a[1] ** exponent)
    return np.maximum(a[0], 0.0) ** exponent, a[1] ** exponent, a[0] < 0.0, "takes a root of a negative number"


def _rising(function: Callable[[FloatArray], FloatArray]) -> Callable[[Interval], _Found]:
    return lambda a: _fine(function(a[0]), function(a[1]))


def _rising_from(
    function: Callable[[FloatArray], FloatArray], least: float, problem: str
) -> Callable[[Interval], _Found]:
    """A rising function that is defined from a number on."""

    def rule(a: Interval) -> _Found:
        return function(np.maximum(a[0], least)), function(np.maximum(a[1], least)), a[0] < least, problem

    return rule


def _logarithm(function: Callable[[FloatArray], FloatArray], zero: float = 0.0) -> Callable[[Interval], _Found]:
    return lambda a: (function(a[0]), function(a[1]), a[0] <= zero, _NOT_POSITIVE)


def _contains(a: Interval, start: float, period: float) -> BoolArray:
    """Whether ``start + k·period`` lies in the interval for some whole k."""
    found = np.floor((a[1] - start) / period) >= np.ceil((a[0] - start) / period)
    return np.asarray(found | ~np.isfinite(a[0]) | ~np.isfinite(a[1]))


def _wave(function: Callable[[FloatArray], FloatArray], top: float) -> Callable[[Interval], _Found]:
    def rule(a: Interval) -> _Found:
        ends = np.array([function(a[0]), function(a[1])])
        high = np.where(_contains(a, top, 2.0 * np.pi), 1.0, ends.max(axis=0))
        low = np.where(_contains(a, top + np.pi, 2.0 * np.pi), -1.0, ends.min(axis=0))
        return _fine(low, high)

    return rule


def _is_beyond_one(a: Interval) -> BoolArray:
    return np.asarray((a[0] < -1.0 - ROUNDING) | (a[1] > 1.0 + ROUNDING))


def _arcsin(a: Interval) -> _Found:
    ends = np.arcsin(np.clip(a[0], -1.0, 1.0)), np.arcsin(np.clip(a[1], -1.0, 1.0))
    return *ends, _is_beyond_one(a), _BEYOND_ONE


def _arccos(a: Interval) -> _Found:
    ends = np.arccos(np.clip(a[1], -1.0, 1.0)), np.arccos(np.clip(a[0], -1.0, 1.0))
    return *ends, _is_beyond_one(a), _BEYOND_ONE


def _powabs(a: Interval, b: Interval) -> _Found:
    low, high = _abs(a)
    with_zero = (low == 0.0) & (b[0] < 0.0)
    logs = _mul((np.log(low), np.log(high)), b)
    return np.exp(logs[0]), np.exp(logs[1]), with_zero, POLE


def _aq(a: Interval, b: Interval) -> _Found:
    low, high = _abs(b)
    return _div(a, (np.sqrt(1.0 + low**2), np.sqrt(1.0 + high**2)))


def _bounded_quotient(a: Interval) -> _Found:
    """1/x of gplearn: 0 near zero."""
    return _fine(np.full(len(a[0]), -1.0 / GPLEARN_GUARD), np.full(len(a[0]), 1.0 / GPLEARN_GUARD))


def _gpdiv(a: Interval, b: Interval) -> _Found:
    """a/b of gplearn: 1 near a zero of b."""
    low, high, *_ = _mul(a, _bounded_quotient(b)[:2])
    return _fine(np.minimum(low, 1.0), np.maximum(high, 1.0))


def _gplog(a: Interval) -> _Found:
    """log|x| of gplearn: 0 near zero."""
    low, high = (np.log(np.maximum(end, GPLEARN_GUARD)) for end in _abs(a))
    return _fine(np.minimum(low, 0.0), np.maximum(high, 0.0))


_NOT_POSITIVE = "takes the logarithm of a number that is not positive"
_BEYOND_ONE = "is asked for an angle beyond its range"

_RULES: dict[str, Callable[..., _Found]] = {
    "add": lambda a, b: _fine(a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: _fine(a[0] - b[1], a[1] - b[0]),
    "mul": _mul,
    "div": _div,
    "inv": _inverse,
    "pow": _pow,
    "neg": lambda a: _fine(-a[1], -a[0]),
    "square": lambda a: _even(a, 2.0),
    "cube": _rising(lambda x: x * x * x),
    "cbrt": _rising(np.cbrt),
    "abs": lambda a: _fine(*_abs(a)),
    "sign": _rising(np.sign),
    "sqrt": _rising_from(np.sqrt, 0.0, "takes a root of a negative number"),
    "sqrtabs": lambda a: _fine(*(np.sqrt(end) for end in _abs(a))),
    "exp": _rising(np.exp),
    "sinh": _rising(np.sinh),
    "cosh": lambda a: _fine(*(np.cosh(end) for end in _abs(a))),
    "log": _logarithm(np.log),
    "log2": _logarithm(np.log2),
    "log10": _logarithm(np.log10),
    "log1p": _logarithm(np.log1p, -1.0),
    "logabs": lambda a: _logarithm(np.log)(_abs(a)),
    "sin": _wave(np.sin, 0.5 * np.pi),
    "cos": _wave(np.cos, 0.0),
    "tan": lambda a: (np.tan(a[0]), np.tan(a[1]), _contains(a, 0.5 * np.pi, np.pi), POLE),
    "cot": lambda a: (1.0 / np.tan(a[1]), 1.0 / np.tan(a[0]), _contains(a, 0.0, np.pi), POLE),
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arctan": _rising(np.arctan),
    "tanh": _rising(np.tanh),
    "arcsinh": _rising(np.arcsinh),
    "arccosh": _rising_from(np.arccosh, 1.0, "is asked for a value below 1"),
    "arctanh": lambda a: (np.arctanh(a[0]), np.arctanh(a[1]), (a[0] <= -1.0) | (a[1] >= 1.0), "leaves (-1, 1)"),
    "sigmoid": _rising(lambda x: 1.0 / (1.0 + np.exp(-x))),
    "min": lambda a, b: _fine(np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "max": lambda a, b: _fine(np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "powabs": _powabs,
    "aq": _aq,
    "gpinv": _bounded_quotient,
    "gpdiv": _gpdiv,
    "gplog": _gplog,
}
