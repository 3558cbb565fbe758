"""Which equation is reported: the one that the rows pay for."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.score import merged_rows
from sobolev_novelty.errors import ExtrapolationWarning, ParameterError
from sobolev_novelty.kernels.evaluate import values
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.price.noise import Noise
from sobolev_novelty.search.choose.choice import Choice
from sobolev_novelty.search.choose.chooser import Chooser
from sobolev_novelty.search.choose.criteria import findings
from sobolev_novelty.search.choose.refits import plain_equations
from sobolev_novelty.search.contract.engine import Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.display import lack_of_fit
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.search.model.rules import by_rule, cross_validated
from sobolev_novelty.search.model.tables import rivals_table

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 2.0, (200, 2))
Y = 3.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.1 * RNG.normal(size=200)
NAMES = ("x0", "x1")
TEXTS = (
    "3*x0", "3.01*x0 + 0.98*sin(3.02*x1)", "3*x0 + sin(3*x1) + 0.01/(x1 - 1.234)", "1.5", "2.9*x0 + 0.4*x1",
    "3.2*x0 - 0.11*x0**2 + 0.97*sin(3*x1)", "exp(x0) + cos(2.8*x1)",
)  # fmt: skip


def choice_of(
    texts: tuple[str, ...], X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, **options: object
) -> Choice:
    names = options.pop("names", tuple(f"x{k}" for k in range(X.shape[1])))
    noise = options.pop("noise", "auto")
    X, y, weights = merged_rows(X, y, weights)
    rows = Rows.of(X, y, weights, names).ordered  # type: ignore[arg-type]
    chooser = Chooser(rows, lambda e: True, lambda e: e.complexity, is_fitted=False, **options)  # type: ignore[arg-type]
    return chooser.choice([parse(text) for text in texts], str(noise))


class Proposing(Engine[State]):
    """Proposes what it is given."""

    def __init__(self, forms: tuple[str, ...] = (), guidance: SobolevGuidance | None = None) -> None:
        self.forms = forms
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        return State()

    def propose(self, state: State, rng: np.random.Generator) -> list[Expression]:
        return [parse(form) for form in self.forms]

    def observe(self, state: State, scored: list) -> State:
        return state


def fitted(*forms: str, y: np.ndarray = Y, **options: object) -> SymbolicRegressor:
    noise = {name: options.pop(name) for name in ("sigma", "x_sigma") if name in options}
    options = {"budget": Budget(max_evaluations=50), "random_state": 0} | options
    return SymbolicRegressor(Proposing(forms), **options).fit(X, y, **noise)  # type: ignore[arg-type]


# --- the choice is a function of what the rows say


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_order_of_rows_and_columns_changes_nothing_at_all(seed: int):
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(Y)), rng.permutation(2)
    before = choice_of(TEXTS, X, Y)
    after = choice_of(TEXTS, X[rows][:, columns], Y[rows], names=tuple(NAMES[k] for k in columns))
    assert after.chosen.expression == before.chosen.expression
    assert [p.nats for p in after.priced] == [p.nats for p in before.priced]


def test_every_row_twice_at_half_weight_changes_nothing_at_all():
    before = choice_of(TEXTS, X, Y)
    after = choice_of(TEXTS, np.repeat(X, 2, axis=0), np.repeat(Y, 2), np.full(400, 0.5))
    assert [(p.expression, p.nats) for p in after.priced] == [(p.expression, p.nats) for p in before.priced]


@pytest.mark.parametrize(("factor", "shift"), [(1000.0, 0.0), (1e-6, 0.0), (1.0, 50.0)])
def test_units_and_a_shift_of_the_target_keep_a_clear_leader(factor: float, shift: float):
    before = choice_of(TEXTS, X, Y)
    assert before.priced[1].nats - before.chosen.nats > 0.0
    texts = tuple(f"{factor}*({text}) + {shift}" if shift else f"{factor}*({text})" for text in TEXTS)
    after = choice_of(texts, X, factor * Y + shift)
    expected = factor * values([before.chosen.expression], after.rows.sample)[0] + shift
    np.testing.assert_allclose(after.chosen.values, expected, rtol=0.02, atol=0.05 * factor)


def test_an_idle_column_more_keeps_a_clear_leader():
    before = choice_of(TEXTS, X, Y)
    wide = np.column_stack([X, RNG.normal(size=200)])
    assert choice_of(TEXTS, wide, Y).chosen.expression == before.chosen.expression


# --- what is chosen


def test_the_law_is_chosen_and_not_what_is_shorter_longer_or_has_a_pole():
    assert str(choice_of(TEXTS, X, Y).chosen.expression.rounded(1)) == "3*x0 + sin(3*x1)"


def test_a_column_that_is_not_needed_goes():
    texts = ("0.51*x0*x1 + 0.01*x2", "0.4*x0 + 0.3*x1 + 0.02*x2 + 0.01*x3 - 0.7")
    rng = np.random.default_rng(1)
    wide = rng.uniform(1.0, 5.0, (250, 4))
    y = 0.5 * wide[:, 0] * wide[:, 1] + 2.0 * rng.normal(size=250)
    assert set(choice_of(texts, wide, y).chosen.expression.variables) == {"x0", "x1"}


def test_a_power_law_over_decades_is_told_from_its_neighbour_under_relative_noise():
    rng = np.random.default_rng(2)
    wide = 10.0 ** rng.uniform(0.0, 3.0, (200, 2))
    y = wide[:, 0] / wide[:, 1] ** 2 * (1.0 + 0.01 * rng.normal(size=200))
    found = choice_of(("112*x0/x1", "x0/x1**2", "x0/x1**2 + 1e-3"), wide, y)
    assert found.noise.power == 1.0
    assert str(found.chosen.expression) == "x0/x1**2"


def test_noise_is_not_explained():
    rng = np.random.default_rng(5)
    y = rng.normal(size=40)
    found = choice_of(("sin(7.1*x0)", "1.2*x0*x1", "x0 + x1**2"), rng.uniform(size=(40, 2)), y)
    assert not found.chosen.expression.variables or found.priced[0].nats < 0.0
    plain = plain_equations(found.rows, 60, ("add", "mul"))
    texts = tuple(map(str, plain))
    assert not choice_of(texts, found.rows.X, found.rows.y).chosen.expression.variables


def test_of_equations_that_are_one_function_the_shortest_is_kept():
    found = choice_of(("x0*(2*x1)/2*3 + 0", "3*(x0*x1)", "3*x1*x0"), X, 3.0 * X[:, 0] * X[:, 1])
    assert len(found.priced) == 1
    assert found.chosen.expression.complexity == 5


def test_a_callable_sees_the_table_and_returns_a_row():
    model = fitted("x0", "x0 + sin(3*x1)", select=lambda equations: int(equations["complexity"].idxmin()))
    assert model.equations_["chosen"].tolist()[0] is True
    with pytest.raises(ParameterError, match="'select' must return the index of a row"):
        fitted("x0", select=lambda equations: 99)


@pytest.mark.parametrize("rule", ["price", "score", "distinct", "validation", "one-se"])
def test_every_rule_takes_an_equation_of_the_table(rule: str):
    assert by_rule(choice_of(TEXTS, X, Y), rule).expression.variables == ("x0", "x1")
    model = fitted("x0", "x0 + sin(3*x1)", select=rule)
    assert model.equations_["chosen"].sum() == 1


def test_a_rule_that_is_not_known_is_refused_before_the_search():
    with pytest.raises(
        ParameterError, match="'select' must be 'price', 'score', 'distinct', 'validation' or 'one-se', or a function"
    ):
        fitted("x0", select="best")


def test_no_row_of_the_table_is_shorter_and_fits_better_than_the_chosen_one():
    table = fitted("x0", "x0 + sin(3*x1)", "x0 + 1/(x1 - 1.234)").equations_
    (own,) = table[table["chosen"]].itertuples()
    better = table[(table["complexity"] <= own.complexity) & (table["loss"] <= own.loss) & ~table["chosen"]]
    assert better.empty


# --- findings


def rows_of(X: np.ndarray, y: np.ndarray) -> Rows:
    return Rows.of(X, y).ordered


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("1/(x0 + 1)", []), ("1/(x0 - 0.5001)**2", ["pole"]), ("sqrt(x0 - 0.0123)", ["pole"]), ("exp(x0)", []),
        ("tan(3*x0)", ["pole"]),  # the rows lie on both sides of it
        ("log(x0)", []), ("1/(x0 + x1 - 0.1)", ["pole"]), ("x0/(x1 + 0.01)", []),
    ],
)  # fmt: skip
def test_a_pole_is_found_where_no_row_shows_it(text: str, kinds: list[str]):
    line = np.linspace(0.02, 1.0, 60)
    X = np.column_stack([line, line])  # the inputs go together: x0 + x1 is never small
    X[:, 1] = np.maximum(0.2 - line, 0.05) if "x1 - " in text else X[:, 1]
    rows = rows_of(X, line)
    e = parse(text)
    assert [f.kind for f in findings(e, values([e], rows.sample)[0], rows)] == kinds


def test_waves_on_levels_are_found_and_a_logistic_is_not():
    doses = np.repeat([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], 4)[:, None]
    rows = rows_of(doses, doses[:, 0])
    for text, kinds in (("cos(x0)", ["wave"]), ("1/(1 + (x0/5)**4)", [])):
        e = parse(text)
        assert [f.kind for f in findings(e, values([e], rows.sample)[0], rows)] == kinds


def test_a_finding_says_what_it_costs_and_why():
    x = np.linspace(0.0, 1.0, 30)[:, None]
    rows = rows_of(x, x[:, 0])
    e = parse("sqrt(x0 - 0.0001)")
    (finding,) = findings(parse("1/(x0 - 0.5001)**2"), values([parse("1/(x0 - 0.5001)**2")], rows.sample)[0], rows)
    assert 0.0 < finding.nats < 4.0  # rows on both sides
    (hidden,) = findings(parse("sqrt(1.02 - x0)"), values([parse("sqrt(1.02 - x0)")], rows.sample)[0], rows)
    assert hidden.nats >= 4.0 and "no row there" in hidden.sentence
    assert findings(e, values([e], rows.sample)[0], rows) == ()  # it has no values at the rows: they say so themselves


# --- the reason, rivals, storage


def test_the_reason_names_the_next_different_function_and_its_distance():
    model = fitted("x0", "x0 + sin(3*x1)")
    assert " nats ahead of the next different equation, " in model.reason_
    assert model.noise_.startswith("Noise: constant")
    table = model.choice_
    total = table[["structure", "numbers", "rows", "findings"]].sum(axis=1)
    np.testing.assert_allclose(table["behind"], total - total[table["chosen"]].iloc[0], atol=1e-9)


def test_rivals_are_different_functions_within_five_nats():
    far = rivals_table(choice_of(TEXTS, X, Y))
    assert len(far) == 1
    near = rivals_table(
        choice_of(("3*x0", "3.02*x0 + 0.001", "2.9*x0 + 0.05*x0**2"), X[:25], 3.0 * X[:25, 0] + RNG.normal(size=25))
    )
    assert near["behind"].max() <= 5.0
    assert near["difference"][1:].gt(0.0).all()


def test_the_reason_is_saved_with_the_model(tmp_path: Path):
    model = fitted("x0", "x0 + sin(3*x1)")
    model.save(tmp_path / "model.json")
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    assert (loaded.reason_, loaded.noise_) == (model.reason_, model.noise_)
    pd.testing.assert_frame_equal(pd.DataFrame(loaded.choice_), pd.DataFrame(model.choice_), check_dtype=False)


# --- noise as arguments


def test_known_errors_of_the_rows_decide():
    rng = np.random.default_rng(4)
    x = np.linspace(0.0, 4.0, 60)
    sigma = np.where(np.arange(60) % 2, 0.01, 2.0)
    y = 1.5 * x + 0.3 + sigma * rng.normal(size=60)
    model = SymbolicRegressor(Proposing(("x0 + 1",)), budget=Budget(max_evaluations=20), random_state=0)
    found = model.fit(x[:, None], y, sigma=sigma).expression_
    assert found.variables == ("x0",) and sorted(found.constants)[-1] == pytest.approx(1.5, abs=0.01)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": -1.0}, "'sigma' must be a number above 0"),
        ({"sigma": [1.0, 2.0]}, "'sigma' must be a number or one for each"),
        ({"x_sigma": 0.1}, "'x_sigma' needs 'sigma'"), ({"noise": "white"}, "'noise' must be 'auto'"),
    ],
)  # fmt: skip
def test_what_is_said_of_the_noise_is_checked(options: dict[str, object], words: str):
    with pytest.raises(ParameterError, match=words):
        fitted("x0", **options)


def test_errors_of_inputs_count_as_far_as_the_slope_carries_them():
    x = np.linspace(1.0, 5.0, 50)
    rows = Rows.of(x[:, None], x**2, level=0.1, x_sigma=np.array([0.2]))
    e = parse("x0**2")
    h = Noise().heights_at(rows, e, x**2)
    np.testing.assert_allclose(0.1 * h, np.sqrt(0.1**2 + (2.0 * x * 0.2) ** 2))


# --- the model


def test_the_chosen_row_is_marked_and_can_be_changed(tmp_path: Path):
    model = fitted("x0", "x0 + sin(3*x1)")
    assert model.equations_["chosen"].sum() == 1
    assert model.equations_["expression"][model.equations_["chosen"]].iloc[0] == model.expression_
    before = model.predict(X)
    assert model.choose(0) is model
    assert model.equations_["chosen"].tolist().index(True) == 0
    np.testing.assert_array_equal(model.predict(X), model.predict(X, index=0))
    assert not np.array_equal(before, model.predict(X))
    with pytest.raises(ParameterError, match="row of equations_"):
        model.choose(99)
    model.save(tmp_path / "model.json")
    assert SymbolicRegressor.load(tmp_path / "model.json").expression_ == model.expression_


def test_the_constant_and_lines_in_selected_columns_are_candidates():
    y = 2.0 * X[:, 0] - X[:, 1] + 0.5
    model = fitted("sin(x0)", y=y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)
    rows = Rows.of(X, Y)
    assert [e.variables for e in plain_equations(rows, 4, ("add", "mul"))] == [()]
    assert [e.variables for e in plain_equations(rows, 60, ("mul",))] == [()]


def test_predicting_outside_the_training_range_warns_once_for_each_model():
    model = fitted("x0")
    model.choose(int(np.flatnonzero([e.variables == ("x0",) for e in model.equations_["expression"]])[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        model.predict(X * [1.02, 50.0])  # a hair beyond, and an input that the equation does not use
    with pytest.warns(ExtrapolationWarning, match="1 of 2 rows have 'x0' outside the training range"):
        model.predict([[1.0, 1.0], [3.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict([[9.0, 1.0]])


def test_the_warning_survives_saving(tmp_path: Path):
    fitted("x0").save(tmp_path / "model.json")
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    with pytest.warns(ExtrapolationWarning):
        loaded.predict([[30.0, 30.0]])


def test_verdicts_are_saved_with_the_model(tmp_path: Path):
    model = fitted("x0 + sin(3*x1)")
    words = model.verdicts_[["distinct", "needed", "determined"]]
    assert set(map(tuple, words.to_numpy().tolist())) == {("yes", "yes", "yes")}
    assert (model.verdicts_["low"] < model.verdicts_["high"]).all()
    model.save(tmp_path / "model.json")
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    pd.testing.assert_frame_equal(loaded.verdicts_, model.verdicts_)
    with pytest.raises(ParameterError, match="give 'X'"):
        _ = loaded.choose(0).verdicts_


def test_reports_and_intervals_take_any_rows():
    model = fitted("x0 + sin(3*x1)")
    assert model.novelty_report().n_samples == 200
    assert model.novelty_report(X[:50]).n_samples == 50
    assert model.novelty_report(X[:50], Y[:50]).n_samples == 50
    assert model.intervals().n_rows == 200
    assert model.intervals(X[:60], Y[:60], sigma=0.1).n_rows == 60
    with pytest.raises(ParameterError, match="'y' is missing"):
        model.intervals(X)


def test_cross_validation_is_a_function_of_the_data_alone():
    order = np.random.default_rng(1).permutation(200)
    expressions = [parse("3*x0"), parse("3*x0 + sin(3*x1)")]
    before, after = (cross_validated(expressions, Rows.of(X[o], Y[o])) for o in (np.arange(200), order))
    np.testing.assert_array_equal(before[0], after[0])


def test_intervals_and_bands_follow_the_noise_of_the_fit():
    rng = np.random.default_rng(7)
    x = np.geomspace(1.0, 1000.0, 200)[:, None]
    y = 3.2 * x[:, 0] ** 1.5 * (1.0 + 0.05 * rng.normal(size=200))
    engine = Proposing(("x0*sqrt(x0)",))
    model = SymbolicRegressor(engine, budget=Budget(max_evaluations=20), random_state=0).fit(x, y)
    assert model.noise_.startswith("Noise: relative, about ")
    found = model.intervals()
    assert found[0].high - found[0].low < 0.1
    prediction, low, high = found.band([[1.0], [1000.0]], observation=True)
    np.testing.assert_allclose((high - low) / prediction, 2.0 * 1.97 * 0.05, rtol=0.2)


@pytest.mark.parametrize(("text", "word"), [("2.0*x0", "misses"), ("x0**2", "meets")])
def test_repeated_rows_test_an_equation_without_a_model(text: str, word: str):
    rng = np.random.default_rng(8)
    x = np.repeat(np.linspace(1.0, 4.0, 8), 4)
    y = x**2 + 0.1 * rng.normal(size=32)
    assert word in lack_of_fit(choice_of((text,), x[:, None], y, is_fixed=True, noise="constant"))
    assert lack_of_fit(choice_of((text,), X[:, :1], Y)) == ""
