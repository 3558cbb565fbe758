"""Paths are checked before the work; a result is never lost."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from sobolev_novelty.core.output import check_output, whole_file, write_or_rescue, write_whole
from sobolev_novelty.errors import ParameterError


def test_a_path_that_will_do_passes(tmp_path: Path) -> None:
    check_output(tmp_path / "new.json", [".json"])
    (tmp_path / "OLD.JSON").write_text("{}")
    check_output(tmp_path / "OLD.JSON", [".json"])
    check_output(tmp_path / "anything")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.txt", "'out' must end in .json or .tex. Got"),
        ("model", "'out' must end in .json or .tex. Got"),
        ("none/model.json", "'out': the folder '.*none' does not exist. Make it, or give another path."),
        ("folder.json", "'out': '.*folder.json' is a folder. Give the path of a file."),
    ],
)
def test_a_path_that_will_not_do_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ParameterError, match=message):
        check_output(tmp_path / name, [".json", ".tex"])


def test_a_folder_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ParameterError, match="'checkpoint': '.*c.json' cannot be written. Check its permissions"):
        check_output(tmp_path / "c.json", [".json"], "checkpoint")


def test_a_result_that_can_be_written_is_where_it_was_wanted(tmp_path: Path) -> None:
    assert write_or_rescue(tmp_path / "a.txt", lambda path: path.write_text("42")) == (str(tmp_path / "a.txt"), "")


def test_a_result_that_cannot_be_written_is_in_the_temporary_folder(tmp_path: Path) -> None:
    path, problem = write_or_rescue(tmp_path / "none" / "a.txt", lambda path: path.write_text("42"))
    assert path is not None and Path(path).name == "a.txt" and Path(path).read_text() == "42"
    assert f"The result is in '{path}'." in problem and "could not be written (No such" in problem


def test_where_nothing_can_be_written_the_result_is_still_returned_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(tmp_path / "neither"))
    path, problem = write_or_rescue(tmp_path / "none" / "a.txt", lambda path: path.write_text("42"))
    assert path is None and "Nor could the temporary folder" in problem


def test_several_writers_and_readers_of_one_file_see_only_whole_contents(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    contents = [letter * 200_000 for letter in "abcd"]
    write_whole(path, contents[0])
    done = threading.Event()

    def write(text: str) -> None:
        for _ in range(20):
            write_whole(path, text)

    writers = [threading.Thread(target=write, args=(text,)) for text in contents]
    torn = []

    def read() -> None:
        while not done.is_set():
            text = path.read_text()
            if text not in contents:
                torn.append(len(text))

    reader = threading.Thread(target=read)
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert torn == []
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as handle:
        handle.write(b"half of the n")
        1 / 0  # noqa: B018
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
