"""Dimensional analysis: searches among pure numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.problems.tasks import task_units, whitebox_task, whitebox_tasks
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.search.problem.constraints import Constraints, Units
from sobolev_novelty.search.problem.dimensions import Dimensions
from sobolev_novelty.search.problem.natural_units import NaturalUnits, natural_units

FEYNMAN = [task.name for task in whitebox_tasks() if task.name.startswith("feynman")]
UNITS = {"m": "kg", "v": "m/s", "c": "m/s", "t": "s"}


def relativistic(n: int = 400, noise: float = 0.0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    low, high = [1.0, 0.1, 3.0, 1.0], [5.0, 2.5, 6.0, 2.0]
    X = pd.DataFrame(rng.uniform(low, high, (n, 4)), columns=list(UNITS))
    y = (X["m"] * X["c"] ** 2 / np.sqrt(1 - (X["v"] / X["c"]) ** 2)).to_numpy()
    return X, y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=n)


def chosen(X: pd.DataFrame, y: np.ndarray, target: str = "J", *, is_free: bool = False) -> NaturalUnits | None:
    dimensions = Dimensions.of(Units({name: UNITS[name] for name in X}, target, is_free), tuple(X))
    return natural_units(dimensions, Rows.of(X.to_numpy(), y, None, tuple(X)))


@pytest.mark.parametrize("name", FEYNMAN)
def test_a_law_goes_there_and_back(name: str) -> None:
    task, units = whitebox_task(name), task_units(name)
    X, y = task.sample(50, np.random.default_rng(0))
    names = tuple(units["units"])
    dimensions = Dimensions.of(Units(units["units"], units["y_units"], constants=False), names)
    natural = natural_units(dimensions, Rows.of(X, y, None, names))
    if natural is None:
        return
    rows = natural.applied(Rows.of(X, y, None, names))
    law = natural.read(task.positional_expression)
    assert set(law.variables) <= set(natural.names)
    np.testing.assert_allclose(evaluate(law, rows.sample), rows.y, rtol=1e-8)
    np.testing.assert_allclose(evaluate(natural.written(law), X), y, rtol=1e-8)
    assert dimensions.allows(natural.written(law))


def test_most_of_feynmans_laws_lose_inputs() -> None:
    lost = []
    for name in FEYNMAN:
        task, units = whitebox_task(name), task_units(name)
        X, y = task.sample(20, np.random.default_rng(0))
        dimensions = Dimensions.of(Units(units["units"], units["y_units"], constants=False), tuple(units["units"]))
        natural = natural_units(dimensions, Rows.of(X, y, None, tuple(units["units"])))
        lost.append(0 if natural is None else len(natural.ones))
    assert np.mean(np.array(lost) > 0) > 0.7


def test_inputs_that_leave_simple_numbers_are_one_and_never_a_pure_one() -> None:
    X, y = relativistic()
    natural = chosen(X, y)
    assert natural is not None
    assert natural.ones == ("m", "c", "t")
    assert natural.names == ("v",)
    pure = X.assign(v=X["v"] / X["c"])
    dimensions = Dimensions.of(Units({"m": "kg", "c": "m/s"}, "J", constants=False), ("m", "v", "c"))
    found = natural_units(dimensions, Rows.of(pure[["m", "v", "c"]].to_numpy(), y, None, ("m", "v", "c")))
    assert found is not None
    assert found.ones == ("m", "c")


def test_least_squares_is_that_of_the_user() -> None:
    X, y = relativistic(noise=0.1)
    natural = chosen(X, y)
    assert natural is not None
    rows = natural.applied(Rows.of(X.to_numpy(), y, None, tuple(X)))
    form = evaluate(parse("1 + 3*v"), rows.sample)
    own = np.sum(rows.weights * form * rows.y) / np.sum(rows.weights * form**2)
    back = evaluate(natural.written(parse("1 + 3*v")), Sample(X.to_numpy().T.copy(), tuple(X)))
    assert own == pytest.approx(back @ y / (back @ back), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "is_free", "target"),
    [({}, True, "J"), ({"m": 0.0}, False, "J"), ({}, False, "A"), ({"c": -1.0, "v": -1.0}, False, "J")],
)
def test_there_are_none_where_they_would_not_hold(change: dict[str, float], is_free: bool, target: str) -> None:
    X, y = relativistic(20)
    assert chosen(X.assign(**change), y, target, is_free=is_free) is None


def test_nothing_is_left_of_a_power_law() -> None:
    X, y = relativistic(20)
    assert chosen(X[["m", "c"]], y) is None


def test_a_search_with_units_gives_equations_that_make_sense_in_the_users_names() -> None:
    X, y = relativistic(noise=0.01)
    units = Units(UNITS, "J", constants=False)
    options = {"units": units, "random_state": 0, "budget": Budget(max_evaluations=400)}
    model = SymbolicRegressor(**options).fit(X, y)
    dimensions = Dimensions.of(units, tuple(UNITS))
    assert all(dimensions.allows(e) for e in model.equations_["expression"] if e.variables)
    assert set(model.expression_.variables) == {"m", "v", "c"}
    assert model.score(X, y) > 0.999
    # Limits hold for the user's own forms.
    limits = Constraints(nesting={"sin": {"sin": 0}})
    again = SymbolicRegressor(guesses=[model.expression_], constraints=limits, **options).fit(X, y)
    assert all(dimensions.allows(e) for e in again.equations_["expression"] if e.variables)
