"""Random trees, and the same trees in the classes of other packages."""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator

UNARY = ("sin", "cos", "exp", "log")
BINARY = ("add", "sub", "mul", "div")


def random_tokens(rng: np.random.Generator, size: int, names: list[str], constant: float = 0.3) -> list[Any]:
    """A tree of exactly ``size`` nodes over + − × ÷ sin cos exp log."""
    if size <= 1:
        return [float(rng.normal(scale=2.0))] if rng.random() < constant else [names[rng.integers(len(names))]]
    if size == 2 or rng.random() < 0.35:
        return [OPERATORS[UNARY[rng.integers(4)]], *random_tokens(rng, size - 1, names, constant)]
    left = int(rng.integers(1, size - 1))
    return [
        OPERATORS[BINARY[rng.integers(4)]],
        *random_tokens(rng, left, names, constant),
        *random_tokens(rng, size - 1 - left, names, constant),
    ]


def random_trees(seed: int, n: int, names: list[str], size: int = 15) -> list[Expression]:
    """Trees of about ``size`` nodes (size ± size/3)."""
    rng = np.random.default_rng(seed)
    return [
        Expression(random_tokens(rng, int(rng.integers(size - size // 3, size + size // 3 + 1)), names))
        for _ in range(n)
    ]


def random_terms(seed: int, n: int, names: list[str], size: int = 8) -> list[Expression]:
    """Terms of exactly ``size`` nodes that read a variable."""
    rng = np.random.default_rng(seed)
    terms: list[Expression] = []
    while len(terms) < n:
        term = Expression(random_tokens(rng, size, names))
        if term.variables:
            terms.append(term)
    return terms


def operon_trees(expressions: list[Expression], hashes: dict[str, int]) -> list[Any]:
    """Operon stores a tree with its first operand next to the root: our prefix order, reversed."""
    import pyoperon

    table = {name: getattr(pyoperon.Node, name.capitalize()) for name in (*UNARY, *BINARY)}
    trees = []
    for expression in expressions:
        nodes = []
        for token in reversed(expression.tokens):
            if isinstance(token, Operator):
                nodes.append(table[token.name]())
            elif isinstance(token, float):
                nodes.append(pyoperon.Node.Constant(token))
            else:
                node = pyoperon.Node.Variable(1.0)
                node.HashValue = node.CalculatedHashValue = hashes[token]
                nodes.append(node)
        trees.append(pyoperon.Tree(nodes).UpdateNodes())
    return trees


def gplearn_programs(expressions: list[Expression], names: list[str]) -> list[Any]:
    """gplearn has no exp; it is made. Its log and division are protected."""
    from gplearn._program import _Program
    from gplearn.functions import _function_map, make_function

    def exponential(x: Any) -> Any:
        with np.errstate(over="ignore"):
            return np.where(np.abs(x) < 100.0, np.exp(x), 0.0)

    functions = dict(_function_map) | {"exp": make_function(function=exponential, name="exp", arity=1)}
    columns = {name: k for k, name in enumerate(names)}
    programs = []
    for expression in expressions:
        program = [functions[t.name] if isinstance(t, Operator) else columns.get(t, t) for t in expression.tokens]
        programs.append(
            _Program(
                function_set=list(functions.values()),
                arities={1: [], 2: []},
                init_depth=(2, 6),
                init_method="half and half",
                n_features=len(names),
                const_range=(-1.0, 1.0),
                metric="mse",
                p_point_replace=0.05,
                parsimony_coefficient=0.0,
                random_state=np.random.RandomState(0),
                program=program,
            )
        )
    return programs


def lambdified(expressions: list[Expression], names: list[str], *, with_gradient: bool = False) -> dict[int, Any]:
    """SymPy's translation, done beforehand: its cost is not measured. Index -> function, where SymPy finds one."""
    import sympy

    from sobolev_novelty.language.convert import to_sympy

    functions = {}
    for i, expression in enumerate(expressions):
        form = to_sympy(expression)
        known = {symbol.name: symbol for symbol in form.free_symbols}
        symbols = [known.get(name, sympy.Symbol(name)) for name in names]
        outputs = [form, *(sympy.diff(form, symbol) for symbol in symbols)] if with_gradient else [form]
        if sympy.Tuple(*outputs).has(sympy.zoo, sympy.nan, sympy.I):  # a subtree of constants outside the real numbers
            continue
        functions[i] = sympy.lambdify(symbols, outputs, "numpy", cse=with_gradient)
    return functions
