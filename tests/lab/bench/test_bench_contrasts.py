"""Contrasts: named in an experiment, stored with its rows, and made into a table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from places import ROOT
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.problems.suites import task_data
from sobolev_novelty.lab.bench.running.experiment import experiment_from, load_experiment
from sobolev_novelty.lab.bench.running.methods import find_method
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.bench.showing.contrasts import contrast_table
from sobolev_novelty.ui.cli.bench import bench_app

EXPERIMENTS = ROOT / "experiments"


def test_contrasts_named_in_an_experiment_become_a_table(tmp_path: Path) -> None:
    text = 'seeds = [0]\ncontrasts = [["paper_gp", "paper_gp+both"]]\n[methods.paper_gp]\n[methods."paper_gp+both"]\n'
    (tmp_path / "plan.toml").write_text(text + 'method = "paper_gp+novelty"\n')
    plan = load_experiment(tmp_path / "plan.toml")
    store = Store(tmp_path / "runs.sqlite")
    store.check_settings(plan.settings())
    for k in range(20):
        for label, gain in (("paper_gp", 0.0), ("paper_gp+both", 0.1)):
            job = Job(f"task{k}", label, 0)
            store.claim(job)
            store.finish(job, {"status": "done", "r2_test": 0.5 + gain, "complexity": 20, "novelties": "[0.5]"})
    done = CliRunner().invoke(bench_app, ["table", str(store.path), "--kind", "contrasts", "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["measure"]: row for row in json.loads(done.output)}
    np.testing.assert_allclose(rows["R²"]["Δ"], 0.1)
    np.testing.assert_allclose(rows["R²"]["paper Δ"], 0.0308, atol=1e-6)
    assert rows["R²"]["clear"] == "yes" and rows["R²"]["differ"] == 20
    assert rows["complexity"]["clear"] == "no" and rows["complexity"]["p"] == 1.0


def test_a_contrast_compares_the_splits_that_both_methods_ran(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    runs = [("plain", 0, 0.5), ("guided", 0, 0.6), ("guided", 1, 0.0), ("linear", 0, 0.1), ("linear", 1, 0.1)]
    for k in range(10):
        for label, seed, r2 in runs:
            store.claim(job := Job(f"task{k}", label, seed))
            store.finish(job, {"status": "done", "r2_test": r2, "complexity": 20, "novelties": "[0.5]"})
    table = contrast_table(store.frame(), "whitebox", [["plain", "guided"], ["linear", "guided"]])
    gains = table.frame[table.frame["measure"] == "R²"].set_index("contrast")["Δ"]
    np.testing.assert_allclose(gains.to_numpy(), [0.1, 0.2])
    assert table.notes[-1] == "Runs for each method and task: 1 (plain → guided); 2 (linear → guided)."


def test_a_contrast_of_unknown_methods_is_refused() -> None:
    with pytest.raises(ParameterError, match="'contrasts' must hold pairs of methods"):
        experiment_from({"methods": {"linear": {}}, "contrasts": [["linear", "quadratic"]]}, "demo")


def test_a_store_without_contrasts_or_without_their_rows_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    job = Job("task", "linear", 0)
    store.claim(job)
    store.finish(job, {"status": "done", "r2_test": 0.5, "complexity": 3, "novelties": "[1.0]"})
    with pytest.raises(DataError, match="The store has no contrasts"):
        contrast_table(store.frame(), "whitebox", [])
    with pytest.raises(DataError, match="No contrast has rows for both"):
        contrast_table(store.frame(), "whitebox", [["linear", "quadratic"]])


@pytest.mark.parametrize("name", ["paper_gp", "paper_mcts"])
def test_the_arms_of_a_backbone_share_all_but_one_thing_and_run(name: str) -> None:
    plan = load_experiment(EXPERIMENTS / f"{name}.toml")
    assert len(plan.methods) == 5 and len(plan.seeds) == 5 and len(plan.tasks) == 133
    common = ("max_evaluations", "max_complexity", "operators")
    assert len({json.dumps([spec.options[key] for key in common]) for spec in plan.methods}) == 1
    part = task_data("feynman_I_12_1", 0, max_train_rows=60)
    for spec in plan.methods:
        extra = {key: value for key, value in spec.options.items() if key not in common}
        assert set(extra) <= {"engine_options", "guidance"} and len(extra) <= 1
        options = {**spec.options, "max_evaluations": 150}
        found = find_method(spec.method)(part.X_train, part.y_train, seed=0, budget=60.0, **options)
        assert found.evaluations is not None and 0 < found.evaluations <= 150


@pytest.mark.slow
def test_the_overview_has_a_line_for_each_contrast_of_each_store(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    stores = []
    for name, gain in (("first", 0.1), ("second", 0.0)):
        store = Store(tmp_path / f"{name}.sqlite")
        store.check_settings(
            {"suite": "whitebox", "contrasts": [["plain", "guided"]], "noise": [0.0], "budget": 1.0, "timeout": 1.0}
        )
        for k in range(20):
            for label, r2 in (("plain", 0.5), ("guided", 0.5 + gain)):
                job = Job(f"task{k}", label, 0)
                store.claim(job)
                store.finish(job, {"status": "done", "r2_test": r2, "complexity": 20, "novelties": "[0.5]"})
        stores.append(str(store.path))
    picture = tmp_path / "overview.svg"
    done = CliRunner().invoke(bench_app, ["overview", *stores, "--figure", str(picture)])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.output.splitlines() if "plain → guided" in line]
    assert len(lines) == 2 and "| 20 | 1 |" in lines[0] and "(first)" in lines[0]
    assert "**+0.100** (+0.100 … +0.100)" in lines[0]  # clear
    assert lines[1].count("| – ") == 4  # no task differs
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    rows = json.loads(CliRunner().invoke(bench_app, ["overview", *stores, "--json"]).output)
    assert {row["seeds"] for row in rows} == {1} and len(rows) == 8


def test_an_overview_of_a_store_without_contrasts_says_what_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    job = Job("task", "linear", 0)
    store.claim(job)
    store.finish(job, {"status": "done", "r2_test": 0.5, "complexity": 3, "novelties": "[1.0]"})
    done = CliRunner().invoke(bench_app, ["overview", str(store.path)])
    assert done.exit_code == 1 and "Name them in the experiment" in done.output
