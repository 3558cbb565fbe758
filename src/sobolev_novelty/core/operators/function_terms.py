"""Terms given as Python functions: their values and derivatives at the samples.

The derivative is the complex step Im f(x + ih)/h, exact to rounding, where the function takes complex numbers and
agrees with differences; otherwise the central difference itself.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.errors import DataError, ParameterError

#: Complex steps need not be balanced against cancellation: there is none.
COMPLEX_STEP = 1e-30
#: Central differences: the cube root of rounding, relative to the spread of the input.
REAL_STEP = 6e-6
#: How far the two may differ before the complex one is not believed.
AGREEMENT = 1e-4
#: How derivatives are made.
COMPLEX_STEPS, DIFFERENCES = "complex steps", "central differences"

Function = Callable[..., Any]
Columns = list[npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTerms:
    """Values and gradients of functions at the samples."""

    labels: tuple[str, ...]
    values: FloatArray  # shape (n_terms, n_samples)
    gradients: FloatArray  # shape (n_terms, n_features, n_samples)
    note: str  # how the derivatives were made


def is_function_list(terms: Any) -> bool:
    """Whether this is a list of Python functions."""
    return isinstance(terms, list | tuple) and bool(terms) and all(_is_function(term) for term in terms)


def _is_function(term: Any) -> bool:
    # SymPy's symbols and our expressions can be called, too.
    is_formula = hasattr(term, "free_symbols") or hasattr(term, "tokens")
    return callable(term) and not is_formula and not isinstance(term, type) and not hasattr(term, "predict")


def function_terms(functions: Sequence[Function], sample: Sample) -> FunctionTerms:
    """Evaluate and differentiate functions.

    ``functions``: a function gets the columns that its parameters are named after, or all columns where it has a
    parameter for each, or the whole table, shape (n_samples, n_features); it returns one number per row.

    >>> from sobolev_novelty.core.sample import as_sample
    >>> found = function_terms([np.sin, abs], as_sample(np.linspace(-1.0, 1.0, 40)))
    >>> found.note
    'Derivatives: of sin by complex steps, of abs by central differences.'
    """
    labels = _labels(functions)
    calls = [_call(function, sample.names, label) for function, label in zip(functions, labels, strict=True)]
    values = np.stack([_real(call, list(sample.X), label) for call, label in zip(calls, labels, strict=True)])
    found = [_gradient(call, sample, label) for call, label in zip(calls, labels, strict=True)]
    note = derivatives_note(labels, [COMPLEX_STEPS if is_complex else DIFFERENCES for _, is_complex in found])
    return FunctionTerms(labels, values, np.stack([gradient for gradient, _ in found]), note)


def _labels(functions: Sequence[Function]) -> tuple[str, ...]:
    names = [getattr(function, "__name__", "") for function in functions]
    return tuple(
        f"term {k}" if not name or name == "<lambda>" or names.count(name) > 1 else name for k, name in enumerate(names)
    )


def _call(function: Function, names: tuple[str, ...], label: str) -> Callable[[Columns], Any]:
    """The function as one of all columns."""
    parameters = _parameters(function)
    if parameters and set(parameters) <= set(names):
        places = [names.index(name) for name in parameters]
    elif len(parameters) == len(names) > 1:
        places = list(range(len(names)))
    elif len(parameters) == 1:
        return lambda columns: function(np.stack(columns, axis=1))
    else:
        raise ParameterError(
            f"{label} has {len(parameters)} parameters ({', '.join(parameters)}). A function takes the whole table, "
            f"one parameter per column, or columns by name: {', '.join(names[:12])}."
        )

    def called(columns: Columns) -> Any:
        return function(*(columns[k].copy() for k in places))  # it may write to what it gets

    return called


def _parameters(function: Function) -> list[str]:
    if isinstance(function, np.ufunc):
        return [f"operand {k}" for k in range(function.nin)]
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions tell nothing
        return ["table"]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]


def _real(call: Callable[[Columns], Any], columns: Columns, label: str) -> FloatArray:
    with np.errstate(all="ignore"):
        array = _flat(call(columns))
    n_samples = len(columns[0])
    if array.shape not in ((), (n_samples,)) or array.dtype.kind not in "fiub":
        raise DataError(
            f"{label} must return one real number per row, shape ({n_samples},). "
            f"Got shape {array.shape} of {array.dtype}."
        )
    return np.asarray(np.broadcast_to(array, (n_samples,)), dtype=np.float64)


def _flat(value: Any) -> npt.NDArray[Any]:
    array = np.asarray(value)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _gradient(call: Callable[[Columns], Any], sample: Sample, label: str) -> tuple[FloatArray, bool]:
    """The gradient, shape (n_features, n_samples), and whether it is the complex step's."""
    differences = np.stack([_difference(call, sample, j, label) for j in range(sample.n_features)])
    steps = []
    for j in range(sample.n_features):
        moved = [column.astype(complex) for column in sample.X]
        moved[j] = moved[j] + 1j * COMPLEX_STEP
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                value = _flat(call(moved))
        except (TypeError, ValueError, AttributeError, np.exceptions.ComplexWarning):
            return differences, False
        if value.dtype.kind != "c":
            # A constant is real whatever is put in; anything else has lost the step on the way.
            if np.any(differences[j][np.isfinite(differences[j])]):
                return differences, False
            value = np.zeros(sample.n_samples, dtype=complex)
        steps.append(value.imag / COMPLEX_STEP)
    gradient = np.stack(steps)
    with np.errstate(all="ignore"):
        finite = np.isfinite(gradient) & np.isfinite(differences)
        scale = np.abs(differences[finite]).max(initial=0.0)
        agree = bool((np.abs(gradient - differences)[finite] <= AGREEMENT * scale + 1e-12).all())
    return (gradient, True) if agree else (differences, False)


def _difference(call: Callable[[Columns], Any], sample: Sample, j: int, label: str) -> FloatArray:
    step = REAL_STEP * max(float(sample.scales()[j]), 1e-3 * float(np.abs(sample.X[j]).max(initial=0.0)), 1e-12)
    sides = []
    for sign in (1.0, -1.0):
        moved = list(sample.X)
        moved[j] = moved[j] + sign * step
        sides.append((_real(call, moved, label), moved[j]))
    (above, x_above), (below, x_below) = sides
    return np.asarray((above - below) / (x_above - x_below))


def derivatives_note(labels: Sequence[str], made_by: Sequence[str], what: str = "Derivatives") -> str:
    """How derivatives were made, for a reader.

    >>> derivatives_note(["f", "g"], [COMPLEX_STEPS, DIFFERENCES])
    'Derivatives: of f by complex steps, of g by central differences.'
    """
    parts = {
        how: ", ".join(label for label, own in zip(labels, made_by, strict=True) if own == how)
        for how in (COMPLEX_STEPS, DIFFERENCES)
    }
    return f"{what}: {', '.join(f'of {which} by {how}' for how, which in parts.items() if which)}."
