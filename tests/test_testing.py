"""The public contract suite: our engines pass it, broken ones do not."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.search.contract.engine import Candidate, Engine, Problem, SobolevGuidance, State
from sobolev_novelty.search.contract.registry import engine_named, engine_names
from sobolev_novelty.testing import ContractError, check_engine, engine_checks


@pytest.mark.parametrize("engine", engine_names())
@pytest.mark.parametrize(("name", "check"), engine_checks(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_registered_engine_keeps_the_contract(engine: str, name: str, check: object) -> None:
    if engine == "transformer":
        pytest.importorskip("torch", reason="this engine needs torch")
    options = {"n_samples": 32} if engine == "transformer" else {}
    check(engine_named(engine, **options), 60)  # type: ignore[operator]


@dataclass(slots=True)
class Names(State):
    names: tuple[str, ...]


class Broken(Engine[Names]):
    """Proposes x0 + noise, in one of several wrong ways."""

    def __init__(self, guidance: SobolevGuidance | None = None, fault: str = "") -> None:
        self.guidance = guidance
        self.fault = fault

    def start(self, problem: Problem, rng: np.random.Generator) -> Names:
        return Names(problem.sample.names)

    def propose(self, state: Names, rng: np.random.Generator) -> list[Expression]:
        if self.fault == "unknown variable":
            return [Expression.of("add", "x0", "z")]
        if self.fault == "operator":
            return [Expression.of("arctan", "x0")]
        if self.fault == "empty":
            return []
        if self.fault == "sleeps":
            time.sleep(0.4)
        if self.fault == "entropy":
            rng = np.random.default_rng()
        power = Expression.of("x0")
        for _ in range(int(rng.integers(1, 9))):
            power = Expression.of("mul", power, str(rng.choice(state.names)))
        return [power]

    def observe(self, state: Names, scored: list[Candidate]) -> Names:
        if self.fault == "counts":
            state.n_novelty_calls += 1
        if self.fault == "failures":
            assert all(np.isfinite(c.nmse) for c in scored), "a candidate without a fit"
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


def test_an_engine_that_oversleeps_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sobolev_novelty.testing.TIME_BUDGET", 0.05)
    monkeypatch.setattr("sobolev_novelty.testing.OVERTIME", 0.1)
    with pytest.raises(ContractError, match="Wait for 'problem.deadline.remaining' at most"):
        dict(engine_checks())["check_keeps_to_a_time_budget"](Broken(fault="sleeps"), 60)


def test_an_engine_that_cannot_stand_failures_does_not_pass() -> None:
    with pytest.raises(AssertionError, match="a candidate without a fit"):
        check_engine(Broken(fault="failures"), max_evaluations=60)
