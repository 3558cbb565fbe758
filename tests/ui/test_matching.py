"""An equation and a table: which columns are used, what is said of the others, and what the verbs then do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.progress import Progress
from sobolev_novelty.errors import DataError, ParameterError, ParseError
from sobolev_novelty.tables.file_chunks import FileChunks
from sobolev_novelty.tables.files import read_table
from sobolev_novelty.ui.match import MatchedEquation, match_equation, streamed_report
from streaming_cases import assert_same

N = 60


@pytest.fixture
def columns() -> dict[str, list[object]]:
    a = np.linspace(-1, 1, N)
    return {
        "a": a.tolist(),
        "b": np.cos(5 * a).tolist(),
        "name": ["text"] * N,
        "when": [f"2024-01-{1 + k % 28:02}" for k in range(N)],
        "y": (2.4 * np.sin(a) + np.cos(3 * a)).tolist(),
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, list[object]]], Path]:
    def written(columns: dict[str, list[object]]) -> Path:
        path = tmp_path / "data.csv"
        rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return path

    return written


Write = Callable[[dict[str, list[object]]], Path]
Columns = dict[str, list[object]]


def _match(equation: str, path: Path, **options: Any) -> MatchedEquation:
    return match_equation(equation, read_table(path), **options)


def test_inputs_are_the_numeric_columns_besides_the_target(columns: Columns, write: Write) -> None:
    found = _match("2*a", write(columns), target="y")
    assert found.sample.names == ("a", "b")
    np.testing.assert_array_equal(found.sample.X[0], columns["a"])
    np.testing.assert_allclose(found.y, columns["y"])


def test_columns_that_take_no_part_are_named_in_the_notes(columns: Columns, write: Write) -> None:
    notes = _match("2*a", write(columns), target="y").notes
    assert [note for note in notes if "'name' is not numeric" in note]
    assert [note for note in notes if "'when' is not numeric" in note]
    assert "does not use b" in notes[-1]


def test_named_features_are_the_inputs_in_their_order(columns: Columns, write: Write) -> None:
    found = _match("x0 - x1", write(columns), features=["b", "a", "b"])
    assert found.sample.names == ("b", "a") and found.notes == () and found.y is None
    assert str(found.expression) == "b - a"


@pytest.mark.parametrize(
    ("equation", "options", "error", "message"),
    [
        ("a", {"target": "z"}, DataError, "has no column 'z'. Its columns: a, b, name, when, y"),
        ("a", {"features": ["a", "q"]}, DataError, "has no column 'q'"),
        ("a", {"target": "a", "features": ["a"]}, ParameterError, "'target' and 'features' both name the column 'a'"),
        ("a", {"features": ["a", "name"]}, DataError, "Column 'name' of 'data.csv' is not numeric: 'text'"),
        ("a + name", {}, DataError, "Column 'name' of 'data.csv' is not numeric: 'text'"),
        ("a + when", {}, DataError, "Column 'when' of 'data.csv' is not numeric: '2024-01-01'"),
        ("a", {"target": "name"}, DataError, "olumn 'name' of 'data.csv' is not numeric: 'text'"),
        ("a + speed", {}, ParseError, "speed"),
    ],
)
def test_what_cannot_be_matched_is_named(
    equation: str, options: dict[str, Any], error: type[Exception], message: str, columns: Columns, write: Write
) -> None:
    path = write(columns)
    with pytest.raises(error, match=message):
        _match(equation, path, **options)
    with pytest.raises(error, match=message):
        streamed_report(equation, FileChunks(path, 10), **options)


def test_a_table_without_inputs_is_refused(columns: Columns, write: Write) -> None:
    with pytest.raises(DataError, match="no input column besides y"):
        _match("1", write({"y": columns["y"]}), target="y")
    with pytest.raises(DataError, match="no numeric column"):
        _match("1", write({"name": columns["name"], "y": columns["y"]}), target="y")


def test_the_report_is_the_librarys_with_the_tables_notes_first(columns: Columns, write: Write) -> None:
    equation = "2.1*sin(a) + 0.3*a + cos(3*a)"
    found = _match(equation, write(columns), target="y").report(tau=0.2)
    expected = sn.novelty(equation, np.transpose([columns["a"], columns["b"]]), names=["a", "b"], tau=0.2)
    np.testing.assert_allclose(found.nu, expected.nu, rtol=1e-12)
    assert found.tau == 0.2 and "'name'" in found.notes[0]


def test_rows_with_a_missing_input_are_counted_in_the_report(columns: Columns, write: Write) -> None:
    columns["a"][3] = columns["a"][7] = ""
    found = _match("sin(a) + cos(3*a)", write(columns), target="y").report()
    assert (found.n_samples, found.n_used) == (N, N - 2)
    assert found.dropped == {"an input is missing or not finite": 2}


def test_pruning_says_what_was_deleted_and_what_it_cost(columns: Columns, write: Write) -> None:
    slim = _match("2.1*sin(a) + 0.3*a + cos(3*a)", write(columns), target="y").prune()
    data = slim.to_dict()
    assert [step["term"] for step in data["deleted"]] == ["a"]
    assert data["r2_after"] > data["r2_before"] and data["n_used"] == N
    assert "deleted a" in str(slim) and "Note: Column 'name'" in str(slim)


def test_pruning_nothing_says_so(columns: Columns, write: Write) -> None:
    slim = _match("2.4*sin(a) + cos(3*a)", write(columns), target="y").prune()
    assert "Nothing was deleted" in str(slim) and slim.to_dict()["deleted"] == []


def test_pruning_an_equation_that_is_nowhere_finite_is_refused(columns: Columns, write: Write) -> None:
    with pytest.raises(DataError, match="not finite in any row"):
        _match("log(a - 9)", write(columns), target="y").prune()


def test_the_filter_gives_the_librarys_verdict(columns: Columns, write: Write) -> None:
    path = write(columns)
    assert _match("sin(a) + cos(3*a)", path).accepts()
    assert not _match("sin(a) + a", path).accepts()
    assert _match("sin(a) + a", path).accepts(tau=0.01)


def test_rows_without_a_target_are_left_out_and_counted(columns: Columns, write: Write) -> None:
    columns["y"][3], columns["y"][40] = "", "inf"
    path = write(columns)
    note = "2 of 60 rows are left out: y is missing or not finite there."
    matched = _match("sin(a) + cos(3*a)", path, target="y")
    assert matched.sample.n_samples == N - 2 and note in matched.notes
    streamed = streamed_report("sin(a) + cos(3*a)", FileChunks(path, 7), target="y")
    assert_same(streamed, matched.report())
    assert "deleted" in matched.prune().to_dict()


def test_a_target_without_any_value_is_refused(columns: Columns, write: Write) -> None:
    columns["y"] = [""] * N
    path = write(columns)
    with pytest.raises(DataError, match="Target column 'y' of 'data.csv' has no finite number in any row"):
        _match("a", path, target="y")
    with pytest.raises(DataError, match="Target column 'y' of 'data.csv' has no finite number in any row"):
        streamed_report("a", FileChunks(path, 7), target="y")


def test_an_unused_column_without_entries_is_left_out(columns: Columns, write: Write) -> None:
    columns["gap"] = [""] * N
    path = write(columns)
    matched = _match("sin(a) + cos(3*a)", path, target="y")
    assert "Column 'gap' has no entries: it is left out." in matched.notes
    assert_same(streamed_report("sin(a) + cos(3*a)", FileChunks(path, 7), target="y"), matched.report())


def test_pruning_needs_a_target(columns: Columns, write: Write) -> None:
    with pytest.raises(ParameterError, match="'target' is missing: name the column"):
        _match("a", write(columns)).prune()


def test_resamples_and_chunks_are_told(columns: Columns, write: Write) -> None:
    path = write(columns)
    told: list[Progress] = []
    _match("sin(a) + a", path).report(n_bootstrap=3, on_progress=told.append)
    assert [step.done for step in told] == [1, 2, 3]
    told.clear()
    streamed_report("sin(a) + a", FileChunks(path, 20), features=["a"], on_progress=told.append)
    assert len(told) == 3 and told[-1].total == path.stat().st_size
