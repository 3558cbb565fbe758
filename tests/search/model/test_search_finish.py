"""What a fit promises: its time, its largest equation, and that a warm start goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import Candidate, Deadline, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.finish import Clock, TrainingTable
from sobolev_novelty.search.model.preparation import chosen_columns
from sobolev_novelty.search.model.regressor import SymbolicRegressor


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
        model = SymbolicRegressor(budget=2.0, random_state=0).fit(X, y)
        seconds.append(time.perf_counter() - begin)
        if seconds[-1] <= 2.3:
            break
    assert min(seconds) <= 1.05 * 2.0 + 0.2
    assert model.stop_reason_ == "The budget of 2 seconds is spent."


def test_the_time_of_a_fit_is_shared_out_beforehand() -> None:
    clock = Clock(100.0, 10.0, n_rows=100_000)
    assert clock.search.at < clock.choice.at < 110.0 <= clock.end.at <= 110.7
    assert Clock(100.0, 10.0).polishing == 0.0
    assert Clock(0.0, None, 10**6).search == Deadline()


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
    model = SymbolicRegressor(budget=Budget(max_evaluations=1500), random_state=0)
    model.set_params(constraints__max_complexity=limit).fit(X, y)
    assert max(e.complexity for e in model.equations_["expression"]) <= limit
    assert model.equations_["complexity"].tolist() == [e.complexity for e in model.equations_["expression"]]


def test_a_warm_start_with_a_seed_goes_on_instead_of_repeating_itself() -> None:
    X, y = noisy(100, 1 + 2)
    model = SymbolicRegressor(CountingEngine(), budget=Budget(max_evaluations=6), random_state=0)
    model.fit(X, y, warm_start=True)
    first = model._memory_.state.n_rounds
    model.fit(X, y, warm_start=True)
    assert model._memory_.state.n_rounds > first
    model.fit(X, 2.0 * y, warm_start=True)  # other data: another search
    assert model._memory_.state.n_rounds <= first
    cold = SymbolicRegressor(CountingEngine(), budget=Budget(max_evaluations=6), random_state=0)
    assert cold.fit(X, y)._memory_ is None


def test_a_warm_start_of_the_genetic_engine_evolves_on() -> None:
    X, y = noisy(100, 3)
    model = SymbolicRegressor(budget=Budget(max_evaluations=400), random_state=0)
    generation = model.fit(X, y, warm_start=True)._memory_.state.generation
    error = model.equations_["loss"].min()
    model.fit(X, y, warm_start=True)
    assert model._memory_.state.generation > generation
    assert model.equations_["loss"].min() <= error


@pytest.mark.parametrize("seed", [0, 1])
def test_a_phase_is_small_where_its_quarter_turn_may_not_be_written_as_the_other_function(seed: int) -> None:
    x = np.linspace(0.5, 3.0, 200)
    options = {"operators": ["add", "mul", "cos"], "budget": Budget(max_evaluations=1000), "random_state": seed}
    found = SymbolicRegressor(**options).fit(x[:, None], np.sin(x)).expression_
    assert [abs(c) for c in found.constants] == pytest.approx([np.pi / 2])


def gamma_table() -> tuple[TrainingTable, list[Candidate]]:
    """Rows of m/sqrt(1 - v²) with 10 % of noise; the law with free numbers, and what looks like it."""
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.uniform(1.0, 5.0, 4000), rng.uniform(0.1, 0.67, 4000)])
    law = X[:, 0] / np.sqrt(1.0 - X[:, 1] ** 2)
    y = law + 0.1 * np.sqrt(np.mean(law**2)) * rng.normal(size=4000)
    imitations = [
        "0.998*(x0/cos(1.04*x1))", "0.62*(x0*(1.6 + square(x1)))", "1.12*(x0*(0.9 + cube(x1)))",
        "1.57*(x0/arccos(0.82*square(x1)))", "0.76*(x0/tanh(cos(1.29*x1)))", "0.998*(x0/square(cos(0.75*x1)))",
        "0.998*(x0/cube(cos(0.61*x1)))", "0.997*(x0*exp(0.575*square(x1)))", "2.7*(x0/exp(cos(1.09*x1)))",
    ]  # fmt: skip
    texts = [*imitations, "1.01*(x0/cos(arcsin(0.98*x1)))"]
    data = TrainingTable(Rows.of(X, y), 4000, is_complete=False, max_complexity=30)
    return data, [Candidate(parse(text), parse(text), 0.07, 0.8) for text in texts]


def chosen(data: TrainingTable, found: list[Candidate], deadline: Deadline) -> Expression:
    candidates = data.candidates(found, lambda e: e, ("add", "mul"))
    return data.choice(candidates, "auto", deadline=deadline).chosen.expression


def test_a_law_among_many_imitations_is_chosen_when_its_numbers_are_simple() -> None:
    data, others = gamma_table()
    assert str(chosen(data, others, Deadline())) in ("x0/cos(arcsin(x1))", "x0/sqrt(1 - square(x1))")


def test_when_the_time_is_over_something_is_chosen_all_the_same() -> None:
    data, others = gamma_table()
    assert chosen(data, others, Deadline(0.0)) in {c.expression for c in others}
