"""ODEBench: the facts where they are at hand, and how an equation is judged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.ode_systems import integration_error, ode_systems

from sobolev_novelty.errors import DataError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.terms import has_form
from sobolev_novelty.language.parsing import parse

X = np.random.default_rng(0).uniform(1.0, 2.0, (100, 2))
TRUTH = parse("1.3*x0 - 0.9*x0*x1")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ("1.31*x0 - 0.89*x0*x1", True),
        ("0.9*x0*(1.44 - x1)", True),  # the same form, factored
        ("x0*(1.3 - 0.9*x1) + 0.01", False),  # a constant that the truth does not have
        ("1.3*x0 - 0.9*x0*(x1 + 0.001*x0)", False),
        ("1.3*x0 - 0.9*x0*sin(x1)", False),
        ("2.0*x0 - 0.9*x0*x1", False),  # the form, but far off
        ("1.3*x0", False),
    ],
)
def test_an_equation_is_found_if_it_has_the_form_and_nothing_more(found: str, verdict: bool) -> None:
    assert has_form(parse(found), TRUTH, X)[0] is verdict


def test_an_equation_outside_its_domain_is_not_found() -> None:
    assert has_form(parse("log(x0 - 1.5)"), TRUTH, X)[0] is False


def test_an_integration_that_breaks_off_has_an_infinite_error() -> None:
    x = np.arange(10.0)[:, None]
    assert integration_error(x, x) == 0.0
    np.testing.assert_allclose(integration_error(x, x + 0.1 * x.std()), 0.1)
    assert integration_error(x, np.where(x > 8.0, np.nan, x)) == np.inf


def test_a_system_is_read_with_its_noise_and_its_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    t = np.linspace(0.0, 1.0, 20)
    first, second = np.exp(-t), 2.0 * np.exp(-t)
    row = {
        "id": 7, "dim": 1, "substituted": [["-x_0"]],
        "solutions": [[{"t": t.tolist(), "y": [first.tolist()]}, {"t": t.tolist(), "y": [second.tolist()]}]],
    }  # fmt: skip
    (tmp_path / "anchors").mkdir()
    with gzip.open(tmp_path / "anchors" / "odebench.json.gz", "wt", encoding="utf-8") as file:
        json.dump([row], file)
    monkeypatch.setenv("SOBOLEV_DATA", str(tmp_path))
    (system,) = ode_systems()
    assert system.name == "ode_7" and [str(e) for e in system.equations] == ["-x0"]
    noise = system.measured(0.01, 0)[:, 0] - first
    assert 0.002 < noise.std() / np.sqrt(np.mean(first**2)) < 0.02
    box = system.box()
    assert first.min() <= box.min() and box.max() <= second.max()


def test_facts_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOBOLEV_DATA", raising=False)
    with pytest.raises(DataError, match=r"needs the file anchors/odebench.json.gz.*Set SOBOLEV_DATA"):
        ode_systems()


def test_the_trajectories_of_the_real_file_solve_its_equations(shared_data: Path) -> None:
    if not (shared_data / "anchors" / "odebench.json.gz").is_file():
        pytest.skip("ODEBench is not here: SOBOLEV_DATA has no anchors/odebench.json.gz")
    systems = ode_systems()
    assert len(systems) == 29 and sum(len(system.equations) for system in systems) == 55
    for system in systems:
        x = system.trajectories[1]
        rates = np.column_stack([evaluate(equation, x) for equation in system.equations])
        steps = np.diff(system.t)[:, None] * 0.5 * (rates[1:] + rates[:-1])
        np.testing.assert_allclose(np.diff(x, axis=0), steps, atol=2e-2 * np.ptp(x, axis=0).max())
