"""Awkward tables through the command line: each verb does its work or says in one sentence why not; no traceback."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from sobolev_novelty.ui.cli.main import app

N = 50
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.uniform(1, 2, N).round(4), "b": RNG.uniform(1, 2, N).round(4)})
FRAME["y"] = (3 * FRAME["a"] / FRAME["b"]).round(6)
EQUATION = "3*a/b + a"


def _csv(frame: pd.DataFrame = FRAME, **options: Any) -> bytes:
    return frame.to_csv(index=False, **options).encode()


def _with(column: str, **entries: object) -> pd.DataFrame:
    """The table with entries of one column replaced: ``r3="x"`` puts x into row 3."""
    frame = FRAME.astype({column: object})
    for row, entry in entries.items():
        frame.loc[int(row[1:]), column] = entry
    return frame


def _parquet(frame: pd.DataFrame = FRAME) -> bytes:
    handle = io.BytesIO()
    frame.to_parquet(handle)
    return handle.getvalue()


#: Tables that every verb reads as if they were the plain one: name, content, options.
READABLE: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "plain": ("d.csv", _csv(), ()),
    "semicolons and decimal commas": ("d.csv", _csv(sep=";", decimal=","), ()),
    "quoted decimal commas between commas": ("d.csv", _csv(decimal=","), ()),
    "byte order mark": ("d.csv", b"\xef\xbb\xbf" + _csv(), ()),
    "windows line ends": ("d.csv", _csv(lineterminator="\r\n"), ()),
    "old macintosh line ends": ("d.csv", _csv(lineterminator="\r"), ()),
    "tabs": ("d.tsv", _csv(sep="\t"), ()),
    "tabs in a csv file": ("d.csv", _csv(sep="\t"), ()),
    "blanks": ("d.dat", FRAME.to_string(index=False).encode(), ()),
    "numpy.savetxt": ("d.txt", b"# " + _csv(sep=" "), ()),
    "bars": ("d.csv", _csv(sep="|"), ()),
    "named separator": ("d.data", _csv(sep="\t"), ("--separator", "tab")),
    "all numbers quoted": ("d.csv", _csv(FRAME.astype(str), quoting=1), ()),
    "blank lines first": ("d.csv", b"\n,,\n" + _csv(), ()),
    "trailing separators": ("d.csv", _csv(sep=";").replace(b"\n", b";\n"), ()),
    "utf-16": ("d.csv", _csv().decode().encode("utf-16"), ()),
    "text column in latin-1": ("d.csv", FRAME.assign(ort="Größe").to_csv(index=False).encode("latin-1"), ()),
    "text column": ("d.csv", _csv(FRAME.assign(name="text")), ()),
    "date column": ("d.csv", _csv(FRAME.assign(when=pd.date_range("2024-01-01", periods=N))), ()),
    "empty column": ("d.csv", _csv(FRAME.assign(gap="")), ()),
    "column without a name": ("d.csv", FRAME.set_axis([f"r{k}" for k in range(N)]).to_csv().encode(), ()),
    "gzip": ("d.csv.gz", gzip.compress(_csv()), ()),
    "bzip2": ("d.csv.bz2", bz2.compress(_csv()), ()),
    "xz": ("d.csv.xz", lzma.compress(_csv()), ()),
    "parquet": ("d.parquet", _parquet(), ()),
    "parquet with dates": ("d.parquet", _parquet(FRAME.assign(when=pd.Timestamp("2024-01-01"))), ()),
    "standard input": ("-", _csv(sep=";", decimal=","), ()),
    "gzip from standard input": ("-", gzip.compress(_csv()), ()),
    "parquet from standard input": ("-", _parquet(), ()),
}  # fmt: skip

NOT_NUMERIC = "Column 'a' of 'd.csv' is not numeric: "

#: Tables that no verb can use: name, content, options, what is said.
UNUSABLE: dict[str, tuple[str, bytes, tuple[str, ...], str]] = {
    "empty file": ("d.csv", b"", (), "is empty"),
    "header only": ("d.csv", b"a,b,y\n", (), "has no rows"),
    "no header": ("d.csv", _csv(header=False), (), "holds numbers, not names. Add a header line, or say"),
    "names twice": ("d.csv", _csv().replace(b"a,b,y", b"a,a,y"), (), "more than one column named 'a'"),
    "long rows": ("d.csv", b"a,b,y\n" + b"1,2,3\n" * 40 + b"1,2,3,4\n", (), "line 42"),
    "not a table": ("d.csv", bytes(range(256)) * 4, (), "cannot be read as text"),
    "wrong encoding": ("d.csv", b"gr\xf6\xdfe,b,y\n1,2,3\n", ("--encoding", "utf-8"), "or give its --encoding"),
    "unknown kind": ("d.xyz", _csv(), (), "or say what separates the columns (--separator)"),
    "damaged archive": ("d.csv.gz", gzip.compress(_csv())[:40], (), "cannot be read"),
    "no parquet": ("d.parquet", b"PAR1 but not really", (), "cannot be read as parquet"),
    "text in a needed column": ("d.csv", _csv(_with("a", r7="seven")), (), NOT_NUMERIC + "'seven' in data row 8"),
    "dates in a needed column": ("d.csv", _csv(FRAME.assign(a="2024-01-01")), (), NOT_NUMERIC + "'2024-01-01'"),
}  # fmt: skip

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    runner = CliRunner(env={"COLUMNS": "120"})

    def run(*arguments: object, name: str = "", content: bytes = b"") -> Result:
        """Run a verb; ``DATA`` among the arguments stands for the table."""
        if name and name != "-":
            (tmp_path / name).write_bytes(content)
        data = "-" if name == "-" else str(tmp_path / name)
        return runner.invoke(
            app, [data if a == "DATA" else str(a) for a in arguments], input=content if name == "-" else None
        )

    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    FRAME.to_csv(folder / "d.csv", index=False)
    out = folder / "model.json"
    arguments = [
        "fit",
        str(folder / "d.csv"),
        "--target",
        "y",
        "--engine",
        "mcts",
        "--max-evaluations",
        "60",
        "--out",
        str(out),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return out


def _fit(run: Run, *options: object, name: str, content: bytes) -> Result:
    return run(
        "fit", "DATA", "--target", "y", "--engine", "mcts", "--max-evaluations", 20, *options, name=name,
        content=content,
    )  # fmt: skip


def _done(result: Result) -> Any:
    assert result.exit_code == 0, (result.output, result.stderr, result.exception)
    return json.loads(result.stdout)


def _one_line(result: Result, message: str) -> None:
    assert result.exit_code == 1, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("sobolev: ") and result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize("case", READABLE)
def test_report_reads_awkward_tables(case: str, run: Run) -> None:
    name, content, options = READABLE[case]
    expected = _done(run("report", EQUATION, "DATA", "--target", "y", "--json", name="p.csv", content=_csv()))
    found = _done(run("report", EQUATION, "DATA", "--target", "y", "--json", *options, name=name, content=content))
    assert found["features"] == ["a", "b"] and found["n_used"] == N
    assert [term["novelty"] for term in found["terms"]] == pytest.approx([t["novelty"] for t in expected["terms"]])


@pytest.mark.parametrize("case", READABLE)
def test_prune_reads_awkward_tables(case: str, run: Run) -> None:
    name, content, options = READABLE[case]
    found = _done(run("prune", "3*a/b", "DATA", "--target", "y", "--json", *options, name=name, content=content))
    assert found["n_used"] == N and found["r2_before"] > 0.999


#: The reader is the same for every verb; a search takes a second, so it runs on those that a fit treats in its own way.
FITTED = (
    "semicolons and decimal commas", "byte order mark", "tabs", "all numbers quoted", "text column in latin-1",
    "text column", "date column", "empty column", "column without a name", "gzip", "parquet with dates",
    "standard input",
)  # fmt: skip


@pytest.mark.parametrize("case", FITTED)
def test_fit_reads_awkward_tables(case: str, run: Run) -> None:
    name, content, options = READABLE[case]
    found = _done(_fit(run, "--json", *options, name=name, content=content))
    assert found["n_rows"] == N and found["r2"] > 0.999
    left_out = {"name", "when", "gap", "ort", "unnamed0", "unnamed3"}
    assert all(
        any(f"'{c}'" in note for c in left_out) or "is read" in note or "are read" in note for note in found["notes"]
    )


@pytest.mark.parametrize("case", READABLE)
def test_predict_reads_awkward_tables(case: str, run: Run, model: Path) -> None:
    name, content, options = READABLE[case]
    found = _done(run("predict", model, "DATA", "--json", *options, name=name, content=content))
    np.testing.assert_allclose(found["predictions"], FRAME["y"], rtol=1e-4)


@pytest.mark.parametrize("case", UNUSABLE)
def test_report_says_in_one_line_what_is_wrong(case: str, run: Run) -> None:
    name, content, options, message = UNUSABLE[case]
    result = run("report", EQUATION, "DATA", "--target", "y", *options, name=name, content=content)
    _one_line(result, message)


@pytest.mark.parametrize("case", [case for case in UNUSABLE if "needed" not in case])
def test_fit_says_in_one_line_what_is_wrong(case: str, run: Run) -> None:
    name, content, options, message = UNUSABLE[case]
    _one_line(_fit(run, *options, name=name, content=content), message)


@pytest.mark.parametrize("case", UNUSABLE)
def test_predict_says_in_one_line_what_is_wrong(case: str, run: Run, model: Path) -> None:
    name, content, options, message = UNUSABLE[case]
    _one_line(run("predict", model, "DATA", *options, name=name, content=content), message)


@pytest.mark.parametrize("case", ["no header", "semicolons"])
def test_a_table_without_a_header_is_read_when_told_so(case: str, run: Run, tmp_path: Path) -> None:
    content = _csv(header=False) if case == "no header" else _csv(header=False, sep=";", decimal=",")
    found = _done(
        run("report", "x0/x1", "DATA", "--target", "x2", "--no-header", "--json", name="d.csv", content=content)
    )
    assert found["features"] == ["x0", "x1"] and found["n_used"] == N
    out = tmp_path / "model.json"
    arguments = ("--target", "x2", "--no-header", "--engine", "mcts", "--max-evaluations", 20, "--out", out, "--json")
    assert _done(run("fit", "DATA", *arguments, name="d.csv", content=content))["r2"] > 0.999
    found = _done(run("predict", out, "DATA", "--no-header", "--json", name="d.csv", content=content))
    np.testing.assert_allclose(found["predictions"], FRAME["y"], rtol=1e-4)


def test_missing_values_are_counted_not_fatal(run: Run, model: Path) -> None:
    frame = _with("a", r3="", r4="NA", r5="?").assign(y=_with("y", r9="")["y"])
    content = _csv(frame)
    report = _done(run("report", EQUATION, "DATA", "--target", "y", "--json", name="d.csv", content=content))
    assert report["n_samples"] == N - 1 and report["n_used"] == N - 4
    assert "1 of 50 rows is left out: y is missing or not finite there." in report["notes"]
    pruned = _done(run("prune", EQUATION, "DATA", "--target", "y", "--json", name="d.csv", content=content))
    assert pruned["n_used"] == N - 4
    fitted = _done(_fit(run, "--json", name="d.csv", content=content))
    assert fitted["n_rows"] == N - 4
    assert "4 of 50 rows are left out: a or y is missing or not finite there." in fitted["notes"]
    predicted = _done(run("predict", model, "DATA", "--json", name="d.csv", content=content))
    assert len(predicted["predictions"]) == N
    assert [k for k, value in enumerate(predicted["predictions"]) if value is None] == [3, 4, 5]
    assert predicted["notes"] == ["3 of 50 rows have no prediction: an input is missing or not finite there."]


def test_predictions_as_text_are_one_line_per_row_and_the_notes_go_to_standard_error(run: Run, model: Path) -> None:
    content = _csv(_with("b", r0="", r2="inf"))
    result = run("predict", model, "DATA", name="d.csv", content=content)
    assert result.exit_code == 0
    values = [float(line) for line in result.stdout.splitlines()]
    assert len(values) == N and [k for k, value in enumerate(values) if np.isnan(value)] == [0, 2]
    assert result.stderr == "Note: 2 of 50 rows have no prediction: an input is missing or not finite there.\n"


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_predictions_in_a_file_keep_the_rows(kind: str, run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / f"p.{kind}"
    result = run("predict", model, "DATA", "--out", out, name="d.csv", content=_csv(_with("b", r0="")))
    assert result.exit_code == 0 and result.stdout == f"50 predictions written to {out}.\n"
    found = (
        pd.read_parquet(out)
        if kind == "parquet"
        else pd.read_csv(out, sep="," if kind == "csv" else "\t", skip_blank_lines=False)
    )
    assert len(found) == N and np.flatnonzero(found["prediction"].isna()).tolist() == [0]


def test_columns_that_the_equation_does_not_use_are_not_needed_to_predict(
    run: Run, tmp_path: Path, model: Path
) -> None:
    out = tmp_path / "model.json"
    frame = FRAME.assign(noise=RNG.normal(size=N))
    _done(_fit(run, "--out", out, "--json", name="d.csv", content=_csv(frame)))
    for other in (FRAME, FRAME.assign(noise="text"), FRAME.assign(noise="")):
        found = _done(run("predict", out, "DATA", "--json", name="e.csv", content=_csv(other)))
        np.testing.assert_allclose(found["predictions"], FRAME["y"], rtol=1e-4)


def test_a_column_that_is_not_there_is_named(run: Run, model: Path) -> None:
    content = _csv(FRAME[["b", "y"]])
    _one_line(run("report", EQUATION, "DATA", "--target", "y", name="d.csv", content=content), "'a'")
    message = "'d.csv' lacks columns that the equation uses: a. Its columns: b, y."
    _one_line(run("predict", model, "DATA", name="d.csv", content=content), message)


def test_rows_outside_the_domain_of_the_equation_are_counted_apart(run: Run, model: Path) -> None:
    content = _csv(_with("b", r0="", r1="0", r2="0").astype({"b": object}))
    found = _done(run("predict", model, "DATA", "--json", name="d.csv", content=content))
    assert found["predictions"][:3] == [None] * 3
    assert found["notes"] == [
        "1 of 50 rows has no prediction: an input is missing or not finite there.",
        "2 of 50 rows have no prediction: the equation is not finite there.",
        "2 of 49 rows have 'b' outside the training range, 1.015 to 1.995: these predictions extrapolate.",
    ]


def test_one_row(run: Run, model: Path) -> None:
    content = _csv(FRAME.head(1))
    _one_line(_fit(run, name="d.csv", content=content), "A fit needs at least 2 complete rows. 'd.csv' has 1.")
    gaps = _csv(FRAME.assign(a=""))
    message = "A fit needs at least 2 complete rows. 'd.csv' has 0. Fill the gaps in a, or leave out such a column."
    _one_line(_fit(run, "--features", "a,b", name="d.csv", content=gaps), message)
    result = run("report", EQUATION, "DATA", "--target", "y", name="d.csv", content=content)
    assert result.exit_code == 1 and "Fewer than 32 rows" in result.stderr and result.stderr.count("\n") == 1
    assert len(_done(run("predict", model, "DATA", "--json", name="d.csv", content=content))["predictions"]) == 1


def test_one_column(run: Run) -> None:
    content = _csv(FRAME[["y"]])
    _one_line(_fit(run, name="d.csv", content=content), "no input column besides y")
    found = _done(run("report", "y + y**2", "DATA", "--json", name="d.csv", content=content))
    assert found["features"] == ["y"]


def test_a_target_that_is_text_is_named(run: Run) -> None:
    content = _csv(FRAME.assign(y="high"))
    message = "Column 'y' of 'd.csv' is not numeric: 'high' in data row 1. Correct the entry"
    for verb in ("report", "prune"):
        _one_line(run(verb, EQUATION, "DATA", "--target", "y", name="d.csv", content=content), message)
    _one_line(_fit(run, name="d.csv", content=content), message)


def test_features_that_are_named_must_be_numeric(run: Run) -> None:
    content = _csv(FRAME.assign(name="text"))
    _one_line(
        _fit(run, "--features", "a,name", name="d.csv", content=content), "Column 'name' of 'd.csv' is not numeric"
    )
    assert _done(_fit(run, "--features", "a,b", "--json", name="d.csv", content=content))["notes"] == []


def test_a_column_with_the_name_of_an_argument_keeps_it(run: Run) -> None:
    content = _csv(FRAME.rename(columns={"a": "target"}))
    result = run("report", "b", "DATA", "--target", "features", name="d.csv", content=content)
    _one_line(result, "--target: 'd.csv' has no column 'features'. Its columns: target, b, y.")


def test_names_that_are_not_plain_words(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    content = _csv(FRAME.rename(columns={"a": "mass (kg)", "b": "größe"}))
    assert _done(_fit(run, "--out", out, "--json", name="d.csv", content=content))["r2"] > 0.999
    found = _done(run("predict", out, "DATA", "--json", name="d.csv", content=content))
    np.testing.assert_allclose(found["predictions"], FRAME["y"], rtol=1e-4)


def test_weights_are_a_column(run: Run) -> None:
    content = _csv(FRAME.assign(w=1.0))
    assert _done(_fit(run, "--sample-weight", "w", "--json", name="d.csv", content=content))["r2"] > 0.999
    _one_line(
        _fit(run, "--sample-weight", "y", name="d.csv", content=content),
        "--target and --sample-weight both name the column 'y'",
    )
    negative = _csv(FRAME.assign(w=-1.0))
    _one_line(_fit(run, "--sample-weight", "w", name="d.csv", content=negative), "--sample-weight must not be negative")


def test_bad_options_of_a_fit_are_one_line(run: Run, model: Path) -> None:
    for option, value in (("--budget", "-1"), ("--budget", "0"), ("--budget", "inf")):
        message = f"{option} must be a number of seconds above 0"
        _one_line(_fit(run, option, value, name="d.csv", content=_csv()), message)
    _one_line(_fit(run, "--noise", "white", name="d.csv", content=_csv()), "--noise must be 'auto'")
    _one_line(
        _fit(run, "--max-complexity", "0", name="d.csv", content=_csv()),
        "--max-complexity must be a whole number",
    )
    _one_line(_fit(run, "--engine", "magic", name="d.csv", content=_csv()), "--engine must be one of")
    _one_line(_fit(run, "--drop", "q", name="d.csv", content=_csv()), "--drop: 'd.csv' has no column 'q'")
    _one_line(run("predict", model, "DATA", "--index", "99", name="d.csv", content=_csv()), "--index must be a row")


def test_the_place_of_the_model_is_checked_before_the_search(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sobolev_novelty.search.model.regressor.SymbolicRegressor.fit", None)
    wrong = {
        tmp_path / "none" / "m.json": "none' does not exist",
        tmp_path / "m.pkl": "--out must end in .json",
        tmp_path / "m": "--out must end in .json",
    }
    for out, message in wrong.items():
        _one_line(_fit(run, "--out", out, name="d.csv", content=_csv()), message)
    _one_line(
        _fit(run, "--checkpoint", tmp_path / "no" / "c.json", name="d.csv", content=_csv()), "--checkpoint: the folder"
    )


def test_a_model_that_cannot_be_written_is_kept_in_the_temporary_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sobolev_novelty.search.model.regressor import SymbolicRegressor

    out = tmp_path / "model.json"
    save = SymbolicRegressor.save

    def full(self: SymbolicRegressor, path: Path) -> None:
        if path == out:
            raise OSError(28, "No space left on device", str(path))
        save(self, path)

    monkeypatch.setattr(SymbolicRegressor, "save", full)
    result = _fit(run, "--out", out, "--json", name="d.csv", content=_csv())
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert "could not be written (No space left on device). The result is in" in result.stderr
    assert data["problem"] in result.stderr and data["equation"]
    assert str(SymbolicRegressor.load(data["out"]).expression_) == data["equation"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full, as Linux offers it")
def test_a_report_that_cannot_be_written_is_printed_and_kept(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    out.symlink_to("/dev/full")
    result = run("report", EQUATION, "DATA", "--out", out, name="d.csv", content=_csv())
    assert result.exit_code == 1 and "terms" in result.stdout
    kept = Path(result.stderr.split("The result is in '")[1].split("'")[0])
    assert kept.read_text(encoding="utf-8").startswith("<!doctype html>")
