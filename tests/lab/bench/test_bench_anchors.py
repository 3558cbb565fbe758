"""FastSRB and LSR-Synth, where their facts are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from places import ROOT
from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.problems.anchors import AnchorTask, anchor_tasks
from sobolev_novelty.lab.bench.problems.suites import suite_tasks, task_data
from sobolev_novelty.lab.bench.running.experiment import load_experiment

FASTSRB = {
    "equations": [
        {
            "id": "I.1",
            "formula": "sqrt(v1)*v2",
            "variables": [
                {"id": "v1", "low": 1e-9, "high": 1e-3, "law": "log", "sign": "pos_neg"},
                {"id": "v2", "low": 1.0, "high": 9.0, "law": "int", "sign": "pos"},
            ],
        }
    ]
}
LSR = {
    "laws": {
        "osc": {"t": [0, 20], "initial": {"x": 1.0, "v": 0.0}},
        "mat": {"epsilon": [0, 0.6]},
    },
    "problems": [
        {"name": "P0", "split": "osc", "inputs": ["x", "t", "v"], "formula": "-4.0*x"},
        {"name": "M0", "split": "mat", "inputs": ["epsilon", "T"], "formula": "2.0*epsilon*(T - 300.0)"},
    ],
}


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "anchors"
    folder.mkdir()
    (folder / "fastsrb.json").write_text(json.dumps(FASTSRB))
    (folder / "lsr_synth.json").write_text(json.dumps(LSR))
    monkeypatch.setenv("SOBOLEV_DATA", str(tmp_path))
    return folder


@pytest.mark.usefixtures("facts")
def test_inputs_follow_their_law_and_rows_outside_the_domain_are_drawn_again() -> None:
    (task,) = anchor_tasks("fastsrb")
    X, y = task.sample(300, np.random.default_rng(0))
    assert X.shape == (300, 2)
    assert np.isfinite(y).all()
    assert X[:, 0].min() > 1e-9  # a negative one has no root
    assert np.log10(X[:, 0]).std() > 1.0  # over decades
    assert set(X[:, 1]) == set(range(1, 10))


@pytest.mark.usefixtures("facts")
def test_a_trajectory_solves_its_equation() -> None:
    motion: AnchorTask = anchor_tasks("lsr_synth")[0]
    X, y = motion.sample(10_000, np.random.default_rng(0))
    x, t, v = X.T
    assert X.shape == (4500, 3)
    np.testing.assert_allclose(x, np.cos(2.0 * t), atol=1e-5)
    np.testing.assert_allclose(v, -2.0 * np.sin(2.0 * t), atol=1e-5)
    np.testing.assert_allclose(y, -4.0 * x, atol=1e-5)
    beyond, _ = motion.extrapolation()
    assert beyond.shape == (500, 3)
    assert t.max() < beyond[:, 1].min()
    assert beyond[-1, 1] == 20.0


@pytest.mark.usefixtures("facts")
def test_a_suite_of_anchors_is_split_as_the_others_are() -> None:
    assert suite_tasks("lsr_synth") == ("lsr_P0", "lsr_M0")
    part = task_data("lsr_M0", 0, max_train_rows=200, suite="lsr_synth")
    assert part.X_train.shape == (200, 2)
    assert str(part.truth) == "2*x0*(x1 - 300)"
    experiments = ROOT / "experiments"
    assert load_experiment(experiments / "transformer_fastsrb.toml").tasks == ("fastsrb_I.1",)
    assert load_experiment(experiments / "seeding_lsr_synth.toml").tasks == ("lsr_P0", "lsr_M0")


def test_facts_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOBOLEV_DATA", raising=False)
    with pytest.raises(DataError, match=r"needs the file anchors/fastsrb.json.*Set SOBOLEV_DATA"):
        suite_tasks("fastsrb")
