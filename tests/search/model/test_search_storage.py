"""Models as files: what comes back, what old and foreign files do, and that nothing in a file is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sympy

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.genetic import Genetic
from sobolev_novelty.engines.mcts import MCTS
from sobolev_novelty.errors import DataError, ParameterError, SobolevError
from sobolev_novelty.search.contract.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.contract.registry import ENGINES, register_engine
from sobolev_novelty.search.islands.cores import Islands
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.search.model.storage import StoredEngine
from sobolev_novelty.search.problem.constraints import Constraints, Units

X = pd.DataFrame(np.random.default_rng(0).uniform(1.0, 3.0, (60, 2)), columns=["mass", "speed"])
Y = 0.5 * X["mass"].to_numpy() * X["speed"].to_numpy() ** 2
SMALL = Budget(max_evaluations=60)


class Oracle(Engine[State]):
    """Proposes one product; its options are of many kinds."""

    def __init__(
        self,
        client: object = None,
        prompts: tuple[str, ...] = ("be brief",),
        weights: list[float] | None = None,
        guidance: SobolevGuidance | None = None,
    ) -> None:
        self.client = client
        self.prompts = prompts
        self.weights = weights
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        return State()

    def propose(self, state: State, rng: np.random.Generator) -> list[Expression]:
        return [Expression.of("mul", "x0", Expression.of("square", "x1"))]

    def observe(self, state: State, scored: list[Candidate]) -> State:
        return state


def saved(path: Path, engine: object = "mcts", **options: Any) -> SymbolicRegressor:
    options = {"budget": SMALL, "random_state": 0} | options
    model = SymbolicRegressor(engine, **options).fit(X, Y)  # type: ignore[arg-type]
    model.save(path)
    return model


def changed(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_loaded_model_predicts_the_same_and_has_the_same_table(tmp_path: Path) -> None:
    model = saved(tmp_path / "model.json")
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    pd.testing.assert_frame_equal(loaded.equations_, model.equations_, check_dtype=False)
    assert (loaded.n_evaluations_, loaded.stop_reason_) == (model.n_evaluations_, model.stop_reason_)
    with pytest.raises(ParameterError, match="give 'X'"):
        loaded.novelty_report()
    assert len(loaded.novelty_report(X)) >= 1


@pytest.mark.parametrize(
    "engine",
    [
        "genetic",
        Genetic(population_size=30, structural=False, guidance=SobolevGuidance(order=0, weight=0.02)),
        MCTS(exploration=0.5, n_rollouts=np.int64(3)),  # type: ignore[arg-type]
    ],
)
def test_the_engine_comes_back_with_its_options(tmp_path: Path, engine: object) -> None:
    saved(tmp_path / "model.json", engine)
    loaded = SymbolicRegressor.load(tmp_path / "model.json").engine
    if isinstance(engine, str):
        assert loaded == engine
    else:
        assert type(loaded) is type(engine)
        assert loaded.get_params() == engine.get_params()  # type: ignore[union-attr, attr-defined]


def test_every_argument_of_the_constructor_comes_back(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "novelty": SobolevGuidance(tau=0.5),
        "budget": Budget(max_evaluations=50, seconds=20.0, stop_when_exact=False),
        "operators": ("add", "mul", "square"),
        "constraints": Constraints(max_complexity=20, nesting={"sin": {"sin": 0}}),
        "units": Units({"mass": "kg"}),
        "parallel": Islands(1),
        "random_state": 7,
    }
    saved(tmp_path / "model.json", **options)
    loaded = SymbolicRegressor.load(tmp_path / "model.json").get_params(deep=False)
    assert {name: loaded[name] for name in options} == options


def test_guesses_come_back_as_text_and_a_generator_not_at_all(tmp_path: Path) -> None:
    mass, speed = sympy.symbols("mass speed")
    guesses = ["mass*speed", mass / speed, Expression.of("sin", "mass")]
    saved(tmp_path / "model.json", guesses=guesses, random_state=np.random.RandomState(0))
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    assert loaded.guesses == ["mass*speed", "mass/speed", "sin(mass)"]
    assert loaded.random_state is None
    assert loaded.fit(X, Y).score(X, Y) > 0.99


def test_a_model_saved_loaded_and_saved_is_the_same_file(tmp_path: Path) -> None:
    for name, engine in (("known", MCTS(n_rollouts=3)), ("unknown", Oracle(client=object()))):
        one, two = tmp_path / f"{name} 1.json", tmp_path / f"{name} 2.json"
        saved(one, engine)
        SymbolicRegressor.load(one).save(two)
        assert one.read_text() == two.read_text()


def test_an_engine_unknown_here_predicts_and_is_refused_at_the_next_fit(tmp_path: Path) -> None:
    model = saved(tmp_path / "model.json", Oracle())
    loaded = SymbolicRegressor.load(tmp_path / "model.json")
    assert isinstance(loaded.engine, StoredEngine)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ParameterError, match=r"Oracle'.* no engine of this name is registered .*set_params"):
        loaded.fit(X, Y)
    assert loaded.set_params(engine="mcts").fit(X, Y).score(X, Y) > 0.99


def test_options_that_a_file_cannot_hold_are_named_at_the_next_fit(tmp_path: Path) -> None:
    register_engine("oracle", Oracle)
    try:
        saved(tmp_path / "whole.json", Oracle(prompts=("a", "b"), weights=[0.5, 1.0]))
        whole = SymbolicRegressor.load(tmp_path / "whole.json").engine
        assert isinstance(whole, Oracle)
        assert (whole.prompts, whole.weights) == (("a", "b"), [0.5, 1.0])
        saved(tmp_path / "partial.json", Oracle(client=object(), weights=[float("inf")]))
        loaded = SymbolicRegressor.load(tmp_path / "partial.json")
        assert loaded.predict(X).shape == (60,)
        with pytest.raises(ParameterError, match=r"JSON could not hold its option\(s\) client, weights"):
            loaded.fit(X, Y)
    finally:
        del ENGINES["oracle"]


def test_an_option_that_the_engine_no_longer_has_is_reported_at_the_next_fit(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    saved(path, MCTS())
    content = json.loads(path.read_text())
    content["settings"]["engine"]["options"]["temperature"] = 3
    path.write_text(json.dumps(content))
    loaded = SymbolicRegressor.load(path)
    assert loaded.predict(X).shape == (60,)
    with pytest.raises(ParameterError, match="temperature"):
        loaded.fit(X, Y)


VERSION_1: dict[str, Any] = {
    "format": "sobolev-novelty model",
    "version": 1,
    "feature_names": ["mass", "speed"],
    "n_features": 2,
    "chosen": "0.5*mass*square(speed)",
    "equations": [
        {"expression": "3.1*mass", "loss": 2.5, "score": 0.4, "min_novelty": 1.0, "mean_novelty": 1.0},
        {
            "expression": "0.5*mass*square(speed)",
            "loss": 1e-30,
            "score": 0.99,
            "min_novelty": None,
            "mean_novelty": None,
        },
    ],
    "n_evaluations": 40,
    "n_novelty_calls": 3,
    "stop_reason": "The fit is exact up to rounding.",
    "settings": {
        "engine": "mcts",
        "novelty": {"weight": 0.01, "order": 0, "tau": 0.3, "archive_capacity": 64, "pool_size": 64},
        "budget": {"max_evaluations": 40, "seconds": None, "stop_when_exact": True},
        "timeout": None,
        "operators": None,
        "max_complexity": None,
        "warm_start": False,
        "random_state": 0,
    },
}


def test_files_of_version_1_still_load(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(VERSION_1))
    loaded = SymbolicRegressor.load(path)
    np.testing.assert_allclose(loaded.predict(X), Y, rtol=1e-12)
    assert loaded.engine == "mcts"
    assert loaded.novelty == SobolevGuidance(order=0, tau=0.3)
    assert loaded.budget == Budget(max_evaluations=40)
    assert loaded.fit(X, Y).score(X, Y) > 0.99


def test_arguments_of_version_4_are_put_where_they_belong_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    saved(path)
    content = json.loads(path.read_text())
    now = ("budget", "constraints", "units", "parallel")
    settings = {name: value for name, value in content["settings"].items() if name not in now}
    settings |= {"timeout": 5.0, "max_complexity": 20, "nesting": None, "y_units": "J", "constant_units": False}
    settings |= {"units": {"type": "mapping", "items": {"mass": "kg", "speed": "m/s"}}, "n_jobs": 2, "islands": None}
    settings |= {"sigma": [0.1] * 200, "verbose": False, "warm_start": True}
    path.write_text(json.dumps(content | {"version": 4, "settings": settings}))
    loaded = SymbolicRegressor.load(path)
    assert loaded.budget == Budget(seconds=5.0) and loaded.parallel == 2
    assert loaded.constraints == Constraints(max_complexity=20)
    assert loaded.units == Units({"mass": "kg", "speed": "m/s"}, target="J", constants=False)
    assert not hasattr(loaded, "_said_before")  # what belonged to the rows of that fit


@pytest.mark.parametrize("version", [0, 6, None, "2"])
def test_files_of_another_version_are_refused_with_what_was_found(tmp_path: Path, version: object) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(VERSION_1 | {"version": version}))
    with pytest.raises(DataError, match=rf"version 1 to 5.* Got .*version {version!r}"):
        SymbolicRegressor.load(path)


def test_a_file_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for content, sentence in (
        ("[1, 2]", "JSON object"),
        ('{"format": "x"}', "not a saved model"),
        ("not json", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=sentence):
            SymbolicRegressor.load(path)
    with pytest.raises(DataError, match="cannot be read as JSON"):
        SymbolicRegressor.load(tmp_path / "missing.json")


@pytest.mark.parametrize(
    "damage",
    [
        {"settings": None},
        {"settings": {}},
        {"settings": VERSION_1["settings"] | {"colour": "red"}},
        {"settings": VERSION_1["settings"] | {"engine": 5}},
        {"settings": VERSION_1["settings"] | {"engine": {"name": "mcts"}}},
        {"settings": VERSION_1["settings"] | {"budget": {"type": "Budget", "fields": {"moons": 3}}}},
        {"equations": [{"expression": "mass"}]},
        {"equations": []},
        {"equations": 7},
        {"n_features": "many"},
        {"chosen": "mass +"},
        {"chosen": "height"},
        {"chosen": None},
    ],
)
def test_a_damaged_model_is_refused_in_a_sentence(tmp_path: Path, damage: dict[str, Any]) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(VERSION_1 | {"version": 2} | damage))
    with pytest.raises(SobolevError):
        SymbolicRegressor.load(path)


def test_nothing_in_a_file_is_imported_or_run(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    (tmp_path / "trap.py").write_text("raise SystemExit('sprung')")
    saved(path, MCTS())
    content = json.loads(path.read_text())
    content["settings"]["engine"]["name"] = "trap:Engine"
    path.write_text(json.dumps(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        loaded = SymbolicRegressor.load(path)
        with pytest.raises(ParameterError, match="trap:Engine"):
            loaded.fit(X, Y)


def test_a_model_whose_file_had_no_loss_can_be_saved_again(tmp_path: Path) -> None:
    """Found by the fuzzer: a null became a number that JSON has not."""
    X = np.linspace(1.0, 2.0, 40)[:, None]
    path = tmp_path / "model.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, X[:, 0] ** 2).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content["equations"][0] |= {"loss": None, "score": None}
    path.write_text(json.dumps(content), encoding="utf-8")
    SymbolicRegressor.load(path).save(path)
    assert json.loads(path.read_text(encoding="utf-8"))["equations"][0]["score"] is None


def test_half_a_character_is_refused_and_a_whole_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, Y).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"stop_reason": "\N{GRINNING FACE}"}))
    assert SymbolicRegressor.load(path).stop_reason_ == "\N{GRINNING FACE}"
    path.write_text(json.dumps(content | {"stop_reason": "\ud800"}))
    with pytest.raises(DataError, match="cannot be read as JSON"):
        SymbolicRegressor.load(path)
