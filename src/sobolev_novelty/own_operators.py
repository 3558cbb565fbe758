r"""Operators of the user's own: Python functions that join the operator table.

Notation
--------
``f``  the function, ``a`` (and ``b``) its arguments;  ``p``  the operand along which something is differentiated

Derivatives are the user's where he gives them. Otherwise they are complex steps, :math:`\mathrm{Im} f(a + ih)/h`, where
the function takes complex numbers and they agree with differences; else central differences. Second derivatives
differentiate the first ones, by a complex step where the user's derivative takes it, else by central differences.

A registration holds for this process. Text and files only ever name operators; what is called was registered here.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import ExpressionError, ParameterError
from sobolev_novelty.expression import is_reserved, numbered_index
from sobolev_novelty.operators import OPERATORS, Function, Operator, enter, withdraw
from sobolev_novelty.parsing.functions import FUNCTIONS

Array = npt.NDArray[Any]
Domain = tuple[tuple[float, float], ...]

#: Complex steps need not be balanced against cancellation: there is none.
_COMPLEX_STEP = 1e-30
#: Central differences: the cube root of rounding for a first, the fourth root for both of a second derivative.
_FIRST_STEP, _SECOND_STEP = 6e-6, 1.2e-4
#: How far the complex step may be from the difference, relative to the largest, before it is not believed.
_AGREEMENT = 1e-4
#: A derivative that was given may be this far off; differences at a kink are, at one point in ten at most.
_TOLERATED, _SHARE_TOLERATED = 1e-3, 0.1
_N_POINTS = 40
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z_0-9]*\Z")
EXACT, STEPS, DIFFERENCES = "", "complex steps", "central differences"


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
    if arity not in (1, 2):
        raise ParameterError(f"'arity' must be 1 or 2. Got {arity!r}.")
    _check_name(name, replace=replace)
    limits = _limits(domain, arity)
    value = _Elementwise(name, _callable(function, "function"), limits)
    points = _sample(arity, limits)
    _check_function(value, points)
    given = _derivatives(name, derivative, arity, limits, value, points)
    first, first_by = _first(value, given, points)
    second, second_by = _second(value, given, first, first_by, points)
    row = Operator(
        name, arity, value, tuple(_where_finite(g) for g in first), tuple(_where_finite(g) for g in second),
        _template(name, latex, arity), "", "", _symbolic(name, sympy), domain=limits, derived_by=(first_by, second_by),
    )  # fmt: skip
    enter(row)


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


# --- what is registered


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


def _limits(domain: Any, arity: int) -> Domain:
    if domain is None:
        return ()
    pairs = [domain] if arity == 1 and np.ndim(domain) == 1 else domain
    try:
        limits = tuple((float(low), float(high)) for low, high in pairs)
    except (TypeError, ValueError):
        limits = ()
    if len(limits) != arity or not all(low < high for low, high in limits):
        shape = "(low, high)" if arity == 1 else "((low, high), (low, high))"
        raise ParameterError(f"'domain' must be {shape} with low below high. Got {domain!r}.")
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


# --- values


@dataclass(frozen=True, slots=True, eq=False)
class _Elementwise:
    """A user's function as the kernels call it: any shape, numbers, arguments outside the domain."""

    name: str
    function: Function
    domain: Domain

    def __call__(self, *arguments: Any) -> Any:
        kind = np.result_type(*arguments, np.float64)
        whole = np.broadcast_arrays(*(np.asarray(a, dtype=kind) for a in arguments))
        arrays = [np.array(a).ravel() for a in whole]  # copies: what is handed out may be written to
        outside = np.zeros(arrays[0].shape, dtype=bool)
        for array, (low, high) in zip(arrays, self.domain, strict=False):
            outside |= ~((array.real >= low) & (array.real <= high))
        for array, limits in zip(arrays, self.domain, strict=False):
            array[outside] = _inside(limits)
        found = self._called(arrays) if len(outside) else np.zeros(0, dtype=kind)
        if outside.any():
            found = np.where(outside, np.nan, found)
        return found.reshape(whole[0].shape)[()]

    def _called(self, arrays: list[Array]) -> Array:
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.function(*arrays))
        except Exception as error:  # noqa: BLE001  # whatever a user's function raises
            if np.iscomplexobj(arrays[0]):
                raise
            raise ExpressionError(
                f"'{self.name}' failed for an array of {len(arrays[0])} numbers: {type(error).__name__}: {error}. An own "
                "operator gets float arrays: write it with NumPy, or wrap it in numpy.vectorize; 'domain' keeps "
                "arguments away."
            ) from error
        if found.shape != arrays[0].shape or found.dtype.kind not in ("fiubc" if arrays[0].dtype.kind == "c" else "fiub"):
            raise ExpressionError(
                f"'{self.name}' must return one real number per argument, shape {arrays[0].shape}. "
                f"Got shape {found.shape} of {found.dtype}."
            )
        return found if found.dtype.kind == "c" else found.astype(np.float64)


def _inside(limits: tuple[float, float]) -> float:
    """A number within the limits."""
    return float(_between(*limits, 1)[0])


def _between(low: float, high: float, n: int) -> FloatArray:
    """Numbers strictly between the limits, none of them special; around 0 where the limits leave it open."""
    share = (np.arange(n) + 0.5173) / (n + 0.0411)
    if np.isfinite(low) and np.isfinite(high):
        return np.asarray(low + share * (high - low))
    if np.isfinite(low):
        return np.asarray(low + max(1.0, 0.1 * abs(low)) * 4.0 * share)
    if np.isfinite(high):
        return np.asarray(high - max(1.0, 0.1 * abs(high)) * 4.0 * share)
    return np.asarray(6.0 * share - 3.0)


def _sample(arity: int, domain: Domain) -> list[FloatArray]:
    limits = domain or ((-np.inf, np.inf),) * arity
    columns = [_between(low, high, _N_POINTS) for low, high in limits]
    # Not side by side: an operator such as a - b would see no difference.
    return [np.roll(column[:: 1 - 2 * p], 7 * p) for p, column in enumerate(columns)]


def _check_function(value: _Elementwise, points: list[FloatArray]) -> None:
    whole = value(*points)
    if not np.isfinite(whole).any():
        raise ParameterError(
            f"'function' of '{value.name}' has no finite value between {points[0].min():.3g} and {points[0].max():.3g}. "
            "Say where it is defined: domain=(low, high)."
        )
    half = value(*(column[::2] for column in points))
    if not np.allclose(whole[::2], half, rtol=1e-9, atol=0.0, equal_nan=True):
        raise ParameterError(
            f"'function' of '{value.name}' must act on each number alone. Got other values for the same numbers in a "
            "shorter array: no means, sums, sorting or chance."
        )


# --- derivatives


def _difference(f: Callable[..., Any], p: int, domain: Domain, step: float) -> Callable[..., Any]:
    """The central difference along operand ``p``; at the edge of the domain the one-sided one."""

    def differentiated(*arguments: Any) -> Any:
        a = np.asarray(arguments[p], dtype=np.float64)
        size = np.abs(a)
        # Relative to the argument, and near zero to the others beside it: it has no scale of its own there.
        spread = 0.1 * float(size[np.isfinite(size)].max(initial=0.0))
        h = step * np.maximum(size, spread or 1.0)
        low, high = domain[p] if domain else (-np.inf, np.inf)
        above, below = np.minimum(a + h, high), np.maximum(a - h, low)
        with np.errstate(all="ignore"):
            sides = [f(*arguments[:p], moved, *arguments[p + 1 :]) for moved in (above, below)]
            return (sides[0] - sides[1]) / (above - below)

    return differentiated


def _complex_step(f: _Elementwise, p: int) -> Callable[..., Any]:
    def differentiated(*arguments: Any) -> Any:
        moved = [np.asarray(a, dtype=complex) for a in arguments]
        moved[p] = moved[p] + 1j * _COMPLEX_STEP
        return np.imag(f(*moved)) / _COMPLEX_STEP

    return differentiated


def _stepped(f: _Elementwise, points: list[FloatArray]) -> tuple[Callable[..., Any], ...] | None:
    """The complex steps along all operands, where the function takes them and they agree with differences."""
    steps = tuple(_complex_step(f, p) for p in range(len(points)))
    for p, step in enumerate(steps):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                found = step(*points)
        except Exception:  # noqa: BLE001  # not made for complex numbers, in whatever way it says so
            return None
        expected = _difference(f, p, f.domain, _FIRST_STEP)(*points)
        known = np.isfinite(f(*points)) & np.isfinite(expected)
        scale = np.abs(expected[known]).max(initial=0.0)
        with np.errstate(all="ignore"):
            if not (np.abs(found - expected)[known] <= _AGREEMENT * scale + 1e-12).all():
                return None
    return steps


def _derivatives(
    name: str, derivative: Any, arity: int, domain: Domain, value: _Elementwise, points: list[FloatArray]
) -> tuple[_Elementwise, ...]:
    """The user's derivatives, compared with differences; none where there are none."""
    if derivative is None:
        return ()
    functions = [derivative] if callable(derivative) else list(derivative)
    if len(functions) != arity:
        raise ParameterError(f"'derivative' must be {arity} function(s), one per operand. Got {len(functions)}.")
    given = tuple(_Elementwise(f"derivative of {name}", _callable(f, "derivative"), domain) for f in functions)
    for p, g in enumerate(given):
        found, expected = g(*points), _difference(value, p, domain, _FIRST_STEP)(*points)
        known = np.isfinite(expected)
        with np.errstate(all="ignore"):
            off = np.where(known, np.abs(found - expected), 0.0)
            wrong = ~(off <= _TOLERATED * (np.abs(expected) + np.abs(expected[known]).mean())) & known
        if wrong.sum() > _SHARE_TOLERATED * max(known.sum(), 1):
            k = int(np.flatnonzero(wrong)[0])
            at = ", ".join(f"{column[k]:.6g}" for column in points)
            raise ParameterError(
                f"'derivative' of '{name}' along operand {p} is {found[k]:.6g} at {at}, but the function's slope there "
                f"is {expected[k]:.6g}. Correct it, or leave it out."
            )
    return given


def _first(
    value: _Elementwise, given: tuple[_Elementwise, ...], points: list[FloatArray]
) -> tuple[tuple[Callable[..., Any], ...], str]:
    if given:
        return given, EXACT
    steps = _stepped(value, points)
    if steps is not None:
        return steps, STEPS
    return tuple(_difference(value, p, value.domain, _FIRST_STEP) for p in range(len(points))), DIFFERENCES


def _second(
    value: _Elementwise,
    given: tuple[_Elementwise, ...],
    first: tuple[Callable[..., Any], ...],
    first_by: str,
    points: list[FloatArray],
) -> tuple[tuple[Callable[..., Any], ...], str]:
    """f_aa, or f_aa, f_ab and f_bb: derivatives of the first ones."""
    pairs = list(combinations_with_replacement(range(len(points)), 2))
    steps = [_stepped(g, points) for g in given]
    if given and all(step is not None for step in steps):
        return tuple(step[q] for p, q in pairs if (step := steps[p]) is not None), STEPS
    if first_by != DIFFERENCES:
        return tuple(_difference(first[p], q, value.domain, _FIRST_STEP) for p, q in pairs), DIFFERENCES
    wide = [_difference(value, p, value.domain, _SECOND_STEP) for p in range(len(points))]
    return tuple(_difference(wide[p], q, value.domain, _SECOND_STEP) for p, q in pairs), DIFFERENCES


def _where_finite(g: Callable[..., Any]) -> Function:
    """A derivative as the table has it, a function of the operands and the value; nan where there is no value."""

    def partial(*arguments: Any) -> Any:
        *operands, value = arguments
        return np.where(np.isfinite(value), g(*operands), np.nan)

    return partial
