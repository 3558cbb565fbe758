"""The operator table against SymPy and against differences."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy

from sobolev_novelty.core.operators import OPERATORS, SPELLINGS, Operator, operator
from sobolev_novelty.errors import ExpressionError

ROWS = tuple(OPERATORS.values())
POSITIVE = (0.2, 3.0)
DOMAINS = {
    "sqrt": (POSITIVE,), "log": (POSITIVE,), "log2": (POSITIVE,), "log10": (POSITIVE,), "pow": (POSITIVE, (-2.0, 3.0)),
    "arcsin": ((-0.9, 0.9),), "arccos": ((-0.9, 0.9),), "arctanh": ((-0.9, 0.9),), "arccosh": ((1.1, 4.0),),
    "log1p": ((-0.8, 3.0),), "tan": ((-1.3, 1.3),), "cot": ((0.2, 1.4),),
}  # fmt: skip
STEP = 1e-6


def samples(op: Operator, n_samples: int = 25) -> list[np.ndarray]:
    """Points inside the domain and away from kinks, one array for each operand."""
    rng = np.random.default_rng(op.opcode)
    default = ((-2.5, 2.5),) * op.arity
    columns = [rng.uniform(low, high, n_samples) for low, high in DOMAINS.get(op.name, default)]
    return [np.where(np.abs(column) < 0.05, 0.5, column) for column in columns]


def sympy_values(formula: sympy.Expr, symbols: list[sympy.Symbol], points: list[np.ndarray]) -> np.ndarray:
    rows = [dict(zip(symbols, map(float, row), strict=True)) for row in zip(*points, strict=True)]
    return np.array([float(formula.doit().subs(row).evalf(30)) for row in rows])


def sympy_form(op: Operator) -> tuple[sympy.Expr, list[sympy.Symbol]]:
    symbols = list(sympy.symbols("a b", real=True))[: op.arity]
    return op.sympy(sympy, *symbols), symbols


@pytest.mark.parametrize("op", ROWS, ids=repr)
def test_values_equal_sympys(op: Operator) -> None:
    formula, symbols = sympy_form(op)
    points = samples(op)
    np.testing.assert_allclose(op.value(*points), sympy_values(formula, symbols, points), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("op", ROWS, ids=repr)
def test_first_and_second_derivatives_equal_sympys(op: Operator) -> None:
    formula, symbols = sympy_form(op)
    points = samples(op)
    value = op.value(*points)
    for variable, first in zip(symbols, op.first, strict=True):
        expected = sympy_values(sympy.diff(formula, variable), symbols, points)
        np.testing.assert_allclose(first(*points, value), expected, rtol=1e-10, atol=1e-12)
    pairs = [(j, k) for j in range(op.arity) for k in range(j, op.arity)]
    for (j, k), second in zip(pairs, op.second, strict=True):
        expected = sympy_values(sympy.diff(formula, symbols[j], symbols[k]), symbols, points)
        np.testing.assert_allclose(second(*points, value), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("op", ROWS, ids=repr)
def test_derivatives_equal_central_differences(op: Operator) -> None:
    points = samples(op)

    def shifted(k: int, step: float) -> list[np.ndarray]:
        return [column + step * (j == k) for j, column in enumerate(points)]

    def difference(function, k: int) -> np.ndarray:
        return (function(*shifted(k, STEP)) - function(*shifted(k, -STEP))) / (2 * STEP)

    def partial(j: int):
        return lambda *operands: op.first[j](*operands, op.value(*operands))

    value = op.value(*points)
    for k in range(op.arity):
        np.testing.assert_allclose(op.first[k](*points, value), difference(op.value, k), rtol=1e-5, atol=1e-7)
    pairs = [(j, k) for j in range(op.arity) for k in range(j, op.arity)]
    for (j, k), second in zip(pairs, op.second, strict=True):
        np.testing.assert_allclose(second(*points, value), difference(partial(j), k), rtol=1e-5, atol=1e-7)


ANALYTIC = [op for op in ROWS if op.name in {
    "add", "sub", "mul", "div", "pow", "neg", "sqrt", "square", "cube", "inv", "exp", "log", "log2", "log10",
    "sin", "cos", "tan", "cot", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
    "log1p", "sigmoid", "aq",
}]  # fmt: skip


@pytest.mark.parametrize("op", ANALYTIC, ids=repr)
def test_first_derivatives_equal_the_complex_step(op: Operator) -> None:
    points = samples(op)
    for k, first in enumerate(op.first):
        stepped = [column + 1e-30j * (j == k) for j, column in enumerate(points)]
        np.testing.assert_allclose(
            first(*points, op.value(*points)), np.imag(op.value(*stepped)) / 1e-30, rtol=1e-12, atol=1e-14
        )


def test_protected_operators_switch_inside_the_guard() -> None:
    tiny = np.array([0.0, 5e-4, -5e-4])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(OPERATORS["gpdiv"].value(np.full(3, 7.0), tiny), 1.0)
        np.testing.assert_array_equal(OPERATORS["gplog"].value(tiny), 0.0)
        np.testing.assert_array_equal(OPERATORS["gpinv"].value(tiny), 0.0)
        for name in ("gplog", "gpinv"):
            op = OPERATORS[name]
            np.testing.assert_array_equal(op.first[0](tiny, op.value(tiny)), 0.0)


def test_powers_of_zero_and_of_negative_numbers_have_their_derivatives() -> None:
    op = OPERATORS["pow"]
    a, b = np.array([0.0, 0.0, 0.0, -2.0]), np.array([0.0, 1.0, 2.0, 3.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(op.first[0](a, b, op.value(a, b)), [0.0, 1.0, 0.0, 12.0])
        np.testing.assert_array_equal(op.second[0](a, b, op.value(a, b)), [0.0, 0.0, 2.0, -12.0])


def test_opcodes_are_positions_and_spellings_are_unique() -> None:
    assert [op.opcode for op in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(SPELLINGS) == sum(1 + len(op.aliases) for op in ROWS)
    assert all(len(op.first) == op.arity and len(op.second) == op.arity * (op.arity + 1) // 2 for op in ROWS)


def test_operators_survive_pickling_as_the_same_object() -> None:
    assert all(pickle.loads(pickle.dumps(op)) is op for op in ROWS)


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(ExpressionError, match="'sine' is not an operator"):
        operator("sine")
