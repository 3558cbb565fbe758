"""To NumPy and to C++: a callable that interprets the expression, and source code for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.errors import DataError, ExpressionError, ParameterError
from sobolev_novelty.expression import Expression, numbered_index
from sobolev_novelty.operators import Operator

#: Deeper text is cut into statements: compilers bound how deeply brackets may nest.
_MAX_NESTING = 20
#: The nesting of a bare number.
_LITERAL = -1
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


@dataclass(frozen=True, slots=True)
class NumpyFunction:
    """A function of a table: ``f(X)`` with ``X`` of shape (n_samples, n_features) gives shape (n_samples,).

    The expression is interpreted, never compiled from text, so an expression from a stranger is safe to call.
    """

    expression: Expression
    names: tuple[str, ...]

    def __call__(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The value of the expression at every row of ``X``, whose columns follow ``names``."""
        table = np.asarray(X, dtype=float)
        if table.ndim != 2 or table.shape[1] != len(self.names):
            raise DataError(f"X must have shape (n_samples, {len(self.names)}). Got {table.shape}.")
        columns = {name: table[:, k] for k, name in enumerate(self.names)}

        def leaf(token: float | str) -> Any:
            return columns[token] if isinstance(token, str) else np.float64(token)

        with np.errstate(all="ignore"):
            values = self.expression.fold(leaf, lambda op, args: op.value(*args))
        out = np.empty(len(table))
        out[:] = values
        return out


def to_numpy(expression: Expression, names: Sequence[str] | None = None) -> NumpyFunction:
    """A callable ``f(X)``; column ``k`` of X is ``names[k]``.

    Without ``names`` the variables must be ``x0, x1, …``, which name their columns.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> to_numpy(parse("x0 + 2*x1"))([[1.0, 10.0], [2.0, 20.0]]).tolist()
    [21.0, 42.0]
    """
    return NumpyFunction(expression, _columns(expression, names))


def to_numpy_source(expression: Expression, function_name: str = "f", names: Sequence[str] | None = None) -> str:
    """Python source of the same function, for use without this package.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> print(to_numpy_source(parse("x0 + 2*sin(x1)")))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(X):
        return np.zeros(len(X)) + (X[:, 0] + (2.0 * np.sin(X[:, 1])))
    """
    columns = _columns(expression, names)
    _check_identifier(function_name)
    lines, value = _statements(expression, lambda op: op.numpy, lambda k: f"X[:, {k}]", columns, "np.float64({})")
    body = "".join(f"    {name} = {text}\n" for name, text in lines)
    head = "".join(f"    # X[:, {k}]: {name!a}\n" for k, name in enumerate(columns) if name != f"x{k}")
    return f"import numpy as np\n\n\ndef {function_name}(X):\n{head}{body}    return np.zeros(len(X)) + {value}"


def to_cpp(expression: Expression, function_name: str = "f", names: Sequence[str] | None = None) -> str:
    """C++ source of ``double f(const double* x)``, where ``x[k]`` is the variable ``names[k]``.

    Examples
    --------
    >>> from sobolev_novelty.parsing import parse
    >>> print(to_cpp(parse("x0 + 2*sin(x1)")))
    #include <cmath>
    <BLANKLINE>
    double f(const double* x) {
        return (x[0] + (2.0 * std::sin(x[1])));
    }
    """
    columns = _columns(expression, names)
    _check_identifier(function_name)
    lines, value = _statements(expression, lambda op: op.cpp, lambda k: f"x[{k}]", columns)
    body = "".join(f"    const double {name} = {text};\n" for name, text in lines)
    head = "".join(f"    // x[{k}]: {name!a}\n" for k, name in enumerate(columns) if name != f"x{k}")
    signature = f"double {function_name}(const double* x)"
    return f"#include <cmath>\n\n{signature} {{\n{head}{body}    return {value};\n}}"


def _columns(expression: Expression, names: Sequence[str] | None) -> tuple[str, ...]:
    used = expression.variables
    if names is None:
        indices = [numbered_index(name) if name.startswith("x") and "_" not in name else None for name in used]
        odd = [name for name, index in zip(used, indices, strict=True) if index is None]
        if odd:
            raise ExpressionError(
                f"'{odd[0]}' does not say which column it is. Give 'names' in the order of the columns."
            )
        return tuple(f"x{k}" for k in range(1 + max((index for index in indices if index is not None), default=-1)))
    missing = [name for name in used if name not in names]
    if missing:
        raise ExpressionError(
            f"Variable '{missing[0]}' is not among the names: {', '.join(list(names)[:12]) or 'none'}."
        )
    return tuple(names)


def _check_identifier(function_name: str) -> None:
    if not _IDENTIFIER.match(function_name):
        raise ParameterError(f"'function_name' must be an identifier. Got {function_name!r}.")


def _statements(
    expression: Expression,
    template_of: Callable[[Operator], str],
    column: Callable[[int], str],
    names: Sequence[str],
    literal: str = "{}",
) -> tuple[list[tuple[str, str]], str]:
    """Assignments ``(name, text)`` and the final text.

    What nests too deeply, and what a template repeats, gets a name: the source stays linear in the expression's length.
    ``literal`` is put around numbers that meet only numbers.
    """
    position = {name: column(k) for k, name in enumerate(names)}
    lines: list[tuple[str, str]] = []

    def named(text: str) -> str:
        lines.append((f"t{len(lines)}", text))
        return lines[-1][0]

    def leaf(token: float | str) -> tuple[str, int]:
        if isinstance(token, str):
            return position[token], 0
        return (f"({token!r})" if repr(token).startswith("-") else repr(token)), _LITERAL

    def node(op: Operator, args: tuple[tuple[str, int], ...]) -> tuple[str, int]:
        template = template_of(op)
        if all(nesting == _LITERAL for _, nesting in args):
            args = tuple((literal.format(text), 0) for text, _ in args)
        texts = [
            named(text) if nesting > 0 and (nesting >= _MAX_NESTING or template.count(f"{{{k}}}") > 1) else text
            for k, (text, nesting) in enumerate(args)
        ]
        kept = [nesting for text, (original, nesting) in zip(texts, args, strict=True) if text is original]
        return template.format(*texts), 1 + max((0, *kept))

    return lines, expression.fold(leaf, node)[0]
