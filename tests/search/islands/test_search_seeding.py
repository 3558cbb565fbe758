"""One engine's fits as another's guesses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.mcts import MCTS
from sobolev_novelty.errors import MissingExtraError, ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import Candidate, Deadline, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.islands.cores import Islands
from sobolev_novelty.search.islands.seeding import BUDGET_SHARE, N_SEEDS, PATIENCE, Seeder, seeding_engine
from sobolev_novelty.search.loop.front import ParetoFront
from sobolev_novelty.search.loop.loop import N_CONTENDERS, N_LEADERS, Budget, SearchProgress, run
from sobolev_novelty.search.model.regressor import SymbolicRegressor

X = np.random.default_rng(0).uniform(1.0, 3.0, (2, 80))
PROBLEM = Problem(Rows(Sample(X, ("x0", "x1")), np.sin(X[0]) * X[1] + 0.3 * X[0] ** 2))


def progress(n_evaluations: int, total: int | None, error: float = 0.1) -> SearchProgress:
    form = parse("x0")
    return SearchProgress(ParetoFront((Candidate(form, form, error, 0.5),)), n_evaluations, 0, 0.0, total)


def test_an_engine_is_asked_once_when_the_search_has_had_its_part() -> None:
    seeder = Seeder("mcts", PROBLEM, Budget(max_evaluations=1000), np.random.default_rng(0))
    assert seeder.rest.max_evaluations == 1000 - BUDGET_SHARE * 1000
    assert seeder(progress(int(PATIENCE * 800) - 1, 800)) == ()
    assert seeder(progress(799, 800, error=0.0)) == ()
    guesses = seeder(progress(int(PATIENCE * 800), 800))
    assert 1 < len(guesses) == len(set(guesses)) <= N_SEEDS
    assert 0 < seeder.n_evaluations <= BUDGET_SHARE * 1000
    assert seeder(progress(799, 800)) == ()


def test_a_search_with_seconds_asks_after_its_part_of_them() -> None:
    timed = Seeder("mcts", PROBLEM, Budget(max_evaluations=None, seconds=0.5), np.random.default_rng(0))
    timed.begin = Deadline.after(60.0)
    assert timed(progress(10**6, None)) == ()
    timed.begin = Deadline.after(0.0)
    assert timed(progress(10**6, None))


def test_callbacks_hear_of_the_search_while_the_other_engine_works() -> None:
    heard: list[int] = []
    seeder = Seeder(
        "mcts", PROBLEM, Budget(max_evaluations=1000), np.random.default_rng(0), callbacks=[
            lambda told: heard.append(told.n_evaluations)  # type: ignore[func-returns-value]
        ],
    )  # fmt: skip
    seeder(progress(500, 800))
    assert set(heard) == {500}


def test_ctrl_c_while_the_other_engine_works_ends_the_search() -> None:
    def interrupt(told: SearchProgress) -> None:
        if told.n_evaluations >= PATIENCE * 800:
            raise KeyboardInterrupt

    seeder = Seeder("mcts", PROBLEM, Budget(max_evaluations=1000), np.random.default_rng(0), callbacks=[interrupt])
    result = run(PROBLEM, MCTS(), seeder.rest, np.random.default_rng(0), visitors=seeder)
    assert result.is_interrupted
    assert len(result.front) > 0


def test_a_law_that_is_found_at_once_costs_no_guesses() -> None:
    model = SymbolicRegressor("genetic", guesses="mcts", random_state=0).fit(X.T, 2.0 * X[0] * X[1])
    assert model.stop_reason_ == "The fit is exact up to rounding. 'mcts' was not asked for guesses."


def test_islands_are_given_guesses_too() -> None:
    model = SymbolicRegressor(
        "genetic", guesses="mcts", budget=Budget(max_evaluations=600), random_state=0, parallel=Islands(2)
    ).fit(X.T, PROBLEM.y + np.random.default_rng(1).normal(0.0, 0.1, len(PROBLEM.y)))
    assert "Guesses from 'mcts': " in model.stop_reason_
    assert model.n_evaluations_ <= 600


def test_the_leaders_of_a_result_are_its_best_fits() -> None:
    result = run(PROBLEM, MCTS(), Budget(max_evaluations=200), np.random.default_rng(0))
    ranks = [candidate.rank for candidate in result.leaders]
    assert N_LEADERS <= len(ranks) <= N_LEADERS + N_CONTENDERS
    assert len({f"{candidate.nmse:.5e}" for candidate in result.leaders}) == len(ranks)
    assert ranks == sorted(ranks, reverse=True)
    assert result.best is not None
    assert ranks[0] >= result.best.rank


def test_the_result_tells_what_seeding_took() -> None:
    model = SymbolicRegressor("genetic", guesses="mcts", budget=Budget(max_evaluations=400), random_state=0).fit(
        X.T, PROBLEM.y + np.random.default_rng(1).normal(0.0, 0.1, len(PROBLEM.y))
    )
    assert model.n_evaluations_ <= 400
    assert "Guesses from 'mcts': " in model.stop_reason_


def test_a_name_that_is_no_engine_is_refused() -> None:
    assert seeding_engine(["x0"]) is None
    assert seeding_engine(None) is None
    with pytest.raises(ParameterError, match="'guesses' must be a list of equations, or the name of an engine"):
        SymbolicRegressor(guesses="x0*x1").fit(X.T, PROBLEM.y)


def test_an_engine_whose_package_is_missing_is_refused_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"\.\[transformer\]"):
        seeding_engine("transformer")


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
    guessed = Problem(Rows(PROBLEM.sample, PROBLEM.y), guesses=(parse("sin(x0)*x1"),))
    result = run(guessed, engine, Budget(max_evaluations=50, stop_when_exact=False), np.random.default_rng(0))
    assert engine.heard == [[str(guessed.guesses[0]), "x0*x1"], ["x0*x1"]]
    assert str(result.stop) == "The engine has nothing more to propose."
