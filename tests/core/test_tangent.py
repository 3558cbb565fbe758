"""Inputs on curves and surfaces: their dimension, and slopes along them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sobolev_novelty as sn
from sobolev_novelty.core.linear.tangent import path_frame, tangent_frame
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.bench.problems.tasks import whitebox_tasks


def dimension(X: Any) -> int:
    return tangent_frame(as_sample(X)).dimension


def trajectory(problem: dict[str, Any], laws: dict[str, Any], n: int = 5000) -> np.ndarray:
    """Inputs of a task of LSR-Synth, made as its law says."""
    law, inputs = laws[problem["split"]], problem["inputs"]
    expression = sn.parse(problem["formula"], names=inputs, variables="names")
    rate = sn.to_numpy(expression, inputs)

    def value(**at: float) -> float:
        return float(rate(np.array([[at[name] for name in inputs]]))[0])

    if problem["split"] == "matsci":
        epsilon = np.linspace(0.0, 0.6, n)
        found = {"epsilon": epsilon, "T": 273.0 + 500.0 * epsilon}
    else:
        states = list(law["initial"])
        start, times = [float(law["initial"][s]) for s in states], np.linspace(*law["t"], n)

        def rates(t: float, z: np.ndarray) -> list[float]:
            at = dict(zip(states, z.tolist(), strict=True)) | {"t": t}
            return [at["v"], value(**at)] if len(states) == 2 else [value(**at)]

        solved = solve_ivp(rates, law["t"], start, t_eval=times, rtol=1e-8, atol=1e-10, method="LSODA")
        found = dict(zip(states, solved.y, strict=True)) | {"t": solved.t}
    return np.column_stack([found[name] for name in inputs])


@pytest.mark.filterwarnings("ignore")  # a solver's own, about steps
def test_at_least_95_per_cent_of_lsr_synth_lie_on_a_curve(shared_data: Path) -> None:
    content = json.loads((shared_data / "anchors" / "lsr_synth.json").read_text(encoding="utf-8"))
    rng = np.random.default_rng(0)
    flagged = []
    for problem in content["problems"]:
        X = trajectory(problem, content["laws"])
        rows = np.sort(rng.choice(len(X), min(1000, len(X)), replace=False))
        flagged.append(tangent_frame(as_sample(X[rows])).is_lower)
    assert len(flagged) == 64 and np.mean(flagged) >= 0.95


@pytest.mark.parametrize("n_rows", [200, 1000])
def test_no_feynman_task_is_flagged(n_rows: int) -> None:
    rng = np.random.default_rng(1)
    feynman = [task for task in whitebox_tasks() if task.system is None]
    assert len(feynman) == 119
    assert [task.name for task in feynman if tangent_frame(as_sample(task.sample(n_rows, rng)[0])).is_lower] == []


def test_lines_circles_spheres_and_boxes_have_their_dimension() -> None:
    rng = np.random.default_rng(2)
    t = rng.uniform(0.0, 1.0, 800)
    sphere = rng.normal(size=(2000, 3))
    assert dimension(np.column_stack([t, 273.0 + 500.0 * t])) == 1
    assert dimension(np.column_stack([np.cos(6 * t), np.sin(6 * t)])) == 1
    assert dimension(sphere / np.linalg.norm(sphere, axis=1, keepdims=True)) == 2
    assert dimension(rng.uniform(size=(1000, 4))) == 4


def test_discrete_columns_duplicates_grids_and_few_rows_are_not_taken_for_curves() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(size=1000)
    grid = np.stack(np.meshgrid(*[np.arange(10.0)] * 3), axis=-1).reshape(-1, 3)
    assert dimension(np.column_stack([x, rng.integers(0, 2, 1000)])) == 2
    assert dimension(np.column_stack([x, rng.integers(0, 30, 1000), rng.uniform(size=1000)])) == 3
    assert dimension(grid) == 3
    assert dimension(np.repeat(rng.uniform(size=(100, 2)), 10, axis=0)) == 2
    assert dimension(rng.uniform(size=(33, 3))) == 3
    assert dimension(np.column_stack([x, np.full(1000, 2.0)])) == 1  # a constant column is no column here
    assert not tangent_frame(as_sample(np.column_stack([x, np.full(1000, 2.0)]))).is_lower
    assert dimension(np.full((50, 2), 1.0)) == 0
    X = np.column_stack([x, rng.uniform(size=1000)])
    X[::7] = np.nan
    assert dimension(X) == 2


def test_slopes_along_the_data_do_not_tell_apart_what_no_row_separates() -> None:
    epsilon = np.linspace(0.0, 0.6, 500)
    X = np.column_stack([epsilon, 273.0 + 500.0 * epsilon])
    report = sn.novelty("3*x0 + 0.01*x1 + 2*x0**2", X)
    views = report.views
    assert list(views.columns) == ["term", "values", "tangent", "full"]
    np.testing.assert_allclose(views["tangent"][:2], 0.0, atol=1e-6)
    assert (views["full"][:2] > sn.TAU_ID).all()
    assert [v.distinct for v in report.verdicts] == ["no", "no", "yes"]
    assert report.is_on_lower_dimension and any("lie on a curve" in note for note in report.notes)
    assert "along the data" in str(report) and report.to_dict()["dimension"] == 1
    assert report.nu[1] > 0.3  # the paper's reading stays as it is


def test_on_inputs_of_full_dimension_tangent_is_standardized() -> None:
    X = np.random.default_rng(4).uniform(1.0, 3.0, (400, 2))
    for equation in ("x0 + x0*x1 + sin(x1)", "x0**2 + log(x1) + 3"):
        plain, along = sn.novelty(equation, X), sn.novelty(equation, X, coordinates="tangent")
        np.testing.assert_allclose(along.nu, plain.nu, atol=1e-10)
        np.testing.assert_allclose(along.lengths, plain.lengths, rtol=1e-10)
        assert along.n_used == 400


def test_the_path_of_ordered_rows_gives_the_slopes_in_time() -> None:
    t = np.linspace(0.0, 20.0, 2001)
    X = np.column_stack([np.sin(t), np.cos(t)])
    spread = X.std(axis=0)
    frame = path_frame(as_sample(X))
    velocity = np.column_stack([np.cos(t), -np.sin(t)]) / spread
    velocity /= np.linalg.norm(velocity, axis=1, keepdims=True)
    np.testing.assert_allclose(frame.directions[5:-5, 0], velocity[5:-5], atol=1e-3)
    tangent = sn.novelty("x0 + x0**2 + x1", X, coordinates="tangent", intercept="free").nu
    np.testing.assert_allclose(
        sn.novelty("x0 + x0**2 + x1", X, coordinates="path", intercept="free").nu, tangent, atol=0.01
    )


def test_directions_of_the_data_need_all_rows_and_first_derivatives() -> None:
    with pytest.raises(ParameterError, match="rows in blocks"):
        sn.novelty_of_chunks("x0 + x1", [np.zeros((5, 2))], coordinates="tangent")
    with pytest.raises(ParameterError, match="'order' must be 0 or 1"):
        sn.novelty("x0", np.arange(50.0), coordinates="path", order=2)
    with pytest.raises(ParameterError, match="'coordinates' must be 'standardized', 'raw'"):
        sn.novelty("x0", np.arange(50.0), coordinates="polar")


def test_the_dimension_of_a_thousand_rows_is_found_at_once() -> None:
    best = np.inf
    for seed in range(5):
        sample = as_sample(np.random.default_rng(seed).normal(size=(1000, 5)))
        start = time.perf_counter()
        tangent_frame(sample)
        best = min(best, time.perf_counter() - start)
    assert best < 0.05
