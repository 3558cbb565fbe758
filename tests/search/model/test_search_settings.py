"""Arguments of the regressor: how many, their fields, and the names of before."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sobolev_novelty as sn
from sobolev_novelty.search.model.settings import BEFORE

X = np.random.default_rng(0).uniform(1.0, 3.0, (60, 2))
Y = X[:, 0] * X[:, 1]
SMALL = sn.Budget(max_evaluations=200)


def test_the_regressor_has_at_most_twelve_named_parameters() -> None:
    named = inspect.signature(sn.SymbolicRegressor).parameters
    assert len(named) <= 12
    assert list(sn.SymbolicRegressor().get_params(deep=False)) == sorted(named)
    assert all(p.kind is not p.VAR_KEYWORD for p in named.values())


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"timeout": 2.0}, {"budget": sn.Budget(seconds=2.0)}),
        ({"timeout": 2.0, "budget": sn.Budget(9)}, {"budget": sn.Budget(9, 2.0)}),
        ({"timeout": 5.0, "budget": sn.Budget(seconds=3.0)}, {"budget": sn.Budget(seconds=3.0)}),
        ({"timeout": None}, {}),
        ({"max_complexity": 20, "max_depth": 4}, {"constraints": sn.Constraints(max_complexity=20, max_depth=4)}),
        ({"operator_costs": {"sin": 2}}, {"constraints": sn.Constraints(operator_costs={"sin": 2})}),
        ({"nesting": {"sin": {"sin": 0}}}, {"constraints": sn.Constraints(nesting={"sin": {"sin": 0}})}),
        ({"monotone": {"x0": "increasing"}}, {"constraints": sn.Constraints(monotone={"x0": "increasing"})}),
        ({"template": "f(x0)"}, {"constraints": sn.Constraints(template="f(x0)")}),
        (
            {"units": {"a": "m"}, "y_units": "J", "constant_units": False},
            {"units": sn.Units({"a": "m"}, target="J", constants=False)},
        ),
        ({"n_jobs": 2}, {"parallel": 2}),
        ({"n_jobs": 2, "islands": 1}, {"parallel": 2}),
        ({"n_jobs": 2, "islands": 2}, {"parallel": sn.Islands(2)}),
        ({"islands": 3}, {"parallel": sn.Islands(3)}),
    ],
    ids=" ".join,
)
def test_an_earlier_name_does_what_it_did_and_says_what_to_write(before: dict[str, Any], now: dict[str, Any]) -> None:
    plain = sn.SymbolicRegressor(**now)
    earlier = {name: value for name, value in before.items() if name in BEFORE}
    with pytest.warns(DeprecationWarning) as told:
        made = sn.SymbolicRegressor(**before)
    assert [w.filename for w in told] == [__file__] * len(earlier)
    assert {str(w.message).partition("write ")[2] for w in told} == {f"{BEFORE[name].spelling}." for name in earlier}
    with pytest.warns(DeprecationWarning):
        changed = sn.SymbolicRegressor().set_params(**before)
    for model in (made, changed, clone(made)):
        assert model.get_params(deep=False) == plain.get_params(deep=False)


def test_every_earlier_name_is_an_argument_that_the_regressor_no_longer_has() -> None:
    named, of_fit = (inspect.signature(f).parameters for f in (sn.SymbolicRegressor, sn.SymbolicRegressor.fit))
    assert not named.keys() & BEFORE.keys()
    assert all(name in of_fit if row.now == "fit" else row.now in named for name, row in BEFORE.items())


def test_what_fit_takes_now_may_still_be_given_before_and_survives_cloning() -> None:
    sigma = np.where(np.arange(60) % 2, 0.01, 5.0)
    y = Y + np.where(np.arange(60) % 2, 0.0, 4.0)
    with pytest.warns(DeprecationWarning, match=r"'sigma' is not an argument.*write fit\(X, y, sigma=…\)"):
        model = sn.SymbolicRegressor(budget=SMALL, random_state=0, sigma=sigma)
    here = sn.SymbolicRegressor(budget=SMALL, random_state=0).fit(X, y, sigma=sigma)
    assert str(clone(model).fit(X, y).expression_) == str(here.expression_)
    with pytest.raises(sn.ParameterError, match="'sigma' must be"):
        model.fit(X, y, sigma="wide")
    with pytest.warns(DeprecationWarning), pytest.raises(sn.ParameterError, match="'sigma' must be"):
        sn.SymbolicRegressor(budget=SMALL, sigma="wide").fit(X, y)  # type: ignore[call-arg]


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        sn.SymbolicRegressor(speed=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="Invalid parameter 'speed'"):
        sn.SymbolicRegressor().set_params(speed=1)
    with pytest.raises(sn.ParameterError, match="'constraints__size' must name a field of constraints: max_complexity"):
        sn.SymbolicRegressor().set_params(constraints__size=1)


def test_fields_of_values_are_parameters_too() -> None:
    model = sn.SymbolicRegressor(constraints=sn.Constraints(max_depth=5), budget=3.0)
    before = model.constraints
    model.set_params(constraints__max_complexity=9, budget__max_evaluations=50, units__target="J", novelty__order=0)
    assert before == sn.Constraints(max_depth=5)  # a frozen value is replaced
    assert model.constraints == sn.Constraints(max_complexity=9, max_depth=5)
    assert model.budget == sn.Budget(50, 3.0)
    deep = model.get_params()
    assert deep["constraints__max_depth"] == 5 and deep["units__target"] == "J" and deep["novelty__order"] == 0
    assert "constraints__max_depth" not in sn.SymbolicRegressor().get_params()


def test_a_grid_goes_over_a_field_alone_and_in_a_pipeline() -> None:
    grid = GridSearchCV(sn.SymbolicRegressor(budget=SMALL), {"constraints__max_complexity": [1, 9]}, cv=2).fit(X, Y)
    assert grid.best_params_ == {"constraints__max_complexity": 9}
    pipeline = make_pipeline(FunctionTransformer(), sn.SymbolicRegressor(budget=SMALL))
    pipeline.set_params(symbolicregressor__constraints__max_complexity=7)
    assert pipeline[-1].constraints == sn.Constraints(max_complexity=7)
    pipeline.fit(X, Y, symbolicregressor__sigma=0.1)
    assert str(pipeline[-1].expression_) in ("x0*x1", "x1*x0")


def test_nothing_is_said_where_no_earlier_name_is_used() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(sn.SymbolicRegressor(constraints=sn.Constraints(max_depth=5))).set_params(select="score")


def test_units_may_name_the_target_as_its_column() -> None:
    import pandas as pd

    frame = pd.DataFrame(X, columns=["v", "t"])
    plain = {"v": "m/s", "t": "s"}
    options: dict[str, Any] = {"budget": SMALL, "random_state": 0}
    way = pd.Series(Y, name="way")
    known = sn.SymbolicRegressor(units={**plain, "way": "m"}, **options).fit(frame, way)
    assert str(known.expression_) in ("t*v", "v*t")
    with pytest.raises(sn.ParameterError, match="names columns that are not there: path. Known: v, t, and way for the"):
        sn.SymbolicRegressor(units={**plain, "path": "m"}, **options).fit(frame, way)
    with pytest.raises(sn.ParameterError, match="has the target twice"):
        sn.SymbolicRegressor(units=sn.Units({**plain, "y": "m"}, target="m"), **options).fit(frame, Y)
