"""The command line of the turbulence study, through typer's own runner."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from places import ROOT
from sobolev_novelty.lab.turbulence.selecting import data as hill
from sobolev_novelty.ui.cli.turbulence import turbulence_app

EXPERIMENTS = ROOT / "experiments"


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(turbulence_app, list(words))
    return result.exit_code, result.output


@pytest.mark.slow
def test_two_commands_lead_from_data_to_a_velocity_field(tmp_path):
    closure, field = tmp_path / "closure.json", tmp_path / "field.npz"
    code, text = run("select", "--rule", "sobolev", "--terms", "8", "--out", str(closure), "--json")
    assert code == 0, text
    assert json.loads(text)["mse"] == pytest.approx(0.10378, abs=1e-5)
    code, text = run("solve", str(closure), "--alpha", "0.7", "--out", str(field), "--json")
    assert code == 0, text
    found = json.loads(text)
    assert found["is_converged"]
    # Notes: 4.85 / 4.79e-3 for eight guided terms at alpha1 0.7.
    np.testing.assert_allclose(found["measures"]["reattachment_interpolated"], 4.85, atol=0.01)
    np.testing.assert_allclose(found["measures"]["max_reversed"], 4.79e-3, rtol=5e-3)
    assert found["dns"]["reattachment"] == 5.278
    assert (found["measures"]["field_error"] is None) == (not hill.has_dns())
    with np.load(field) as kept:
        assert kept["U"].shape == (80, 120, 2)


@pytest.mark.slow
def test_a_solved_closure_is_shown_beside_the_quoted_dns_without_any_data_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.delenv("SOBOLEV_DATA", raising=False)
    code, text = run("solve", "none")
    assert code == 0, text
    assert "Xiao et al. (2020), quoted" in text and "5.278" in text and "3.70" in text
    code, text = run("compare", str(EXPERIMENTS / "turbulence_comparison.toml"), "--results", str(tmp_path))
    assert code == 1
    assert "The DNS fields are not part of the package" in text


@pytest.mark.slow
def test_select_prints_tables_and_forms(tmp_path):
    code, text = run(
        "select", "--rule", "greedy", "--terms", "3", "--out", str(tmp_path / "c.json"), "--print", "latex"
    )
    assert code == 0, text
    assert "T2*x1**11*x2" in text
    assert "mathbf" in text


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(hill, "load_regression", lambda: pytest.fail("the work has begun"))
    monkeypatch.setattr(hill, "load_base_flow", lambda: pytest.fail("the work has begun"))
    nowhere = str(tmp_path / "nowhere" / "file")
    for words in (("select", "--out", nowhere), ("solve", "none", "--output", nowhere), ("select", "-o", nowhere)):
        code, text = run(*words)
        assert code == 1, text
        assert "--out: the folder" in text
        assert "--output" not in run(words[0], "--help")[1]


@pytest.mark.slow
def test_errors_are_one_line_and_exit_1(tmp_path):
    for words, message in (
        (("solve", "missing.json"), "is not a closure file"),
        (("solve", "none", "--solver", "magic"), "--solver must be one of"),
        (("select", "--rule", "magic", "--out", str(tmp_path / "c.json")), "--rule must be"),
        (("select", "--terms", "2", "--print", "fortran", "--out", str(tmp_path / "c.json")), "--print must be"),
        (("compare", "missing.toml"), "does not exist"),
        (("figure", "magic"), "'kind' must be"),
    ):
        code, text = run(*words)
        assert code == 1, text
        assert message in " ".join(text.split())
