"""DynamicsRegressor: trajectories in, equations out, checked by integrating them."""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import sobolev_novelty as sn
from dynamical_systems import growth, predation, trajectory
from sobolev_novelty.dynamics.trajectories import as_trajectories
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.lab.bench.judging.terms import has_form

T = np.linspace(0.0, 10.0, 200)
SEARCH = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=300), operators=("add", "sub", "mul"), random_state=0)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    x = trajectory(predation, [1.0, 0.5], T, noise=0.01)
    return pd.DataFrame({"t": T, "prey": x[:, 0], "hunter": x[:, 1]})


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> sn.DynamicsRegressor:
    return sn.DynamicsRegressor(SEARCH).fit(table)


def test_the_equations_behind_a_noisy_trajectory_are_found(model: sn.DynamicsRegressor) -> None:
    names = {"prey": "x0", "hunter": "x1"}
    found = [expression.rename(names) for expression in model.expressions_.values()]
    X = np.random.default_rng(0).uniform(0.5, 3.0, (200, 2))
    truth = [sn.parse("1.3*x0 - 0.9*x0*x1"), sn.parse("0.7*x0*x1 - 1.1*x1")]
    assert [has_form(one, other, X)[0] for one, other in zip(found, truth, strict=True)] == [True, True]
    np.testing.assert_allclose(model.predict(X), [predation(0.0, row) for row in X], rtol=0.05, atol=0.05)


def test_the_equations_are_integrated_and_compared(model: sn.DynamicsRegressor, table: pd.DataFrame) -> None:
    (check,) = model.checks_
    assert check.is_followed and check.diverged_at is None and check.lost_at is None
    assert model.score(table) > 0.998
    later = np.linspace(0.0, 20.0, 50)
    x = model.integrate(later, [2.0, 1.0])
    np.testing.assert_allclose(x, trajectory(predation, [2.0, 1.0], later), rtol=0.1, atol=0.1)


def test_refined_constants_are_nearer_to_the_truth_than_those_fitted_to_rates(table: pd.DataFrame) -> None:
    rough = sn.DynamicsRegressor(SEARCH, derivative="finite", select="regressor", refine=False).fit(table)
    fine = sn.DynamicsRegressor(SEARCH).fit(table)
    truth = trajectory(predation, [2.0, 1.0], T)
    errors = [np.abs(one.integrate(T, [2.0, 1.0]) - truth).max() for one in (rough, fine)]
    assert errors[1] < 0.5 * errors[0]


def test_each_equation_has_its_report_and_the_model_its_words(model: sn.DynamicsRegressor) -> None:
    report = model.novelty_report("prey")
    assert {word for word in report.table["distinct"]} and len(report) == 2
    text = model.report()
    assert text.startswith("dprey/dt = ") and "dhunter/dt = " in text
    assert "Integrated: followed, misfit prey" in text
    assert list(model.equations_.columns) == [
        "state", "expression", "complexity", "r2_rate", "misfit", "min_novelty",
    ]  # fmt: skip
    assert model._repr_mimebundle_()["text/plain"] == str(model)
    with pytest.raises(sn.ParameterError, match="'state' must be one of prey, hunter. Got 'fox'"):
        model.novelty_report("fox")


def test_a_saved_model_integrates_as_before(model: sn.DynamicsRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    again = sn.DynamicsRegressor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.integrate(T, [1.0, 1.0]), model.integrate(T, [1.0, 1.0]))
    assert str(again) == str(model)
    with pytest.raises(sn.ParameterError, match="no training rows"):
        again.novelty_report("prey")
    (tmp_path / "other.json").write_text('{"format": "recipe"}')
    with pytest.raises(sn.DataError, match="does not hold equations of motion"):
        sn.DynamicsRegressor.load(tmp_path / "other.json")


ODD = [
    None, True, 0, -1, 10**9, 10**400, 1.5, float("nan"), float("inf"), "", "a", "1/0", "\ud800", [], [0], [[0] * 3],
    {}, {"a": 1}, {"a": "b"}, "x" * 100,
]  # fmt: skip


def _places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key in (
        content if isinstance(content, dict) else range(min(1, len(content))) if isinstance(content, list) else ()
    ):
        yield from _places(content[key], (*path, key))


@pytest.mark.filterwarnings("ignore")
def test_a_file_that_holds_anything_is_read_or_refused_in_one_line(model: sn.DynamicsRegressor, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    model.save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    n_refused = 0
    for place in _places(content):
        for value in ODD:
            made = copy.deepcopy(content)
            inner = made
            for step in place[:-1]:
                inner = inner[step]
            if place:
                inner[place[-1]] = value
            path.write_text(json.dumps(made if place else value), encoding="utf-8")
            try:
                again = sn.DynamicsRegressor.load(path)
                assert str(again)
                again.save(tmp_path / "again.json")
                again.predict(np.ones((3, len(again._inputs()))))
                again.integrate([0.0, 0.1], np.ones(len(again.states_)))
            except SobolevError as error:
                n_refused += 1
                assert len(str(error)) < 500
    assert n_refused > 200


def test_several_trajectories_come_as_a_list_or_with_a_column() -> None:
    starts = (0.5, 9.0)
    tables = [trajectory(growth, [x0], T[:100]) for x0 in starts]
    arrays = sn.DynamicsRegressor(SEARCH).fit(tables, [T[:100], T[:100]])
    frame = pd.concat([pd.DataFrame({"t": T[:100], "x0": x[:, 0], "run": k}) for k, x in enumerate(tables)])
    column = sn.DynamicsRegressor(SEARCH, trajectory="run").fit(frame)
    assert len(arrays.checks_) == len(column.checks_) == 2
    assert str(arrays) == str(column)
    assert all(check.is_followed for check in arrays.checks_)
    np.testing.assert_allclose(arrays.integrate([0.0, 40.0], [0.1])[-1], 7.3, rtol=1e-3)


def test_a_force_that_depends_on_time_is_found_where_time_is_an_input() -> None:
    x = trajectory(lambda t, x: [t - x[0]], [1.0], T)
    driven = sn.DynamicsRegressor(SEARCH, with_time=True, time="s").fit(x, T)
    assert driven.expressions_["x0"].variables and "s" in driven.expressions_["x0"].variables
    np.testing.assert_allclose(driven.predict([[2.0, 5.0]]), [[3.0]], rtol=1e-3)
    assert driven.checks_[0].is_followed


def test_a_divergence_is_said_with_its_time() -> None:
    t = np.linspace(0.0, 0.9, 60)
    model = sn.DynamicsRegressor(SEARCH).fit(1.0 / (1.0 - t)[:, None], t)  # x' = x²
    assert np.isfinite(model.integrate([0.0, 0.5], [1.0])).all()
    solution = model.solve([0.0, 0.5, 2.0], [1.0])
    assert solution.diverged_at is not None and 0.9 < solution.diverged_at < 1.1
    assert "x0 left its range" in solution.reason
    assert np.isnan(solution.x[-1]).all()
    beyond = np.linspace(0.0, 3.0, 60)
    (check,) = model.check(np.exp(beyond)[:, None], beyond)
    assert str(check).startswith("THE INTEGRATION DIVERGES at t = ")
    assert not check.is_followed
    assert model.score(np.exp(beyond)[:, None], beyond) == -np.inf


def test_a_state_that_rests_and_a_handful_of_points_are_fitted_too() -> None:
    t = np.linspace(0.0, 5.0, 60)
    resting = sn.DynamicsRegressor(SEARCH).fit(np.column_stack([np.exp(-t), np.full(60, 3.0)]), t)
    assert str(resting.expressions_["x1"]) == "0"
    assert resting.checks_[0].is_followed
    assert sn.DynamicsRegressor(SEARCH).fit(np.exp(-t[:8])[:, None], t[:8]).checks_[0].is_followed


def test_the_estimator_can_be_cloned_and_its_options_are_checked() -> None:
    assert clone(sn.DynamicsRegressor(SEARCH, derivative="local")).derivative == "local"
    x = np.linspace(0.0, 1.0, 20)[:, None]
    with pytest.raises(sn.ParameterError, match="'select' must be 'trajectory' or 'regressor'. Got 'best'"):
        sn.DynamicsRegressor(select="best").fit(x, 0.1)
    with pytest.raises(sn.ParameterError, match="'derivative' must be 'spline', 'local' or 'finite', or a function"):
        sn.DynamicsRegressor(derivative="cubic").fit(x, 0.1)


def test_tables_that_are_not_trajectories_are_refused_with_a_remedy() -> None:
    x = np.arange(20.0)[:, None]
    with pytest.raises(sn.DataError, match="'t' is missing"):
        as_trajectories(x)
    with pytest.raises(sn.DataError, match="times must increase; row 3 is not later than the row before it"):
        as_trajectories(x, np.where(np.arange(20) == 3, 0.0, np.arange(20.0)))
    with pytest.raises(sn.DataError, match="has no column 't'. Name the column of time"):
        as_trajectories(pd.DataFrame({"time": x[:, 0], "x": x[:, 0]}))
    with pytest.raises(sn.DataError, match="has 4 complete rows. At least 8 are needed"):
        as_trajectories(x[:4], 1.0)
    with pytest.raises(sn.DataError, match="'t' must have one value per row, 20. Got 3"):
        as_trajectories(x, [0.0, 1.0, 2.0])
    with pytest.raises(sn.DataError, match="Trajectory 1 has the states b, the first one a"):
        as_trajectories([pd.DataFrame({"t": x[:, 0], name: x[:, 0]}) for name in "ab"])


def test_rows_with_a_missing_value_are_left_out_and_said_so() -> None:
    x = np.arange(20.0)[:, None]
    x[4] = np.nan
    (one,), notes = as_trajectories(x, 0.5)
    assert len(one.t) == 19 and notes == ("The trajectory: 1 rows with a missing value were left out.",)


def test_the_optimizer_names_its_extra_where_pysindy_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysindy", None)
    monkeypatch.delitem(sys.modules, "sobolev_novelty.dynamics.pysindy_optimizer", raising=False)
    with pytest.raises(ImportError, match=r"pip install '\.\[dynamics\]'"):
        importlib.import_module("sobolev_novelty.dynamics.pysindy_optimizer")
