"""Runs that are killed at random moments lose, double and tear nothing: the short version of tools/kill_test.py."""

from __future__ import annotations

import sys

import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from kill_test import SCENARIOS, Lost, Scenario, kill_at_random


@pytest.mark.slow
@pytest.mark.parametrize("name", ["turbulence", "fit"])
def test_a_run_that_is_killed_goes_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kill_at_random(name, 2, seed=18).kills == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bench", "pretraining"])
def test_a_longer_run_that_is_killed_goes_on(name: str) -> None:
    if name == "pretraining":
        pytest.importorskip("torch")
    assert kill_at_random(name, 3, seed=18).kills == 3


def test_a_scenario_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(SCENARIOS["turbulence"]):  # type: ignore[misc, name-defined]
        def grows(self, before: object, after: object) -> bool:
            return False

    assert issubclass(Forgetful, Scenario)
    monkeypatch.setitem(SCENARIOS, "turbulence", Forgetful)
    with pytest.raises(Lost, match="became"):
        kill_at_random("turbulence", 1, seed=1)
