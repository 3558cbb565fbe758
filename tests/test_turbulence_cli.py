"""The command line of the turbulence study, through typer's own runner."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sobolev_novelty.cli_turbulence import turbulence_app
from sobolev_novelty.turbulence import data as hill

needs_data = pytest.mark.skipif(not hill.is_available(), reason="the turbulence data is not here: set SOBOLEV_DATA")


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(turbulence_app, list(words))
    return result.exit_code, result.output


@needs_data
def test_two_commands_lead_from_data_to_a_velocity_field(tmp_path):
    closure, field = tmp_path / "closure.json", tmp_path / "field.npz"
    code, text = run("select", "--rule", "sobolev", "--terms", "8", "-o", str(closure), "--json")
    assert code == 0, text
    assert json.loads(text)["mse"] == pytest.approx(0.10378, abs=1e-5)
    code, text = run("solve", str(closure), "--alpha", "0.7", "-o", str(field), "--json")
    assert code == 0, text
    found = json.loads(text)
    assert found["is_converged"]
    # Notes: 4.85 / 4.79e-3 for eight guided terms at alpha1 0.7.
    np.testing.assert_allclose(found["measures"]["reattachment_interpolated"], 4.85, atol=0.01)
    np.testing.assert_allclose(found["measures"]["max_reversed"], 4.79e-3, rtol=5e-3)
    with np.load(field) as kept:
        assert kept["U"].shape == (80, 120, 2)


@needs_data
def test_select_prints_tables_and_forms(tmp_path):
    code, text = run("select", "--rule", "greedy", "--terms", "3", "-o", str(tmp_path / "c.json"), "--print", "latex")
    assert code == 0, text
    assert "T2*x1**11*x2" in text
    assert "mathbf" in text


@needs_data
def test_errors_are_one_line_and_exit_1(tmp_path):
    for words, message in (
        (("solve", "missing.json"), "no closure file"),
        (("solve", "none", "--solver", "magic"), "'solver' must be one of"),
        (("select", "--rule", "magic", "-o", str(tmp_path / "c.json")), "'--rule' must be"),
        (("select", "--terms", "2", "--print", "fortran", "-o", str(tmp_path / "c.json")), "'--print' must be"),
        (("compare", "missing.toml"), "does not exist"),
        (("figure", "magic"), "'kind' must be"),
    ):
        code, text = run(*words)
        assert code == 1, text
        assert message in " ".join(text.split())
