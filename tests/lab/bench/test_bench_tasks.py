"""The white-box table and the data it generates."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import solve_ivp

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.lab.bench.problems.tasks import (
    N_STEPS,
    TIME_STEP,
    System,
    task_units,
    trajectories,
    whitebox_task,
    whitebox_tasks,
)
from sobolev_novelty.search.problem.constraints import Units
from sobolev_novelty.search.problem.dimensions import check_units

DATA = Path(os.environ.get("SOBOLEV_DATA", ""))
needs_data = pytest.mark.skipif(
    not os.environ.get("SOBOLEV_DATA") or not (DATA / "pmlb").is_dir(),
    reason="SOBOLEV_DATA does not name a folder with the public data",
)
SYSTEMS = sorted({task.system for task in whitebox_tasks() if task.system is not None}, key=lambda system: system.name)
TASKS = pytest.mark.parametrize("task", whitebox_tasks(), ids=lambda task: task.name)


def test_the_table_holds_119_feynman_and_14_strogatz_tasks() -> None:
    names = [task.name for task in whitebox_tasks()]
    assert len(names) == len(set(names)) == 133
    assert sum(name.startswith("feynman_") for name in names) == 119
    assert sum(name.startswith("strogatz_") for name in names) == 14


@TASKS
def test_a_formula_uses_exactly_the_inputs_of_its_task_or_ignores_a_state(task) -> None:
    used = set(task.expression.variables)
    assert used <= set(task.variables)
    assert task.system is not None or used == set(task.variables)


@given(index=st.integers(0, 118), seed=st.integers(0, 2**32 - 1), n_samples=st.integers(1, 300))
def test_samples_lie_in_their_ranges_and_have_finite_targets(index: int, seed: int, n_samples: int) -> None:
    task = whitebox_tasks()[index]
    X, y = task.sample(n_samples, np.random.default_rng(seed))
    low, high = np.array(task.ranges).T
    assert X.shape == (n_samples, len(task.variables))
    assert ((low <= X) & (high >= X)).all()
    assert np.isfinite(y).all()


@TASKS
def test_the_same_seed_gives_the_same_sample(task) -> None:
    first, second = (task.sample(50, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_a_small_strogatz_sample_is_a_part_of_the_400_rows_in_their_order(system) -> None:
    task = whitebox_task(f"strogatz_{system.name}1")
    everything = trajectories(system)
    X, _ = task.sample(37, np.random.default_rng(0))
    positions = [int(np.flatnonzero((everything == row).all(axis=1))[0]) for row in X]
    assert positions == sorted(set(positions))
    assert len(positions) == 37
    assert len(task.sample(5000, np.random.default_rng(0))[0]) == 4 * N_STEPS


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_changing_returned_trajectories_changes_nothing_else(system) -> None:
    first = trajectories(system)
    first[:] = 0.0
    assert np.abs(trajectories(system)).max() > 0.0


def test_an_unknown_name_and_an_empty_sample_are_refused() -> None:
    with pytest.raises(ParameterError, match="'feynman_I_0_0' is not a white-box task"):
        whitebox_task("feynman_I_0_0")
    with pytest.raises(ParameterError, match=r"'n_samples' must be at least 1\. Got 0"):
        whitebox_tasks()[0].sample(0, np.random.default_rng(0))


@needs_data
@TASKS
def test_the_formula_gives_the_published_target(task) -> None:
    folder = DATA / ("pmlb" if task.system else "feynman/sample2000")
    frame = pd.read_csv(folder / task.name / f"{task.name}.tsv.gz", sep="\t")
    target = frame["target"].to_numpy()
    computed = task.values(frame[list(task.variables)].to_numpy())
    np.testing.assert_allclose(computed, target, rtol=1e-9, atol=1e-12 * np.abs(target).max())


@needs_data
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_the_simulated_trajectories_are_the_published_ones(system) -> None:
    name = f"strogatz_{system.name}1"
    published = pd.read_csv(DATA / "pmlb" / name / f"{name}.tsv.gz", sep="\t")[["x", "y"]].to_numpy()
    # Measured: at most 7.3e-14 (glider, y); the states are of order 1 to 50.
    np.testing.assert_allclose(trajectories(system), published, rtol=0, atol=1e-12)


def accurate_trajectories(system: System) -> np.ndarray:
    """Solutions of the equations from the same starts at the same times, to 1e-12, shape (400, 2)."""
    rates = [whitebox_task(f"strogatz_{system.name}{k}").values for k in (1, 2)]
    times = TIME_STEP * np.arange(N_STEPS)
    parts = [
        solve_ivp(
            lambda _, z: [float(rate(z[None])[0]) for rate in rates],
            (0.0, times[-1]),
            start,
            method="DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-14,
        ).y.T
        for start in system.starts
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize(
    ("name", "largest"),
    # The first-order error of the held rate: largest deviation of a published state from the solution of its equations.
    [
        ("bacres", 0.235),
        ("barmag", 0.034),
        ("glider", 0.514),
        ("lv", 3.672),
        ("predprey", 1.083),
        ("shearflow", 0.257),
        ("vdp", 0.560),
    ],
)
def test_the_published_states_are_as_far_from_the_solution_as_stated(name: str, largest: float) -> None:
    system = next(system for system in SYSTEMS if system.name == name)
    deviation = np.abs(accurate_trajectories(system) - trajectories(system)).max()
    np.testing.assert_allclose(deviation, largest, atol=1e-3)


@pytest.mark.parametrize("name", [task.name for task in whitebox_tasks() if task.name.startswith("feynman")])
def test_units_of_the_feynman_tasks_fit_their_formulas(name: str) -> None:
    units = task_units(name)
    truth = whitebox_task(name).positional_expression
    assert set(truth.variables) <= set(units["units"])
    check_units(truth, Units(units["units"], units["y_units"], constants=False))


def test_tasks_without_units_are_named() -> None:
    with pytest.raises(ParameterError, match="strogatz_vdp1"):
        task_units("strogatz_vdp1")
