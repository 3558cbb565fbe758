"""SRBench's protocol."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from places import ROOT
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.bench.problems import suites
from sobolev_novelty.lab.bench.problems.suites import load, missing_tasks, r_squared, suite_tasks, task_data
from sobolev_novelty.lab.bench.problems.tasks import whitebox_task

needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("SOBOLEV_DATA", "/nonexistent")) / "pmlb").is_dir(),
    reason="SOBOLEV_DATA does not name a folder with the public data",
)


def test_the_suites_have_133_and_122_tasks_with_distinct_names() -> None:
    for suite, size in (("whitebox", 133), ("blackbox", 122)):
        names = suite_tasks(suite)
        assert len(names) == len(set(names)) == size


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(ParameterError, match="'suite' must be one of whitebox, blackbox"):
        suite_tasks("greybox")


@given(seed=st.integers(0, 10_000), max_train_rows=st.integers(10, 400))
@settings(max_examples=25, deadline=None)
def test_a_task_is_split_75_25_with_at_most_the_rows_asked_for(seed: int, max_train_rows: int) -> None:
    part = task_data("feynman_I_12_1", seed, max_train_rows=max_train_rows)
    X, y, _ = load("feynman_I_12_1", max_train_rows=max_train_rows)
    assert len(part.y_train) <= max_train_rows
    assert len(part.y_train) >= max_train_rows - 1
    _, X_test, _, y_test = train_test_split(X, y, train_size=0.75, test_size=0.25, random_state=seed)
    np.testing.assert_array_equal(part.X_test, X_test)
    np.testing.assert_array_equal(part.y_test, y_test)


@given(n_samples=st.integers(4, 2000), seed=st.integers(0, 2**32 - 1))
def test_the_split_is_scikit_learns(n_samples: int, seed: int) -> None:
    train, test = train_test_split(np.arange(n_samples), train_size=0.75, test_size=0.25, random_state=seed)
    ours = suites.split(n_samples, seed)
    np.testing.assert_array_equal(ours[0], train)
    np.testing.assert_array_equal(ours[1], test)


def test_train_and_test_share_no_row_and_the_data_do_not_depend_on_the_seed() -> None:
    parts = [task_data("feynman_test_1", seed, max_train_rows=300) for seed in (0, 1)]
    everything = [np.sort(np.concatenate([part.X_train[:, 0], part.X_test[:, 0]])) for part in parts]
    np.testing.assert_array_equal(everything[0], everything[1])
    assert not set(parts[0].X_train[:, 0]) & set(parts[0].X_test[:, 0])
    assert not np.array_equal(parts[0].X_test, parts[1].X_test)


def test_noise_has_the_stated_size_and_touches_the_training_target_only() -> None:
    clean = task_data("feynman_I_13_4", 3, max_train_rows=8000)
    noisy = task_data("feynman_I_13_4", 3, max_train_rows=8000, noise=0.1)
    np.testing.assert_array_equal(clean.X_train, noisy.X_train)
    np.testing.assert_array_equal(clean.y_test, noisy.y_test)
    expected = 0.1 * np.sqrt(np.mean(clean.y_train**2))
    np.testing.assert_allclose(np.std(noisy.y_train - clean.y_train), expected, rtol=0.05)


def test_the_truth_is_given_in_positional_names_and_fits_the_test_part() -> None:
    part = task_data("feynman_I_12_11", 0, max_train_rows=100)
    assert part.truth is not None
    assert set(part.truth.variables) == {f"x{k}" for k in range(5)}
    np.testing.assert_allclose(whitebox_task("feynman_I_12_11").values(part.X_test), part.y_test)


@pytest.mark.parametrize(("argument", "value"), [("max_train_rows", 0), ("noise", -0.1), ("noise", float("nan"))])
def test_bad_options_are_refused_by_name(argument: str, value: float) -> None:
    with pytest.raises(ParameterError, match=f"'{argument}' must be"):
        task_data("feynman_I_12_1", 0, **{argument: value})


@given(
    y=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=30).filter(lambda y: np.ptp(y) > 1e-3),
    shift=st.floats(-10, 10),
)
def test_r_squared_is_scikit_learns(y: list[float], shift: float) -> None:
    target = np.array(y)
    np.testing.assert_allclose(
        r_squared(target, target[::-1] + shift), r2_score(target, target[::-1] + shift), rtol=1e-9
    )


def test_r_squared_of_a_constant_target_and_of_a_bad_prediction() -> None:
    assert r_squared(np.ones(4), np.ones(4)) == 1.0
    assert r_squared(np.ones(4), np.zeros(4)) == 0.0
    assert r_squared(np.arange(3.0), np.array([0.0, np.inf, 1.0])) is None


def test_dummies_are_shuffled_copies_of_inputs_and_leave_the_rest_alone() -> None:
    part = task_data("strogatz_vdp1", 3, max_train_rows=100)
    more = part.with_dummies(2, 3)
    n = len(part.variables)
    assert more.variables == (*part.variables, "dummy_0", "dummy_1")
    for X, wider in [(part.X_train, more.X_train), (part.X_test, more.X_test)]:
        assert np.array_equal(wider[:, :n], X)
        for column in wider[:, n:].T:
            assert any(np.array_equal(np.sort(column), np.sort(own)) for own in X.T)
            assert not any(np.array_equal(column, own) for own in X.T)
    assert np.array_equal(more.X_train, part.with_dummies(2, 3).X_train)
    assert np.array_equal(more.y_train, part.y_train)


def test_missing_data_are_named_and_a_failed_download_says_what_to_do(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pmlb")
    monkeypatch.setenv("SOBOLEV_DATA", str(tmp_path))

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(suites.require("pmlb", extra="bench"), "fetch_data", refuse)
    assert missing_tasks(["1027_ESL", "feynman_I_12_1"]) == ("1027_ESL",)
    assert missing_tasks(["1027_ESL"], download=True) == ("1027_ESL",)
    with pytest.raises(DataError, match=r"'1027_ESL' is not in .* Set SOBOLEV_DATA"):
        task_data("1027_ESL", 0)


@needs_data
def test_at_most_three_giants_of_the_black_box_suite_are_absent_and_the_table_gives_the_sizes() -> None:
    absent = missing_tasks(suite_tasks("blackbox"))
    assert set(absent) <= {"1191_BNG_pbc", "1196_BNG_pharynx", "1595_poker"}
    for name in ("1027_ESL", "192_vineyard", "titanic"):
        X, y, columns = load(name)
        assert (len(y), len(columns)) == suites._blackbox_table()[name]
        assert X.shape == (len(y), len(columns))


FORMULAS = """
[springs]
formula = "F*(1/k + 1/l)"
inputs = { F = [1.0, 5.0], k = [1.0, 5.0], l = [1.0, 5.0] }
"""


def test_a_file_of_formulas_is_a_suite(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FORMULAS)
    assert suite_tasks(str(path)) == ("springs",)
    part = task_data("springs", 0, max_train_rows=60, suite=str(path))
    F, k, l = part.X_train.T  # noqa: E741  the names of the formula
    assert part.X_train.shape == (60, 3) and part.variables == ("F", "k", "l")
    np.testing.assert_allclose(part.y_train, F * (1 / k + 1 / l), rtol=1e-12)
    assert part.truth is not None and set(part.truth.variables) == {"x0", "x1", "x2"}
    with pytest.raises(ParameterError, match="has no formula 'chains'"):
        task_data("chains", 0, suite=str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\nformula = 'x'\ninputs = { x = [2.0, 1.0] }", r"must give 'x' a range \[low, high\]. Got \[2.0, 1.0\]"),
        ("[a]\nformula = 'x*z'\ninputs = { x = [1.0, 2.0] }", "cannot be read.*z"),
        ("[a]\nformula = 'x'", "needs 'formula' and 'inputs'"),
        ("[a", "is not TOML"),
    ],
)
def test_mistakes_in_a_file_of_formulas_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        suite_tasks(str(path))


def test_an_input_called_e_is_not_eulers_number(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[orbit]\nformula = "p/(1 + e*cos(t))"\ninputs = { p = [1.0, 2.0], e = [0.1, 0.5], t = [0, 3] }\n')
    truth = task_data("orbit", 0, max_train_rows=40, suite=str(path)).truth
    assert truth is not None and set(truth.variables) == {"x0", "x1", "x2"}


def test_the_held_out_laws_have_finite_values_and_are_in_no_suite() -> None:
    path = ROOT / "experiments" / "formulas" / "textbook.toml"
    names = suite_tasks(str(path))
    assert len(names) == 60
    for name in names:
        part = task_data(name, 0, max_train_rows=100, suite=str(path))
        assert np.isfinite(part.y_train).all() and np.ptp(part.y_train) > 0.0
