"""Claims, stale claims and results."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.evidence import store as store_module
from sobolev_novelty.lab.evidence.claims import Identity, process_start

JOB = Job("feynman_I_12_1", "linear", 0)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "folder" / "runs.sqlite")


def other(store: Store, **changes: object) -> Store:
    second = Store(store.path)
    second.identity = replace(second.identity, **changes)
    return second


def test_a_job_is_claimed_once(store: Store) -> None:
    assert store.claim(JOB)
    assert not store.claim(JOB)
    assert not Store(store.path).claim(JOB)


def test_many_threads_share_the_jobs_out_without_doubles(store: Store) -> None:
    jobs = [Job(f"task{k}", "linear", 0) for k in range(30)]
    taken: list[Job] = []

    def work() -> None:
        mine = Store(store.path)
        taken.extend(job for job in jobs if mine.claim(job))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(jobs)


def test_a_finished_job_is_never_claimed_again(store: Store) -> None:
    store.claim(JOB)
    assert store.finish(JOB, {"status": "failed", "traceback": "…"})
    assert not store.claim(JOB)
    assert store.finished() == {JOB}
    assert not store.finish(JOB, {"status": "done"})
    assert store.frame()["status"].tolist() == ["failed"]


def test_the_claim_of_a_killed_process_is_free_at_once(store: Store) -> None:
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from sobolev_novelty.lab.bench.running.store import Job, Store;"
            f"Store(sys.argv[1]).claim(Job('{JOB.task}', 'linear', 0)); print('claimed', flush=True); time.sleep(60)",
            str(store.path),
        ],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"claimed\n"
    assert not store.claim(JOB)
    child.send_signal(signal.SIGKILL)
    time.sleep(0.1)  # a zombie until waited for: gone all the same
    assert store.claim(JOB)
    child.wait()


def test_a_reused_process_number_is_not_the_same_process(store: Store) -> None:
    assert other(store, started=1.0).claim(JOB)
    assert store.claim(JOB)


def test_a_claim_from_another_machine_is_stale_only_when_its_heartbeat_stops(store: Store, monkeypatch) -> None:
    far = other(store, host="elsewhere", pid=1)
    assert far.claim(JOB)
    assert not store.claim(JOB)
    now = time.time()
    monkeypatch.setattr(store_module.time, "time", lambda: now + 100.0)
    far.heartbeat()
    monkeypatch.setattr(store_module.time, "time", lambda: now + 200.0)
    assert not store.claim(JOB)
    monkeypatch.setattr(store_module.time, "time", lambda: now + 300.0)
    assert store.claim(JOB)
    # The old owner comes back too late: its result is not taken.
    assert not far.finish(JOB, {"status": "done", "r2_test": 0.1})
    assert store.finish(JOB, {"status": "done", "r2_test": 0.2})
    assert store.frame()["r2_test"].tolist() == [0.2]


def test_released_claims_are_free(store: Store) -> None:
    store.claim(JOB)
    Store(store.path).release([JOB])
    assert store.claim(JOB)


def test_settings_are_remembered_and_other_settings_refused(store: Store) -> None:
    store.check_settings({"budget": 30.0, "method:genetic": {"engine": "genetic"}})
    store.check_settings({"budget": 30.0, "method:mcts": {}})
    assert set(store.settings()) == {"budget", "method:genetic", "method:mcts"}
    with pytest.raises(ParameterError, match=r"was made with budget = 30\.0\. Got 15\.0\. Name another store"):
        store.check_settings({"budget": 15.0})


def test_unknown_result_columns_and_a_missing_store_are_refused(store: Store, tmp_path) -> None:
    store.claim(JOB)
    with pytest.raises(ParameterError, match="unknown columns: colour"):
        store.finish(JOB, {"colour": "red"})
    with pytest.raises(DataError, match=r"There is no store at .*nothing\.sqlite"):
        Store(tmp_path / "nothing.sqlite", read_only=True)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("kind", ["runs", "settings", "trigger", "virtual"])
def test_a_store_that_would_run_when_it_is_read_is_refused(tmp_path, kind: str, read_only: bool) -> None:
    path = tmp_path / "endless.sqlite"
    Store(path)
    with closing(sqlite3.connect(path)) as connection:
        if kind == "trigger":
            connection.execute(f"CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT count(*) FROM ({ENDLESS}); END")
        elif kind == "virtual":
            connection.execute("CREATE VIRTUAL TABLE other USING fts5(text)")
        else:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({kind})")]
            connection.execute(f"DROP TABLE {kind}")
            shown = ", ".join(f'i AS "{name}"' for name in columns)
            connection.execute(f"CREATE VIEW {kind} AS {ENDLESS.replace('SELECT i FROM n', f'SELECT {shown} FROM n')}")
        connection.commit()
    with pytest.raises(DataError, match=r"endless\.sqlite' is not a store of 'sobolev bench run': it has the"):
        Store(path, read_only=read_only).finished()


@pytest.mark.parametrize("read_only", [True, False])
def test_foreign_files_are_refused_and_left_alone(tmp_path, read_only: bool) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("This is no database, whatever its name says.")
    with pytest.raises(DataError, match=r"text\.sqlite' is not a store of 'sobolev bench run': file is not a database"):
        Store(text, read_only=read_only)
    assert text.read_text().startswith("This is no database")
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE runs (shoes TEXT)")
    before = other.read_bytes()
    with pytest.raises(DataError, match=r"other\.sqlite' is not a store"):
        Store(other, read_only=read_only)
    assert other.read_bytes() == before


@pytest.mark.parametrize("part", ["the whole store", "the switch"])
def test_a_store_that_another_runner_is_just_making_is_waited_for(tmp_path, part: str) -> None:
    path = tmp_path / "runs.sqlite"
    with (
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as first,
        closing(sqlite3.connect(path, isolation_level=None)) as second,
    ):
        first.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        first.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            second.execute("PRAGMA journal_mode=WAL")  # SQLite does not wait here, whatever its timeout
        timer = threading.Timer(0.2, first.execute, ["COMMIT"])
        timer.start()
        if part == "the switch":
            store_module._use_write_ahead_log(second)
        else:
            Store(path)
        timer.join()
    assert Store(path).claim(JOB)


def test_reading_a_store_changes_nothing(store: Store) -> None:
    store.claim(JOB)
    store.finish(JOB, {"status": "done", "r2_test": 0.5})
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")  # as stored results are kept
    before = store.path.read_bytes()
    reader = Store(store.path, read_only=True)
    assert reader.frame()["r2_test"].tolist() == [0.5]
    with pytest.raises(DataError, match="readonly"):
        reader.claim(Job("other", "linear", 0))
    assert store.path.read_bytes() == before
    assert [path.name for path in store.path.parent.iterdir()] == [store.path.name]


def test_a_store_in_a_folder_nobody_may_write_is_read(store: Store, monkeypatch) -> None:
    store.claim(JOB)
    store.finish(JOB, {"status": "done", "r2_test": 0.5})
    # Root may write anywhere: the question is answered for it.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    reader = Store(store.path, read_only=True)
    assert reader.frame()["r2_test"].tolist() == [0.5]
    assert [path.name for path in store.path.parent.iterdir()] == [store.path.name]


def test_a_process_start_is_known_for_the_living_only() -> None:
    assert process_start(os.getpid()) == process_start(os.getpid())
    assert process_start(2**22 + 1) is None
    assert not Identity().is_gone(Identity().host)
    assert not Identity(host="elsewhere", pid=2**22 + 1).is_gone(Identity().host)
