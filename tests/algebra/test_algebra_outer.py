"""Outer functions: written, evaluated, differentiated and undone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from algebra_cases import allowed_operators, operators_of
from sobolev_novelty.algebra.outer import OUTERS, filled, slope_at, value_at
from sobolev_novelty.algebra.writing import respelled
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS

S = np.linspace(0.1, 0.9, 50)


@pytest.mark.parametrize("name", OUTERS)
def test_an_outer_function_undoes_what_it_writes(name: str) -> None:
    outer = OUTERS[name]
    written = outer.write(Expression.of("x0"))
    t = evaluate(written, S[:, None])
    np.testing.assert_allclose(outer.undo(t), S, rtol=1e-9)
    np.testing.assert_allclose(value_at(outer.template, S), t, rtol=1e-14)


@pytest.mark.parametrize("name", OUTERS)
def test_the_slope_of_an_outer_function_is_its_derivative(name: str) -> None:
    written = OUTERS[name].write(Expression.of("x0"))
    step = 1e-6
    difference = (evaluate(written, (S + step)[:, None]) - evaluate(written, (S - step)[:, None])) / (2 * step)
    np.testing.assert_allclose(slope_at(OUTERS[name].template, S), difference, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "t"),
    [("sqrt", -1.0), ("exp", -1.0), ("log", 1e3), ("arcsin", 2.0), ("arccos", -0.5), ("inverse", 0.0), ("sin", 1.1),
     ("1/(exp - 1)", -1.0), ("inverse square", 0.0), ("exp + 1", 1.0), ("exp - 1", -1.5), ("tanh", 1.0)],
)  # fmt: skip
def test_a_target_outside_the_range_is_undone_to_nothing_finite_at_that_row_only(name: str, t: float) -> None:
    inside = value_at(OUTERS[name].template, np.array([0.5]))
    undone = OUTERS[name].undo(np.append(inside, t))
    np.testing.assert_allclose(undone[0], 0.5)
    assert not np.isfinite(undone[1])


@given(allowed_operators)
def test_an_allowed_outer_function_can_be_written(operators: tuple[str, ...]) -> None:
    for outer in OUTERS.values():
        written = respelled(outer.write(Expression.of("x0")), operators)
        assert outer.is_allowed(operators) == (written is not None)
        assert written is None or operators_of([written]) <= set(operators)


def test_the_default_operators_allow_all_of_them() -> None:
    assert all(outer.is_allowed(DEFAULT_OPERATORS) for outer in OUTERS.values())


def test_a_template_is_filled_once() -> None:
    template = OUTERS["1/(exp - 1)"].template
    assert filled(template, parse("x0*s")) == parse("inv(exp(x0*s) - 1)")
