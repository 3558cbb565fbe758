"""Commands and engines of other packages: a small one, as CONTRIBUTING shows it, installed for real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from places import added
from sobolev_novelty.ui.cli import commands
from sobolev_novelty.ui.cli.main import app

#: Beside the worked example: what is broken, and what has a name of ours.
ALSO = """
[project.entry-points."sobolev.commands"]
hello = "sobolev_hello:hello"
group = "sobolev_hello.group:app"
lost = "sobolev_hello.lost:command"
number = "sobolev_hello.group:NUMBER"
report = "sobolev_hello:hello"
[project.entry-points."sobolev.engines"]
pairs = "sobolev_hello.pairs:Pairs"
lost_engine = "sobolev_hello.lost:Engine"
no_engine = "sobolev_hello:hello"
genetic = "sobolev_hello.lost:Engine"
"""
GROUP = '''
import typer
NUMBER = 3
app = typer.Typer(help="Two verbs.")
@app.command()
def one() -> None:
    """The first."""
    print("one")
@app.command()
def two() -> None:
    """The second."""
'''


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("setuptools", minversion="70.1", reason="builds a wheel without a network")
    folder = tmp_path_factory.mktemp("stranger")
    worked = added("A command")
    (pair,) = [text for path, text in added("An engine").items() if path.endswith("pairs.py")]
    worked |= {"sobolev-hello/sobolev_hello/pairs.py": pair, "sobolev-hello/sobolev_hello/group.py": GROUP}
    worked["sobolev-hello/sobolev_hello/lost.py"] = "import a_package_that_nobody_has\n"
    project = worked["sobolev-hello/pyproject.toml"]
    worked["sobolev-hello/pyproject.toml"] = project[: project.index("[project.entry-points")] + ALSO
    for path, text in worked.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    # Constraints of whoever runs the tests are not for this package.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [*command, "--target", folder / "target", folder / "sobolev-hello"], capture_output=True, text=True,
        check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "target"


def sobolev(installed: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "100", "TERM": "dumb"}
    command = [sys.executable, "-P", "-m", "sobolev_novelty", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, encoding="utf-8")


def test_the_worked_command_is_called_by_its_name(installed: Path) -> None:
    done = sobolev(installed, "hello", "you")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello, you.\n", "")
    assert sobolev(installed, "group", "one").stdout == "one\n"


def test_the_list_has_the_commands_of_packages_and_says_what_is_broken(installed: Path) -> None:
    done = sobolev(installed, "--help")
    told = " ".join(done.stdout.replace("│", " ").split())
    assert done.returncode == 0 and done.stderr == ""
    assert "From sobolev-hello" in told and "hello Greet somebody." in told and "group Two verbs." in told
    assert "lost Broken: " in told and "Say which terms of EQUATION" in told and "bench Run benchmarks" in told


def test_a_broken_command_is_one_line_whatever_its_arguments_and_ours_work(installed: Path) -> None:
    for arguments in (["lost"], ["lost", "a", "--b", "3"]):
        done = sobolev(installed, *arguments)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
        assert "'lost' of the package 'sobolev-hello', sobolev_hello.lost:command, cannot be loaded" in done.stderr
        assert "No module named 'a_package_that_nobody_has'" in done.stderr and "pip uninstall" in done.stderr
    assert "is not a typer.Typer or a function" in sobolev(installed, "number").stderr
    assert "Say which terms of EQUATION" in sobolev(installed, "report", "--help").stdout
    assert sobolev(installed, "nothing").returncode == 2


def test_an_installation_from_before_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_brought", dict)
    result = CliRunner().invoke(app, ["bench", "run"])
    assert result.exit_code == 1 and "No command 'bench'" in result.stderr and "make setup" in result.stderr
    assert CliRunner().invoke(app, ["--help"]).exit_code == 0


def test_an_engine_of_a_package_has_its_name_everywhere(installed: Path, tmp_path: Path) -> None:
    pd.DataFrame({"a": range(1, 41), "b": [k * k % 7 for k in range(40)]}).assign(y=lambda t: 2.0 * t.a * t.b).to_csv(
        tmp_path / "data.csv", index=False
    )
    fit = ["fit", tmp_path / "data.csv", "--target", "y", "--max-evaluations", 40, "--engine"]
    model = tmp_path / "model.json"
    done = sobolev(installed, *fit, "pairs", "--out", model)
    assert done.returncode == 0 and "a*b" in done.stdout, done.stderr
    predicted = sobolev(installed, "predict", model, tmp_path / "data.csv")
    assert predicted.returncode == 0 and predicted.stderr == ""
    assert sobolev(installed, *fit, "genetic").returncode == 0  # ours cannot be replaced
    for name, why in (
        ("lost_engine", "cannot be loaded (ModuleNotFoundError"),
        ("no_engine", "is not a class derived"),
    ):
        done = sobolev(installed, *fit, name)
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and why in done.stderr, done.stderr
    unknown = sobolev(installed, *fit, "pears").stderr
    assert "pairs" in unknown and "'pears'" in unknown
