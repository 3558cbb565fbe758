"""The runner: isolation, resuming, chaos, Dask."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from places import ROOT
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.problems.suites import suite_tasks
from sobolev_novelty.lab.bench.running.experiment import experiment_from, load_experiment
from sobolev_novelty.lab.bench.running.isolation import run_isolated
from sobolev_novelty.lab.bench.running.methods import find_method
from sobolev_novelty.lab.bench.running.run import SweepProgress, run
from sobolev_novelty.lab.bench.running.store import CIRCUMSTANCES, Job, Store
from sobolev_novelty.lab.bench.showing.tables import results_table
from sobolev_novelty.lab.evidence.claims import process_start


def experiment(methods: dict[str, dict[str, object]], **changes: object):
    table = {"tasks": ["strogatz_vdp1"], "max_train_rows": 100, "timeout": 60.0, "methods": methods, **changes}
    return experiment_from(table, "test")


def request(method: str, **changes: object) -> dict[str, object]:
    options = changes.pop("options", {})
    plan = experiment({"m": {"method": f"bench_methods_for_tests:{method}", **options}}, **changes)
    return plan.request(Job("strogatz_vdp1", "m", 0))


def results(store: Store) -> pd.DataFrame:
    return store.frame(with_claims=True).drop(columns=list(CIRCUMSTANCES))


def test_a_fit_that_hangs_is_killed_with_everything_it_started(tmp_path) -> None:
    pid_file = tmp_path / "pids"
    begin = time.monotonic()
    result = run_isolated(request("hang", timeout=5.0, options={"pid_file": str(pid_file)}))
    assert time.monotonic() - begin < 15.0
    assert result["status"] == "timeout"
    pids = [int(pid) for pid in pid_file.read_text().split()]
    assert len(pids) == 2
    time.sleep(0.2)
    assert [process_start(pid) for pid in pids] == [None, None]


@pytest.mark.parametrize(
    ("method", "status", "word"),
    [
        ("hog", "memory", "GiB"),
        ("crash", "crashed", "SIGABRT"),
        ("fail", "failed", "no such luck"),
        ("recurse", "failed", "RecursionError"),
    ],
)
def test_every_bad_end_has_a_status_and_a_reason(method: str, status: str, word: str) -> None:
    result = run_isolated(request(method))
    assert result["status"] == status
    assert word in result["traceback"]
    assert len(result["traceback"]) < 9000
    assert result["machine"]


@pytest.mark.skipif(find_spec("HROCH") is None, reason="HROCH is not installed")
def test_hroch_runs_in_a_process_of_its_own() -> None:
    plan = experiment({"hroch": {}}, budget=1.0)
    result = run_isolated(plan.request(Job("strogatz_vdp1", "hroch", 0)))
    assert result["status"] == "done", result["traceback"]
    assert result["r2_train"] > 0.5


def test_a_prediction_outside_the_domain_is_a_result_without_a_score() -> None:
    result = run_isolated(request("outside_domain"))
    assert (result["status"], result["r2_test"], result["novelties"]) == ("done", None, "[]")


def test_a_stuck_assessment_keeps_the_fit() -> None:
    result = run_isolated(request("bad_assessment", assess_timeout=1.0))
    assert result["status"] == "done"
    assert result["r2_test"] is not None
    assert "ran out of time" in result["exact_note"]


def test_a_sweep_fills_the_store_and_a_second_one_runs_nothing(tmp_path) -> None:
    plan = experiment({"linear": {}, "bad": {"method": "bench_methods_for_tests:fail"}}, tasks=["strogatz_lv*"])
    store = Store(tmp_path / "runs.sqlite")
    seen: list[SweepProgress] = []
    summary = run(plan, store, n_jobs=2, on_progress=seen.append)
    assert summary.statuses == {"done": 2, "failed": 2}
    assert (seen[-1].done, seen[-1].total, seen[-1].failed) == (4, 4, 2)
    frame = store.frame()
    assert len(frame) == 4
    done = frame[frame["status"] == "done"]
    assert (
        done[["expression", "r2_train", "r2_test", "complexity", "wall_time", "version", "engine", "machine"]]
        .notna()
        .all(axis=None)
    )
    assert all(len(json.loads(text)) == 3 for text in done["novelties"])
    again = run(plan, store)
    assert (again.ran, again.skipped) == (0, 4)


@pytest.mark.slow
def test_formulas_of_ones_own_are_run_from_beside_the_experiment(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text('[plane]\nformula = "3*a - b"\ninputs = { a = [0.0, 1.0], b = [0.0, 1.0] }\n')
    path = tmp_path / "experiment.toml"
    path.write_text('suite = "mine.toml"\nmax_train_rows = 50\n[methods.linear]\n')
    plan = load_experiment(path)
    store = Store(tmp_path / "runs.sqlite")
    assert run(plan, store).statuses == {"done": 1}
    row = store.frame().iloc[0]
    assert row["task"] == "plane" and row["exact_numeric"] == 1 and row["r2_test"] > 1.0 - 1e-12
    assert store.settings()["suite"] == "mine.toml"
    table = results_table(store.frame(), "mine.toml").frame
    assert table["solved %"].tolist() == [100.0] and "paper" not in table


def test_other_settings_need_another_store(tmp_path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.check_settings(experiment({"linear": {}}).settings())
    with pytest.raises(ParameterError, match="was made with budget"):
        run(experiment({"linear": {}}, budget=1.0), store)


@pytest.mark.slow
def test_jobs_of_a_living_runner_are_left_alone(tmp_path) -> None:
    plan = experiment({"linear": {}}, tasks=["strogatz_lv*"])
    other = Store(tmp_path / "runs.sqlite")
    other.claim(Job("strogatz_lv1", "linear", 0))
    summary = run(plan, Store(other.path))
    assert (summary.ran, summary.held) == (1, 1)


def write_experiment(path: Path, n_tasks: int = 40, seconds: float = 0.2) -> Path:
    names = ", ".join(f'"{name}"' for name in suite_tasks("whitebox")[-n_tasks:])
    path.write_text(
        f'suite = "whitebox"\nmax_train_rows = 200\ntasks = [{names}]\n[methods.linear]\n', encoding="utf-8"
    )
    return path


def start_runner(toml: Path, store: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "sobolev_novelty", "bench", "run", str(toml), "--store", str(store), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(runner: subprocess.Popen[bytes]) -> None:
    _, error = runner.communicate(timeout=300)
    assert runner.returncode == 0, error.decode()


@pytest.mark.slow
def test_forty_tasks_survive_ten_kills(tmp_path) -> None:
    toml = write_experiment(tmp_path / "chaos.toml")
    calm, chaos = tmp_path / "calm.sqlite", tmp_path / "chaos.sqlite"
    finish(start_runner(toml, calm, "--jobs", "2"))
    expected = results(Store(calm))
    assert len(expected) == 40

    moment = random.Random(0)
    for kill in range(10):
        runner = start_runner(toml, chaos, "--jobs", "2")
        # Each runner gets a little further than the one before, then dies at a random moment in the middle of its work.
        while len(Store(chaos).finished()) < 3 * kill:
            assert runner.poll() is None
            time.sleep(0.02)
        time.sleep(moment.uniform(0.0, 0.4))
        runner.send_signal(signal.SIGKILL)
        runner.communicate()
    survivors = len(Store(chaos).finished())
    finish(start_runner(toml, chaos, "--jobs", "2"))
    assert survivors < 40, "the last kill came after the end: the test proves less than it says"
    pd.testing.assert_frame_equal(results(Store(chaos)), expected)


@pytest.mark.slow
def test_two_runners_on_one_store_share_the_work(tmp_path) -> None:
    toml = write_experiment(tmp_path / "two.toml", n_tasks=20)
    store = tmp_path / "two.sqlite"
    runners = [start_runner(toml, store) for _ in range(2)]
    for runner in runners:
        finish(runner)
    frame = Store(store).frame(with_claims=True)
    assert len(frame) == 20
    assert set(frame["status"]) == {"done"}
    assert frame.groupby("pid").size().min() > 5


@pytest.mark.slow
def test_a_cluster_finishes_though_a_worker_is_killed(tmp_path) -> None:
    pytest.importorskip("distributed")
    scheduler_file = tmp_path / "scheduler.json"
    environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10"}

    def start(program: str, *options: str) -> subprocess.Popen[bytes]:
        module = {"scheduler": "distributed.cli.dask_scheduler", "worker": "distributed.cli.dask_worker"}[program]
        return subprocess.Popen(
            [sys.executable, "-m", module, "--scheduler-file", str(scheduler_file), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            env=environment,
        )

    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    workers = [start("worker", *options) for _ in range(2)]
    try:
        while not scheduler_file.exists():
            assert scheduler.poll() is None
            time.sleep(0.1)
        address = json.loads(scheduler_file.read_text())["address"]
        toml = write_experiment(tmp_path / "dask.toml", n_tasks=20)
        runner = start_runner(toml, tmp_path / "dask.sqlite", "--dask", address)
        store = Store(tmp_path / "dask.sqlite")
        while len(store.finished()) < 8:
            assert runner.poll() is None
            time.sleep(0.2)
        workers[0].send_signal(signal.SIGKILL)
        finish(runner)
        frame = store.frame(with_claims=True)
        assert len(frame) == 20
        assert set(frame["status"]) == {"done"}
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def test_a_cluster_that_does_not_answer_is_named(tmp_path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(DataError, match="No Dask scheduler answers at 'nowhere'.*Start one with: dask scheduler"):
        run(experiment({"linear": {}}), Store(tmp_path / "runs.sqlite"), dask="nowhere")


def test_an_experiment_file_is_read_and_its_mistakes_are_named(tmp_path) -> None:
    path = write_experiment(tmp_path / "e.toml")
    plan = load_experiment(path)
    assert (plan.name, len(plan.tasks), len(list(plan.jobs()))) == ("e", 40, 40)
    path.write_text("suite = ", encoding="utf-8")
    with pytest.raises(DataError, match="is not TOML"):
        load_experiment(path)
    with pytest.raises(DataError, match="There is no experiment file"):
        load_experiment(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bugdet": 3}, "Unknown keys: bugdet"),
        ({"methods": {}}, "names no method"),
        ({"budget": -1}, "'budget' must be a positive number"),
        ({"tasks": ["feynman_X*"]}, r"'tasks' has 'feynman_X\*'"),
        ({"suite": "grey"}, "'suite' must be one of"),
        ({"methods": {"linear": 3}}, r"\[methods.linear\] must be a table"),
    ],
)
def test_mistakes_in_an_experiment_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        experiment_from({"methods": {"linear": {}}, **changes}, "test")


def test_unknown_methods_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"'magic' is not a method\. Known: .*linear"):
        find_method("magic")
    with pytest.raises(ParameterError, match="cannot be imported"):
        find_method("no_such_module:f")


def test_an_experiment_can_be_restricted_to_some_methods() -> None:
    plan = load_experiment(ROOT / "experiments" / "whitebox.toml")
    assert [spec.label for spec in plan.restricted(["genetic"]).methods] == ["genetic"]
    with pytest.raises(ParameterError, match="no method nothing"):
        plan.restricted(["nothing"])


@pytest.mark.slow
def test_a_method_is_given_dummies_and_units_where_the_experiment_says_so(tmp_path) -> None:
    seen = {"method": "bench_methods_for_tests:what_is_given"}
    plan = experiment(
        {"plain": seen, "more": {**seen, "dummies": 2, "with_units": True}}, tasks=["feynman_I_10_7"], budget=1.0
    )
    store = Store(tmp_path / "runs.sqlite")
    run(plan, store)
    found = {row["method"]: json.loads(row["extra"]) for row in store.results()}
    assert found["plain"] == {"columns": 3, "units": None, "y_units": None}
    assert found["more"] == {"columns": 5, "units": {"x0": "kg", "x1": "m/s", "x2": "m/s"}, "y_units": "kg"}


@pytest.mark.parametrize(("option", "value"), [("dummies", -1), ("dummies", 1.5), ("with_units", "yes")])
def test_what_a_method_cannot_be_given_is_refused(option: str, value: object) -> None:
    with pytest.raises(ParameterError, match=option):
        experiment({"linear": {option: value}})


def test_units_are_refused_for_tasks_that_have_none_and_methods_that_take_none() -> None:
    with pytest.raises(ParameterError, match="strogatz_vdp1"):
        experiment({"genetic": {"with_units": True}}).check_methods()
    with pytest.raises(ParameterError, match="units"):
        experiment({"linear": {"with_units": True}}, tasks=["feynman_I_10_7"]).check_methods()
