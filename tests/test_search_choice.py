"""Which equation of a front is reported."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sobolev_novelty.errors import ExtrapolationWarning, ParameterError
from sobolev_novelty.evaluation import evaluate
from sobolev_novelty.expression import Expression
from sobolev_novelty.parsing import parse
from sobolev_novelty.scoring import base_score
from sobolev_novelty.search.choice import CLEAR_LEAD, Contest, baselines, chance_gain, chosen_index, linear_form
from sobolev_novelty.search.doubt import doubt, effective_rows, growth_between, has_pole
from sobolev_novelty.search.engine import Candidate, Deadline, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.loop import Budget
from sobolev_novelty.search.regressor import SymbolicRegressor
from sobolev_novelty.search.validation import Rows, cross_validated, lead

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 2.0, (200, 2))
Y = 3.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.1 * RNG.normal(size=200)
ROWS = Rows(X, Y, None, ("x0", "x1"))


def candidates(*texts_and_scores: tuple[str, float, float]) -> list[Candidate]:
    return [Candidate(parse(text), parse(text), nmse, score) for text, nmse, score in texts_and_scores]


def table(found: list[Candidate], min_novelty: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"expression": [c.expression for c in found], "min_novelty": min_novelty})


def rated(expression: Expression, rows: Rows) -> Candidate:
    nmse = float(np.mean((evaluate(expression, rows.X) - rows.y) ** 2) / np.var(rows.y))
    return Candidate(expression, expression, nmse, base_score(nmse, expression.complexity, len(rows.y)))


FRONT = candidates(
    ("3*x0", 0.1, 0.7), ("3*x0 + 0.9*sin(3*x1)", 0.02, 0.9), ("3*x0 + sin(3*x1) + 0.01/(x1 - 1.234)", 0.01, 0.95)
)
TABLE = table(FRONT, [1.0, 0.2, 0.9])


class Proposing(Engine[State]):
    """Proposes what it is given."""

    def __init__(self, forms: tuple[str, ...] = (), guidance: SobolevGuidance | None = None) -> None:
        self.forms = forms
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        return State()

    def propose(self, state: State, rng: np.random.Generator) -> list[Expression]:
        return [parse(form) for form in self.forms]

    def observe(self, state: State, scored: list[Candidate]) -> State:
        return state


def fitted(*forms: str, y: np.ndarray = Y, **options: object) -> SymbolicRegressor:
    engine = Proposing(forms)
    options = {"budget": Budget(max_evaluations=50), "random_state": 0} | options
    return SymbolicRegressor(engine, **options).fit(X, y)  # type: ignore[arg-type]


def test_the_best_score_without_a_pole_is_chosen() -> None:
    assert has_pole(FRONT[2].expression, ROWS)
    assert chosen_index(FRONT, TABLE, ROWS, "score") == 1


@pytest.mark.parametrize(
    ("equation", "expected"),
    [("1/(x0 - 2.04)", True), ("1/(x0 - 2.6)", False), ("1/x0", False), ("log(x0)", False), ("sqrt(x1)", False)],
)
def test_a_pole_just_beyond_the_range_counts_but_a_range_does_not_reach_beyond_zero(
    equation: str, expected: bool
) -> None:
    box = np.array([[0.01, 0.0], [2.0, 2.0]])
    assert has_pole(parse(equation), Rows(X, Y, None, ("x0", "x1"), box)) is expected


@pytest.mark.parametrize("n", [40, 400])
def test_a_pole_is_seen_although_the_time_is_over(n: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0.0, 2.0, (n, 2))
    rows = Rows(x, 3.0 * x[:, 0] + np.sin(3.0 * x[:, 1]) + 0.1 * rng.normal(size=n), None, ("x0", "x1"))
    texts = ("3*x0 + sin(3*x1)", "3*square(sqrt(x0) - 1e-7/(x1 - 1.234)) + sin(3*x1)")
    found = candidates((texts[0], 0.02, 0.9), (texts[1], 0.01, 0.95))
    assert "pole" in doubt(found[1].expression, rows)
    index = chosen_index(found, table(found, [1.0, 1.0]), rows, "score", deadline=Deadline.after(0.0))
    assert index == 0


def test_an_exact_fit_is_trusted_whatever_its_poles() -> None:
    exact = candidates(("3*x0", 0.1, 0.7), ("1/(x1 - 1.234)", 1e-12, 0.99))
    for rule in ("score", "distinct", "validation", "one-se"):
        assert chosen_index(exact, table(exact, [1.0, 1.0]), ROWS, rule) == 1


def test_where_every_equation_has_a_pole_the_best_one_is_chosen() -> None:
    found = candidates(("1/(x1 - 1)", 0.5, 0.5), ("1/(x0 - 1)", 0.4, 0.6))
    assert chosen_index(found, table(found, [1.0, 1.0]), ROWS, "score") == 1


def test_distinct_takes_the_best_score_among_equations_whose_terms_are_all_distinct() -> None:
    assert chosen_index(FRONT[:2], TABLE[:2], ROWS, "distinct") == 0
    assert chosen_index(FRONT[:2], table(FRONT[:2], [0.1, 0.2]), ROWS, "distinct") == 1


def test_validation_finds_the_law_and_not_the_one_with_more_constants() -> None:
    found = candidates(
        ("3*x0", 0.1, 0.0),
        ("3*x0 + sin(3*x1)", 0.02, 0.0),
        ("3*x0 + sin(3*x1) + 0.01*x0*x1 + 0.01*cos(9*x1) + 0.01*x0**3 + 0.01*sin(7*x0)", 0.019, 0.0),
    )
    assert chosen_index(found, table(found, [1.0] * 3), ROWS, "validation") == 1
    assert chosen_index(found, table(found, [1.0] * 3), ROWS, "one-se") == 1


def test_one_standard_error_prefers_the_simpler_of_two_that_hardly_differ() -> None:
    rng = np.random.default_rng(1)
    y = X[:, 0] + 0.02 * X[:, 1] ** 2 + rng.normal(size=200)
    rows = Rows(X, y, None, ("x0", "x1"))
    found = candidates(("x0", 0.5, 0.0), ("x0 + 0.02*x1**2", 0.49, 0.0))
    assert chosen_index(found, table(found, [1.0] * 2), rows, "one-se") == 0


def test_cross_validation_is_a_function_of_the_data_alone() -> None:
    order = np.random.default_rng(5).permutation(200)
    forms = [candidate.expression for candidate in FRONT[:2]]
    shuffled = cross_validated(forms, Rows(X[order], Y[order], None, ("x0", "x1")))
    np.testing.assert_allclose(shuffled.errors, cross_validated(forms, ROWS).errors)
    assert cross_validated([parse("log(x0 - 1)")], ROWS).mean[0] == np.inf


def test_a_callable_sees_the_table_and_returns_a_row() -> None:
    model = fitted("x0", "x0 + sin(3*x1)", select=lambda equations: int(equations["complexity"].idxmin()))
    assert model.equations_["chosen"].tolist()[0] is True
    with pytest.raises(ParameterError, match="'select' must return the index of a row"):
        fitted("x0", select=lambda equations: 99)


def test_a_rule_that_is_not_known_is_refused_before_the_search() -> None:
    with pytest.raises(ParameterError, match="'select' must be one of score, distinct, validation, one-se"):
        fitted("x0", select="best")


def test_the_chosen_row_is_marked_and_can_be_changed(tmp_path: Path) -> None:
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


def test_the_constant_and_the_straight_line_are_candidates() -> None:
    y = 2.0 * X[:, 0] - X[:, 1] + 0.5
    assert str(fitted("sin(x0)", y=y).expression_) == "2*x0 - x1 + 0.5"
    lines = [str(e) for e in baselines(ROWS, 60, ("add", "mul"))]
    assert len(lines) == 2 and "x0" in lines[1]
    assert len(baselines(ROWS, 4, ("add", "mul"))) == 1
    assert len(baselines(ROWS, 60, ("mul",))) == 1
    assert len(baselines(Rows(X[:1], Y[:1], None, ("x0", "x1")), 60, ("add", "mul"))) == 1


def test_where_the_line_may_not_have_all_columns_it_has_the_most_telling_ones() -> None:
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(120, 25))
    y = 3.0 * wide[:, 4] - 2.0 * wide[:, 17] + wide[:, 21] + 0.1 * rng.normal(size=120)
    rows = Rows(wide, y, None, tuple(f"x{k}" for k in range(25)))
    line = linear_form(rows, 13)
    assert line is not None and line.variables == ("x4", "x17", "x21")
    assert all(e.complexity <= limit for limit in (1, 5, 6, 30, 60) for e in baselines(rows, limit, ("add", "mul")))
    few = Rows(wide[:9], y[:9], None, rows.names)
    assert linear_form(few, 60) is None  # of 25 columns the best few explain nine rows by chance


def test_a_term_that_rests_on_one_row_is_passed_over() -> None:
    rng = np.random.default_rng(7)
    x = np.sort(rng.uniform(0.0, 1.0, 80))
    y = 2.0 * x + 0.05 * rng.normal(size=80)
    y[40] += 3.0
    rows = Rows(x[:, None], y, None, ("x0",))
    spike = parse(f"2*x0 + 3e-8/(x0 - {float(x[40]) + 1e-4})**2")
    assert "rests on 1." in doubt(spike, rows)
    found = [Candidate(spike, spike, 0.01, 0.9), *candidates(("2*x0", 0.1, 0.8))]
    assert chosen_index(found, table(found, [1.0, 1.0]), rows, "score") == 1


def test_a_steep_term_that_foretells_the_rows_it_rests_on_is_trusted() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=100)
    y = x + 0.3 * x**5 + 0.05 * rng.normal(size=100)
    rows = Rows(x[:, None], y, None, ("x0",))
    assert effective_rows(x**5) < 10.0
    assert not doubt(parse("x0 + 0.3*x0**5"), rows)


def test_waves_between_the_rows_are_passed_over() -> None:
    x = np.linspace(0.0, 1.0, 101)
    rows = Rows(x[:, None], x, None, ("x0",))
    assert "varies faster along x0" in doubt(parse("x0 + 0.1*sin(400*x0)"), rows)
    assert not doubt(parse("x0 + 0.1*sin(40*x0)"), rows)
    few = np.arange(40.0) % 8
    assert "varies faster" in doubt(parse("sin(3*x0)"), Rows(few[:, None], few, None, ("x0",)))


def test_on_many_rows_a_much_smaller_error_outweighs_a_doubt() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.2, 3.0, (600, 1))
    for law, noise in [("cos(x0)/sin(x0 - 0.1)", 0.1), ("x0", 0.1)]:
        y = evaluate(parse(law), x) + noise * rng.normal(size=600)
        rows = Rows(x, y, None, ("x0",))
        found = candidates((law, 0.01, 0.9), ("0.1/(x0 - 3.1) + x0", 0.009, 0.91), ("x0 + 1", 0.5, 0.5))
        polished = [replace(c, nmse=float(np.mean((y - evaluate(c.expression, x)) ** 2) / np.var(y))) for c in found]
        index = chosen_index(polished, table(polished, [1.0] * 3), rows, "score")
        assert str(polished[index].expression) == law
        assert bool(doubt(parse(law), rows)) is ("sin" in law)


@pytest.mark.parametrize(
    ("text", "is_doubtful"),
    [
        ("x0 + square(cube(cube(x1 + 3)))", True),
        ("x0 + (x1 + 3)**18", True),
        ("x0 + 1/square(square(cube(x1 + 3)))", True),
        ("x0 + cube(cube(x1 + 3))", True),
        ("x0 + cube(square(x1 + 3))", False),
        ("x0 + 1/(x1 + 3)**6", False),
    ],
)
def test_a_sum_to_a_high_power_is_doubted(text: str, is_doubtful: bool) -> None:
    assert ("to the power of" in doubt(parse(text), ROWS)) is is_doubtful


def test_a_high_power_of_an_input_is_a_law_like_others() -> None:
    x = 1.0 + 0.1 * X[:, :1]
    rows = Rows(x, x[:, 0] ** -12, None, ("x0",))
    assert not doubt(parse("x0**(-12) - 2*x0**(-6)"), rows)


def test_a_power_of_an_input_that_no_law_has_is_doubted() -> None:
    kelvin = np.linspace(280.0, 370.0, 15)
    rows = Rows(kelvin[:, None], kelvin**18, None, ("x0",))
    assert "x0**18 has an input to the power of 18" in doubt(parse("1.7e-44*x0**18"), rows)
    assert not doubt(parse("2.7e9*exp(-5970/x0)"), rows)


def test_a_wave_of_something_with_a_pole_is_doubted() -> None:
    x = np.random.default_rng(0).normal(size=(40, 1))
    rows = Rows(x, x[:, 0], None, ("x0",))
    assert "swings without end" in doubt(parse("tanh(sin(6.47/x0))"), rows)
    away = Rows(np.linspace(1.0, 2.0, 40)[:, None], x[:, 0], None, ("x0",))
    for text in ("sin(2/(x0**2 + 1))", "sin(x0)"):
        assert not doubt(parse(text), rows)
    assert not doubt(parse("sin(6.47/x0)"), away)


def test_a_law_in_twelve_rows_is_chosen_before_a_line_and_before_a_short_approximation() -> None:
    S = np.array([0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0, 80.0, 120.0])
    y = 4.2 * S / (7.5 + S) * (1.0 + 0.05 * np.random.default_rng(2).normal(size=12))
    rows = Rows(S[:, None], y, None, ("x0",))
    texts = ("0.93*log(x0)", "4.2 - 29.9/(x0 + 7)", "4.1*exp(-6/(x0 + 1.7))")
    plain = baselines(rows, 30, ("add", "mul"))
    pool = [rated(e, rows) for e in (*map(parse, texts), *plain)]
    index = chosen_index(pool, table(pool, [1.0] * len(pool)), rows, "score", baselines=pool[3:], n_tried=20_000)
    assert index == 1


def test_of_an_input_with_levels_only_the_levels_matter() -> None:
    levels = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 20)
    ordinal = Rows(levels[:, None], levels, None, ("x0",))
    for text in ("sin(3*x0)", "x0 + x0**2", "1/(6.1 - x0)"):
        assert not doubt(parse(text), ordinal)


def test_a_term_that_runs_away_where_two_inputs_leave_their_rows_together_is_passed_over() -> None:
    rng = np.random.default_rng(9)
    x = np.c_[rng.normal(6.0, 0.8, 300), rng.normal(0.0, 0.8, 300)]
    rows = Rows(x, x[:, 0], None, ("x0", "x1"))
    assert doubt(parse("x0**2 - 8/(x1 - x0 + 2)"), rows)
    assert not doubt(parse("x0**2*x1"), rows)


@pytest.mark.parametrize("how", ["copies", "weights"])
def test_a_row_given_often_still_is_one_row(how: str) -> None:
    c = np.r_[np.zeros(40), 1.0]
    weights = np.r_[np.ones(40), 20.0]
    alone = effective_rows(c, weights)
    assert alone < 3.0
    if how == "copies":  # merged before the search: see scoring.merged_rows
        assert effective_rows(np.r_[np.zeros(40), np.ones(20)]) > alone


def test_copies_of_an_equation_that_lost_do_not_end_the_contest() -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(-2.0, 2.0, (60, 2))
    y = x[:, 0] ** 2 + 0.3 * x[:, 1] + 0.1 * rng.normal(size=60)
    rows = Rows(x, y, None, ("x0", "x1"))
    line = Candidate(*[baselines(rows, 30, ("add", "mul"))[1]] * 2, 0.9, 0.5)
    copies = [(text, 0.4, 0.8) for text in ("sin(x1)", "1*sin(x1)", "sin(1*x1)", "sin(x1)/1", "sin(x1) + 0*x1")]
    found = [*candidates(*copies, ("square(x0) + 0.3*x1", 0.01, 0.7)), line]
    lost = [(f"sin({k}.5*x1)", 0.4 + 0.01 * k, 0.8) for k in range(10)]
    index = chosen_index(found, table(found, [1.0] * 7), rows, "score", baselines=[line])
    assert str(found[index].expression) == "square(x0) + 0.3*x1"
    many = [*candidates(*lost, ("square(x0) + 0.3*x1", 0.01, 0.7)), line]
    assert chosen_index(many, table(many, [1.0] * 12), rows, "score", baselines=[line]) == 11


def test_a_straight_line_in_fewer_columns_has_to_be_a_little_better_only() -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(60, 12))
    y = 2.0 * x[:, 0] + 1.0 + 0.1 * rng.normal(size=60)
    rows = Rows(x, y, None, tuple(f"x{k}" for k in range(12)))
    line = Candidate(*[baselines(rows, 60, ("add", "mul"))[1]] * 2, 0.01, 0.8)
    short = candidates(("2*x0 + 1", 0.01, 0.9))[0]
    assert Contest.of([line], rows, 5000).is_won_by(short)


def test_on_many_rows_losing_to_the_line_on_held_out_folds_means_the_line() -> None:
    rng = np.random.default_rng(12)
    x = rng.uniform(-1.0, 1.0, (600, 2))
    y = x[:, 0] + x[:, 1] + 0.1 * rng.normal(size=600)
    rows = Rows(x, y, None, ("x0", "x1"))
    line = Candidate(*[baselines(rows, 60, ("add", "mul"))[1]] * 2, 0.02, 0.8)
    worse = candidates(("sin(x0)", 0.5, 0.9))[0]
    assert chosen_index([worse, line], table([worse, line], [1.0, 1.0]), rows, "score", baselines=[line]) == 1


def test_on_few_rows_an_equation_that_explains_noise_gives_way_to_a_baseline() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 1.0, (40, 1))
    y = x[:, 0] + 0.5 * rng.normal(size=40)
    rows = Rows(x, y, None, ("x0",))
    wild = candidates(("cos(60*x0) + sin(31*x0) + x0**5 + cos(17*x0) + sin(90*x0) + x0**9 + x0", 0.4, 0.9))[0]
    line = Candidate(*[baselines(rows, 60, ("add", "mul"))[1]] * 2, 0.8, 0.5)
    assert not Contest.of([line], rows).is_won_by(wild)
    law = candidates(("3*x0 + sin(3*x1)", 0.02, 0.9))[0]
    flat = Candidate(*[baselines(ROWS, 60, ("add", "mul"))[1]] * 2, 0.2, 0.5)
    assert Contest.of([flat], ROWS).is_won_by(law)


@pytest.mark.parametrize(("amplitude", "is_won"), [(0.7, False), (1.3, True)])
def test_on_few_rows_an_equation_gains_twice_what_chance_explains_however_clear_its_lead(
    amplitude: float, is_won: bool
) -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(0.0, 6.0, (280, 1))
    y = x[:, 0] + amplitude * np.sin(3.0 * x[:, 0]) + rng.normal(size=280)
    rows = Rows(x, y, None, ("x0",))
    wave = candidates(("x0 + sin(3*x0)", 0.4, 0.9))[0]
    line = Candidate(*[baselines(rows, 60, ("add", "mul"))[1]] * 2, 0.5, 0.5)
    own, base = cross_validated([wave.expression, line.expression], rows, n_repeats=5).squares
    by_chance = chance_gain(280, 5000, wave.complexity, 1)
    assert lead(own, base, None) >= CLEAR_LEAD and own.mean() < base.mean() * (1.0 - by_chance)
    assert Contest.of([line], rows, 5000).is_won_by(wave) is is_won


def test_a_power_that_blows_up_at_the_rim_gives_way_to_the_straight_line() -> None:
    rng = np.random.default_rng(4)
    x = np.r_[rng.uniform(0.0, 1.0, 90), [1.4, 1.5]][:, None]
    y = x[:, 0] + np.where(x[:, 0] > 1.2, 0.0, 0.9 * x[:, 0] ** 6) + 0.03 * rng.normal(size=92)
    rows = Rows(x, y, None, ("x0",))
    power = candidates(("x0 + 0.9*x0**6", 0.02, 0.9))[0]
    line = Candidate(*[baselines(rows, 60, ("add", "mul"))[1]] * 2, 0.1, 0.5)
    contest = Contest.of([line], rows)
    assert not contest.is_won_by(power)
    assert chosen_index([line, power], table([line, power], [1.0, 1.0]), rows, "score", baselines=[line]) == 0


def test_predicting_outside_the_training_range_warns_once_for_each_model() -> None:
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


def test_the_warning_survives_saving(tmp_path: Path) -> None:
    fitted("x0").save(tmp_path / "model.json")
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    with pytest.warns(ExtrapolationWarning):
        loaded.predict([[30.0, 30.0]])


def test_verdicts_are_saved_with_the_model(tmp_path: Path) -> None:
    model = fitted("x0 + sin(3*x1)")
    words = model.verdicts_[["distinct", "needed", "determined"]]
    assert set(map(tuple, words.to_numpy().tolist())) == {("yes", "yes", "yes")}
    assert (model.verdicts_["low"] < model.verdicts_["high"]).all()
    model.save(tmp_path / "model.json")
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    pd.testing.assert_frame_equal(loaded.verdicts_, model.verdicts_)
    with pytest.raises(ParameterError, match="give 'X'"):
        _ = loaded.choose(0).verdicts_


def test_reports_and_intervals_take_any_rows() -> None:
    model = fitted("x0 + sin(3*x1)")
    assert model.novelty_report().n_samples == 200
    assert model.novelty_report(X[:50]).n_samples == 50
    assert model.novelty_report(X[:50], Y[:50]).n_samples == 50
    assert model.intervals().n_rows == 200
    assert model.intervals(X[:60], Y[:60], sigma=0.1).n_rows == 60
    with pytest.raises(ParameterError, match="'y' is missing"):
        model.intervals(X)


def test_a_term_on_one_row_stays_where_the_other_rows_foretell_that_row() -> None:
    """A trajectory that begins far away: the law fitted to the rest gives the first rows, and is not doubted."""
    rng = np.random.default_rng(0)
    X = np.vstack([[[8.0, 9.0]], rng.uniform(0.5, 1.5, (200, 2))])
    y = X[:, 0] * (3.0 - X[:, 0] - 2.0 * X[:, 1])
    y = y + rng.normal(0.0, 0.05, len(y))
    rows = Rows(X, y, None, ("x0", "x1"))
    assert not doubt(parse("x0*(3 - x0 - 2*x1)"), rows)
    assert "rests on 1.0 rows" in doubt(parse("0.01*(x0*x1)**3"), rows)


def test_columns_of_a_wide_table_that_only_chance_speaks_for_are_not_in_its_straight_line() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 150))
    names = tuple(f"x{k}" for k in range(150))
    noise = Rows(X, rng.normal(size=120), None, names)
    found = linear_form(noise, 80)
    assert found is None or len(found.variables) <= 1
    told = Rows(X, 2.0 * X[:, 7] - X[:, 40] + 0.3 * noise.y, None, names)
    line = linear_form(told, 80)
    assert line is not None
    assert {"x7", "x40"} <= set(line.variables) and len(line.variables) <= 4


def test_between_the_levels_of_an_input_nobody_asks():
    """A pole between two grades does not count; one at a grade does, and one along an input that has no levels."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(1, 6, 300), rng.integers(0, 2, 300), rng.uniform(0.0, 2.0, 300)])
    rows = Rows(table, table[:, 2], None, ("grade", "group", "x"))
    assert not has_pole(parse("1/(grade - 2.5)"), rows)
    assert not has_pole(parse("1/(grade - 2.5 - 0.1*group)"), rows)
    assert has_pole(parse("1/(grade - 2)"), rows)
    assert has_pole(parse("1/(x - 1.5)"), rows)
    assert not has_pole(parse("x/(grade - 2.5)"), rows)
    assert has_pole(parse("1/(x - 0.3*grade)"), rows)


def noisy_law(n: int, largest: float = 0.3) -> tuple[Rows, list[Candidate]]:
    """Rows of x0/sqrt(1 - x1²) with noise, the law, and what looks like it."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(1.0, 5.0, n), rng.uniform(0.1, largest, n)])
    law = X[:, 0] / np.sqrt(1.0 - X[:, 1] ** 2)
    y = law + 0.1 * np.sqrt(np.mean(law**2)) * rng.normal(size=n)
    texts = (f"{1.0 + 0.25 * largest**2}*x0", "x0*(1 + 0.53*square(x1))", "x0/sqrt(1 - square(x1))")
    errors = [float(np.mean((evaluate(parse(text), X) - y) ** 2) / np.var(y)) for text in texts]
    scores = [base_score(error, parse(text).complexity, n) for text, error in zip(texts, errors, strict=True)]
    return Rows(X, y, None, ("x0", "x1")), candidates(*zip(texts, errors, scores, strict=True))


def test_where_longer_equations_are_no_better_the_shortest_description_is_chosen() -> None:
    rows, found = noisy_law(5000)
    assert found[0].score > found[2].score  # what R_base would take
    novelty = table(found, [1.0, 1.0, 1.0])
    assert chosen_index(found, novelty, rows, "score", longest=40) == 2
    assert chosen_index(found, novelty, rows, "score", longest=10) == 0


def test_a_longer_equation_with_a_better_score_is_taken_where_rows_held_out_speak_for_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 2.0, (400, 4))
    y = x[:, 0] + 0.3 * np.sin(4.0 * x[:, 1]) + 0.25 * x[:, 2] * x[:, 3] + 1.2 * rng.normal(size=400)
    rows = Rows(x, y, None, ("x0", "x1", "x2", "x3"))

    def fitted(text: str, score: float) -> Candidate:
        error = float(np.mean((evaluate(parse(text), x) - y) ** 2) / np.var(y))
        return Candidate(parse(text), parse(text), error, score)

    def chosen(longer: str, deadline: Deadline | None = None) -> str:
        found = [fitted("1.3*x0", 0.5), fitted(longer, 0.6)]
        assert found[0].nats(400, 4) < found[1].nats(400, 4)
        index = chosen_index(found, table(found, [1.0, 1.0]), rows, "score", longest=40, deadline=deadline)
        return str(found[index].expression)

    law = "x0 + 0.3*sin(4*x1) + 0.25*(x2*x3)"
    assert chosen(law) == law
    assert chosen("1.3*x0 + 0.01*square(x0 - 1)") == "1.3*x0"
    assert chosen(law, Deadline.after(0.0)) == "1.3*x0"  # when rows held out cannot be asked any more


def test_few_rows_are_not_described() -> None:
    rows, found = noisy_law(200)
    assert chosen_index(found, table(found, [1.0, 1.0, 1.0]), rows, "score", longest=40) == 0


def test_more_rows_than_those_at_hand_count() -> None:
    rows, found = noisy_law(5000, 0.22)
    few = Rows(rows.X[:400], rows.y[:400], None, rows.names)
    novelty = table(found, [1.0, 1.0, 1.0])
    assert chosen_index(found, novelty, few, "score", longest=40) == 0
    assert chosen_index(found, novelty, few, "score", longest=40, n_rows=5000) == 2


def test_a_shorter_law_with_a_better_description_outweighs_its_doubt() -> None:
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.uniform(0.0, 1.0, 3000), rng.uniform(1.0, 2.0, 3000)])
    y = np.arcsin(X[:, 0] / X[:, 1]) + 0.05 * rng.normal(size=3000)
    rows = Rows(X, y, None, ("x0", "x1"))
    texts = ("arcsin(x0/x1)", "0.9*x0/x1 + 0.35*cube(x0/x1) + 0.1*square(x0)")
    found = candidates(
        *((text, float(np.mean((evaluate(parse(text), X) - y) ** 2) / np.var(y)), 0.5) for text in texts)
    )
    assert doubt(found[0].expression, rows)
    assert not doubt(found[1].expression, rows)
    assert chosen_index(found, table(found, [1.0, 1.0]), rows, "score", longest=40) == 0


def test_a_pole_between_the_rows_is_seen_where_new_rows_will_lie() -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 1.0, (1000, 2))
    X = X[np.abs(X[:, 1] - 0.5) > 0.1]
    rows = Rows(X, X[:, 0], None, ("x0", "x1"))
    assert "pole between the rows" in doubt(parse("x0/square(x1 - 0.5)"), rows)
    for text in ("x0/square(x1 + 0.3)", "exp(3*x0)*x1", "x0/(x1 + 0.05)", "sin(9*x0)/(x1 + 0.1)", "cube(cube(x0))"):
        sound = parse(text)
        assert growth_between(sound, evaluate(sound, X), rows) < 2.0, text
        assert not doubt(sound, rows), text


@pytest.mark.parametrize(("size", "expected"), [(0.02, 0), (1.0, 1)])
def test_a_long_equation_gives_way_to_a_shorter_one_unless_the_rows_speak_clearly_for_it(
    size: float, expected: int
) -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0.0, 2.0, (400, 2))
    more = f"{size}*cos(2*x0)*x1 + {size}*x0*x1*sin(x1) - {size}*sqrt(x0 + x1)*x1"
    y = 3.0 * x[:, 0] + np.sin(3.0 * x[:, 1]) + evaluate(parse(more), x) + 0.3 * rng.normal(size=400)
    rows = Rows(x, y, None, ("x0", "x1"))
    found = candidates(("3*x0 + sin(3*x1)", 0.05, 0.8), (f"3*x0 + sin(3*x1) + {more}", 0.03, 0.9))
    assert found[1].complexity > 25
    assert chosen_index(found, table(found, [1.0, 1.0]), rows, "score") == expected


@pytest.mark.parametrize(("n_lowest", "expected"), [(1, True), (30, False)])
def test_the_next_grade_may_come_where_the_last_one_is_rare(n_lowest: int, expected: bool) -> None:
    x = np.r_[np.full(n_lowest, 1.0), np.repeat([2.0, 3.0, 4.0, 5.0], 40)]
    assert bool(doubt(parse("x0 - 1/x0"), Rows(x[:, None], x, None, ("x0",)))) is expected
