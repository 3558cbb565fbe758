"""Rows in blocks, merged in any order, give the report of all rows at once."""

from __future__ import annotations

import base64
import json
import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import sobolev_novelty as sn
from sobolev_novelty.core.progress import Progress, Step
from sobolev_novelty.errors import DataError, ExpressionError, ParameterError
from sobolev_novelty.report import reporting as report
from sobolev_novelty.report.reporting import novelty
from sobolev_novelty.report.streaming import novelty_of_chunks
from sobolev_novelty.report.streaming.accumulator import CONVERTED_ROWS, NoveltyAccumulator
from streaming_cases import TOLERANCE, assert_same, rows_with_holes

EQUATIONS = (
    "2.1*sin(x0) + 0.3*x0 - 0.05*x0**3",
    "x0*x1 + log(x2) + 3 - 0.5*x1**2",
    "sqrt(x0)*x2 + exp(x1)/(1 + x2**2) + x1",
    "x0 + 1e6*sin(1e-3*x0)",
    "x0 + x0*(1 + 1e-6*x1)",
    "x1/x0 + 7",
    "x2",
    "x0 - x0",
)


def _merged(parts: list[NoveltyAccumulator], rng: np.random.Generator) -> NoveltyAccumulator:
    """Merge in a random tree."""
    while len(parts) > 1:
        i, j = rng.choice(len(parts), 2, replace=False)
        joined = parts[i].merge(parts[j])
        parts = [part for k, part in enumerate(parts) if k not in (i, j)] + [joined]
    return parts[0]


@given(
    equation=st.sampled_from(EQUATIONS),
    seed=st.integers(0, 10_000),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    order=st.integers(0, 2),
    coordinates=st.sampled_from(["standardized", "raw"]),
    intercept=st.sampled_from(["term", "free"]),
)
def test_any_split_and_any_merge_order_give_the_report_of_all_rows(
    equation: str, seed: int, cuts: list[int], order: int, coordinates: str, intercept: str
) -> None:
    X = rows_with_holes(seed)
    options: dict[str, Any] = {"order": order, "coordinates": coordinates, "weights": (1.0, 2.0, 0.5)}
    options["intercept"] = intercept
    whole = report.novelty(equation, X, **options)
    blocks = np.split(X, sorted(cuts))
    assert_same(novelty_of_chunks(equation, blocks, **options), whole)
    rng = np.random.default_rng(seed)
    parts = [NoveltyAccumulator(equation, **options).update(block) for block in blocks]
    assert_same(_merged(parts, rng).report(), whole)


@pytest.mark.parametrize("closeness", [1e-2, 1e-4, 1e-6])
def test_small_novelties_keep_their_digits(closeness: float) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (100_000, 2))
    terms = ["x0", f"x0 + {closeness}*sin(3*x1)", "x1**2"]
    whole = report.novelty(terms, X)
    assert 0.1 * closeness < whole.nu[0] < 10 * closeness
    streamed = novelty_of_chunks(terms, np.array_split(X, 17))
    assert_same(streamed, whole)
    np.testing.assert_allclose(streamed.nu, whole.nu, rtol=1e-8)


def test_dependent_and_null_terms_are_zero_exactly() -> None:
    X = np.random.default_rng(0).uniform(1, 2, (500, 2))
    for terms in (["x0", "x1", "x0 + x1", "x0**2"], ["x0", "max(x0 - 5, 0)", "x1"]):
        streamed = novelty_of_chunks(terms, np.array_split(X, 5))
        assert_same(streamed, report.novelty(terms, X))
        assert (streamed.nu == 0.0).any()


@pytest.mark.parametrize(("offset", "spread"), [(1e8, 1.0), (1e200, 1e200), (1e-200, 1e-200), (0.0, 1e-150)])
def test_the_spread_of_inputs_is_that_of_all_rows(offset: float, spread: float) -> None:
    X = offset + spread * np.random.default_rng(1).normal(size=(1000, 1))
    X[::7] = np.nan
    terms = ["x0", "cos(x0)"]
    assert_same(novelty_of_chunks(terms, np.array_split(X, 9)), report.novelty(terms, X))


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp, reason="no wider floats")
@pytest.mark.parametrize(
    "options", [{}, {"order": 0}, {"order": 2}, {"coordinates": "raw"}, {"intercept": "free"}], ids=str
)
@pytest.mark.parametrize("spread", [1e300, 1e200, 1e160, 1e-150, 1e-200, 1e-300])
def test_inputs_near_the_ends_of_the_range_of_floats_are_judged_as_whole(
    spread: float, options: dict[str, Any]
) -> None:
    X = np.random.default_rng(0).uniform(1.0, 3.0, size=(150, 2)) * [spread, 1.0]
    terms = ("x0", "1/x0", "x0*x1", "x0**2", "sqrt(abs(x0))", "x1 + sin(x1)", "x0/(1 + x1**2)")
    for pair in combinations(terms, 2):
        whole = report.novelty(list(pair), X, **options)
        streamed = novelty_of_chunks(list(pair), np.array_split(X, 4), **options)
        assert streamed.status is whole.status, pair
        np.testing.assert_allclose(streamed.nu, whole.nu, atol=1e-6, err_msg=str(pair))


def test_an_accumulator_of_the_format_before_is_read_as_it_was() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    whole = NoveltyAccumulator("x0 + sin(x0)*x1", coordinates="raw").update(X)
    content = json.loads(whole.to_bytes())  # along raw coordinates the units are 1, as they always were
    del content["tally"]["units"]
    before = NoveltyAccumulator.from_bytes(json.dumps(content | {"format": 2}).encode())
    np.testing.assert_array_equal(before.report().nu, whole.report().nu)


def test_a_column_that_is_constant_in_every_block_but_not_overall_is_not_constant() -> None:
    X = np.repeat(np.arange(4.0), 50)[:, None] + np.zeros((1, 2))
    X[:, 1] = 7.0
    X[:60, 1] = np.nan
    streamed = novelty_of_chunks("x0 + x0**2", np.split(X, 4))
    assert_same(streamed, report.novelty("x0 + x0**2", X))
    assert len(streamed.notes) == 1 and "'x1' is constant" in streamed.notes[0]


def test_too_few_rows_is_a_status_with_the_same_words() -> None:
    X = np.linspace(-3, 0.1, 200)[:, None]
    streamed = novelty_of_chunks("log(x0) + x0", np.array_split(X, 3))
    assert_same(streamed, report.novelty("log(x0) + x0", X))
    assert streamed.status is sn.Status.TOO_FEW_ROWS and streamed.notes


def test_blocks_of_one_row_and_no_rows() -> None:
    X = np.random.default_rng(2).normal(size=(60, 2))
    blocks = [block for row in X for block in (row[None], X[:0])]
    assert_same(novelty_of_chunks("x0 + x1 + x0*x1", [X[:0], *blocks]), report.novelty("x0 + x1 + x0*x1", X))


def test_a_block_longer_than_a_slice_and_memory_maps(tmp_path: Any) -> None:
    X = np.random.default_rng(3).normal(size=(CONVERTED_ROWS + 5000, 2)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    found = NoveltyAccumulator("x0 + sin(x0) + x1").update(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert_same(found.report(), report.novelty("x0 + sin(x0) + x1", X))


def test_frames_are_matched_by_name_and_arrays_by_position() -> None:
    frame = pd.DataFrame(np.random.default_rng(4).normal(size=(300, 2)), columns=["mass", "speed"])
    equation = "mass*speed**2 + mass"
    whole = report.novelty(equation, frame)
    turned = frame.iloc[100:200][["speed", "mass"]]
    blocks = [frame.iloc[:100], turned, frame.iloc[200:].to_numpy()]
    assert_same(novelty_of_chunks(equation, blocks), whole)
    named = NoveltyAccumulator(equation, ["mass", "speed"]).update(frame.to_numpy())
    assert_same(named.report(), whole)
    with pytest.raises(DataError, match=r"columns mass, pace.*Give the same columns"):
        named_by_frame = NoveltyAccumulator(equation).update(frame)
        named_by_frame.update(frame.rename(columns={"speed": "pace"}))
    assert named_by_frame.n_samples == 300
    with pytest.raises(DataError, match="one name per column of 'X', 3 in all. Got 2"):
        named.update(np.zeros((5, 3)))


def test_a_refused_block_leaves_everything_as_it_was() -> None:
    X = np.random.default_rng(5).normal(size=(CONVERTED_ROWS + 50, 1))
    found = NoveltyAccumulator("x0 + cos(x0)").update(X)
    bad = pd.DataFrame({"x0": X[:, 0].astype(object)})
    bad.iloc[-1, 0] = "text"
    with pytest.raises(DataError, match="not numeric"):
        found.update(bad)
    assert_same(found.report(), report.novelty("x0 + cos(x0)", X))


def test_more_rows_may_follow_a_report_and_a_merge_changes_neither_part() -> None:
    X = np.random.default_rng(6).normal(size=(200, 1))
    left = NoveltyAccumulator("x0 + x0**2").update(X[:100])
    right = NoveltyAccumulator("x0 + x0**2").update(X[100:])
    assert_same(left.report(), report.novelty("x0 + x0**2", X[:100]))
    both = left.merge(right)
    assert (left.n_samples, right.n_samples, both.n_samples) == (100, 100, 200)
    assert_same(left.update(X[100:]).report(), both.report())


def test_only_equal_accumulators_merge() -> None:
    found = NoveltyAccumulator("x0 + x1")
    for other in (NoveltyAccumulator("x0 - x1"), NoveltyAccumulator("x0 + x1", order=2)):
        with pytest.raises(ParameterError, match="same equation, names and options"):
            found.merge(other)
    frame = pd.DataFrame(np.ones((3, 2)), columns=["x0", "x1"])
    with pytest.raises(DataError, match="different columns: x0, x1 and x1, x0"):
        found.update(frame).merge(NoveltyAccumulator("x0 + x1").update(frame[["x1", "x0"]]))


def test_misuse_is_refused_at_the_door() -> None:
    with pytest.raises(DataError, match="no rows yet"):
        NoveltyAccumulator("x0").report()
    with pytest.raises(ParameterError, match="'tau' must be a number from 0 to 1"):
        NoveltyAccumulator("x0", tau=2.0)
    with pytest.raises(ExpressionError, match="'x7' is not a column"):
        NoveltyAccumulator(sn.parse("x0 + x7"), ["x0", "x1"])
    with pytest.raises(DataError, match="two dimensions"):
        NoveltyAccumulator("x0").update(np.zeros((3, 3, 3)))


@pytest.mark.parametrize(
    "equation",
    [
        "x0 + sin(x1)",
        sn.parse("2*x0 + 1e-300"),
        ["x0", sn.Term(2.5, sn.parse("x1**2"))],
        sn.to_sympy(sn.parse("x0*x1 + 3")),
    ],
    ids=["text", "expression", "terms", "sympy"],
)
@pytest.mark.parametrize("trip", ["bytes", "pickle"])
def test_an_accumulator_survives_storage(equation: Any, trip: str) -> None:
    X = rows_with_holes(4)[:, :2]

    def travelled(found: NoveltyAccumulator) -> NoveltyAccumulator:
        if trip == "bytes":
            return NoveltyAccumulator.from_bytes(found.to_bytes())
        return pickle.loads(pickle.dumps(found))

    options: dict[str, Any] = {"order": 2, "intercept": "free"}
    found = travelled(travelled(NoveltyAccumulator(equation, **options)).update(X[:150])).update(X[150:])
    assert_same(found.report(), report.novelty(equation, X, **options))
    assert "n_samples=400" in repr(found)


def test_foreign_bytes_are_refused() -> None:
    good = NoveltyAccumulator("x0 + x0**2").update(np.arange(50.0)).to_bytes()
    assert NoveltyAccumulator.from_bytes(good).n_samples == 50
    broken = [
        b"", b"\x80\x04", b"[]", b"{}", good[:-20], good.replace(b'"n_used": 50', b'"n_used": 51'),
        good.replace(b'"factors": "', b'"factors": "AAAA'), b"[" * 100_000,
    ]  # fmt: skip
    for data in broken:
        with pytest.raises(DataError, match="not an accumulator"):
            NoveltyAccumulator.from_bytes(data)
    with pytest.raises(DataError, match="has format 99"):
        NoveltyAccumulator.from_bytes(good.replace(b'"format": 3', b'"format": 99'))


def test_the_numpy_kernel_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X = rows_with_holes(2)
    compiled = novelty_of_chunks(EQUATIONS[2], [X])
    monkeypatch.setenv("SOBOLEV_KERNEL", "numpy")
    streamed = novelty_of_chunks(EQUATIONS[2], np.split(X, 4))
    np.testing.assert_allclose(streamed.nu, compiled.nu, rtol=0, atol=TOLERANCE)


def test_the_public_name_takes_plain_arrays_with_every_option() -> None:
    X = np.random.default_rng(7).normal(size=(100, 1))
    assert sn.novelty is novelty
    told: list[Progress] = []
    found = sn.novelty("x0 + x0**3", X, n_bootstrap=20, random_state=0, on_progress=told.append)
    assert told[-1] == Step(20, 20, "resampling")
    assert found.bootstrap is not None and found.bootstrap.n_resamples == 20


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_an_accumulator_with_impossible_moments_says_so() -> None:
    """Found by changing bytes of a stored one at random: the novelty was not finite, and LAPACK gave up."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    made = NoveltyAccumulator("x0 + x0*x1")
    made.update(X)
    content = json.loads(made.to_bytes())
    moments = content["tally"]["moments"]
    moments["M2"] = base64.b64encode(np.full(2, 1e308).tobytes()).decode()
    moments["unit"] = base64.b64encode(np.full(2, 1e300).tobytes()).decode()
    found = NoveltyAccumulator.from_bytes(json.dumps(content).encode())
    found.update(X)
    with pytest.raises(DataError, match="beyond the range of floats"):
        str(found.report())
