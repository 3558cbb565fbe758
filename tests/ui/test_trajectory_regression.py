"""``sobolev fit --time``: equations of motion from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import sobolev_novelty as sn
from dynamical_systems import growth, trajectory
from sobolev_novelty.ui.cli.main import app

Run = Callable[..., Result]
QUICK = ("--max-evaluations", "200", "--operators", "add,sub,mul")


@pytest.fixture
def run() -> Run:
    runner = CliRunner(env={"COLUMNS": "120"})
    return lambda *arguments: runner.invoke(app, [str(a) for a in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    t = np.linspace(0.0, 8.0, 100)
    runs = [pd.DataFrame({"hours": t, "cells": trajectory(growth, [x0], t)[:, 0], "dish": k, "who": "Ada"})
            for k, x0 in enumerate((0.5, 9.0))]  # fmt: skip
    pd.concat(runs).to_csv(tmp_path / "dishes.csv", index=False)
    return tmp_path / "dishes.csv"


def test_the_equation_of_motion_of_a_table_is_told_with_its_check(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    result = run("fit", table, "--time", "hours", "--trajectory", "dish", "--out", out, *QUICK)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("dcells/dhours = ")
    assert "Integrated, trajectory 1: followed" in result.stdout
    assert "Column 'who' is not numeric" in result.stdout
    model = sn.DynamicsRegressor.load(out)
    np.testing.assert_allclose(model.integrate([0.0, 60.0], [1.0])[-1], 7.3, rtol=1e-3)


def test_json_holds_equations_and_checks(run: Run, table: Path) -> None:
    result = run("fit", table, "--time", "hours", "--trajectory", "dish", "--json", *QUICK)
    content = json.loads(result.stdout)
    assert [one["state"] for one in content["equations"]] == ["cells"]
    assert [check["followed"] for check in content["checks"]] == [True, True]


def test_a_time_is_a_column_and_never_a_number_of_seconds(run: Run, table: Path) -> None:
    result = run("fit", table, "--target", "cells", "--features", "hours", "--time", "30")
    assert result.exit_code == 1
    assert result.stderr == "sobolev: --time names the column of time. Got 30. For seconds give --budget.\n"


def test_what_is_missing_or_means_nothing_is_said(run: Run, table: Path) -> None:
    missing = run("fit", table)
    assert missing.exit_code == 2 and "--target" in missing.output
    both = run("fit", table, "--time", "hours", "--target", "cells")
    assert both.exit_code == 1
    assert "--target must be left out with a column of time" in both.stderr
    known = run("fit", table, "--time", "hours", "--sigma", "cells")
    assert known.exit_code == 1 and "--sigma must be left out" in known.stderr
    unknown = run("fit", table, "--time", "days")
    assert unknown.exit_code == 1 and "--time: " in unknown.stderr and "no column 'days'" in unknown.stderr
    mixed = run("fit", table, "--time", "hours", "--drop", "dish,who")
    assert mixed.exit_code == 1 and "times must increase; row 100" in mixed.stderr
