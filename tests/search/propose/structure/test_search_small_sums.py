"""Sums of elementary terms, nearly all tried."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty import SymbolicRegressor
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS
from sobolev_novelty.search.fit.fits import Fitter
from sobolev_novelty.search.fit.forms import split_form
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.propose.structure.small_sums import small_sums
from sobolev_novelty.search.propose.subproblem import Variable


def forms(X: np.ndarray, y: np.ndarray, operators: tuple[str, ...] = DEFAULT_OPERATORS) -> list[Expression]:
    variables = [Variable(Expression.of(f"x{j}"), column) for j, column in enumerate(X.T)]
    with np.errstate(all="ignore"):
        return [form for batch in small_sums(variables, y, operators) for form in batch]


def least_error(X: np.ndarray, y: np.ndarray, found: list[Expression]) -> float:
    fits = Fitter(Rows.of(X, y)).fit([split_form(form) for form in found], 30)
    return min(fit.nmse for fit in fits)


@pytest.fixture(scope="module")
def decay() -> np.ndarray:
    """Time, and what decays with it: along a trajectory everything is a function of everything."""
    t = np.sort(np.random.default_rng(0).uniform(0.0, 50.0, 150))
    return np.column_stack([t, 0.2 + 0.8 * np.exp(-0.05 * t)])


LAWS = {
    "root and square": lambda t, a: 0.7 * np.cbrt(a) - 0.2 * a**2,
    "a rate that fades": lambda t, a: 0.2 * np.cbrt(a) - 0.7 * a * np.exp(-0.078 * t),
    "a wave of unknown length": lambda t, a: -0.56 * a**2 + 0.13 * np.sin(0.76 * a),
    "an exponent": lambda t, a: 0.1 * a + 0.1 * a**2.6,
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_along_a_trajectory(name: str, decay: np.ndarray):
    y = LAWS[name](*decay.T)
    assert least_error(decay, y, forms(decay, y)) < 1e-18


def test_magnitudes_of_an_input_with_both_signs():
    X = np.random.default_rng(1).normal(size=(200, 3))
    y = (
        -1.2 * X[:, 0] ** 3
        - 0.7 * np.cbrt(np.abs(X[:, 2]))
        - X[:, 0] * np.exp(-np.abs(X[:, 0]))
        + 0.3 * np.sin(X[:, 1])
    )
    assert least_error(X, y, forms(X, y)) < 1e-20


def test_writes_with_the_operators_that_are_allowed(decay: np.ndarray):
    y = LAWS["root and square"](*decay.T)
    allowed = {"add", "sub", "mul", "neg", "square", "exp", "log", "inv"}
    model = SymbolicRegressor(operators=sorted(allowed), budget=Budget(1500, None), random_state=0).fit(decay, y)
    for text in model.equations_["expression"]:
        assert {token.name for token in parse(str(text)).tokens if isinstance(token, Operator)} <= allowed


@pytest.mark.parametrize("n_rows", [1, 2, 5, 8, 13])
def test_few_rows_are_not_explained_by_many_terms(n_rows: int):
    rng = np.random.default_rng(n_rows)
    X, y = rng.normal(size=(n_rows, 2)), rng.normal(size=n_rows)
    assert all(len(split_form(form).terms) <= n_rows // 6 for form in forms(X, y))


def test_an_input_that_is_zero_somewhere_or_huge():
    x = np.linspace(0.0, 1.0, 60)
    y = np.sqrt(x) + 1e300
    assert isinstance(forms(np.column_stack([x, 1e200 * (x + 1.0)]), y), list)
