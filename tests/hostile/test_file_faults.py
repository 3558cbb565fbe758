"""Every file operation of models, checkpoints, stores and the runner fails in turn: files are old or new."""

from __future__ import annotations

import json
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faults import every_fault
from sobolev_novelty.core.output import write_whole
from sobolev_novelty.errors import DataError, OutputError, SobolevError
from sobolev_novelty.lab.bench.running.experiment import experiment_from
from sobolev_novelty.lab.bench.running.run import run
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.turbulence.studying.store import RunStore
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model import checkpoint
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.tables.formula_files import written_whole

X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
Y = X[:, 0] * X[:, 1]
KINDS = pytest.mark.parametrize("forever", [False, True], ids=["once", "forever"])


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


@KINDS
def test_a_model_file_is_the_old_one_or_the_new_one(tmp_path: Path, forever: bool) -> None:
    path = tmp_path / "model.json"
    model = SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, Y)
    path.write_text("old")

    def check(raised: Exception | None) -> None:
        assert isinstance(raised, OutputError | None)
        if raised is None:
            assert SymbolicRegressor.load(path).expression_ == model.expression_
            path.write_text("old")
        else:
            assert "could not be written: No space left" in str(raised)
            assert path.read_text() == "old"
        assert leftovers(tmp_path) == []

    assert every_fault(lambda: model.save(path), check, tmp_path, forever=forever) >= 4


@KINDS
def test_a_search_goes_on_whatever_becomes_of_its_checkpoint(
    tmp_path: Path, forever: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.json"
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    expected = SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, Y)

    def operation() -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0)
            model.fit(X, Y, checkpoint=path)
        told_of = [str(warning.message) for warning in told if "checkpoint" in str(warning.message)]
        assert all("the search goes on" in text for text in told_of)
        assert model.expression_ == expected.expression_

    def check(raised: Exception | None) -> None:
        assert raised is None
        if path.exists():
            assert json.loads(path.read_text())["format"] == checkpoint.FORMAT
            path.unlink()
        assert leftovers(tmp_path) == []

    assert every_fault(operation, check, tmp_path, forever=forever) >= 4


@KINDS
def test_a_store_has_a_row_or_has_it_not(tmp_path: Path, forever: bool) -> None:
    path = tmp_path / "runs.sqlite"
    job, row = Job("a", "linear", 0), {"status": "done", "r2_test": 0.5, "novelties": "[1.0]"}

    def operation() -> None:
        store = Store(path)
        store.check_settings({"suite": "whitebox", "seconds": 1.0})
        assert store.claim(job)
        assert store.finish(job, row)

    def check(raised: Exception | None) -> None:
        assert isinstance(raised, SobolevError | None)
        if raised is not None:
            assert "full" in str(raised)
        after = Store(path)
        assert set(after.settings()) in (set(), {"suite", "seconds"})
        assert len(after.results()) == (raised is None)
        for found in after.results():
            assert {name: found[name] for name in row} == row
        path.unlink()

    assert every_fault(operation, check, tmp_path, forever=forever) >= 15


def test_a_study_has_a_row_or_has_it_not(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"

    def check(raised: Exception | None) -> None:
        assert isinstance(raised, DataError | None)
        rows = RunStore(path).rows()
        assert [row["measures"] for row in rows] in ([], [{"a": 1.0}])
        path.unlink()

    def operation() -> None:
        assert RunStore(path).add("row/DNS", {"measures": {"a": 1.0}})["measures"] == {"a": 1.0}

    assert every_fault(operation, check, tmp_path) >= 10


def test_a_sweep_goes_on_after_every_fault_and_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.sqlite"
    plan = experiment_from(
        {"tasks": ["strogatz_vdp1"], "seeds": [0, 1], "max_train_rows": 50, "timeout": 60.0, "methods": {"linear": {}}},
        "t",
    )
    ran: list[str] = []

    def fitted(request: dict[str, Any]) -> dict[str, Any]:
        ran.append(request["task"])
        return {"status": "done", "r2_test": 0.5}

    monkeypatch.setattr("sobolev_novelty.lab.bench.running.run.run_isolated", fitted)

    def check(raised: Exception | None) -> None:
        assert isinstance(raised, SobolevError | None)
        before = Store(path).results()
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:  # the process that claimed is gone
            connection.execute("UPDATE runs SET pid = 4194305 WHERE status = 'claimed'")
        n_before = len(ran)
        run(plan, Store(path))
        after = Store(path).results()
        assert len(ran) - n_before == 2 - len(before)
        assert sorted(row["seed"] for row in after) == [0, 1]
        assert all(row in after for row in before)
        path.unlink()

    assert every_fault(lambda: run(plan, Store(path)), check, tmp_path) >= 25


def test_what_a_cluster_says_of_a_lost_job_is_stored_without_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(request: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("no module in /home/jane/lib/site-packages/gplearn/genetic.py")

    monkeypatch.setattr("sobolev_novelty.lab.bench.running.run.run_isolated", lost)
    plan = {"tasks": ["strogatz_vdp1"], "max_train_rows": 50, "timeout": 60.0, "methods": {"linear": {}}}
    run(experiment_from(plan, "t"), Store(tmp_path / "runs.sqlite"))
    (row,) = Store(tmp_path / "runs.sqlite").results()
    assert row["traceback"] == "RuntimeError: no module in gplearn/genetic.py"


@pytest.mark.parametrize("forever", [False, True])
def test_files_of_text_and_formulas_are_old_or_new(tmp_path: Path, forever: bool) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def operation() -> None:
        with written_whole(path) as file:
            assert file is not None
            for k in range(3):
                file.write(f"x{k}\n".encode())

    def check(raised: Exception | None) -> None:
        assert isinstance(raised, OutputError | None)
        assert path.read_text() == ("old" if raised else "x0\nx1\nx2\n")
        assert leftovers(tmp_path) == []
        write_whole(path, "old")

    assert every_fault(operation, check, tmp_path, forever=forever) >= 6


def test_the_state_of_a_training_run_is_old_or_new(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from sobolev_novelty.engines.transformer.checkpoint import load_state, save_state

    save_state(tmp_path, {"step": 1})

    def check(raised: Exception | None) -> None:
        assert isinstance(raised, OutputError | None)
        assert load_state(tmp_path) == {"step": 2 if raised is None else 1}
        assert leftovers(tmp_path) == []
        if raised is None:
            save_state(tmp_path, {"step": 1})

    every_fault(lambda: save_state(tmp_path, {"step": 2}), check, tmp_path)
    (tmp_path / "state.pt").write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(DataError, match="is damaged.* Delete it to start again"):
        load_state(tmp_path)
    torch.save([1], tmp_path / "state.pt")
    with pytest.raises(DataError, match="is not the state of a training run"):
        load_state(tmp_path)


def test_a_journal_goes_on_after_half_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from sobolev_novelty.lab.pretraining.train import Journal

    path = tmp_path / "log.jsonl"
    path.write_text('{"kind": "start"}\n{"kind": "st')
    Journal(path).write("step", loss=1.5)
    assert json.loads(path.read_text().splitlines()[-1])["loss"] == 1.5
    assert json.loads(capsys.readouterr().out)["loss"] == 1.5
