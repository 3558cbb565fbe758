r"""A user's function of numbers, element by element: its values, and derivatives that nobody wrote down.

Notation
--------
``f``  the function, ``a`` an argument;  ``p``  the operand along which something is differentiated;  ``h``  a step
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.operators.function_terms import AGREEMENT, COMPLEX_STEP, COMPLEX_STEPS, DIFFERENCES, REAL_STEP
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ExpressionError, ParameterError

Array = npt.NDArray[Any]
Pointwise = Callable[..., Any]
#: Least and greatest argument of each operand; empty for the whole line.
Domain = tuple[tuple[float, float], ...]

#: Two central differences, one of the other: the fourth root of rounding.
_SECOND_STEP = 1.2e-4
#: A derivative that was given may be this far off; differences at a kink are, at one point in ten at most.
_TOLERATED, _SHARE_TOLERATED = 1e-3, 0.1
_N_POINTS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Elementwise:
    """A user's function as the kernels call it, with arrays of any shape, numbers, arguments outside the domain.

    >>> root = Elementwise("root", np.sqrt, ((0.0, np.inf),))
    >>> root(np.array([[4.0, -4.0]])), float(root(9.0))
    (array([[ 2., nan]]), 3.0)
    """

    name: str  # what errors call it
    function: Pointwise  # gets float arrays of one dimension
    domain: Domain  # tuple of (float, float): outside the value is nan, and the function is not asked

    def __call__(self, *arguments: Any) -> Any:
        """The values, in the shape that the arguments have together."""
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
        except Exception as error:  # whatever a user's function raises
            raise ExpressionError(
                f"'{self.name}' failed for an array of {len(arrays[0])} numbers: {type(error).__name__}: {error}. It "
                "gets float arrays: write it with NumPy, or wrap it in numpy.vectorize. 'domain' keeps arguments away."
            ) from error
        if found.shape != arrays[0].shape or found.dtype.kind not in (
            "fiubc" if arrays[0].dtype.kind == "c" else "fiub"
        ):
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


def sample_of(arity: int, domain: Domain) -> list[FloatArray]:
    """Arguments within the domain on which a function is tried, one array per operand."""
    limits = domain or ((-np.inf, np.inf),) * arity
    columns = [_between(low, high, _N_POINTS) for low, high in limits]
    # Not side by side: an operator such as a - b would see no difference.
    return [np.roll(column[:: 1 - 2 * p], 7 * p) for p, column in enumerate(columns)]


def check_elementwise(value: Elementwise, points: list[FloatArray]) -> None:
    """Refuse a function that has no finite value at the points, or does not act on each number alone."""
    whole = value(*points)
    if not np.isfinite(whole).any():
        raise ParameterError(
            f"'function' of '{value.name}' has no finite value between {points[0].min():.3g} and "
            f"{points[0].max():.3g}. Say where it is defined: domain=(low, high)."
        )
    half = value(*(column[::2] for column in points))
    if not np.allclose(whole[::2], half, rtol=1e-9, atol=0.0, equal_nan=True):
        raise ParameterError(
            f"'function' of '{value.name}' must act on each number alone. Got other values for the same numbers in a "
            "shorter array: no means, sums, sorting or chance."
        )


def _difference(f: Pointwise, p: int, domain: Domain, step: float) -> Pointwise:
    """The central difference along operand ``p``; at the edge of the domain the one-sided one."""

    def slope(*arguments: Any) -> Any:
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

    return slope


def _complex_step(f: Elementwise, p: int) -> Pointwise:
    def slope(*arguments: Any) -> Any:
        moved = [np.asarray(a, dtype=complex) for a in arguments]
        moved[p] = moved[p] + 1j * COMPLEX_STEP
        return np.imag(f(*moved)) / COMPLEX_STEP

    return slope


def _stepped(f: Elementwise, points: list[FloatArray]) -> tuple[Pointwise, ...] | None:
    """The complex steps along all operands, where the function takes them and they agree with differences."""
    steps = tuple(_complex_step(f, p) for p in range(len(points)))
    for p, step in enumerate(steps):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                found = step(*points)
        except Exception:  # not made for complex numbers, in whatever way it says so
            return None
        expected = _difference(f, p, f.domain, REAL_STEP)(*points)
        known = np.isfinite(f(*points)) & np.isfinite(expected)
        scale = np.abs(expected[known]).max(initial=0.0)
        with np.errstate(all="ignore"):
            if not (np.abs(found - expected)[known] <= AGREEMENT * scale + 1e-12).all():
                return None
    return steps


@dataclass(frozen=True, slots=True, eq=False)
class Differentiated:
    """A function with its derivatives."""

    first: tuple[Pointwise, ...]  # along each operand, as functions of the operands and the value
    second: tuple[Pointwise, ...]  # f_aa, or f_aa, f_ab and f_bb
    made_by: tuple[str, str]  # how the first and the second ones are made; empty text for a formula


def differentiated(f: Elementwise, derivatives: Sequence[Pointwise], points: list[FloatArray]) -> Differentiated:
    """The derivatives of a function: those given, else complex steps or central differences.

    >>> f = Elementwise("f", np.tanh, ())
    >>> differentiated(f, (), sample_of(1, ())).made_by
    ('complex steps', 'central differences')
    """
    given = tuple(Elementwise(f"derivative of {f.name}", g, f.domain) for g in derivatives)
    for p, g in enumerate(given):
        _check_derivative(f, g, p, points)
    first, first_by = _first(f, given, points)
    second, second_by = _second(f, given, first, first_by, points)
    return Differentiated(tuple(map(_where_finite, first)), tuple(map(_where_finite, second)), (first_by, second_by))


def _check_derivative(f: Elementwise, g: Elementwise, p: int, points: list[FloatArray]) -> None:
    found, expected = g(*points), _difference(f, p, f.domain, REAL_STEP)(*points)
    known = np.isfinite(expected)
    with np.errstate(all="ignore"):
        off = np.where(known, np.abs(found - expected), 0.0)
        wrong = ~(off <= _TOLERATED * (np.abs(expected) + np.abs(expected[known]).mean())) & known
    if wrong.sum() > _SHARE_TOLERATED * max(known.sum(), 1):
        k = int(np.flatnonzero(wrong)[0])
        at = ", ".join(f"{column[k]:.6g}" for column in points)
        raise ParameterError(
            f"'derivative' of '{f.name}' along operand {p} is {found[k]:.6g} at {at}, but the function's slope there "
            f"is {expected[k]:.6g}. Correct it, or leave it out."
        )


def _first(
    f: Elementwise, given: tuple[Elementwise, ...], points: list[FloatArray]
) -> tuple[tuple[Pointwise, ...], str]:
    if given:
        return given, ""
    steps = _stepped(f, points)
    if steps is not None:
        return steps, COMPLEX_STEPS
    return tuple(_difference(f, p, f.domain, REAL_STEP) for p in range(len(points))), DIFFERENCES


def _second(
    f: Elementwise,
    given: tuple[Elementwise, ...],
    first: tuple[Pointwise, ...],
    first_by: str,
    points: list[FloatArray],
) -> tuple[tuple[Pointwise, ...], str]:
    """Derivatives of the first ones."""
    pairs = list(combinations_with_replacement(range(len(points)), 2))
    steps = [found for g in given if (found := _stepped(g, points)) is not None]
    if given and len(steps) == len(given):
        return tuple(steps[p][q] for p, q in pairs), COMPLEX_STEPS
    step = REAL_STEP
    if first_by == DIFFERENCES:
        step = _SECOND_STEP
        first = tuple(_difference(f, p, f.domain, step) for p in range(len(points)))
    return tuple(_difference(first[p], q, f.domain, step) for p, q in pairs), DIFFERENCES


def _where_finite(g: Pointwise) -> Pointwise:
    """A derivative as a function of the operands and the value; nan where there is no value."""

    def partial(*arguments: Any) -> Any:
        *operands, value = arguments
        return np.where(np.isfinite(value), g(*operands), np.nan)

    return partial
