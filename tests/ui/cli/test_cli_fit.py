"""``sobolev fit``: the arguments of the regressor in its own words."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.ui.cli.errors import OPTIONS
from sobolev_novelty.ui.cli.fit import EARLIER_NAMES, LimitOptions, RunOptions, SearchOptions, _regressor
from sobolev_novelty.ui.cli.llm import ProposerOptions
from sobolev_novelty.ui.cli.main import app

#: Argument of the regressor -> its option, where that has the name of a field.
FIELDS = {"constraints": "--max-complexity"}


def options() -> dict[str, list[str]]:
    """Panel -> the options in it, of those that a help shows."""
    command = typer.main.get_command(app).commands["fit"]  # type: ignore[attr-defined]
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            panels.setdefault(parameter.rich_help_panel or "Options", []).append(parameter.opts[0])
    return panels


def regressor(*given: Any, **limits: Any) -> sn.SymbolicRegressor:
    return _regressor(SearchOptions(*given), LimitOptions(**limits), RunOptions(), ProposerOptions())


def test_the_first_panel_has_the_arguments_of_the_regressor_and_every_other_option_a_named_one() -> None:
    panels = options()
    arguments = list(inspect.signature(sn.SymbolicRegressor).parameters)
    assert panels["Options"] == [FIELDS.get(name, f"--{name.replace('_', '-')}") for name in arguments]
    assert next(iter(panels)) == "Options" and len(panels) >= 5
    assert all(OPTIONS[name] == FIELDS.get(name, OPTIONS[name]) for name in arguments if name in OPTIONS)


def test_errors_name_options_that_the_command_has() -> None:
    known = {option for panel in options().values() for option in panel}
    values = (sn.Constraints, sn.Islands, sn.Budget, sn.SymbolicRegressor, sn.SymbolicRegressor.fit)
    named = {name for value in values for name in inspect.signature(value).parameters}
    assert {OPTIONS[name] for name in named & OPTIONS.keys()} <= known


def test_the_help_fits_eighty_columns() -> None:
    told = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).stdout
    assert all(len(line) <= 80 for line in told.splitlines())
    assert "…" not in told.replace("x0, x1, …", "")


def test_what_is_said_in_the_shell_is_what_the_regressor_is_told() -> None:
    found = regressor(
        operator_costs="sin=3, exp=2", nesting="sin(cos)=0, sin(sin)=1", monotone="x=increasing,t = decreasing",
        template="a*f(x) + g(t)", max_depth=5,
    )  # fmt: skip
    assert found.constraints == sn.Constraints(
        operator_costs={"sin": 3, "exp": 2}, nesting={"sin": {"cos": 0, "sin": 1}}, max_depth=5,
        monotone={"x": "increasing", "t": "decreasing"}, template="a*f(x) + g(t)",
    )  # fmt: skip
    search = SearchOptions(units="m=kg, v=m/s, E=J", guesses="m*v; exp(v)", parallel=2)
    found = _regressor(search, LimitOptions(pure_constants=True), RunOptions(), ProposerOptions())
    assert found.units == sn.Units({"m": "kg", "v": "m/s", "E": "J"}, constants=False)
    assert found.guesses == ["m*v", "exp(v)"] and found.parallel == 2
    assert regressor().constraints == sn.Constraints() and regressor().units is None
    several = _regressor(SearchOptions(guesses="mcts"), LimitOptions(), RunOptions(islands=3), ProposerOptions())
    assert several.parallel == sn.Islands(3) and several.guesses == "mcts"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "data.csv"
    rng = np.random.default_rng(0)
    m, v = rng.uniform(1.0, 3.0, (2, 60))
    pd.DataFrame({"m": m, "v": v, "E": 0.5 * m * v**2}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--operator-costs", "sin"], "--operator-costs must be written as in 'sin=3, exp=2'. Got 'sin'."),
        (["--operator-costs", "sin=x"], "--operator-costs must be written as in 'sin=3, exp=2'. Got 'sin=x'."),
        (["--nesting", "sin=0"], "--nesting must be written as in 'sin(cos)=0, exp(exp)=1'. Got 'sin=0'."),
        (["--monotone", "m=up"], "--monotone must be 'increasing' or 'decreasing' for 'm'. Got 'up'."),
        (["--template", "m + 1"], "--template has no unknown function."),
        (["--max-depth", "0"], "--max-depth must be a whole number of at least 1, or None. Got 0."),
        (["--loss", "hubber"], "--loss must be one of squared, absolute, huber, or a function"),
        (["--units", "m"], "--units must be written as in 'm=kg, v=m/s'. Got 'm'."),
        (["--units", "q=kg"], "--units names columns that are not there: q. Known: m, v, and E for the target."),
        (["--pure-constants"], "--pure-constants needs --units, the units of the columns."),
        (["--parallel", "0"], "--parallel must be a whole number other than 0"),
        (["--islands", "0"], "--islands must be a whole number other than 0"),
        (["--islands", "2", "--parallel", "-1"], "--parallel must be a whole number of at least 1. Got -1."),
        (["--guesses", "trans former"], "trans former"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_one_line_that_names_the_option(table: Path, given: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["fit", str(table), "--target", "E", *given])
    assert result.exit_code == 1 and result.stderr.count("\n") == 1, result.output
    assert message in result.stderr


def test_units_and_limits_reach_the_search(table: Path) -> None:
    command = ["fit", str(table), "--target", "E", "--units", "m=kg, v=m/s, E=J", "--pure-constants"]
    command += ["--nesting", "sin(sin)=0", "--max-complexity", "9", "--max-evaluations", "300", "--json"]
    found = json.loads(CliRunner().invoke(app, command).stdout)
    assert found["r2"] > 0.999999 and all(row["complexity"] <= 9 for row in found["front"])


def test_options_of_before_still_work_and_no_help_shows_them(table: Path) -> None:
    renamed = EARLIER_NAMES["token_normalize_func"]
    before = {
        "seconds": "9", "complexity": "7", "evaluations": "100", "jobs": "1", "seed": "3",
    }  # fmt: skip
    shown = {option for panel in options().values() for option in panel}
    assert {f"--{renamed(name)}" for name in [*before, "weights"]} <= shown
    assert not shown & {f"--{name}" for name in [*before, "weights"]}
    runs = [
        [word for name, value in before.items() for word in (f"--{spelt(name)}", value)]
        for spelt in (str, renamed)
    ]  # fmt: skip
    fronts = [CliRunner().invoke(app, ["fit", str(table), "--target", "E", "--json", *run]).stdout for run in runs]
    assert fronts[0] == fronts[1] and json.loads(fronts[0])["front"]
