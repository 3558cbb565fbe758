"""The public contract suite: our engines pass it, broken ones do not."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.expression import Expression
from sobolev_novelty.search.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.mcts import MCTS
from sobolev_novelty.testing import ContractError, check_engine, engine_checks


@pytest.mark.parametrize(("name", "check"), engine_checks(), ids=lambda value: value if isinstance(value, str) else "")
def test_tree_search_fulfils_the_contract(name: str, check: object) -> None:
    check(MCTS(n_rollouts=4), 150)  # type: ignore[operator]


class Broken(Engine):
    """Proposes x0 + noise, in one of several wrong ways."""

    def __init__(self, guidance: SobolevGuidance | None = None, fault: str = "") -> None:
        self.guidance = guidance
        self.fault = fault

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        return State(extra={"names": problem.sample.names})

    def propose(self, state: State, rng: np.random.Generator) -> list[Expression]:
        if self.fault == "unknown variable":
            return [Expression.of("add", "x0", "z")]
        if self.fault == "operator":
            return [Expression.of("arctan", "x0")]
        if self.fault == "empty":
            return []
        if self.fault == "entropy":
            rng = np.random.default_rng()
        power = Expression.of("x0")
        for _ in range(int(rng.integers(1, 9))):
            power = Expression.of("mul", power, str(rng.choice(state.extra["names"])))
        return [power]

    def observe(self, state: State, scored: list[Candidate]) -> State:
        if self.fault == "counts":
            state.n_novelty_calls += 1
        if self.fault == "failures":
            assert all(np.isfinite(c.nmse) for c in scored)
        if self.fault == "keeps":
            self.memory = scored
        return state


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("unknown variable", "unknown variable 'z'"),
        ("operator", "not allowed"),
        ("empty", "proposed nothing"),
        ("entropy", "Draw from 'rng' alone"),
        ("counts", "novelty calls were made"),
        ("keeps", "Keep what changes in the state"),
    ],
)
def test_a_broken_engine_is_told_what_is_wrong(fault: str, sentence: str) -> None:
    with pytest.raises(ContractError, match=sentence):
        check_engine(Broken(fault=fault), max_evaluations=60)


def test_an_engine_that_cannot_stand_failures_does_not_pass() -> None:
    with pytest.raises(AssertionError):
        check_engine(Broken(fault="failures"), max_evaluations=60)
