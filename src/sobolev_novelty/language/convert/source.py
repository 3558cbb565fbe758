"""To NumPy and to C++: a callable that interprets the expression, and source code for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression, numbered_index
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.parameters import DIFFERENT_NAMES, TREE, WORD, check, checked
from sobolev_novelty.errors import DataError, ExpressionError, ParameterError

#: Deeper text is cut into statements: compilers bound how deeply brackets may nest.
MAX_NESTING = 20
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
        out = np.empty(len(table))
        out[:] = _interpreted(self.expression, {name: table[:, k] for k, name in enumerate(self.names)})
        return out


def values_of(expression: Expression, table: Any, named: Mapping[str, Any]) -> Any:
    """What a call of an expression gives: see :meth:`Expression.__call__`."""
    columns = _columns_of_table(table) | dict(named)
    missing = [name for name in expression.variables if name not in columns]
    if missing:
        given = ", ".join(map(str, list(columns)[:12])) or "nothing"
        raise ExpressionError(f"The expression needs '{missing[0]}'. Got {given}.")
    used = {name: np.asarray(columns[name], dtype=float) for name in expression.variables}
    # Constants have as many values as the table has rows.
    shapes = [np.shape(column) for column in columns.values()]
    values = np.broadcast_to(_interpreted(expression, used), np.broadcast_shapes(*shapes))
    return float(values) if values.ndim == 0 else np.array(values)


def _columns_of_table(table: Any) -> dict[str, Any]:
    if table is None:
        return {}
    if isinstance(table, Mapping):
        return dict(table)
    if hasattr(table, "columns"):
        return {str(name): table[name] for name in table.columns}
    array = np.asarray(table, dtype=float)
    if array.ndim != 2:
        raise DataError(f"A table must have two dimensions, samples × features. Got shape {array.shape}.")
    return {f"x{k}": array[:, k] for k in range(array.shape[1])}


def _interpreted(expression: Expression, columns: Mapping[str, npt.NDArray[np.float64]]) -> Any:
    def leaf(token: float | str) -> Any:
        return columns[token] if isinstance(token, str) else np.float64(token)

    with np.errstate(all="ignore"):
        return expression.fold(leaf, lambda op, args: op.value(*args))


@checked(expression=TREE)
def to_numpy(expression: Expression, names: Sequence[str] | None = None) -> NumpyFunction:
    """A callable ``f(X)``; column ``k`` of X is ``names[k]``.

    Without ``names`` the variables must be ``x0, x1, …``, which name their columns.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> to_numpy(parse("x0 + 2*x1"))([[1.0, 10.0], [2.0, 20.0]]).tolist()
    [21.0, 42.0]
    """
    return NumpyFunction(expression, columns_of(expression, names))


def to_numpy_source(expression: Expression, function_name: str = "f", names: Sequence[str] | None = None) -> str:
    """Python source of the same function, for use without this package.

    >>> from sobolev_novelty.language.parsing import parse
    >>> print(to_numpy_source(parse("x0 + 2*sin(x1)")))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def f(X):
        return np.zeros(len(X)) + (X[:, 0] + (2.0 * np.sin(X[:, 1])))
    """
    columns = columns_of(expression, names)
    check_identifier(function_name)
    dialect = Dialect(lambda op: op.numpy, "X[:, {}]".format, "np.float64({})")
    lines, value = statements(expression, dialect, columns)
    body = "".join(f"    {name} = {text}\n" for name, text in lines)
    head = "".join(f"    # X[:, {k}]: {name!a}\n" for k, name in enumerate(columns) if name != f"x{k}")
    return f"import numpy as np\n\n\ndef {function_name}(X):\n{head}{body}    return np.zeros(len(X)) + {value}"


@checked(expression=TREE, function_name=WORD)
def to_cpp(expression: Expression, function_name: str = "f", names: Sequence[str] | None = None) -> str:
    """C++ source of ``double f(const double* x)``, where ``x[k]`` is the variable ``names[k]``.

    Examples
    --------
    >>> from sobolev_novelty.language.parsing import parse
    >>> print(to_cpp(parse("x0 + 2*sin(x1)")))
    #include <cmath>
    <BLANKLINE>
    double f(const double* x) {
        return (x[0] + (2.0 * std::sin(x[1])));
    }
    """
    columns = columns_of(expression, names)
    check_identifier(function_name)
    lines, value = statements(expression, Dialect(lambda op: op.cpp, "x[{}]".format), columns)
    body = "".join(f"    const double {name} = {text};\n" for name, text in lines)
    head = "".join(f"    // x[{k}]: {name!a}\n" for k, name in enumerate(columns) if name != f"x{k}")
    signature = f"double {function_name}(const double* x)"
    return f"#include <cmath>\n\n{signature} {{\n{head}{body}    return {value};\n}}"


def columns_of(expression: Expression, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of all columns; without ``names`` the variables must be ``x0, x1, …``."""
    used = expression.variables
    if names is not None:
        check("names", names, DIFFERENT_NAMES)
    else:
        indices = [numbered_index(name) if name.startswith("x") and "_" not in name else None for name in used]
        odd = [name for name, index in zip(used, indices, strict=True) if index is None]
        if odd:
            raise ExpressionError(
                f"'{odd[0]}' does not say which column it is. Give 'names' in the order of the columns.",
                arguments=["names"],
            )
        return tuple(f"x{k}" for k in range(1 + max((index for index in indices if index is not None), default=-1)))
    missing = [name for name in used if name not in names]
    if missing:
        raise ExpressionError(
            f"Variable '{missing[0]}' is not among the names: {', '.join(list(names)[:12]) or 'none'}."
        )
    return tuple(names)


def check_identifier(function_name: str) -> None:
    """Refuse what no language takes as the name of a function."""
    if not _IDENTIFIER.match(function_name):
        raise ParameterError(f"'function_name' must be an identifier. Got {function_name!r}.")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one language writes an expression."""

    template_of: Callable[[Operator], str]  # callable ``Operator -> str``
    column: Callable[[int], str]  # callable ``int -> str``: the variable at this position
    literal: str = "{}"  # put around numbers that meet only numbers
    #: callable ``str -> bool``: whether this template wants ``literal`` around every number.
    wraps_literals: Callable[[str], bool] = lambda template: False
    temporary: str = "t{}"  # names of intermediate results
    #: Deeper text is cut into statements; None where the language has no statements.
    max_nesting: int | None = MAX_NESTING


def statements(expression: Expression, dialect: Dialect, names: Sequence[str]) -> tuple[list[tuple[str, str]], str]:
    """Assignments ``(name, text)`` and the final text.

    What nests too deeply, and what a template repeats, gets a name: the source stays linear in the expression's length.
    """
    own = next((token for token in expression.tokens if isinstance(token, Operator) and token.is_own), None)
    if own is not None:
        raise ExpressionError(
            f"'{own.name}' is an own operator, a Python function: it cannot be written in another language. Call the "
            "expression or use to_numpy here; LaTeX and SymPy take its name."
        )
    position = {name: dialect.column(k) for k, name in enumerate(names)}
    lines: list[tuple[str, str]] = []

    def named(text: str) -> str:
        lines.append((dialect.temporary.format(len(lines)), text))
        return lines[-1][0]

    def leaf(token: float | str) -> tuple[str, int]:
        if isinstance(token, str):
            return position[token], 0
        return (f"({token!r})" if repr(token).startswith("-") else repr(token)), _LITERAL

    def node(op: Operator, args: tuple[tuple[str, int], ...]) -> tuple[str, int]:
        template = dialect.template_of(op)
        if dialect.wraps_literals(template) or all(nesting == _LITERAL for _, nesting in args):
            args = tuple((dialect.literal.format(text), 0) if n == _LITERAL else (text, n) for text, n in args)
        limit = dialect.max_nesting
        texts = [
            named(text)
            if limit is not None and nesting > 0 and (nesting >= limit or template.count(f"{{{k}}}") > 1)
            else text
            for k, (text, nesting) in enumerate(args)
        ]
        kept = [nesting for text, (original, nesting) in zip(texts, args, strict=True) if text is original]
        return template.format(*texts), 1 + max((0, *kept))

    return lines, expression.fold(leaf, node)[0]
