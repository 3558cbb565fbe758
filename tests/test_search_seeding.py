"""One engine's fits as another's guesses."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.data import Sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.parsing import parse
from sobolev_novelty.search.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.loop import N_LEADERS, Budget, run
from sobolev_novelty.search.mcts import MCTS
from sobolev_novelty.search.regressor import SymbolicRegressor
from sobolev_novelty.search.seeding import BUDGET_SHARE, N_SEEDS, seed, seeding_engine

X = np.random.default_rng(0).uniform(1.0, 3.0, (2, 80))
PROBLEM = Problem(Sample(X, ("x0", "x1")), np.sin(X[0]) * X[1] + 0.3 * X[0] ** 2)


def test_seeding_takes_its_share_and_leaves_the_rest() -> None:
    found = seed(PROBLEM, "mcts", Budget(max_evaluations=1000), np.random.default_rng(0))
    assert 0 < found.n_evaluations <= BUDGET_SHARE * 1000
    assert found.budget.max_evaluations == 1000 - found.n_evaluations
    assert 1 < len(found.guesses) <= N_SEEDS
    assert len(set(found.guesses)) == len(found.guesses)
    timed = seed(PROBLEM, "mcts", Budget(seconds=1.0), np.random.default_rng(0))
    assert timed.budget.seconds is not None
    assert timed.budget.seconds <= 1.0


def test_the_leaders_of_a_result_are_its_best_fits() -> None:
    result = run(PROBLEM, MCTS(), Budget(max_evaluations=200), np.random.default_rng(0))
    ranks = [candidate.rank for candidate in result.leaders]
    assert len(ranks) == N_LEADERS
    assert ranks == sorted(ranks, reverse=True)
    assert result.best is not None
    assert ranks[0] >= result.best.rank


def test_the_result_tells_what_seeding_took() -> None:
    model = SymbolicRegressor(
        "genetic", guesses="mcts", budget=Budget(max_evaluations=400), random_state=0, verbose=False
    ).fit(X.T, PROBLEM.y)
    assert model.n_evaluations_ <= 400
    assert "Guesses from 'mcts': " in model.stop_reason_


def test_a_name_that_is_no_engine_is_refused() -> None:
    assert seeding_engine(["x0"]) is None
    assert seeding_engine(None) is None
    with pytest.raises(ParameterError, match="'guesses' must be a list of equations, or the name of an engine"):
        SymbolicRegressor(guesses="x0*x1").fit(X.T, PROBLEM.y)


class Listener(Engine[State]):
    """Remembers what it is told in its first round."""

    heard: list[list[str]]

    def __init__(self, guidance: SobolevGuidance | None = None) -> None:
        self.guidance = guidance
        self.heard = []

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        return State()

    def propose(self, state: State, rng: np.random.Generator) -> list[object]:  # type: ignore[override]
        return [parse("x0*x1")] if len(self.heard) < 2 else []

    def observe(self, state: State, scored: list[Candidate]) -> State:
        self.heard.append([str(candidate.form) for candidate in scored])
        return state


def test_an_engine_observes_the_guesses_with_its_first_round() -> None:
    engine = Listener()
    guessed = Problem(PROBLEM.sample, PROBLEM.y, guesses=(parse("sin(x0)*x1"),))
    result = run(guessed, engine, Budget(max_evaluations=50, stop_when_exact=False), np.random.default_rng(0))
    assert engine.heard == [[str(guessed.guesses[0]), "x0*x1"], ["x0*x1"]]
    assert result.stop_reason == "The engine has nothing more to propose."
