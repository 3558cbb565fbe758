"""``sobolev next``: rows to measure next from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.ui.cli.main import app

RIVALS = ["0.07*T*p", "--rival", "2.5*tanh(T/30)*p"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"T": rng.uniform(20.0, 30.0, 40), "p": rng.uniform(1.0, 2.0, 40)})
    frame["flow"] = 3.0 * np.tanh(frame["T"] / 30.0) * frame["p"] + 0.02 * rng.normal(size=40)
    path = tmp_path / "lab.csv"
    frame.to_csv(path, index=False)
    return path


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["next", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_rivals_part_beyond_the_rows_at_hand_and_the_rows_go_to_a_file(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "next.csv"
    options = ["--target", "flow", "--bounds", "T=10:90", "--bounds", "p=1:3", "--rows", "4", "--out", out]
    code, text, _ = run(*RIVALS[:1], table, *RIVALS[1:], *options)
    assert code == 0 and "The leading equations" in text and "from the residuals of the best fit" in text
    rows = pd.read_csv(out)
    assert rows.shape == (4, 2) and rows["T"].max() == 90.0


def test_json_has_rows_words_and_steps(table: Path) -> None:
    arguments = [*RIVALS[:1], table, *RIVALS[1:], "--features", "T,p", "--rows", "3", "--sigma", "0.1", "--json"]
    code, text, _ = run(*arguments)
    found = json.loads(text)
    assert code == 0 and found["columns"] == ["T", "p"] and len(found["rows"]) == 3
    assert len(found["steps"]) == 4 and found["steps"][3]["risk"] < found["steps"][0]["risk"]
    assert found["words"][0] == "Noise: σ = 0.1, as given."


def test_levels_whole_numbers_and_inputs_that_cannot_be_set(table: Path) -> None:
    settings = ["--levels", "T=20,40,80", "--fixed", "p=1.5", "--rows", "3", "--sigma", "0.1", "--json"]
    code, text, _ = run(*RIVALS[:1], table, *RIVALS[1:], "--features", "T,p", *settings)
    rows = np.array(json.loads(text)["rows"])
    assert code == 0 and set(rows[:, 0]) <= {20.0, 40.0, 80.0} and set(rows[:, 1]) == {1.5}


def test_a_pool_is_a_table_of_its_own(table: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool.csv"
    pd.DataFrame({"p": [1.0, 2.0, 3.0], "T": [15.0, 25.0, 85.0]}).to_csv(pool, index=False)
    code, text, _ = run(*RIVALS[:1], table, *RIVALS[1:], "--target", "flow", "--pool", pool, "--rows", "1", "--json")
    assert code == 0 and json.loads(text)["rows"] == [[85.0, 3.0]]


def test_a_saved_model_says_what_to_measure_next(table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=200), random_state=0)
    model.fit(frame[["T", "p"]], frame["flow"]).save(tmp_path / "model.json")
    code, text, _ = run(tmp_path / "model.json", table, "--target", "flow", "--rows", "2", "--json")
    assert code == 0 and len(json.loads(text)["rows"]) == 2


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--bounds", "T=10"], "--bounds of T must be (low, high) with low ≤ high. Got [10.0]."),
        (["--bounds", "10:20"], "--bounds must be COLUMN=NUMBER:NUMBER, such as T=20:80. Got '10:20'."),
        (["--levels", "q=1,2"], "--levels names 'q', which is not a column of 'X'. Columns are T, p."),
        (["--fixed", "T=warm"], "--fixed must be COLUMN=NUMBER, such as T=20. Got 'T=warm'."),
    ],
)
def test_a_setting_that_cannot_be_is_one_line_with_the_option(table: Path, option: list[str], message: str) -> None:
    code, _, error = run("0.07*T*p", table, "--target", "flow", *option)
    assert code == 1 and message in error
