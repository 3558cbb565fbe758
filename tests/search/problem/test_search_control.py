"""What a user may ask of equations beyond a small error: costs, nesting, depth, monotonicity, losses, templates."""

from __future__ import annotations

import csv
import logging
import math
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor

import sobolev_novelty as sn
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.kernels.evaluate import derivatives, values
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.loss_fit import refined
from sobolev_novelty.search.problem.control import Control, flatter
from sobolev_novelty.search.problem.loss import Loss, Rating
from sobolev_novelty.search.problem.template import Template
from strategies import expressions

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (150, 2))
WAVY = np.sin(X[:, 0] + np.sin(2.0 * X[:, 1]))
ENGINES = ("genetic", "mcts")


def fitted(
    y: np.ndarray, engine: str = "genetic", n: int = 600, table: Any = X, **options: Any
) -> sn.SymbolicRegressor:
    """A fit; limits on equations are given side by side with the other arguments."""
    names = [field.name for field in fields(sn.Constraints)]
    options["constraints"] = sn.Constraints(**{name: options.pop(name) for name in names if name in options})
    budget = sn.Budget(max_evaluations=n)
    return sn.SymbolicRegressor(engine, budget=budget, random_state=0, **options).fit(table, y)


def nested(expression: Expression, outer: str, inner: str) -> bool:
    """Whether an operator lies anywhere inside another: written anew, to check the module by."""
    for place, token in enumerate(expression.tokens):
        if isinstance(token, Operator) and token.name == outer:
            inside = expression.subtree(place).tokens[1:]
            if any(isinstance(t, Operator) and t.name == inner for t in inside):
                return True
    return False


# --- nesting and depth


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_that_comes_back_breaks_the_limits_on_nesting(engine: str) -> None:
    guess = ["sin(x0 + sin(2*x1))"]
    free = fitted(WAVY, engine, guesses=guess)
    assert nested(free.expression_, "sin", "sin")
    limits = {"sin": {"sin": 0, "cos": 0}, "cos": {"sin": 0, "cos": 0}}
    model = fitted(WAVY, engine, nesting=limits, guesses=guess)
    for e in [*model.equations_["expression"], *model.rivals_["expression"]]:
        assert not any(nested(e, a, b) for a in ("sin", "cos") for b in ("sin", "cos")), str(e)
    assert model.score(X, WAVY) > 0.5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_nothing_that_comes_back_is_deeper_than_allowed(engine: str, scale: float) -> None:
    model = fitted(WAVY, engine, table=X * scale + 3.0 * scale, max_depth=5, n=100)
    assert max(e.depth for e in model.equations_["expression"]) <= 5
    assert len(model.equations_) > 1


def test_nesting_counts_the_operators_on_one_path() -> None:
    control = Control.of((), sn.Constraints(nesting={"cos": {"cos": 2}}))
    assert control.shaped(parse("cos(cos(cos(x)))")) is not None
    assert control.shaped(parse("cos(cos(x) + cos(x) + cos(x) + cos(x))")) is not None
    assert control.shaped(parse("1 + cos(2*cos(3*cos(4*cos(x))))")) is None


@given(expressions())
@settings(max_examples=60, deadline=None)
def test_a_flatter_sum_has_the_same_values_and_is_not_deeper(expression: Expression) -> None:
    flat = flatter(expression)
    assert flat.depth <= expression.depth + 1  # a sum of negative terms alone gets its sign in front
    table = {name: np.linspace(0.7, 1.3, 7) for name in expression.variables} or {"x0": np.linspace(0.7, 1.3, 7)}
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(flat(**table), expression(**table), rtol=1e-6, atol=1e-9)


# --- costs


def test_costs_count_in_the_front_and_in_the_limit() -> None:
    costs = {"sin": 6, "exp": 4}
    model = fitted(WAVY, operator_costs=costs, max_complexity=25)
    for cost, e in zip(model.equations_["complexity"], model.equations_["expression"], strict=True):
        names = [t.name for t in e.tokens if isinstance(t, Operator)]
        assert cost == len(e) + 5 * names.count("sin") + 3 * names.count("exp") <= 25
    assert model.equations_["complexity"].is_monotonic_increasing


def test_a_dear_operator_gives_way_to_a_cheap_one_that_does_the_same() -> None:
    y = np.sin(X[:, 0])
    cheap = fitted(y, operator_costs={"cos": 30}, operators=["add", "mul", "sin", "cos"])
    dear = fitted(y, operator_costs={"sin": 30}, operators=["add", "mul", "sin", "cos"])
    assert "sin(" in str(cheap.expression_) and "cos(" not in str(cheap.expression_)
    assert "cos(" in str(dear.expression_) and "sin(" not in str(dear.expression_)


# --- losses


def outliers() -> tuple[np.ndarray, np.ndarray]:
    law = 2.0 * X[:, 0] ** 2 + 1.0
    rng = np.random.default_rng(1)
    y = law + 0.05 * rng.normal(size=len(law))
    y[rng.choice(len(y), 25, replace=False)] += 40.0
    return law, y


@pytest.mark.parametrize("loss", ["absolute", "huber", lambda y, p: np.abs(y - p)], ids=["absolute", "huber", "own"])
def test_a_robust_loss_finds_the_law_behind_outliers(loss: Any) -> None:
    law, y = outliers()
    squared = fitted(y, n=300)
    model = fitted(y, n=300, loss=loss)
    own, theirs = (float(np.sqrt(np.mean((m.predict(X) - law) ** 2))) for m in (model, squared))
    assert own < 0.1
    assert theirs > 2.0


@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_the_choice_is_made_by_the_loss(loss: str) -> None:
    rng = np.random.default_rng(5)
    table = rng.uniform(0.5, 3.0, (200, 2))
    noise = rng.normal(size=200)
    y = 2.0 * table[:, 0] ** 2 + 1.0 + 0.05 * noise
    y[rng.choice(200, 30, replace=False)] += 40.0  # a straight line is hardly worse by the size of the loss
    assert str(fitted(y, n=400, table=table, loss=loss).expression_).count("square(x0)") == 1
    assert not fitted(noise, n=400, table=table, loss=loss).expression_.variables


def test_the_table_shows_the_mean_of_the_loss() -> None:
    _, y = outliers()
    model = fitted(y, n=200, loss="absolute")
    for index, loss in enumerate(model.equations_["loss"]):
        np.testing.assert_allclose(loss, np.mean(np.abs(y - model.predict(X, index))), rtol=1e-9)


def test_a_loss_that_returns_a_mean_is_followed_too() -> None:
    def pinball(y: np.ndarray, p: np.ndarray) -> float:
        return float(np.mean(np.maximum(0.9 * (y - p), -0.1 * (y - p))))

    y = 3.0 * X[:, 0] + np.random.default_rng(2).normal(size=len(X))
    model = fitted(y, n=60, loss=pinball, operators=["add", "mul"])
    assert 0.8 < np.mean(y <= model.predict(X)) < 0.97


def test_refined_constants_are_never_worse_and_near_the_best() -> None:
    _, y = outliers()
    rows = Rows.of(X, y)
    for loss in (Loss("absolute"), Loss("huber"), Loss("own", lambda y, p: np.abs(y - p) ** 1.2)):
        rating = Rating.of(loss, rows)
        assert rating is not None
        form = parse("1.9*x0**2 + 3")
        found, error = refined(form, rating)
        before = rating.error(values([form], rows.sample)[0])
        truth = rating.error(values([parse("2*x0**2 + 1")], rows.sample)[0])
        assert error <= before and error <= 1.01 * truth
        np.testing.assert_allclose(error, rating.error(values([found], rows.sample)[0]), rtol=1e-6)


def test_a_loss_of_ones_own_needs_one_island() -> None:
    model = sn.SymbolicRegressor(loss=lambda y, p: (y - p) ** 2, parallel=sn.Islands(2))
    with pytest.raises(sn.ParameterError, match="'loss' is a function of this process"):
        model.fit(X, WAVY)


# --- monotonicity


@pytest.mark.parametrize("engine", ENGINES)
def test_equations_rise_and_fall_as_they_must(engine: str) -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.uniform(0.2, 3.0, (80, 2)), columns=["x", "T"])
    x, T = table["x"].to_numpy(), table["T"].to_numpy()
    y = x / (1.0 + x) - 0.3 * T + 0.1 * rng.normal(size=80)
    model = fitted(y, engine, table=table, monotone={"x": "increasing", "T": "decreasing"})
    dense = rng.uniform(table.min(), table.max(), (3000, 2)).T
    for e in model.equations_["expression"]:
        slopes = derivatives([e], Sample(dense, ("x", "T")), order=1)[0, 1:]
        assert np.nanmin(slopes[0]) >= -1e-9 and np.nanmax(slopes[1]) <= 1e-9, str(e)
    assert model.score(table, y) > 0.7


def test_a_pole_between_the_rows_is_not_monotone() -> None:
    control = Control.of(("x0",), sn.Constraints(monotone={"x0": "decreasing"}))
    x = np.array([[-2.0, -1.5, 1.5, 2.0]])
    assert not control.is_monotone(parse("1/x0"), Sample(x, ("x0",)))
    assert control.is_monotone(parse("1/x0"), Sample(x + 4.0, ("x0",)))


def test_a_loss_that_writes_to_its_arguments_changes_nothing() -> None:
    def careless(target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        prediction -= target
        target[:] = 0.0
        return np.square(prediction, out=prediction)

    def careful(target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return (target - prediction) ** 2

    y = np.ascontiguousarray(2.0 * X[:, 0] ** 2 + X[:, 1])
    before = X.copy(), y.copy()
    options = {"budget": sn.Budget(max_evaluations=300), "random_state": 0}
    found = [sn.SymbolicRegressor(loss=loss, **options).fit(X, y).expression_ for loss in (careless, careful)]
    assert found[0] == found[1]
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


# --- templates


XY = pd.DataFrame(np.random.default_rng(4).uniform(0.5, 3.0, (150, 2)), columns=["x", "y"])
x, y = XY["x"].to_numpy(), XY["y"].to_numpy()


@pytest.mark.parametrize(
    ("template", "target"),
    [
        ("a*f(x) + g(y)", 2.0 * np.exp(-0.7 * x) + np.sin(2.0 * y) + 1.0),
        ("f(x)*g(y)", (x**2 + 1.0) * np.exp(-0.5 * y)),
        ("exp(f(x)) + g(x - y)", np.exp(-(x**2) / 2.0) + (x - y) ** 3),
        ("f(x)/(1 + g(y))", np.sqrt(x) / (1.0 + y**2)),
        ("sin(w*x) + f(y)", np.sin(3.0 * x) + np.log(y)),
    ],
)
def test_the_functions_of_a_template_are_found(template: str, target: np.ndarray) -> None:
    model = fitted(target, n=4000, table=XY, template=template)
    assert model.score(XY, target) > 1.0 - 1e-9


@pytest.mark.parametrize("text", ["a", "a1", "_", "f(", "2f(", "a ", "f(x)+", "`", "sin", "f" + " " * 999])
def test_a_long_template_is_read_or_refused_in_no_time(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(SobolevError) as refused:
        Template.of(text * (50_000 // len(text)), ("x", "y"))
    assert time.process_time() - begin < 2.0 and len(str(refused.value)) < 500


def test_functions_are_found_before_spaces() -> None:
    calls = Template.of("2*f1 (x) + sin(x)*g(y)", ("x", "y")).calls
    assert [call.function for call in calls.values()] == ["f1", "g"]


def test_no_equation_leaves_the_template() -> None:
    model = fitted(x * y + x + 0.1 * y, table=XY, template="f(x) + g(y)", n=1500)
    for e in model.equations_["expression"]:
        mixed = derivatives([e], Sample(np.array([x, y]), ("x", "y")), order=2)[0, 4]  # xx, xy, yy
        assert np.abs(mixed).max() < 1e-9, str(e)


def test_a_template_works_for_columns_far_from_one() -> None:
    table = XY * 1e5
    model = fitted(x**2 * np.exp(-0.5 * y), table=table, template="f(x)*g(y)", n=3000)
    assert model.score(table, x**2 * np.exp(-0.5 * y)) > 0.9999


def test_a_template_says_what_it_is_a_function_of() -> None:
    template = Template.of("a*f(x, y) + exp(g(x))", ("x", "y"))
    assert template.constants == ("a",) and [c.function for c in template.calls.values()] == ["f", "g"]
    assert len(template.linear_calls()) == 1
    (call,) = Template.of("1 + f(log(x + (y)), y)", ("x", "y")).calls.values()
    assert [str(e) for e in call.arguments] == ["log(x + y)", "y"]


# --- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operator_costs": {"sine": 3}}, "'operator_costs' names 'sine', which is not an operator. Known: "),
        ({"operator_costs": {"sin": 0}}, "'operator_costs' must be a whole number of at least 1 for 'sin'. Got 0."),
        ({"operator_costs": ["sin"]}, "'operator_costs' must be a dictionary such as"),
        ({"nesting": {"sin": 0}}, "'nesting' must be a dictionary such as"),
        ({"nesting": {"sin": {"sin": -1}}}, "'nesting' must be a whole number of at least 0 for 'sin' in 'sin'"),
        ({"max_depth": 0}, "'max_depth' must be a whole number of at least 1, or None. Got 0."),
        ({"monotone": {"z": "increasing"}}, "'monotone' names 'z', which is not a column. Known: x0, x1."),
        ({"monotone": {"x0": "up"}}, "'monotone' must be 'increasing' or 'decreasing' for 'x0'. Got 'up'."),
        ({"loss": "hubber"}, "'loss' must be one of squared, absolute, huber, or a function"),
        ({"loss": lambda y, p: y[:3]}, r"'loss' must return one value per row, 150 of them, or their mean."),
        ({"loss": lambda y, p: y.nothing}, "'loss' failed with AttributeError"),
        ({"loss": lambda y, p: -((y - p) ** 2)}, "'loss' must be finite and smallest where the prediction is"),
        ({"template": "x0 + 1"}, "'template' has no unknown function. Got 'x0 [+] 1'. Write it as in"),
        ({"template": "f(x0) + f(x1)"}, "'template' uses 'f' twice"),
        ({"template": "a*f(x0) + a"}, "'template' uses 'a' twice"),
        ({"template": "f(z)"}, "'template' gives f the argument 'z', which is not made of columns. Known: x0, x1."),
        ({"template": "f(x0) +"}, "'template' cannot be read"),
        ({"template": "1 + f(x0"}, "'template' has a bracket that is not closed"),
        ({"template": "f(g(x0))"}, "'template' gives f an argument that cannot be read"),
        ({"template": 3}, "'template' must be text of at most 2,000 characters, or None. Got 3."),
        ({"template": "f(x0)", "guesses": ["x0"]}, "'guesses' cannot be combined with 'template'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_errors_name_the_argument_the_value_and_the_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sn.ParameterError, match=message):
        fitted(WAVY, n=50, **options)


# --- settings travel


def test_settings_survive_cloning_and_a_file(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "operator_costs": {"sin": 3}, "nesting": {"exp": {"exp": 0}}, "max_depth": 8,
        "monotone": {"x0": "increasing"}, "template": "f(x0) + g(x1)",
    }  # fmt: skip
    model = fitted(X[:, 0] + 0.3 * X[:, 1] ** 2, n=300, loss="huber", **options)
    options = {"constraints": sn.Constraints(**options), "loss": "huber"}
    assert {name: clone(model).get_params()[name] for name in options} == options
    model.save(tmp_path / "model.json")
    loaded = sn.SymbolicRegressor.load(tmp_path / "model.json")
    assert {name: loaded.get_params()[name] for name in options} == options
    assert loaded.equations_["complexity"].tolist() == model.equations_["complexity"].tolist()
    np.testing.assert_allclose(loaded.predict(X), model.predict(X))


# --- logging, several targets


def test_a_callback_writes_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (tmp_path / "log.csv").open("w", newline="") as file:
        log = csv.writer(file)

        def note(progress: Any) -> None:
            log.writerow([progress.n_evaluations, progress.best.nmse, progress.best.expression])
            logging.getLogger("search").info("%d %s", progress.n_evaluations, progress.best.expression)

        with caplog.at_level(logging.INFO, logger="search"):
            budget = sn.Budget(max_evaluations=300)
            sn.SymbolicRegressor(budget=budget, random_state=0).fit(X, WAVY, callback=note)
    rows = list(csv.reader((tmp_path / "log.csv").read_text().splitlines()))
    assert len(rows) == len(caplog.records) > 0
    assert all(math.isfinite(float(row[1])) for row in rows)


def test_several_targets_go_through_scikit_learn() -> None:
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=200), random_state=0)
    model.set_params(constraints__nesting={"sin": {"sin": 0}})
    several = MultiOutputRegressor(model).fit(X, np.column_stack([X[:, 0] ** 2, 3.0 * X[:, 1]]))
    assert [str(m.expression_) for m in several.estimators_] == ["square(x0)", "3*x1"]


def test_a_dear_operator_does_not_bring_in_one_that_is_not_allowed():
    x = np.random.default_rng(0).uniform(0.5, 3.0, (200, 2))
    operators = ["add", "mul", "sin", "cos"]
    model = sn.SymbolicRegressor(
        operators=operators, constraints=sn.Constraints(operator_costs={"sin": 10}),
        budget=sn.Budget(max_evaluations=600), random_state=0,
    ).fit(x, np.sin(x[:, 0]))  # fmt: skip
    assert {token.name for token in model.expression_.tokens if isinstance(token, Operator)} <= set(operators)
