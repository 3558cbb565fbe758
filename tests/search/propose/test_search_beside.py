"""Structural forms beside any engine, and the schedule that says which."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.engines.genetic import Genetic
from sobolev_novelty.engines.mcts import MCTS
from sobolev_novelty.engines.paper.gp import PaperGP
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import Candidate, Deadline, Engine, Guidance, Island, Problem, State
from sobolev_novelty.search.loop.loop import Budget, run
from sobolev_novelty.search.propose.beside import Beside
from sobolev_novelty.search.propose.structure.families import FAMILIES, NAMES, Schedule
from sobolev_novelty.search.propose.structure.family import Level
from sobolev_novelty.ui.cli.main import app

X = np.random.default_rng(0).uniform(1.0, 4.0, (200, 2))
PROBLEM = Problem(Rows(as_sample(X), evaluate(parse("x0*x1/(x0 + x1)"), X)))


class Silent(Engine[State]):
    """An engine of somebody else's that knows no law."""

    def __init__(self, structural: bool | str | Schedule = True, guidance: Guidance = None) -> None:
        self.structural, self.guidance = structural, guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        return State()

    def propose(self, state: State, rng: np.random.Generator) -> Iterable[Expression]:
        return [parse(f"x0 + {rng.random():.6f}*sin({rng.random():.6f}*x1)")]

    def observe(self, state: State, scored: list[Candidate]) -> State:
        return State()  # a new one: what comes beside it is the loop's


@pytest.mark.parametrize("engine", [Silent(), MCTS(structural="power laws, exact relations"), Genetic()])
def test_any_engine_may_have_structural_forms(engine: Engine[State]) -> None:
    result = run(PROBLEM, engine, Budget(max_evaluations=2000), np.random.default_rng(0))
    assert result.best is not None
    assert result.best.nmse < 1e-20


def test_without_them_an_engine_is_by_itself() -> None:
    result = run(PROBLEM, Silent(structural=False), Budget(max_evaluations=30), np.random.default_rng(0))
    assert result.state.beside is None
    assert PaperGP(structural=True).beside is None  # a backbone that is measured


def test_a_schedule_names_families_or_those_to_leave_out() -> None:
    assert Schedule.of(True) == Schedule()
    assert Schedule.of(False) is None
    only = Schedule.of("sums, power laws")
    assert only is not None
    assert [row.name for row in only.rows] == ["sums", "power laws"]
    others = Schedule.of("-sums, -fast waves")
    assert others is not None
    assert set(NAMES) - set(others.families) == {"sums", "fast waves"}


@pytest.mark.parametrize("asked", ["sunms", "-sums, -wave"])
def test_an_unknown_family_is_refused_with_the_known_ones(asked: str) -> None:
    with pytest.raises(ParameterError, match=r"unknown families: .*Known: exponentials of sums, power laws"):
        Schedule.of(asked)


def test_families_that_are_switched_off_propose_nothing() -> None:
    def n_forms(asked: str) -> int:
        beside = Beside.of(PROBLEM, asked, np.random.default_rng(0))
        assert beside is not None
        return sum(len(beside.next(Deadline())) for _ in range(10))

    assert n_forms("power laws") < n_forms("power laws, exact relations")


def test_every_level_has_families_with_names_of_their_own() -> None:
    assert {row.level for row in FAMILIES} == set(Level)
    assert len(set(NAMES)) == len(FAMILIES)
    assert all(row.columns and row.selection and row.when for row in FAMILIES)


def test_a_copy_goes_on_where_the_original_is() -> None:
    beside = Beside.of(PROBLEM, True, np.random.default_rng(0))
    assert beside is not None
    for _ in range(3):
        beside.next(Deadline())
    copy = pickle.loads(pickle.dumps(beside))
    assert copy.next(Deadline()) == beside.next(Deadline())


def test_islands_draw_the_same_rows_and_a_search_by_itself_its_own() -> None:
    parts = [Problem(PROBLEM.rows, island=Island(k, 2, seed=7)) for k in range(2)]
    found = [Beside.of(part, True, np.random.default_rng(k)) for k, part in enumerate([*parts, PROBLEM])]
    seeds = [beside.seed for beside in found if beside is not None]
    assert seeds[:2] == [7, 7]
    assert seeds[2] != 7


def test_the_command_line_takes_a_schedule_and_names_its_option(tmp_path: Path) -> None:
    table = tmp_path / "data.csv"
    table.write_text("a,b\n" + "\n".join(f"{k / 7},{3.0 * (k / 7) ** 2}" for k in range(1, 40)))
    run = partial(CliRunner().invoke, app)
    options = ["fit", str(table), "--target", "b", "--evaluations", "60", "--json", "--schedule"]
    found = run([*options, "power laws"])
    assert found.exit_code == 0, found.output
    refused = run([*options, "power lawns"])
    assert refused.exit_code == 1
    assert "--schedule names unknown families: power lawns" in refused.output
