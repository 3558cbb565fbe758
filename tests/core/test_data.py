"""Samples at the door: what is taken, what is refused, and how it says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.core.sample import Sample, as_sample, as_target
from sobolev_novelty.errors import DataError


def test_arrays_get_numbered_names_and_frames_keep_theirs() -> None:
    assert as_sample(np.ones((3, 2))).names == ("x0", "x1")
    assert as_sample(pd.DataFrame({"mass": [1.0], "speed": [2]})).names == ("mass", "speed")
    assert as_sample(np.ones((3, 2)), names=["a", "b"]).names == ("a", "b")


def test_features_are_contiguous_rows() -> None:
    sample = as_sample([[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(sample.X, [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]])
    assert sample.X.flags.c_contiguous
    assert (sample.n_features, sample.n_samples) == (2, 3)


def test_one_dimension_is_one_feature() -> None:
    assert as_sample(pd.Series([1.0, 2.0])).X.shape == (1, 2)


def test_a_sample_passes_through() -> None:
    sample = as_sample([[1.0]])
    assert as_sample(sample) is sample


def test_missing_values_of_every_kind_become_nan() -> None:
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None], dtype="Int64"),
            "b": pd.Series([2.0, None], dtype=object),
            "c": pd.Series([True, False]),
        }
    )
    np.testing.assert_array_equal(as_sample(frame).X, [[1.0, np.nan], [2.0, np.nan], [1.0, 0.0]])
    masked = np.ma.MaskedArray([[1.0], [2.0]], mask=[[False], [True]])
    np.testing.assert_array_equal(as_sample(masked).X, [[1.0, np.nan]])


class OtherFrame:
    """A table of another library: columns and ``to_numpy``, no ``iloc``."""

    columns = ("u", "v")

    def to_numpy(self) -> np.ndarray:
        return np.array([[1.0, 2.0]])


def test_other_frames_are_read_through_their_arrays() -> None:
    assert as_sample(OtherFrame()).names == ("u", "v")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 2, 2)), r"'X' must have two dimensions, samples × features. Got 3: shape \(2, 2, 2\)."),
        (np.ones((0, 2)), "'X' has no rows. Give at least 32 samples."),
        (np.ones((2, 0)), "'X' has no columns. Give at least one input."),
        (pd.DataFrame(index=range(3)), "'X' has no columns."),
        ([[1.0, 2.0], [3.0]], "'X' cannot be read as numbers"),
        ([["a"], ["b"]], "'X' cannot be read as numbers: .* Give a numeric array or DataFrame."),
        (np.array([[1 + 2j]]), "'X' holds complex numbers"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "'X' holds dates."),
        (np.array([[3]], dtype="timedelta64[s]"), "'X' holds durations."),
        (pd.DataFrame({"k": ["u", "v"]}), "Column 'k' is not numeric .for example 'u'.. Drop it or encode it"),
        (pd.DataFrame({"when": pd.to_datetime(["2020"])}), "Column 'when' is not numeric .for example Timestamp"),
        (pd.DataFrame({"z": [1 + 2j]}), r"Column 'z' is not numeric .for example \(1\+2j\)"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "Column names must differ. Got these more than once: a."),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(X: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_sample(X)


def test_one_name_per_column() -> None:
    with pytest.raises(DataError, match="'names' must have one name per column of 'X', 2 in all. Got 1."):
        as_sample(np.ones((3, 2)), names=["a"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, 2.0], r"'y' must have one value per row of 'X', shape \(3,\). Got shape \(2,\)."),
        ([1.0, np.nan, np.inf], r"'y' has 2 non-finite value\(s\), the first in row 1. Drop or impute these rows."),
        ([1.0, None, 2.0], r"'y' has 1 non-finite value\(s\), the first in row 1"),
        (["a", "b", "c"], "'y' cannot be read as numbers"),
        ([1j, 2j, 3j], "'y' holds complex numbers"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused(y: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_target(y, 3)


def test_a_column_vector_is_a_target() -> None:
    np.testing.assert_array_equal(as_target(np.ones((3, 1)), 3), np.ones(3))
    np.testing.assert_array_equal(as_target([True, False, True], 3), [1.0, 0.0, 1.0])


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 50))
def test_a_constant_column_has_no_spread_at_all(value: float, n: int) -> None:
    assert as_sample(np.full((n, 1), value)).scales()[0] == 0.0


@given(st.integers(0, 1000), st.sampled_from([1e-200, 1e-3, 1.0, 1e100, 1e200]))
def test_scales_are_standard_deviations_at_any_size(seed: int, size: float) -> None:
    X = np.random.default_rng(seed).normal(size=(40, 2))
    np.testing.assert_allclose(as_sample(X * size).scales(), X.std(axis=0) * size, rtol=1e-12)


def test_scales_leave_missing_entries_out() -> None:
    X = np.array([[1.0, np.nan], [3.0, np.inf], [np.nan, np.nan]])
    np.testing.assert_allclose(as_sample(X).scales(), [1.0, 0.0])


def test_rows_restricts_by_mask_or_by_index() -> None:
    sample = as_sample([[1.0], [2.0], [3.0]])
    assert isinstance(sample.rows(np.array([0, 2])), Sample)
    np.testing.assert_array_equal(sample.rows(np.array([True, False, True])).X, sample.rows(np.array([0, 2])).X)
