"""The regressor: scikit-learn's contract, names, weights, threads."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.mcts import MCTS
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Candidate, Deadline, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.finish import TrainingTable
from sobolev_novelty.search.model.regressor import SymbolicRegressor

SMALL = Budget(max_evaluations=300)
TINY = Budget(max_evaluations=100)


def regressor(**options: object) -> SymbolicRegressor:
    options.setdefault("budget", SMALL)
    options.setdefault("random_state", 0)
    return SymbolicRegressor(options.pop("engine", "mcts"), **options)  # type: ignore[arg-type]


# Some checks predict for rows that they keep from the fit.
@pytest.mark.filterwarnings("ignore::sobolev_novelty.errors.ExtrapolationWarning")
@parametrize_with_checks([SymbolicRegressor(budget=TINY), SymbolicRegressor("mcts", budget=TINY)])
def test_scikit_learn_finds_nothing_to_object_to(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1.0, 3.0, (120, 3)), columns=["mass", "speed of sound", "pi"])
    return frame, 0.5 * frame["mass"].to_numpy() * frame["speed of sound"].to_numpy() ** 2


@pytest.fixture(scope="module")
def fitted(table: tuple[pd.DataFrame, np.ndarray]) -> SymbolicRegressor:
    return regressor().fit(*table)


def test_the_equation_is_in_the_names_of_the_frame(fitted: SymbolicRegressor) -> None:
    assert set(fitted.expression_.variables) == {"mass", "speed of sound"}
    assert fitted.expression_.complexity <= 6


def test_an_exact_solution_prints_clean_numbers(fitted: SymbolicRegressor) -> None:
    assert fitted.expression_.constants == (0.5,)


def test_the_table_of_equations_has_the_documented_columns(fitted: SymbolicRegressor) -> None:
    columns = ["complexity", "loss", "score", "min_novelty", "mean_novelty", "expression", "chosen"]
    assert list(fitted.equations_.columns) == columns
    assert fitted.equations_["complexity"].is_monotonic_increasing
    assert fitted.equations_["loss"].is_monotonic_decreasing


def test_each_row_of_the_table_can_predict(fitted: SymbolicRegressor, table: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = table
    for index, loss in enumerate(fitted.equations_["loss"]):
        np.testing.assert_allclose(np.mean((y - fitted.predict(X, index=index)) ** 2), loss, rtol=1e-6, atol=1e-20)
    with pytest.raises(ParameterError, match="row of equations_"):
        fitted.predict(X, index=99)


def test_exports_agree_with_the_equation(fitted: SymbolicRegressor) -> None:
    assert "mass" in str(fitted.sympy())
    assert "mass" in fitted.latex()
    assert fitted.latex_table().count(r"\\") == len(fitted.equations_) + 1
    assert fitted.novelty_report().status.value == "ok"
    assert fitted.plot().axes


def test_pickle_and_clone_work(fitted: SymbolicRegressor, table: tuple[pd.DataFrame, np.ndarray]) -> None:
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.predict(table[0]), fitted.predict(table[0]))
    assert clone(fitted).get_params()["budget"] == SMALL


def test_options_of_an_engine_can_be_tuned(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    grid = GridSearchCV(regressor(engine=MCTS()), {"engine__exploration": [0.05, 0.5]}, cv=2)
    assert grid.fit(*table).best_score_ > 0.99


def test_guidance_is_an_argument(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = table
    y = y + np.sin(X["pi"].to_numpy())
    plain, guided = regressor(novelty=False).fit(X, y), regressor(novelty=SobolevGuidance(order=0)).fit(X, y)
    assert plain.n_novelty_calls_ == 0
    assert guided.n_novelty_calls_ > 0
    assert plain.n_evaluations_ == guided.n_evaluations_ == SMALL.max_evaluations


def test_the_result_depends_on_the_seed_alone() -> None:
    X = np.random.default_rng(3).uniform(0.5, 2.0, (80, 3))
    y = X[:, 0] * np.sin(X[:, 1]) + X[:, 2] ** 1.7
    one, two = regressor(parallel=1).fit(X, y), regressor(parallel=2).fit(X, y)
    order = np.random.default_rng(0).permutation(80)
    shuffled = regressor().fit(X[order], y[order])
    assert [str(e) for e in one.equations_["expression"]] == [str(e) for e in two.equations_["expression"]]
    assert one.expression_ == shuffled.expression_


def test_a_guess_is_fitted_first() -> None:
    X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 2))
    y = 3.0 * np.tanh(1.5 * X[:, 0] - X[:, 1]) / X[:, 1] ** 1.5
    guess = "tanh(x0 - x1)/(x1*sqrt(x1))"
    model = regressor(guesses=[guess.replace("x0", "1.2*x0")], budget=Budget(max_evaluations=2)).fit(X, y)
    assert model.score(X, y) > 1 - 1e-12


def test_a_warm_start_is_never_worse() -> None:
    X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 3))
    y = X[:, 0] ** 2.3 + np.log(X[:, 1] + X[:, 2])
    model = regressor(budget=Budget(max_evaluations=60)).fit(X, y)
    before = model.equations_["loss"].min()
    assert model.fit(X, y, warm_start=True).equations_["loss"].min() <= before * (1 + 1e-9)


def test_a_constant_target_gives_the_constant() -> None:
    model = regressor().fit(np.arange(10.0)[:, None], np.full(10, 4.0))
    assert str(model.expression_) == "4"
    assert model.stop_reason_ == "The target is constant."


def test_weights_decide_between_two_laws() -> None:
    x = np.linspace(1.0, 2.0, 40)
    X, y = np.concatenate([x, x])[:, None], np.concatenate([x**2, 3.0 * x])
    weights = np.concatenate([np.ones(40), np.zeros(40)])
    assert str(regressor().fit(X, y, sample_weight=weights).expression_) == "square(x0)"
    with pytest.raises(ParameterError, match="not be negative"):
        regressor().fit(X, y, sample_weight=-weights)


@pytest.mark.parametrize("seed", [2, 6])
def test_a_table_given_ten_times_gives_the_equation_of_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (40, 2))
    y = X[:, 0] ** 2 + X[:, 1] + 0.25 * rng.normal(size=40)
    once = regressor(engine="genetic").fit(X, y)
    again = regressor(engine="genetic").fit(np.tile(X, (10, 1)), np.tile(y, 10))
    assert again.expression_ == once.expression_
    pd.testing.assert_frame_equal(again.equations_, once.equations_)


def test_a_row_of_weight_two_is_a_row_given_twice() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (40, 2))
    y = X[:, 0] ** 2 + X[:, 1] + 0.25 * rng.normal(size=40)
    weights = rng.integers(0, 4, 40)
    rows = np.repeat(np.arange(40), weights)
    weighted, repeated = regressor().fit(X, y, sample_weight=weights), regressor().fit(X[rows], y[rows])
    assert weighted.expression_ == repeated.expression_
    pd.testing.assert_frame_equal(weighted.equations_, repeated.equations_)


def test_the_choice_is_the_one_of_the_loop_with_its_score() -> None:
    rng = np.random.default_rng(6)
    X = np.tile(rng.uniform(-1.0, 1.0, (40, 2)), (3, 1))
    y = X[:, 0] ** 2 + X[:, 1] + 0.25 * np.tile(rng.normal(size=40), 3)
    model = regressor().fit(X, y)
    chosen = model.equations_.loc[model.equations_["score"].idxmax(), "expression"]
    assert chosen == model.expression_


class Watching(Engine[State]):
    """Notes the threads of linear algebra while it is asked."""

    seen: list[set[int]] = []  # noqa: RUF012  a class attribute, because the regressor clones engines

    def __init__(self, guidance: SobolevGuidance | None = None) -> None:
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        return State()

    def propose(self, state: State, rng: np.random.Generator) -> list[Expression]:
        self.seen.append(n_threads())
        return []

    def observe(self, state: State, scored: list[Candidate]) -> State:
        return state


def n_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("cores", [1, 2])
def test_linear_algebra_has_as_many_threads_as_cores_during_a_fit_and_its_own_afterwards(cores: int) -> None:
    Watching.seen.clear()
    with threadpool_limits(limits=3):
        regressor(engine=Watching(), parallel=cores).fit(np.arange(40.0)[:, None], np.sin(np.arange(40.0)))
        assert Watching.seen == [{cores}]
        assert n_threads() == {3}
        with pytest.raises(ParameterError, match="'engine' must be one of"):
            regressor(engine="annealing", parallel=cores).fit(np.arange(40.0)[:, None], np.arange(40.0))
        assert n_threads() == {3}


def test_wide_data_keep_the_columns_that_matter() -> None:
    X = np.random.default_rng(0).normal(size=(300, 124))
    y = X[:, 77] * 2.0 + X[:, 5] ** 2
    assert regressor().fit(X, y).score(X, y) > 0.95


def test_long_data_are_sampled_and_polished_on_all_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (20_000, 2))
    y = 1.7 * X[:, 0] * np.exp(-0.6 * X[:, 1]) + rng.normal(size=20_000) * 0.01
    model = regressor().fit(X, y)
    residual = y - model.predict(X, index=-1)
    assert np.std(residual) < 0.0102
    np.testing.assert_allclose(np.mean(residual**2), model.equations_["loss"].min(), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"engine": "annealing"}, "'engine' must be one of"),
        ({"operators": ["add", "frobnicate"]}, "frobnicate"),
        ({"constraints": {"max_complexity": 3}}, "'constraints' must be Constraints, such as"),
    ],
)
def test_wrong_options_are_explained(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        regressor(**options).fit(np.arange(10.0)[:, None], np.arange(10.0) ** 2)


def test_a_budget_needs_a_limit() -> None:
    with pytest.raises(ParameterError, match="Got neither"):
        Budget()


def test_a_budget_may_be_a_number_of_seconds() -> None:
    rng = np.random.default_rng(0)
    model = SymbolicRegressor(budget=0.5).fit(rng.normal(size=(200, 3)), rng.normal(size=200))
    assert model.stop_reason_ == "The budget of 0.5 seconds is spent."


def test_a_budget_that_is_no_time_is_refused() -> None:
    with pytest.raises(ParameterError, match="'budget' must be a Budget.* or a number of seconds above 0.* Got 0"):
        SymbolicRegressor(budget=0).fit(np.zeros((5, 1)), np.arange(5.0))


def test_a_spent_budget_of_seconds_is_named_as_the_reason() -> None:
    rng = np.random.default_rng(0)
    model = regressor(budget=Budget(seconds=0.5)).fit(rng.normal(size=(200, 3)), rng.normal(size=200))
    assert "seconds" in model.stop_reason_


def test_nothing_is_printed_where_there_is_no_terminal() -> None:
    code = (
        "import numpy as np; from sobolev_novelty.search.model.regressor import SymbolicRegressor, Budget;"
        "X = np.linspace(1, 2, 50)[:, None];"
        "SymbolicRegressor('mcts', budget=Budget(max_evaluations=50)).fit(X, X[:, 0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    X = np.linspace(1.0, 2.0, 50)[:, None]
    regressor().fit(X, X[:, 0] ** 2, verbose=True)
    assert "evaluations" in capsys.readouterr().err


def test_after_an_interruption_the_choice_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (300, 4))
    y = X[:, 0] * np.exp(-X[:, 1]) + 0.1 * rng.normal(size=300)
    left: list[float] = []
    choice = TrainingTable.choice

    def watched(self: TrainingTable, *args: Any, deadline: Deadline, **options: Any) -> Any:
        left.append(deadline.remaining)
        return choice(self, *args, deadline=deadline, **options)

    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainingTable, "choice", watched)
    model = SymbolicRegressor(budget=Budget(seconds=60.0), random_state=0).fit(X, y, callback=stop)
    assert model.stop_reason_.startswith("Interrupted")
    assert left[0] <= 0.5
