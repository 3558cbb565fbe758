"""Names of columns come from files: terminal escapes in them show, and do nothing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from places import ROOT
from sobolev_novelty.ui.cli.main import app

#: Clears the screen, hides text, reverses the writing, rings.
HOSTILE = ["mass\x1b[2J\x1b[8m", "speed\u202e\x07", "y\x9b31m"]
SOURCES = ROOT / "src" / "sobolev_novelty"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 2))
    path = tmp_path / "table.csv"
    pd.DataFrame(dict(zip(HOSTILE, [X[:, 0], X[:, 1], 2.0 * X[:, 0]], strict=True))).to_csv(path, index=False)
    return path


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert not isinstance(done.exception, Exception) or isinstance(done.exception, SystemExit), done.exception
    return done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "x0 + x1*x2", "{table}"),
        ("report", "x0 + x1*x2", "{table}", "--json"),
        ("report", "x0 + x1*x2", "{table}", "--latex"),
        ("report", "x0 + x1*x2", "{table}", "--target", HOSTILE[2]),
        ("report", "x0 + nothing", "{table}"),
        ("prune", "x0 + x1", "{table}", "--target", HOSTILE[2]),
        ("accepts", "x0 + x1", "{table}"),
        ("intervals", "2*x0", "{table}", "--target", HOSTILE[2]),
        ("fit", "{table}", "--target", HOSTILE[2], "--max-evaluations", "30"),
        ("fit", "{table}", "--target", HOSTILE[2], "--max-evaluations", "30", "--json"),
        ("fit", "{table}", "--target", "missing\x1b[2J"),
    ],
)
def test_no_escape_reaches_the_screen(arguments: tuple[str, ...], table: Path) -> None:
    text = shown(*(argument.replace("{table}", str(table)) for argument in arguments))
    assert text
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text) is None, repr(text[:300])


def test_there_is_one_door_to_the_screen() -> None:
    doors = {
        path.name: len(re.findall(r"typer\.echo\(|(?<![\w.])print\(", path.read_text(encoding="utf-8")))
        for path in (SOURCES / "ui" / "cli").glob("*.py")
    }
    assert {name: n for name, n in doors.items() if n} == {"screen.py": 1}


def test_a_space_before_a_per_cent_sign_is_not_an_escape(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    pd.DataFrame({"x": np.linspace(0.1, 3.0, 60)}).to_csv(path, index=False)
    printed = shown("report", "x + sin(3*x)", str(path))
    assert "\N{NO-BREAK SPACE}%" in printed and "u00a0" not in printed
