"""Files of formulas: every form read one by one, files written whole or not at all."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables import formula_files
from sobolev_novelty.tables.formula_files import form_of, opened, read_records, written_whole


def formulas(content: bytes, form: str, field: str = "formula") -> list[tuple[int, bytes]]:
    return [(record.number, record.formula) for record in read_records(io.BytesIO(content), form, field)]


def test_lines_keep_their_numbers_and_comments_are_left_out() -> None:
    assert formulas(b"# laws\n\nx0 + 1\r\n  x1*2", "text") == [(3, b"x0 + 1"), (4, b"x1*2")]


def test_json_lines_are_texts_or_objects_with_a_field() -> None:
    content = b'"x0"\n{"law": "x1", "id": 3}\n{"id": 4}\nnot json\n'
    found = list(read_records(io.BytesIO(content), "jsonl", "law"))
    assert [record.formula for record in found] == [b"x0", b"x1", b"", b""]
    assert found[1].raw == b'{"law": "x1", "id": 3}'
    assert found[2].problem == "The entry is neither a text nor an object with a text 'law'."
    assert found[3].problem == "The line is not JSON."


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 16])
def test_a_json_list_is_read_the_same_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_files, "_BLOCK", block)
    entries = ["x0 + 1", {"formula": 'a*"ü"'}, 12, ["x"], "]", "x,1"]
    for indent in (None, 2):
        content = json.dumps(entries, indent=indent, ensure_ascii=False).encode()
        found = list(read_records(io.BytesIO(content), "json"))
        assert [json.loads(record.raw) for record in found] == entries
        assert [record.formula.decode() for record in found] == ["x0 + 1", 'a*"ü"', "", "", "]", "x,1"]
        assert [record.number for record in found] == [1, 2, 3, 4, 5, 6]
    assert formulas(b" [ ] ", "json") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [(b'{"a": 1}', "not a JSON list"), (b'["x0" "x1"]', "after entry 1"), (b'["x0", ', "Entry 2"), (b"[x]", "Entry 1")],
)
def test_a_broken_list_says_where(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        formulas(content, "json")


def test_a_line_that_is_too_long_is_one_record_without_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_files, "MAX_RECORD", 10)
    found = list(read_records(io.BytesIO(b"x0\n" + b"x" * 95 + b"\nx1\n"), "text"))
    assert [(record.number, record.formula) for record in found] == [(1, b"x0"), (2, b""), (3, b"x1")]
    assert found[1].problem == "The line is longer than 10 bytes."


def test_the_form_follows_from_the_name() -> None:
    assert [form_of(Path(name)) for name in ("a.txt", "a.json", "a.JSONL", "-")] == ["text", "json", "jsonl", "text"]
    with pytest.raises(ParameterError, match="'form' must be one of"):
        form_of(Path("a.txt"), "csv")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("before")
    with pytest.raises(KeyError), written_whole(path) as file:
        assert file is not None
        file.write(b"half")
        raise KeyError
    assert path.read_text() == "before"
    with written_whole(path) as file:
        assert file is not None
        file.write(b"all")
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.txt"] and path.read_text() == "all"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"), opened(tmp_path / "none.txt"):
        pass
