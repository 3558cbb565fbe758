"""An engine of one's own: one class and one line, and every part of the package knows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.mcts import MCTS
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.running.methods import find_method
from sobolev_novelty.search.contract.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.contract.registry import (
    ENGINES,
    engine_class,
    engine_named,
    engine_names,
    name_of,
    register_engine,
)
from sobolev_novelty.testing import check_engine
from sobolev_novelty.ui.cli.main import app

X = np.random.default_rng(0).uniform(1.0, 3.0, (80, 2))
Y = 2.0 * X[:, 0] * X[:, 1]


# --- what an author writes: a state, an engine ...


@dataclass(slots=True)
class Walk(State):
    problem: Problem


class RandomProducts(Engine[Walk]):
    """Products of random variables."""

    def __init__(self, n_forms: int = 20, guidance: SobolevGuidance | None = None) -> None:
        self.n_forms = n_forms
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> Walk:
        return Walk(problem)

    def propose(self, state: Walk, rng: np.random.Generator) -> Iterator[Expression]:
        for _ in range(self.n_forms):
            names = rng.choice(state.problem.sample.names, size=rng.integers(1, 5))
            form = Expression.of(str(names[0]))
            for name in names[1:]:
                form = Expression.of("mul", form, str(name))
            yield form

    def observe(self, state: Walk, scored: list[Candidate]) -> Walk:
        return state


# --- ... and one line


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    sn.register_engine("random_products", RandomProducts)
    yield
    del ENGINES["random_products"]


def test_it_keeps_the_contract() -> None:
    check_engine(engine_named("random_products"), max_evaluations=60)


def test_the_regressor_takes_its_name() -> None:
    model = sn.SymbolicRegressor("random_products", budget=sn.Budget(max_evaluations=50), random_state=0).fit(X, Y)
    assert str(model.expression_) == "2*(x0*x1)"


def test_a_saved_model_keeps_it_with_its_options(tmp_path: Path) -> None:
    engine = RandomProducts(n_forms=7, guidance=SobolevGuidance(order=0))
    model = sn.SymbolicRegressor(engine, budget=sn.Budget(max_evaluations=30), random_state=0).fit(X, Y)
    model.save(tmp_path / "model.json")
    loaded = sn.SymbolicRegressor.load(tmp_path / "model.json")
    assert isinstance(loaded.engine, RandomProducts)
    assert loaded.engine.get_params() == engine.get_params()
    assert loaded.fit(X, Y).expression_ == model.expression_


def test_the_command_line_offers_and_runs_it(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y}).to_csv(table, index=False)
    output = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "200"}).output
    help_text = " ".join(output.replace("│", " ").split())  # the screen may be narrower
    assert "How forms are proposed: genetic, mcts, transformer" in help_text  # those that come with the package
    arguments = ["fit", str(table), "--target", "y", "--max-evaluations", "40", "--engine"]
    done = CliRunner().invoke(app, [*arguments, "random_products"])
    assert done.exit_code == 0, done.output
    assert "a*b" in done.output
    wrong = CliRunner().invoke(app, [*arguments, "annealing"])
    assert wrong.exit_code == 1
    assert f"one of {', '.join(engine_names())}, or" in wrong.stderr


@pytest.mark.parametrize("method", ["random_products", "random_products+novelty"])
def test_the_benchmark_has_a_method_for_it_with_and_without_the_signal(method: str) -> None:
    result = find_method(method)(X, Y, seed=0, budget=20.0, max_evaluations=40, engine_options={"n_forms": 5})
    assert result.evaluations is not None and result.evaluations > 1
    np.testing.assert_allclose(evaluate(result.expression, X), Y, rtol=1e-9)


def test_names_lead_to_classes_and_back() -> None:
    assert engine_names()[:2] == ("genetic", "mcts")
    assert engine_class("mcts") is MCTS
    assert name_of(MCTS()) == "mcts"
    assert name_of(RandomProducts()) == "random_products"


def test_an_engine_may_be_registered_by_its_place_and_is_imported_when_used() -> None:
    register_engine("elsewhere", "no_such_package.engine:Engine")
    try:
        assert "elsewhere" in engine_names()
        with pytest.raises(ImportError, match="no_such_package"):
            engine_named("elsewhere")
    finally:
        del ENGINES["elsewhere"]


def test_a_name_that_is_taken_or_not_a_name_is_refused() -> None:
    with pytest.raises(ParameterError, match="'mcts' is taken"):
        register_engine("mcts", RandomProducts)
    with pytest.raises(ParameterError, match="must be an identifier"):
        register_engine("random+products", RandomProducts)
    with pytest.raises(ParameterError, match=f"'engine' must be one of {', '.join(engine_names())}, or an Engine"):
        engine_named("annealing")
