"""Columns in units an engine can work with, and equations back in the user's."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty import SymbolicRegressor
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.problem.units import Units
from strategies import expressions

NAMES = ("x0", "x1", "x2")
RNG = np.random.default_rng(0)
PASCAL, YEAR, METRE = RNG.uniform(1e5, 5e5, 300), RNG.uniform(1990.0, 2020.0, 300), RNG.uniform(1e-6, 5e-6, 300)


def test_ordinary_columns_are_left_alone() -> None:
    X = np.stack([RNG.uniform(1, 5, 50), RNG.normal(0, 300, 50), np.zeros(50)])
    units = Units.of(X, NAMES)
    assert units.by_name == {}
    assert units.applied(X, NAMES) is X


def test_large_and_small_columns_become_of_order_one_and_years_count_from_a_round_one() -> None:
    X = np.stack([PASCAL, YEAR, METRE])
    units = Units.of(X, NAMES)
    assert units.by_name["x0"] == (0.0, 1e5)
    assert units.by_name["x1"] in ((2000.0, 1.0), (2010.0, 1.0))
    np.testing.assert_allclose(units.by_name["x2"], (0.0, 1e-6))
    assert np.abs(units.applied(X, NAMES)).max() < 30.0


@given(
    expressions(names=NAMES, max_leaves=6),
    st.sampled_from([(0.0, 1e6), (0.0, 1e-4), (2000.0, 1.0), (3e7, 1e4)]),
)
def test_the_two_ways_are_inverse(expression: Expression, unit: tuple[float, float]) -> None:
    units = Units({"x0": unit, "x2": (0.0, 1e3)})
    Z = RNG.uniform(0.5, 2.0, (30, 3))
    X = Z * [unit[1], 1.0, 1e3] + [unit[0], 0.0, 0.0]
    there, back = units.to_user(expression), units.to_search(units.to_user(expression))
    expected = evaluate(expression, Z)
    for found in (evaluate(there, X), evaluate(back, Z)):
        both = np.isfinite(expected) & np.isfinite(found) & (np.abs(expected) < 1e8)
        np.testing.assert_allclose(found[both], expected[both], rtol=1e-5, atol=1e-5)


def test_laws_in_awkward_units_are_found_and_written_in_them(tmp_path) -> None:
    X = pd.DataFrame({"pressure": PASCAL, "year": YEAR, "width": METRE})
    y = 3.0 * np.exp(-PASCAL / 2e5) + 1.0
    model = SymbolicRegressor(budget=Budget(max_evaluations=3000), random_state=0)
    path = tmp_path / "run.json"
    model.fit(X, y, checkpoint=path)
    assert model.expression_.variables == ("pressure",)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-9)
    kept = [parse(text) for text in json.loads(path.read_text())["equations"]]  # in the user's units, not yet spelled
    assert any(np.allclose(evaluate(e, X), y, rtol=1e-9, atol=0.0) for e in kept)
    assert model.novelty_report(X).nu.min() > 0.0
    line = SymbolicRegressor(budget=Budget(max_evaluations=800), random_state=0).fit(X, 2.0 * YEAR + 7.0)
    assert str(line.expression_) == "2*year + 7"


def test_guesses_are_in_the_users_units() -> None:
    y = 5.0 * np.sqrt(PASCAL) + YEAR
    model = SymbolicRegressor(guesses=["sqrt(x0) + x1"], budget=Budget(max_evaluations=2), random_state=0)
    X = np.column_stack([PASCAL, YEAR])
    np.testing.assert_allclose(model.fit(X, y).predict(X), y, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-60, 1e60])
def test_columns_of_any_size_give_an_equation(scale: float) -> None:
    X = RNG.uniform(1.0, 9.0, (40, 1)) * scale
    model = SymbolicRegressor(budget=Budget(max_evaluations=200), random_state=0).fit(X, np.arange(40.0))
    assert np.isfinite(model.expression_.constants).all()


def test_a_factor_beyond_the_floats_stays_with_its_input() -> None:
    units = Units({"x0": (0.0, 1e60)})
    high = parse("cube(square(x0))")
    X = RNG.uniform(0.5, 2.0, (10, 1)) * 1e60
    np.testing.assert_allclose(evaluate(units.to_user(high), X), (X[:, 0] / 1e60) ** 6)
