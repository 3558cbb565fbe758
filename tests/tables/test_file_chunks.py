"""Files read in chunks give the report of files read whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sobolev_novelty.core.progress import Progress
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables import file_chunks
from sobolev_novelty.tables.file_chunks import FileChunks
from sobolev_novelty.tables.files import read_table
from sobolev_novelty.tables.format import TableFormat
from sobolev_novelty.ui.cli.main import app
from sobolev_novelty.ui.match import match_equation, streamed_report
from streaming_cases import assert_same

KINDS = ["t.csv", "t.tsv", "t.csv.gz", "t.csv.xz", "t.csv.zip", "t.parquet"]
EQUATION = "2.1*sin(a) + 0.3*a + log(b)*a"


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"a": rng.normal(size=500), "b": rng.normal(size=500) + 2, "c": 1.0, "name": "text"})
    found.loc[found.index % 11 == 0, "b"] = np.nan
    found["late"] = 1.0
    found["y"] = np.arange(500)
    return found


def _write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=70)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def _whole(equation: str, path: Path, written: TableFormat | None = None, **options: Any) -> Any:
    return match_equation(equation, read_table(path, written), **options).report()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rows", [None, 1, 64, 10_000])
def test_chunks_of_every_kind_of_file_give_the_same_report(
    name: str, rows: int | None, frame: pd.DataFrame, tmp_path: Path
) -> None:
    path = _write(frame.head(60) if rows == 1 else frame, tmp_path / name)
    told: list[Progress] = []
    found = streamed_report(EQUATION, FileChunks(path, rows), target="y", on_progress=told.append)
    shares = [step.done / (step.total or 1.0) for step in told]
    assert_same(found, _whole(EQUATION, path, target="y"))
    assert shares[-1] > 0.9 and all(0.0 <= share <= 1.0 for share in shares)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_an_unused_column_with_text_in_a_late_row_takes_no_part(name: str, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame["late"] = frame["late"].astype(str)
    frame.loc[450, "late"] = "text"
    path = _write(frame, tmp_path / name)
    found = streamed_report(EQUATION, FileChunks(path, 100), target="y")
    assert_same(found, _whole(EQUATION, path, target="y"))
    assert any("'late' is not numeric" in note for note in found.notes)


def test_columns_and_options_are_matched_as_for_a_whole_file(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    frame[["a", "b"]].to_csv(path, index=False, header=False, sep=";")
    options: dict[str, Any] = {"variables": "x1", "features": ["x1", "x0"]}
    written = TableFormat(";", has_header=False)
    found = streamed_report("x1 + x2**2", FileChunks(path, 50, written), **options)
    assert_same(found, _whole("x1 + x2**2", path, written, **options))


def test_guesses_are_those_for_a_whole_file(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(frame.rename(columns={"a": "größe"}).to_csv(index=False, sep=";", decimal=",").encode("latin-1"))
    found = streamed_report("sin(größe) + log(b)", FileChunks(path, 50), target="y")
    assert_same(found, _whole("sin(größe) + log(b)", path, target="y"))
    assert any("decimal comma" in note for note in found.notes) and any("cp1252" in note for note in found.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": "bad"}, "Column 'b' of 't.csv' is not numeric: 'bad' in data row 251"),
        ({"y": "bad"}, "Column 'y' of 't.csv' is not numeric: 'bad' in data row 251"),
    ],
)
def test_errors_name_the_row_of_the_file(change: Any, message: str, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame = frame.astype(object)
    frame.loc[250, list(change)] = list(change.values())
    path = _write(frame, tmp_path / "t.csv")
    with pytest.raises(DataError, match=message):
        streamed_report(EQUATION, FileChunks(path, 100), target="y")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty. Give a table"),
        ("t.csv", "a,b\n", "has no rows of data. Give a row"),
        ("t.csv", "1,2\n3,4\n", "holds numbers, not names"),
        ("t.csv", "a,b\n" + "1,2\n" * 50 + "5,6,7\n", "line 52"),
        ("t.json", "{}", "does not say what kind of file it is"),
        ("t.parquet", "no parquet", "cannot be read as parquet"),
        ("t.csv.gz", "not compressed", "cannot be read"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        streamed_report("a", FileChunks(path, 10))


def test_rows_of_a_chunk_are_positive(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"'chunk_rows' must be at least 1\. Got 0"):
        FileChunks(tmp_path / "t.csv", 0)


def _json(*arguments: object) -> Any:
    run = CliRunner().invoke(app, ["report", *map(str, arguments), "--json"])
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)


def _assert_close(found: Any, expected: Any) -> None:
    """The same JSON, numbers to 1e-10."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            _assert_close(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_close(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)
    else:
        assert found == expected


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_the_command_line_reads_large_files_in_chunks(
    name: str, frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(frame, tmp_path / name)
    whole = _without_target(_json(EQUATION, path, "--target", "y", "--order", 2))
    parts = _json(EQUATION, path, "--target", "y", "--order", 2, "--chunk-rows", 90)
    _assert_close(_without_target(parts), whole)
    monkeypatch.setattr(file_chunks, "LARGE_FILE", 100)
    monkeypatch.setattr(file_chunks, "CHUNK_ENTRIES", 300)
    monkeypatch.setattr("sobolev_novelty.tables.files.read_table", None)
    parts = _json(EQUATION, path, "--target", "y", "--order", 2)
    _assert_close(_without_target(parts), whole)


def _without_target(report: dict[str, Any]) -> dict[str, Any]:
    """What does not need all rows at once: no words with the target, no search for poles."""
    terms = [{key: value for key, value in term.items() if key != "verdict"} for term in report["terms"]]
    notes = [note for note in report["notes"] if "within the range of the inputs" not in note]
    kept = {key: value for key, value in report.items() if key not in ("has_target", "fit")}
    return kept | {"terms": terms, "notes": notes}


def test_resampling_and_chunks_exclude_each_other(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = _write(frame, tmp_path / "t.csv")
    arguments = ["report", EQUATION, str(path), "--chunk-rows", "10", "--bootstrap", "5"]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 1 and "--bootstrap needs all rows in memory" in run.stderr
