"""Expressions for other programs: NumPy, JAX, PyTorch, C, C++, Julia, Excel, LaTeX and SymPy.

Templates come from the operator table: JAX and PyTorch from NumPy's, C and Julia from C++'s. What a language lacks is
listed here. Names are hostile: they reach source code only as positions, in quoted comments or as safe identifiers.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.parameters import DIGITS, NOTHING, TREE, WORD, checked
from sobolev_novelty.errors import ExpressionError, ParameterError
from sobolev_novelty.language.convert.latex import to_latex
from sobolev_novelty.language.convert.source import (
    Dialect,
    check_identifier,
    columns_of,
    statements,
    to_cpp,
    to_numpy_source,
)
from sobolev_novelty.language.convert.symbolic import to_sympy

#: Excel refuses longer formulas.
_MAX_EXCEL = 8192

_EXCEL = {
    "add": "({0}+{1})", "sub": "({0}-{1})", "mul": "({0}*{1})", "div": "({0}/{1})", "pow": "POWER({0},{1})",
    "neg": "(-{0})", "sqrt": "SQRT({0})", "cbrt": "(SIGN({0})*POWER(ABS({0}),1/3))", "square": "POWER({0},2)",
    "cube": "POWER({0},3)", "inv": "(1/{0})", "exp": "EXP({0})", "log": "LN({0})", "log2": "LOG({0},2)",
    "log10": "LOG10({0})", "sin": "SIN({0})", "cos": "COS({0})", "tan": "TAN({0})", "cot": "(1/TAN({0}))",
    "arcsin": "ASIN({0})", "arccos": "ACOS({0})", "arctan": "ATAN({0})", "sinh": "SINH({0})", "cosh": "COSH({0})",
    "tanh": "TANH({0})", "abs": "ABS({0})", "sign": "SIGN({0})", "min": "MIN({0},{1})", "max": "MAX({0},{1})",
    "arcsinh": "ASINH({0})", "arccosh": "ACOSH({0})", "arctanh": "ATANH({0})", "log1p": "LN(1+{0})",
    "sigmoid": "(1/(1+EXP(-{0})))", "gpdiv": "IF(ABS({1})>0.001,{0}/{1},1)",
    "gplog": "IF(ABS({0})>0.001,LN(ABS({0})),0)", "gpinv": "IF(ABS({0})>0.001,1/{0},0)", "logabs": "LN(ABS({0}))",
    "sqrtabs": "SQRT(ABS({0}))", "powabs": "POWER(ABS({0}),{1})", "aq": "({0}/SQRT(1+POWER({1},2)))",
}  # fmt: skip

#: Functions that Julia refuses outside their domain, where every other language gives a number that is none.
_JULIA_GUARDED = re.compile(r"std::(sqrt|log|log2|log10|log1p|asin|acos|acosh|atanh|sin|cos|tan)\(")
_JULIA_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        baremodule begin break catch const continue do else elseif end export false finally for function global if
        import in isa let local macro module quote return struct true try using where while mutable abstract type NaN
        Inf pi or_nan abs exp cbrt sinh cosh tanh atan asinh isnan sqrt log log2 log10 log1p asin acos acosh atanh sin
        cos tan
        """,
    )
)
_C_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        auto break case char const continue default do double else enum extern float for goto if inline int long
        register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while x
        class new delete namespace template this try catch throw using virtual bool true false private public protected
        operator
        """,
    )
)
#: No function may be called so, in any of the languages.
_NOT_FUNCTIONS = _JULIA_WORDS | _C_WORDS | frozenset(keyword.kwlist)


@checked(expression=TREE, language=WORD, function_name=WORD, precision=DIGITS | NOTHING)
def export(
    expression: Expression,
    language: str,
    *,
    names: Sequence[str] | None = None,
    function_name: str = "f",
    precision: int | None = None,
) -> Any:
    """The expression in another language.

    ``language``: {"numpy", "jax", "torch", "c", "cpp", "julia", "excel", "latex", "sympy"}, numPy, JAX and PyTorch: a
    function of a table ``X``. C and C++: of an array ``x``. Julia: of one number per input, broadcast with ``f.(…)``.
    Excel: a formula of the cells ``A2, B2, …`` in the order of the columns. SymPy: an object whose text ``sympify``
    reads back; inputs whose names are not plain words, or words of SymPy's own, are renamed (``body mass`` is
    ``body_mass``, ``E`` is ``E_``). ``to_sympy`` keeps every name.
    ``names``: the columns, in their order; by default ``x0, x1, …``, or for Julia, LaTeX and SymPy whatever the
    variables are.
    ``precision``: significant digits of the constants; all of them by default.

    >>> from sobolev_novelty.language.parsing import parse
    >>> export(parse("2.12345*sin(x0) + x1**2"), "excel", precision=3)
    '=((2.12*SIN(A2))+POWER(B2,2.0))'
    """
    if language not in LANGUAGES:
        raise ParameterError(f"'language' must be one of {', '.join(LANGUAGES)}. Got {language!r}.")
    if function_name in _NOT_FUNCTIONS:
        raise ParameterError(f"'function_name' is a word of its own in some language. Got {function_name!r}.")
    if precision is not None:
        expression = expression.rounded(precision)
    return LANGUAGES[language](expression, names, function_name)


def safe_identifiers(names: Sequence[str], reserved: frozenset[str]) -> dict[str, str]:
    """Name -> identifier that a program may use: letters, digits and underscores, not reserved, all different.

    >>> safe_identifiers(["body mass", "body-mass", "2nd", "end"], frozenset(["end"]))
    {'body mass': 'body_mass', 'body-mass': 'body_mass_1', '2nd': 'x_2nd', 'end': 'end_'}
    """
    made: dict[str, str] = {}
    taken = {name for name in names if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name not in reserved}
    for name in names:
        if name in taken:
            made[name] = name
            continue
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
        plain = plain if plain[:1].isalpha() else f"x_{plain}"
        plain = f"{plain}_" if plain in reserved else plain
        candidate, count = plain, 0
        while candidate in taken:
            count += 1
            candidate = f"{plain}_{count}"
        taken.add(candidate)
        made[name] = candidate
    return made


def _to_jax(expression: Expression, names: Sequence[str] | None, function_name: str) -> str:
    dialect = Dialect(lambda op: op.numpy.replace("np.", "jnp."), "X[:, {}]".format, "jnp.asarray({})")
    body, value = _python_body(expression, names, function_name, dialect)
    head = "import jax.numpy as jnp\n\n\n"
    return f"{head}def {function_name}(X):\n{body}    return jnp.zeros(X.shape[0]) + {value}"


def _to_torch(expression: Expression, names: Sequence[str] | None, function_name: str) -> str:
    literal = "torch.as_tensor({}, dtype=X.dtype, device=X.device)"
    dialect = Dialect(_torch_template, "X[:, {}]".format, literal, lambda template: "torch." in template)
    body, value = _python_body(expression, names, function_name, dialect)
    return f"import torch\n\n\ndef {function_name}(X):\n{body}    return torch.zeros_like(X[:, 0]) + {value}"


def _torch_template(op: Operator) -> str:
    if op.name == "cbrt":
        return "(torch.sign({0}) * torch.abs({0}) ** (1 / 3))"
    if op.name == "sign":  # that of PyTorch is 0 for nan
        return "torch.where(torch.isnan({0}), {0}, torch.sign({0}))"
    return op.numpy.replace("np.", "torch.")


def _python_body(
    expression: Expression, names: Sequence[str] | None, function_name: str, dialect: Dialect
) -> tuple[str, str]:
    columns = columns_of(expression, names)
    check_identifier(function_name)
    lines, value = statements(expression, dialect, columns)
    head = "".join(f"    # X[:, {k}]: {name!a}\n" for k, name in enumerate(columns) if name != f"x{k}")
    return head + "".join(f"    {name} = {text}\n" for name, text in lines), value


def _to_c(expression: Expression, names: Sequence[str] | None, function_name: str) -> str:
    source = to_cpp(expression, function_name, names)
    code = source.replace("#include <cmath>", "#include <math.h>", 1)
    # Comments hold quoted names, and a name may say std:: too.
    lines = (line if line.lstrip().startswith("//") else _c_line(line) for line in code.split("\n"))
    return "\n".join(lines)


def _c_line(line: str) -> str:
    return line.replace("std::abs", "fabs").replace("std::", "")


def _to_julia(expression: Expression, names: Sequence[str] | None, function_name: str) -> str:
    check_identifier(function_name)
    inputs = columns_of(expression, expression.variables if names is None else names)
    if names is None:
        inputs = tuple(sorted(inputs, key=lambda name: (len(name), name)))
    safe = safe_identifiers(inputs, _JULIA_WORDS | {function_name})
    # Identifiers made safe begin with a letter, so that these cannot be one.
    dialect = Dialect(_julia_template, lambda k: safe[inputs[k]], temporary="_t{}")
    lines, value = statements(expression, dialect, inputs)
    head = "".join(f"    # {safe[name]}: {name!a}\n" for name in inputs if safe[name] != name)
    body = "".join(f"    {name} = {text}\n" for name, text in lines)
    guard = "or_nan(g, x...) = try g(x...) catch error; error isa DomainError ? NaN : rethrow() end\n\n"
    arguments = ", ".join(safe[name] for name in inputs)
    code = f"function {function_name}({arguments})\n{head}{body}    return {value}\nend"
    return guard + code if "or_nan(" in code else code


def _julia_template(op: Operator) -> str:
    template = _JULIA_GUARDED.sub(r"or_nan(\1, ", op.cpp)
    return template.replace("std::pow(", "or_nan(^, ").replace("std::", "")


def _to_excel(expression: Expression, names: Sequence[str] | None, function_name: str) -> str:
    columns = columns_of(expression, names)
    dialect = Dialect(lambda op: _EXCEL[op.name], _cell, max_nesting=None)
    _, value = statements(expression, dialect, columns)
    if len(value) >= _MAX_EXCEL:
        raise ExpressionError(
            f"The formula has {len(value)} characters; Excel takes {_MAX_EXCEL - 1}. Export the terms one by one."
        )
    return f"={value}"


def _cell(column: int) -> str:
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}2"


def _to_sympy(expression: Expression, names: Sequence[str] | None, function_name: str) -> Any:
    import sympy

    # ``sympify`` runs what it reads, and takes E, I, beta or min for its own: the symbols must be read as symbols.
    taken = frozenset(sympy.__all__) | frozenset(dir(builtins)) | frozenset(keyword.kwlist)
    inputs = list(dict.fromkeys([*(names or ()), *expression.variables]))
    return to_sympy(expression.rename(safe_identifiers(inputs, taken)))


LANGUAGES: Mapping[str, Callable[[Expression, Sequence[str] | None, str], Any]] = {
    "numpy": lambda expression, names, function_name: to_numpy_source(expression, function_name, names),
    "jax": _to_jax,
    "torch": _to_torch,
    "c": _to_c,
    "cpp": lambda expression, names, function_name: to_cpp(expression, function_name, names),
    "julia": _to_julia,
    "excel": _to_excel,
    "latex": lambda expression, names, function_name: to_latex(expression),
    "sympy": _to_sympy,
}
