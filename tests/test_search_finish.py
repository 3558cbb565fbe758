"""What a fit promises: its time, its largest equation, and that a warm start goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest

from sobolev_novelty.expression import Expression
from sobolev_novelty.parsing import parse
from sobolev_novelty.search.engine import Candidate, Deadline, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.finish import Clock, TrainingTable
from sobolev_novelty.search.loop import Budget
from sobolev_novelty.search.preparation import chosen_columns
from sobolev_novelty.search.regressor import SymbolicRegressor


def noisy(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    return X, np.sin(2.0 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.3 * rng.normal(size=n_rows)


@dataclass(slots=True)
class Counting(State):
    n_rounds: int = 0


class CountingEngine(Engine[Counting]):
    """Proposes sin(k*x0) in its k-th round."""

    def __init__(self, guidance: SobolevGuidance | None = None) -> None:
        self.guidance = guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> Counting:
        return Counting()

    def propose(self, state: Counting, rng: np.random.Generator) -> list[Expression]:
        state.n_rounds += 1
        return [parse(f"sin(x0)**{state.n_rounds + 1}")]

    def observe(self, state: Counting, scored: list[Candidate]) -> Counting:
        return state


@pytest.mark.parametrize(("n_rows", "n_columns"), [(200, 4), (500, 30), (100_000, 8)])
def test_a_fit_keeps_to_its_time_whatever_the_table(n_rows: int, n_columns: int) -> None:
    X, y = noisy(n_rows, n_columns)
    seconds = []
    for _ in range(3):  # another process may take the machine for a moment
        begin = time.perf_counter()
        model = SymbolicRegressor(timeout=2.0, random_state=0, verbose=False).fit(X, y)
        seconds.append(time.perf_counter() - begin)
        if seconds[-1] <= 2.3:
            break
    assert min(seconds) <= 1.05 * 2.0 + 0.2
    assert model.stop_reason_ == "The budget of 2 seconds is spent."


def test_the_time_of_a_fit_is_shared_out_beforehand() -> None:
    clock = Clock(100.0, 10.0, n_rows=100_000)
    assert clock.search.at < clock.polish.at < 110.0 <= clock.choice.at <= 110.7
    assert Clock(100.0, 10.0).polishing == 0.0
    assert Clock(0.0, None, 10**6).search == Deadline()


def test_equations_that_come_when_the_time_is_over_keep_their_error() -> None:
    X, y = noisy(100, 3)
    table = TrainingTable(X, y, None, ("x0", "x1", "x2"), 100, False)
    late = Deadline(0.0)
    assert table.rated(parse("x0"), late, 0.7).nmse == 0.7
    assert table.rated(parse("1.5*x2"), Deadline(), 0.7).nmse != 0.7
    assert np.isfinite(table.rated(parse("1.5*x2"), late).nmse)


def test_columns_can_be_ranked_without_trees() -> None:
    X, y = noisy(2000, 40)
    chosen = chosen_columns(X, y, 10, with_trees=False)
    assert {0, 1, 2} & set(chosen.tolist()) >= {2}
    assert len(chosen) == 10


@pytest.mark.parametrize("limit", [1, 3, 7, 12, 30])
def test_no_equation_is_larger_than_was_asked_for(limit: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 25)) * np.geomspace(1e-6, 1e7, 25) + np.linspace(0.0, 4e5, 25)
    y = X @ (1.0 / X.std(axis=0)) + rng.normal(size=150)
    model = SymbolicRegressor(
        max_complexity=limit, budget=Budget(max_evaluations=1500), random_state=0, verbose=False
    ).fit(X, y)
    assert max(e.complexity for e in model.equations_["expression"]) <= limit
    assert model.equations_["complexity"].tolist() == [e.complexity for e in model.equations_["expression"]]


def test_a_warm_start_with_a_seed_goes_on_instead_of_repeating_itself() -> None:
    X, y = noisy(100, 1 + 2)
    model = SymbolicRegressor(
        CountingEngine(), warm_start=True, budget=Budget(max_evaluations=6), random_state=0, verbose=False
    )
    model.fit(X, y)
    first = model._memory_.state.n_rounds
    model.fit(X, y)
    assert model._memory_.state.n_rounds > first
    model.fit(X, 2.0 * y)  # other data: another search
    assert model._memory_.state.n_rounds <= first
    cold = SymbolicRegressor(CountingEngine(), budget=Budget(max_evaluations=6), random_state=0, verbose=False)
    assert cold.fit(X, y)._memory_ is None


def test_a_warm_start_of_the_genetic_engine_evolves_on() -> None:
    X, y = noisy(100, 3)
    model = SymbolicRegressor(warm_start=True, budget=Budget(max_evaluations=400), random_state=0, verbose=False)
    generation = model.fit(X, y)._memory_.state.generation
    error = model.equations_["loss"].min()
    model.fit(X, y)
    assert model._memory_.state.generation > generation
    assert model.equations_["loss"].min() <= error


def test_all_rows_tell_apart_what_the_rows_of_a_search_could_not() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1.0, 5.0, 8000), rng.uniform(1.0, 2.0, 8000), rng.uniform(3.0, 10.0, 8000)])
    law = X[:, 0] / np.sqrt(1.0 - (X[:, 1] / X[:, 2]) ** 2)
    y = law + 0.1 * np.sqrt(np.mean(law**2)) * rng.normal(size=8000)
    table = TrainingTable(X, y, None, ("x0", "x1", "x2"), 8000, False)
    some = Candidate(parse("x0"), parse("1.047*x0"), 0.08, 0.5)
    others = [
        Candidate(parse(e), parse(e), 0.1, 0.5) for e in ("x0/sqrt(1 - 1.1*square(x1/x2))", "x0*exp(cube(x1/x2))")
    ]
    found = table.rated_front([some], others, lambda e: e, 60, Deadline())
    assert str(found[-1].expression).count("sqrt") == 1
    complete = TrainingTable(X, y, None, ("x0", "x1", "x2"), 8000, True)
    assert len(complete.rated_front([some], others, lambda e: e, 60, Deadline())) == 1


@pytest.mark.parametrize("seed", [0, 1])
def test_a_phase_is_small_where_its_quarter_turn_may_not_be_written_as_the_other_function(seed: int) -> None:
    x = np.linspace(0.5, 3.0, 200)
    options = {"operators": ["add", "mul", "cos"], "budget": Budget(max_evaluations=1000), "random_state": seed}
    found = SymbolicRegressor(**options).fit(x[:, None], np.sin(x)).expression_
    assert [abs(c) for c in found.constants] == pytest.approx([np.pi / 2])
