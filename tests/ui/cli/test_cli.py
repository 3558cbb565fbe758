"""The command line: verbs, options, exit codes, one line on bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from places import ROOT
from sobolev_novelty.ui.cli.main import REJECTED, app

BLOATED = "2.1*sin(a) + 0.3*a + cos(3*a)"
Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    runner = CliRunner(env={"COLUMNS": "120"})
    return lambda *arguments, **options: runner.invoke(app, [str(a) for a in arguments], **options)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 200)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=200), "name": "text", "y": 2.4 * np.sin(a) + np.cos(3 * a)})
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def _one_line(result: Result, message: str) -> None:
    assert result.exit_code == 1, result.output
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("sobolev: ")
    assert "Traceback" not in result.output
    assert message in result.stderr


def test_report_prints_the_verdict_and_what_was_left_out(run: Run, table: Path) -> None:
    result = run("report", BLOATED, table, "--target", "y")
    assert result.exit_code == 0, result.output
    assert "1 of 3 terms is distinct" in result.stdout
    assert "Column 'name' is not numeric ('text' in data row 1): it is left out." in " ".join(result.stdout.split())
    assert "\x1b" not in result.stdout


def test_report_as_json_is_json_only(run: Run, table: Path) -> None:
    result = run("report", BLOATED, table, "--target", "y", "--bootstrap", "10", "--json")
    data = json.loads(result.stdout)
    assert data["n_qualified"] == 1 and data["features"] == ["a", "b"]
    assert "interval" in data["terms"][0]
    assert any("'name'" in note for note in data["notes"])


def test_a_reader_that_goes_away_ends_a_command_without_a_word(table: Path) -> None:
    command = [sys.executable, "-m", "sobolev_novelty", "report", BLOATED, str(table), "--target", "y"]
    read_end, write_end = os.pipe()
    os.close(read_end)  # as ``| head`` leaves it
    ended = subprocess.run(command, check=False, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    assert ended.stderr == "" and ended.returncode == 1


def test_report_options_reach_the_library(run: Run, table: Path) -> None:
    data = json.loads(
        run("report", BLOATED, table, "--features", "a", "--order", "2", "--raw", "--tau", "0.05", "--json").stdout
    )
    assert (data["order"], data["coordinates"], data["tau"], data["features"]) == (2, "raw", 0.05, ["a"])


def test_same_seed_same_intervals(run: Run, table: Path) -> None:
    arguments = ("report", BLOATED, table, "--target", "y", "--bootstrap", "10", "--random-state", "3", "--json")
    assert run(*arguments).stdout == run(*arguments).stdout


def test_report_writes_page_and_figures(run: Run, table: Path, tmp_path: Path) -> None:
    paths = {kind: tmp_path / f"r.{kind}" for kind in ("html", "png", "svg", "tex", "json", "txt")}
    found = run("report", BLOATED, table, *(part for path in paths.values() for part in ("--out", path)))
    assert found.exit_code == 0, found.output
    assert paths["html"].read_text(encoding="utf-8").startswith("<!doctype html>")
    assert paths["png"].read_bytes().startswith(b"\x89PNG") and b"<svg" in paths["svg"].read_bytes()
    assert paths["tex"].read_text(encoding="utf-8").startswith(r"\begin{tabular}")
    assert json.loads(paths["json"].read_text(encoding="utf-8"))["n_qualified"] == 1
    assert "1 of 3 terms is distinct" in paths["txt"].read_text(encoding="utf-8")


def test_old_spellings_of_out_still_work(run: Run, table: Path, tmp_path: Path) -> None:
    page, svg = tmp_path / "r.html", tmp_path / "r.svg"
    assert run("report", BLOATED, table, "--html", page, "--plot", svg).exit_code == 0
    assert page.exists() and svg.exists()
    assert "--html" not in run("report", "--help").stdout


def test_report_as_latex(run: Run, table: Path) -> None:
    assert run("report", BLOATED, table, "--latex").stdout.startswith(r"\begin{tabular}")


def test_the_equation_comes_from_a_file_or_standard_input(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "eq.txt").write_text(BLOATED + "\n")
    expected = run("report", BLOATED, table, "--json").stdout
    assert run("report", "--file", tmp_path / "eq.txt", table, "--json").stdout == expected
    assert run("report", "--file", "-", table, "--json", input=BLOATED).stdout == expected
    assert run("report", "-", table, "--json", input=BLOATED).stdout == expected


def test_numbered_variables_are_columns_in_order(run: Run, table: Path) -> None:
    data = json.loads(
        run("report", "x1 + x2", table, "--target", "y", "--features", "b,a", "--variables", "x1", "--json").stdout
    )
    assert data["expression"] == "b + a"


def test_tsv_gz_and_parquet(run: Run, table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    frame.to_csv(tmp_path / "d.tsv.gz", sep="\t", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    expected = json.loads(run("report", BLOATED, table, "--json").stdout)["terms"]
    for name in ("d.tsv.gz", "d.parquet"):
        assert json.loads(run("report", BLOATED, tmp_path / name, "--json").stdout)["terms"] == expected


def test_prune_deletes_and_refits(run: Run, table: Path) -> None:
    result = run("prune", BLOATED, table, "--target", "y", "--json")
    data = json.loads(result.stdout)
    assert [step["term"] for step in data["deleted"]] == ["a"]
    assert data["r2_after"] > data["r2_before"] and data["complexity_after"] < data["complexity_before"]
    assert "deleted a" in run("prune", BLOATED, table, "--target", "y").stdout


def test_intervals_prints_a_line_for_each_constant(run: Run, table: Path) -> None:
    result = run("intervals", "2*sin(a) + b + 1", table, "--target", "y")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("determined") == 3
    data = json.loads(run("intervals", "2*sin(a) + b + 1", table, "--target", "y", "--sigma", "2", "--json").stdout)
    assert [constant["constant"] for constant in data["constants"]] == ["sin(a)", "b", "1"]
    assert data["noise"] == 1.0
    _one_line(run("intervals", "a", table), "--target is missing")
    _one_line(
        run("intervals", "a", table, "--target", "y", "--level", "2"), "--level must be a number above 0 and below 1"
    )


def test_fit_marks_the_equation_that_its_rule_chooses(run: Run, table: Path) -> None:
    options = ("--target", "y", "--engine", "mcts", "--max-evaluations", "100", "--select")
    result = run("fit", table, *options, "one-se")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("▶") == 1
    front = json.loads(run("fit", table, *options, "one-se", "--json").stdout)["front"]
    assert sum(row["chosen"] for row in front) == 1
    _one_line(
        run("fit", table, *options, "best"), "--select must be 'price', 'score', 'distinct', 'validation' or 'one-se'"
    )


def test_prune_leaves_rows_outside_the_domain_out_and_says_so(run: Run, table: Path) -> None:
    data = json.loads(run("prune", "sqrt(a) + 3*cos(3*a)", table, "--target", "y", "--json").stdout)
    assert data["deleted"] == []
    assert "rows were not used" in data["notes"][-1] and data["n_used"] < 200


def test_accepts_tells_by_its_exit_code(run: Run, table: Path) -> None:
    good = run("accepts", "sin(a) + cos(3*a)", table, "--json")
    assert good.exit_code == 0 and json.loads(good.stdout)["accepted"] is True
    bad = run("accepts", BLOATED, table)
    assert bad.exit_code == REJECTED and bad.stdout.startswith("rejected: Term")
    assert json.loads(run("accepts", BLOATED, table, "--json").stdout)["accepted"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a +", "{table}"), "(Character"),
        (("a + nothing", "{table}"), "nothing"),
        (("name + a", "{table}"), "Column 'name' of 'data.csv' is not numeric: 'text' in data row 1"),
        (("a", "{folder}/none.csv"), "none.csv' does not exist"),
        (("a", "{folder}"), "is a folder"),
        (("a",), "DATA is missing"),
        (("a", "{table}", "--target", "z"), "--target: 'data.csv' has no column 'z'. Its columns: a, b, name, y"),
        (("a", "{table}", "--features", "a,q"), "--features: 'data.csv' has no column 'q'"),
        (("a", "{table}", "--target", "a", "--features", "a,b"), "--target and --features both name the column 'a'"),
        (("a", "{table}", "--features", "a,name"), "Column 'name' of 'data.csv' is not numeric"),
        (("a", "{table}", "--order", "3"), "--order must be 0, 1 or 2. Got 3."),
        (("a", "{table}", "--tau", "2"), "--tau must be a number from 0 to 1"),
        (("a", "{table}", "--bootstrap", "-1"), "--bootstrap must be a whole number from 0"),
        (("a", "{table}", "--variables", "x9"), "--variables must be 'auto'"),
        (("a", "{table}", "--latex", "--json"), "cannot be combined"),
        (("a", "{table}", "--out", "{folder}/f.xyz"), "--out must end in .html, .json, .tex, .txt, .png, .svg or .pdf"),
        (("a", "{table}", "--out", "{folder}/none/r.html"), "none' does not exist. Make it, or give another path"),
        (("a", "{table}", "--separator", "::"), "--separator must be one character"),
        (("a", "{table}", "--decimal", ";"), "--decimal must be '.' or ','"),
        (("a", "{table}", "--encoding", "klingon"), "--encoding must be the name of an encoding"),
        (("a", "{table}", "--chunk-rows", "0"), "--chunk-rows must be at least 1"),
        (("-", "-"), "cannot both come from standard input"),
        (("a", "-", "--chunk-rows", "9"), "Standard input is read whole"),
        (("a", "{table}", "--file", "{folder}/eq.txt"), "not both"),
        (("{table}", "--file", "{folder}/eq.txt"), "Check the path"),
        (("a - a", "{table}"), "it has no terms left"),
        (("log(a - 0.99)", "{table}"), "Fewer than 32 rows"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(
    run: Run, table: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run("report", *(a.format(table=table, folder=tmp_path) for a in arguments))
    _one_line(result, message)


def test_prune_needs_a_target_and_leaves_out_rows_without_one(run: Run, table: Path) -> None:
    _one_line(run("prune", "a", table), "--target is missing: name the column that the equation predicts")
    frame = pd.read_csv(table)
    frame.loc[4, "y"] = np.nan
    frame.to_csv(table, index=False)
    result = run("prune", BLOATED, table, "--target", "y", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["n_used"] == 199
    assert "1 of 200 rows is left out: y is missing or not finite there." in data["notes"]


def test_no_rows_and_no_inputs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n")
    (tmp_path / "inputs.csv").write_text("y\n1\n")
    _one_line(run("report", "a", tmp_path / "rows.csv"), "has no rows")
    _one_line(run("report", "1", tmp_path / "inputs.csv", "--target", "y"), "no input column besides y")


def test_an_empty_equation_file(run: Run, table: Path) -> None:
    _one_line(run("report", "-", table, input="  \n"), "Standard input holds no equation")


def test_a_constant_column_is_noted(run: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.linspace(0, 1, 50), "k": 2.0})
    frame.to_csv(tmp_path / "d.csv", index=False)
    result = run("report", "a + k", tmp_path / "d.csv")
    assert result.exit_code == 0 and "Column 'k' is constant" in result.stdout


def test_errors_are_json_too_where_json_was_asked_for(run: Run, table: Path) -> None:
    result = run("report", "a +", table, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["type"] == "ParseError"


def test_too_few_rows_is_a_report_and_exit_code_1(run: Run, table: Path) -> None:
    result = run("report", "log(a - 0.99)", table, "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["status"] == "too_few_rows" and data["terms"][0]["novelty"] is None


def test_doctor_names_kernel_extras_and_data(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOBOLEV_DATA", str(tmp_path))
    data = json.loads(run("doctor", "--json").stdout)
    assert data["kernel"] in {"native", "numpy"} and data["extras"]["plot"]["matplotlib"]
    assert data["data_folder"] == str(tmp_path)
    text = run("doctor").stdout
    for part in ("kernel", "[plot]", "OpenFOAM", "SOBOLEV_DATA"):
        assert part in text


def test_doctor_says_how_to_install_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from sobolev_novelty.ui import doctor as diagnosis

    monkeypatch.setitem(diagnosis.EXTRAS, "plot", ("no_such_module",))
    assert "no_such_module missing: pip install '.[plot]'" in run("doctor").stdout


def test_version(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0 and result.stdout.startswith("sobolev-novelty ")


def test_demo_shows_prunes_and_writes_a_page(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--json", "--out", tmp_path / "demo.html")
    assert result.exit_code == 0, result.output
    by_title = {case["title"]: case for case in json.loads(result.stdout)["cases"]}
    assert by_title["A law of physics"]["report"]["n_qualified"] == 3
    assert by_title["A formula that a search made too long"]["report"]["n_qualified"] == 1
    assert by_title["The same formula on wider data"]["report"]["n_qualified"] == 4
    assert by_title["Pruning"]["deleted"] == ["x**3", "x"]
    assert by_title["The corpus filter"]["accepted"] == [False, True]
    assert "Which terms do your data tell apart?" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    case = by_title["Known laws"]
    assert (case["n_tasks"], case["n_multi_term"], case["n_terms"], case["n_qualified"]) == (133, 41, 94, 87)


def test_a_process_of_its_own(table: Path) -> None:
    """Through ``main``: exit codes, streams, and an equation that begins with a minus."""

    def sobolev(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-m", "sobolev_novelty", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)

    good = sobolev("report", "-a + cos(3*a)", table, "--json")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["expression"] == "-a + cos(3*a)" and good.stderr == ""
    bad = sobolev("report", "a +", table)
    assert bad.returncode == 1 and bad.stdout == "" and bad.stderr.count("\n") == 1
    assert sobolev("report", "--no-such-option").returncode == 2


def test_a_search_does_not_depend_on_cores_and_the_help_and_the_pages_say_so(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (150, 3))
    y = X[:, 0] * np.sin(X[:, 1]) / X[:, 2] + 0.2 * rng.normal(size=150)
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}).to_csv(tmp_path / "data.csv", index=False)

    def front(*spread: str) -> list[str]:
        options = ["--target", "y", "--max-evaluations", "800", "--json", *spread]
        found = json.loads(run("fit", str(tmp_path / "data.csv"), *options).stdout)
        return [row["expression"] for row in found["front"]]

    one, two = front("--parallel", "1"), front("--parallel", "2")
    assert one == two
    assert front("--islands", "2") != one
    told = " ".join(run("fit", "--help").stdout.replace("│", " ").split())
    assert "They do not change the result" in told and "Another number, another result" in told
    for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert "n_jobs" not in text and "on the number of workers" not in text
        assert "islands" in text[text.index("Randomness") :][:400].lower()


@pytest.mark.parametrize("n_digits", [309, 310, 400])
def test_a_whole_number_that_floats_cannot_hold_is_a_row_left_out(run: Run, tmp_path: Path, n_digits: int) -> None:
    rows = [f"{k},{9 * 10**n_digits if k == 5 else k % 7},{2 * k}" for k in range(60)]
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n" + "\n".join(rows), encoding="utf-8")
    for arguments in (["fit", path, "--target", "y", "--max-evaluations", "30"], ["report", "2*a + 0*b", path]):
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        if arguments[0] == "fit":
            assert "1 of 60 rows is left out: b is missing or not finite" in " ".join(result.output.split())


def test_a_seed_below_zero_is_refused_in_one_line(run: Run, table: Path) -> None:
    result = run("fit", table, "--target", "y", "--random-state", "-1")
    assert result.exit_code == 1
    assert result.stderr.startswith("sobolev: --random-state must be a whole number") and result.stderr.count("\n") == 1


def test_export_names_its_own_option(run: Run) -> None:
    result = run("export", "495/density - 450", "--to", "excel")
    assert result.exit_code == 1
    assert (
        result.stderr
        == "sobolev: 'density' does not say which column it is. Give --names in the order of the columns.\n"
    )


def test_a_file_where_a_formula_is_expected_is_said_to_be_one(run: Run, table: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    assert run("fit", table, "--target", "y", "--max-evaluations", "30", "--out", model).exit_code == 0
    for verb in ("report", "prune", "intervals"):
        result = run(verb, model, table, "--target", "y")
        assert result.exit_code == 1
        assert f"EQUATION is a formula, and '{model}' is a file." in result.stderr and "--file" in result.stderr


def test_a_bad_cell_of_the_only_input_is_shown_by_a_fit(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,y\n" + "\n".join(f"{'oops' if k == 5 else k},{k}" for k in range(40)), encoding="utf-8")
    result = run("fit", path, "--target", "y")
    assert result.exit_code == 1
    assert "no numeric column to use as input: 'a' is not numeric ('oops' in data row 6)" in result.stderr


def test_an_empty_table_is_not_told_how_many_rows_another_verb_needs(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for text in ("a,y\n", ""):
        path.write_text(text, encoding="utf-8")
        result = run("fit", path, "--target", "y")
        assert result.exit_code == 1 and "32" not in result.stderr
