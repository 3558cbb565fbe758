"""Stores outlive their columns, and rows say which sources made them."""

from __future__ import annotations

import platform
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from places import ROOT
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.running.store import RUNS, Job, Store
from sobolev_novelty.lab.bench.showing.page import write_page
from sobolev_novelty.lab.bench.showing.tables import results_table
from sobolev_novelty.lab.evidence import origin
from sobolev_novelty.lab.evidence.origin import (
    checkout,
    circumstances,
    engine_fingerprint,
    engine_notes,
    without_folders,
)
from sobolev_novelty.lab.evidence.schema import COMMON, Column
from sobolev_novelty.lab.turbulence.studying.store import STUDY_RUNS, RunStore

COMMITTED = sorted((ROOT / "results").glob("*.sqlite"))
STUDIES = sorted((ROOT / "results" / "turbulence").glob("*.sqlite"))
JOB = Job("feynman_I_12_1", "linear", 0)
#: What a stranger writes to store one thing more.
COLOUR = Column("colour", str, "colour of the expression")


@pytest.fixture
def wider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package after one column was added to the declaration of each store."""
    for store, schema in ((Store, RUNS), (RunStore, STUDY_RUNS)):
        monkeypatch.setattr(store, "schema", replace(schema, own=(*schema.own, COLOUR)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one finished row."""
    store = Store(tmp_path / "runs.sqlite")
    store.check_settings({"suite": "whitebox"})
    store.claim(JOB)
    store.finish(JOB, {"status": "done", "r2_test": 0.5, **circumstances()})
    return store


def columns(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[1] for row in connection.execute("PRAGMA table_info(runs)")}


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_there_are_committed_stores_to_open() -> None:
    assert {"ablation", "blackbox", "heldout", "noise10", "peers", "whitebox"} <= {path.stem for path in COMMITTED}
    assert len(STUDIES) >= 4


@pytest.mark.parametrize("path", COMMITTED + STUDIES, ids=lambda path: path.stem)
def test_a_committed_store_opens_after_a_column_is_added(path: Path, tmp_path: Path, wider: None) -> None:
    kind = RunStore if path in STUDIES else Store
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    before = copy.read_bytes()
    reader = kind(copy, read_only=True)
    frame = reader.frame()
    assert len(frame) > 6 and frame["colour"].isna().all() and frame["status"].notna().all()
    assert copy.read_bytes() == before and "colour" not in columns(copy)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    writer = kind(copy)
    assert "colour" in columns(copy) and version(copy) == writer.schema.version
    assert writer.frame().equals(frame), "no row is lost or changed"


@pytest.mark.parametrize("path", COMMITTED + STUDIES, ids=lambda path: path.stem)
def test_a_committed_store_names_no_machine_and_no_folder(path: Path) -> None:
    rows = (RunStore if path in STUDIES else Store)(path, read_only=True).results()
    assert rows
    for row in rows:
        assert row["host"] is None or re.fullmatch("[0-9a-f]{12}", row["host"])
        assert re.fullmatch(r"[\w ().@-]+, \d+ (CPUs|cores)(, Python [\d.]+)?", row["machine"])
        assert not re.search("/(?:home|work|opt|tmp|root|usr)/", str(row))


def test_a_new_column_is_one_line_of_the_declaration(tmp_path: Path, wider: None) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.claim(JOB)
    assert store.finish(JOB, {"status": "done", "colour": "red"})
    assert store.frame()["colour"].tolist() == ["red"]
    assert store.results()[0]["colour"] == "red"
    study = RunStore(tmp_path / "study.sqlite")
    assert study.add("row/DNS", {"colour": "blue"})["colour"] == "blue"


def test_an_older_store_is_widened_when_it_is_written_and_goes_on(store: Store, wider: None) -> None:
    assert "colour" not in columns(store.path)
    later = Store(store.path)
    second = Job("feynman_I_12_2", "linear", 0)
    later.claim(second)
    later.finish(second, {"status": "done", "colour": "red"})
    assert {row["task"]: row["colour"] for row in later.results()} == {JOB.task: None, second.task: "red"}
    assert results_table(later.frame(), "whitebox").frame["tasks"].tolist() == [2]


def test_a_store_of_a_newer_version_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wider: None
) -> None:
    path = tmp_path / "runs.sqlite"
    newer = Store(path).schema.version
    monkeypatch.undo()
    before = path.read_bytes()
    for read_only in (True, False):
        words = rf"newer version of sobolev-novelty \(schema {newer}, .* no column colour\)\. Update sobolev-novelty"
        with pytest.raises(DataError, match=words):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_store_of_the_other_kind_is_refused(store: Store) -> None:
    with pytest.raises(DataError, match="is not a store of 'sobolev turbulence compare': it has no column key"):
        RunStore(store.path, read_only=True)


def test_every_column_says_what_it_is_and_is_declared_once() -> None:
    for schema in (RUNS, STUDY_RUNS):
        names = [column.name for column in schema.columns]
        assert len(names) == len(set(names)) == schema.version
        assert all(column.meaning for column in schema.columns)
    assert {column.role for column in COMMON} == {"result", "origin", "claim"}


def test_a_value_of_the_wrong_type_is_refused(store: Store) -> None:
    with pytest.raises(ParameterError, match="'many' in column 'evaluations', which holds int"):
        store.finish(JOB, {"evaluations": "many"})


def test_half_a_written_row_leaves_the_store_readable(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    RunStore(path).add("first", {"status": "done"})
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE');"
        "c.execute(\"INSERT INTO runs (key, status) VALUES ('second', 'do')\"); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    assert [row["key"] for row in RunStore(path, read_only=True).rows()] == ["first"]
    RunStore(path).add("second", {"status": "done"})
    assert len(RunStore(path).rows()) == 2


# --- origin


def make_package(root: Path, name: str = "sobolev-novelty") -> Path:
    """A checkout with a package of two files."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    package = root / "src" / "sobolev_novelty"
    (package / "search").mkdir(parents=True)
    (package / "report" / "render").mkdir(parents=True)
    (package / "search" / "loop.py").write_text("a = 1\n")
    (package / "report" / "render" / "page.py").write_text("b = 1\n")
    (root / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    return package


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = make_package(tmp_path.resolve())
    monkeypatch.setattr(origin, "PACKAGE", package)
    origin._is_unchanged_since.cache_clear()
    yield package
    origin._is_unchanged_since.cache_clear()


def test_the_commit_is_recorded_only_for_the_packages_own_checkout(tmp_path: Path) -> None:
    package = make_package(tmp_path / "ours")
    assert checkout(package) == (tmp_path / "ours")
    assert checkout(make_package(tmp_path / "fork", "another-project")) is None
    installed = tmp_path / "ours" / ".venv" / "lib" / "sobolev_novelty"
    shutil.copytree(package, installed)
    assert checkout(installed) is None, "a copy installed inside the checkout may be of another commit"
    (tmp_path / "bare" / "src").mkdir(parents=True)
    shutil.copytree(package, tmp_path / "bare" / "src" / "sobolev_novelty")
    shutil.copy(tmp_path / "ours" / "pyproject.toml", tmp_path / "bare")
    assert checkout(tmp_path / "bare" / "src" / "sobolev_novelty") is None


def test_asking_for_the_commit_locks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed while git refreshes its index would leave a lock in the user's checkout."""
    asked: list[list[str]] = []
    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **options: asked.append(command) or real(command, **options))
    circumstances()
    if not asked:
        pytest.skip("the package does not run from a checkout: git is not asked")
    assert all("--no-optional-locks" in command for command in asked)


def test_every_row_says_which_sources_made_it(store: Store) -> None:
    row = store.results()[0]
    assert row["engine"] == engine_fingerprint() and re.fullmatch("[0-9a-f]{12}", row["engine"])
    assert row["version"]
    assert row["commit"] is None or re.fullmatch(r"[0-9a-f]{40}(\+changes)?", row["commit"])


def test_the_fingerprint_changes_with_the_engine_and_not_with_what_only_shows(package: Path) -> None:
    before = engine_fingerprint(package)
    (package / "report" / "render" / "page.py").write_text("b = 2\n")
    assert engine_fingerprint(package) == before
    (package / "search" / "loop.py").write_text("a = 2\n")
    assert engine_fingerprint(package) != before


def row(engine: str | None, commit: str | None) -> tuple[str | None, str | None, str | None]:
    return engine, commit, "0.1.0"


def test_rows_of_a_changed_engine_are_counted(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "engine_fingerprint", lambda: "aaaaaaaaaaaa")
    assert engine_notes([row("aaaaaaaaaaaa", None)]) == []
    assert engine_notes([row("aaaaaaaaaaaa", None), row("bbbbbbbbbbbb", "c" * 40)]) == [
        "1 of 2 rows were made by an engine that has changed since (commit cccccccccc)."
    ]


def test_rows_without_a_fingerprint_are_compared_through_git(package: Path) -> None:
    root = package.parents[1]
    commit = git(root, "rev-parse", "HEAD")
    (package / "report" / "render" / "page.py").write_text("b = 2\n")
    assert engine_notes([row(None, commit)]) == []
    origin._is_unchanged_since.cache_clear()
    (package / "search" / "loop.py").write_text("a = 2\n")
    assert engine_notes([row(None, commit)] * 3) == [
        f"3 of 3 rows were made by an engine that has changed since (commit {commit[:10]})."
    ]
    first, second = sorted([f"commit {commit[:10]} with changes", "commit dddddddddd"])
    assert engine_notes([row(None, "d" * 40), row(None, None), row(None, f"{commit}+changes")]) == [
        f"3 of 3 rows do not say which engine made them ({first}, {second}, version 0.1.0)."
    ]


def test_a_page_marks_the_rows_of_an_engine_that_has_changed(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (page, *_) = write_page([store.path], tmp_path / "page.md")
    assert "has changed since" not in page.read_text()
    second = Job("feynman_I_12_2", "linear", 0)
    store.claim(second)
    store.finish(second, {"status": "done", "r2_test": 0.5, **circumstances(), "engine": "0" * 12, "commit": None})
    (page, *_) = write_page([store.path], tmp_path / "page.md")
    assert re.search(r"1 of 2 rows were made by an engine that has changed since \(version .*\)\.", page.read_text())


def test_messages_are_stored_without_folders() -> None:
    text = 'File "/somebody/x/src/sobolev_novelty/search/loop/loop.py", line 3; '
    text += "https://a.b/c/d; 3/4/5; /elsewhere/z/out.json"
    short = 'File "sobolev_novelty/search/loop/loop.py", line 3; https://a.b/c/d; 3/4/5; out.json'
    assert without_folders(text) == short


def test_circumstances_name_no_host() -> None:
    found = circumstances()
    assert set(found) == set(RUNS.names("origin")) - {"created"}
    assert found["machine"] is not None and platform.node() not in found["machine"].split(", ")
