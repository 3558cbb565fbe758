"""What a machine cannot run is not a result: it is not stored, it is told, and it can be run again."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.running.experiment import experiment_from, load_experiment
from sobolev_novelty.lab.bench.running.isolation import run_isolated
from sobolev_novelty.lab.bench.running.run import run
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.evidence.scratch import remove_abandoned_folders
from sobolev_novelty.ui.cli.main import app

UNRUNNABLE = ["no_room", "needs_a_package", "killed_by_the_system"]


def experiment(method: str, **options: object):
    table = {"tasks": ["strogatz_vdp1"], "max_train_rows": 100, "methods": {"m": {"method": method, **options}}}
    return experiment_from(table, "test")


@pytest.mark.slow
@pytest.mark.parametrize("method", UNRUNNABLE)
def test_a_failure_of_the_machine_is_not_a_result(method: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    summary = run(experiment(f"bench_methods_for_tests:{method}"), store)
    assert (summary.ran, sum(summary.not_run.values())) == (0, 1)
    assert store.frame(with_claims=True).empty
    assert run(experiment(f"bench_methods_for_tests:{method}"), store).not_run, "it is tried again"


def test_without_a_temporary_folder_nothing_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    result = run_isolated(experiment("linear").request(Job("strogatz_vdp1", "m", 0)))
    assert result["status"] == "environment"
    assert "No space left" in result["traceback"]


@pytest.mark.slow
def test_a_sweep_that_the_machine_cannot_run_ends_soon(tmp_path: Path) -> None:
    plan = experiment_from(
        {
            "tasks": ["strogatz_*"],
            "max_train_rows": 100,
            "methods": {"m": {"method": "bench_methods_for_tests:no_room"}},
        },
        "test",
    )
    summary = run(plan, Store(tmp_path / "runs.sqlite"))
    assert summary.not_run == {"OSError: [Errno 28] No space left on device": 3}


@pytest.mark.parametrize(
    ("method", "options", "word"),
    [
        ("lineer", {}, "'lineer' is not a method"),
        ("linear", {"seconds": 3}, "seconds=3"),
        ("genetic", {"populatoin_size": 3}, "populatoin_size"),
        ("genetic", {"engine_options": {"populatoin_size": 3}}, "populatoin_size"),
        ("genetic+novelty", {"guidance": {"wieght": 3}}, "wieght"),
    ],
)
def test_methods_and_options_are_checked_before_the_sweep(
    method: str, options: dict[str, object], word: str, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=word):
        run(experiment(method, **options), Store(tmp_path / "runs.sqlite"))


@pytest.mark.slow
def test_the_command_ends_with_an_exit_code_and_can_retry(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text(
        'tasks = ["strogatz_vdp1"]\nmax_train_rows = 100\n[methods.m]\nmethod = "bench_methods_for_tests:no_room"\n'
    )
    arguments = ["bench", "run", str(file), "--store", str(tmp_path / "a.sqlite")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert "could not be run here" in done.output
    file.write_text(file.read_text().replace("no_room", "fail"))
    arguments[-1] = str(tmp_path / "b.sqlite")
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert "0 run" in CliRunner().invoke(app, arguments).output
    assert "1 run" in CliRunner().invoke(app, [*arguments, "--retry", "failed,crashed"]).output
    assert "--retry must be" in CliRunner().invoke(app, [*arguments, "--retry", "unlucky"]).output


@pytest.mark.slow
def test_a_row_of_a_task_that_was_edited_is_refused_or_made_again(tmp_path: Path) -> None:
    formulas, file = tmp_path / "laws.toml", tmp_path / "e.toml"
    law = '[ohm]\nformula = "I*R"\ninputs = { I = [1.0, 2.0], R = [1.0, 5.0] }\n'
    formulas.write_text(law)
    file.write_text(f'suite = "{formulas.name}"\nmax_train_rows = 100\n[methods.linear]\n')
    store = Store(tmp_path / "runs.sqlite")
    assert run(load_experiment(file), store).ran == 1
    assert run(load_experiment(file), store).skipped == 1
    formulas.write_text(law.replace("I*R", "2*I*R"))
    with pytest.raises(DataError, match="have changed since"):
        run(load_experiment(file), store)
    assert run(load_experiment(file), store, retry=["changed"]).ran == 1
    assert run(load_experiment(file), store).skipped == 1


def test_folders_of_a_killed_runner_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    abandoned = tmp_path / f"sobolev-bench-{gone.stdout.strip()}-x"
    mine = tmp_path / f"sobolev-bench-{os.getpid()}-x"
    for folder in (abandoned, mine):
        folder.mkdir()
    remove_abandoned_folders("bench")
    assert (abandoned.exists(), mine.exists()) == (False, True)
