"""Matching pursuit in the kernel: the compiled one offers what the NumPy one defines, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty import kernels
from sobolev_novelty.errors import KernelError
from sobolev_novelty.kernels import numpy_pursuit
from sobolev_novelty.kernels.backend import native
from sobolev_novelty.kernels.columns import JOINS

needs_native = pytest.mark.skipif(native() is None, reason="the compiled kernel was not built")


def nodes(rng: np.random.Generator, n_rows: int, n_nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions of nodes with bases of different sizes, the first of which they share."""
    k = min(4, n_rows)
    basis = np.linalg.qr(rng.normal(size=(n_rows, k)))[0].T
    residuals = rng.normal(size=(n_nodes, n_rows))
    residuals /= np.linalg.norm(residuals, axis=1)[:, None]
    members: list[int] = []
    offsets = [0]
    for c in range(n_nodes):
        members += [k + c, *range(c % (k + 1))]
        offsets.append(len(members))
    return np.concatenate([basis, residuals]).astype(np.float32), np.array(members), np.array(offsets)


@needs_native
@given(
    st.integers(0, 10**6), st.integers(1, 150), st.integers(1, 70), st.integers(1, 5), st.integers(1, 12),
    st.integers(1, 3),
)  # fmt: skip
def test_the_compiled_kernel_offers_the_columns_that_numpy_offers(
    seed: int, n_columns: int, n_rows: int, n_nodes: int, n_top: int, n_threads: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_columns, n_rows)) * 10.0 ** rng.uniform(-8, 8, n_columns)[:, None]
    values[rng.random(n_columns) < 0.1] = 0.0
    values[rng.random(n_columns) < 0.1, 0] = np.inf
    directions, members, offsets = nodes(rng, n_rows, n_nodes)
    slow, fast = numpy_pursuit.unit_columns(kernels.lazily(values)), kernels.unit_columns(values, n_threads=n_threads)
    np.testing.assert_allclose(fast.lengths, slow.lengths, rtol=1e-12)
    _, expected = numpy_pursuit.offers(
        slow, directions, members, offsets, kernels.Lineage.none(slow, n_nodes, len(members)), n_top
    )
    places, gains = kernels.offers(fast, directions, members, offsets, n_top=n_top, n_threads=n_threads)
    # What a column keeps outside the basis is known to a few units of single precision.
    inner = slow.single.astype(float) @ directions.T.astype(float)
    for c in range(n_nodes):
        own = inner[:, members[offsets[c] : offsets[c + 1]]]
        fresh = 1.0 - np.sum(own[:, 1:] ** 2, axis=1)
        if (np.abs(fresh - numpy_pursuit.MIN_FRESH) < 1e-5).any():
            continue
        rtol = 1e-6 / fresh[fresh > numpy_pursuit.MIN_FRESH].min(initial=1e-3)
        np.testing.assert_allclose(gains[c], expected[c], rtol=rtol, atol=1e-6)
        assert (np.diff(gains[c]) <= 0.0).all()
        exact = np.where(
            fresh > numpy_pursuit.MIN_FRESH, own[:, 0] ** 2 / np.maximum(fresh, numpy_pursuit.MIN_FRESH), 0.0
        )
        chosen = places[c][places[c] >= 0]
        assert len(set(chosen.tolist())) == len(chosen)
        np.testing.assert_allclose(exact[chosen], gains[c][: len(chosen)], rtol=rtol, atol=1e-6)


def lists(rng: np.random.Generator, n_rows: int) -> kernels.LazyColumns:
    """Columns joined in every way, some of them near zero, huge or not finite."""
    left, right = (rng.normal(size=(n, n_rows)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1)) for n in (11, 17))
    left[3, 0], left[4, -1], right[5, 0], right[6, 0] = 0.0, np.inf, 1e-13, np.nan
    left[7], left[8] = 1e-170, 1e200
    parts = []
    for how, is_log in [(how, is_log) for how in JOINS for is_log in (False, True)]:
        first, second = rng.integers(0, 11, 45), rng.integers(0, 17, 45)
        parts.append(kernels.JoinedColumns(how, left, right, first, second, is_log=is_log))
    return kernels.LazyColumns((*parts, parts[0].chosen(np.arange(0))))


@needs_native
@given(st.integers(0, 10**6), st.integers(1, 150), st.integers(1, 3))
def test_columns_are_joined_and_scaled_as_numpy_does(seed: int, n_rows: int, n_threads: int) -> None:
    columns = lists(np.random.default_rng(seed), n_rows)
    slow, fast = numpy_pursuit.unit_columns(columns), kernels.unit_columns(columns, n_threads=n_threads)
    np.testing.assert_allclose(fast.lengths, slow.lengths, rtol=1e-12)
    rows = fast.single.transpose(0, 2, 1).reshape(-1, n_rows)
    np.testing.assert_allclose(rows[: len(columns)], slow.single, rtol=1e-6, atol=1e-7)
    assert not rows[len(columns) :].any()
    for start, part in columns.placed():
        own = kernels.joined_lengths(part, n_threads=n_threads)
        np.testing.assert_array_equal(own, fast.lengths[start : start + len(part)])


def test_lazy_columns_are_indexed_as_a_matrix() -> None:
    columns = lists(np.random.default_rng(0), 20)
    with np.errstate(all="ignore"):
        whole = np.concatenate([part.values() for part in columns.parts])
    assert columns.shape == whole.shape == (360, 20)
    for part in (slice(None), slice(40, 200), slice(350, 999), slice(5, 5), slice(100, 50)):
        np.testing.assert_array_equal(columns[part], whole[part])
    np.testing.assert_array_equal(columns[[0, 359, 45]], whole[[0, 359, 45]])
    np.testing.assert_array_equal(columns[314], whole[314])


@needs_native
@given(st.integers(0, 10**6), st.integers(1, 150), st.integers(6, 70), st.integers(1, 3))
def test_offers_that_follow_from_a_parent_are_those_of_the_whole_basis(
    seed: int, n_columns: int, n_rows: int, n_threads: int
) -> None:
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n_rows, 5)))[0].T
    target = rng.normal(size=n_rows)
    residuals = [target - basis[:k].T @ (basis[:k] @ target) for k in (2, 5)]
    lengths = [float(np.linalg.norm(r)) for r in residuals]
    if lengths[1] < 0.05 * lengths[0]:
        return
    whole = np.vstack([residuals[1] / lengths[1], basis]).astype(np.float32)
    values = rng.normal(size=(n_columns, n_rows))
    steps = (basis[2:] @ target / lengths[1]).astype(np.float32)
    for columns in (
        kernels.unit_columns(values, n_threads=n_threads),
        numpy_pursuit.unit_columns(kernels.lazily(values)),
    ):
        is_native = columns.single.ndim == 3
        asked = kernels.offers if is_native else numpy_offers
        _, expected = asked(columns, whole, np.arange(6), np.array([0, 6]), n_top=4)
        room = kernels.no_standings(columns, 3)
        first = kernels.Lineage(np.array([-1]), np.array([2]), np.zeros(3, np.float32), room)
        parent = np.vstack([residuals[0] / lengths[0], basis[:2]]).astype(np.float32)
        asked(columns, parent, np.arange(3), np.array([0, 3]), n_top=1, lineage=first)
        # Once with the residual given, once from the parent's.
        weights = np.array([lengths[0] / lengths[1], *steps] * 2, np.float32)
        second = kernels.Lineage(np.array([2, 2]), np.array([0, -1]), weights, room)
        directions, members = whole[[0, 3, 4, 5]], np.array([-1, 1, 2, 3, 0, 1, 2, 3])
        _, gains = asked(columns, directions, members, np.array([0, 4, 8]), n_top=4, lineage=second)
        np.testing.assert_allclose(gains, np.repeat(expected, 2, axis=0), rtol=1e-2, atol=1e-4)


def numpy_offers(columns, directions, members, offsets, *, n_top, lineage=None):
    lineage = lineage or kernels.Lineage.none(columns, len(offsets) - 1, len(members))
    return numpy_pursuit.offers(columns, directions, members, offsets, lineage, n_top)


@needs_native
def test_offers_do_not_depend_on_the_number_of_threads_nor_do_equal_gains_change_places() -> None:
    rng = np.random.default_rng(3)
    values = np.tile(rng.normal(size=(150, 40)), (4, 1))  # every gain four times
    directions, members, offsets = nodes(rng, 40, 6)
    columns = kernels.unit_columns(values)
    places, gains = kernels.offers(columns, directions, members, offsets, n_top=9)
    for n_threads in (2, 3, 7):
        again, same = kernels.offers(columns, directions, members, offsets, n_top=9, n_threads=n_threads)
        np.testing.assert_array_equal(again, places)
        np.testing.assert_array_equal(same, gains)
    for row, gain in zip(places.tolist(), gains.tolist(), strict=True):
        assert [j for _, j in sorted(zip(gain, row, strict=True), key=lambda pair: (-pair[0], pair[1]))] == row


def test_columns_without_a_length_are_never_offered() -> None:
    values = np.ones((3, 10))
    values[0], values[1, 4] = 0.0, np.nan
    columns = kernels.unit_columns(values)
    places, gains = kernels.offers(columns, np.ones((1, 10)) / np.sqrt(10.0), [0], [0, 1], n_top=3)
    assert places.tolist() == [[2, -1, -1]]
    np.testing.assert_allclose(gains, [[1.0, 0.0, 0.0]], rtol=1e-6)
    assert [columns.is_usable(j) for j in range(3)] == [False, False, True]


@needs_native
@pytest.mark.parametrize(
    ("directions", "members", "offsets", "message"),
    [
        (np.ones((1, 9)), [0], [0, 1], "'panels' has the wrong shape"),
        (np.ones((1, 10)), [1], [0, 1], "a direction that is not there"),
        (np.ones((1, 10)), [0], [0, 0, 1], "has no residual"),
    ],
)
def test_the_kernel_refuses_what_would_lead_outside_its_arrays(
    directions: np.ndarray, members: list[int], offsets: list[int], message: str
) -> None:
    columns = kernels.unit_columns(np.ones((3, 10)))
    with pytest.raises(KernelError, match=message):
        kernels.offers(columns, directions, members, offsets, n_top=2)
