"""Residuals of all terms from one factorisation, against m separate least-squares solves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reference import reference_novelty
from sobolev_novelty.core.linear.projection import (
    GRAM_IS_ENOUGH,
    PRECISION,
    TAU_ID,
    combine,
    conditional_residuals,
    factor,
    residuals,
    residuals_of_factor,
    unit_columns,
)

seeds = st.integers(0, 2**32 - 1)


@st.composite
def matrices(draw: st.DrawFn, min_terms: int = 1, max_terms: int = 8) -> np.ndarray:
    """Full-rank signatures: random columns, more or less alike, of any moderate length."""
    rng = np.random.default_rng(draw(seeds))
    m = draw(st.integers(min_terms, max_terms))
    Psi = rng.normal(size=(draw(st.integers(40, 200)), m)) + draw(st.floats(0.0, 300.0)) * rng.normal(size=(1, m))
    return Psi * 10.0 ** rng.uniform(-3.0, 3.0, size=m)


@given(matrices())
def test_every_novelty_is_that_of_its_own_least_squares_solve(Psi: np.ndarray) -> None:
    np.testing.assert_allclose(residuals(Psi).nu, reference_novelty(Psi), rtol=1e-8, atol=1e-10)


@given(matrices())
def test_novelty_lies_between_zero_and_one(Psi: np.ndarray) -> None:
    found = residuals(Psi)
    assert ((found.nu >= 0.0) & (found.nu <= 1.0)).all()
    np.testing.assert_allclose(found.lengths, np.linalg.norm(Psi, axis=0), rtol=1e-12)


@given(matrices(max_terms=1))
def test_one_term_alone_has_novelty_one(Psi: np.ndarray) -> None:
    assert residuals(Psi).nu.tolist() == [1.0]


@given(matrices())
def test_squared_novelty_is_one_over_the_diagonal_of_the_inverse_gram_matrix(Psi: np.ndarray) -> None:
    U = Psi / np.linalg.norm(Psi, axis=0)
    inverse = np.linalg.inv(U.T @ U)
    np.testing.assert_allclose(residuals(Psi).nu ** 2, 1.0 / np.diag(inverse), rtol=1e-6)
    np.testing.assert_allclose(residuals(Psi).gram, U.T @ U, atol=1e-12)


@given(matrices(min_terms=2))
def test_squared_novelty_is_one_over_the_uncentred_variance_inflation_factor(Psi: np.ndarray) -> None:
    for i, nu in enumerate(residuals(Psi).nu):
        others = np.delete(Psi, i, axis=1)
        fitted = others @ np.linalg.lstsq(others / 1.0, Psi[:, i], rcond=None)[0]
        r_squared = 1.0 - np.sum((Psi[:, i] - fitted) ** 2) / np.sum(Psi[:, i] ** 2)  # without a mean: uncentred
        np.testing.assert_allclose(nu**2, 1.0 - r_squared, rtol=1e-6, atol=1e-12)


@given(matrices(), seeds)
def test_scaling_a_term_changes_no_novelty(Psi: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = rng.choice([-1.0, 1.0], Psi.shape[1]) * 10.0 ** rng.uniform(-150, 150, Psi.shape[1])
    np.testing.assert_allclose(residuals(Psi * factors).nu, residuals(Psi).nu, rtol=1e-8, atol=1e-12)


@given(matrices(), seeds)
def test_permuting_terms_permutes_novelties(Psi: np.ndarray, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(Psi.shape[1])
    np.testing.assert_allclose(residuals(Psi[:, order]).nu, residuals(Psi).nu[order], rtol=1e-8, atol=1e-12)


@given(matrices(min_terms=2))
def test_adding_a_term_never_raises_the_novelty_of_another(Psi: np.ndarray) -> None:
    before = residuals(Psi[:, :-1]).nu
    after = residuals(Psi).nu[:-1]
    assert (after <= before + 1e-10).all()


@given(matrices(min_terms=2), seeds)
def test_deletion_and_refit_costs_coefficient_times_length_times_novelty(Psi: np.ndarray, seed: int) -> None:
    b = np.random.default_rng(seed).normal(size=Psi.shape[1])
    s = Psi @ b
    found = residuals(Psi)
    for i in range(Psi.shape[1]):
        others = np.delete(Psi, i, axis=1)
        scale = np.linalg.norm(others, axis=0)
        rest = s - (others / scale) @ np.linalg.lstsq(others / scale, s, rcond=None)[0]
        expected = np.linalg.norm(rest)
        cost = abs(b[i]) * found.lengths[i] * found.nu[i]
        np.testing.assert_allclose(cost, expected, rtol=1e-6, atol=1e-12 * np.linalg.norm(s))


@given(matrices(min_terms=2), seeds)
def test_attribution_sensitivity_is_one_over_novelty_and_attained_along_the_residual(
    Psi: np.ndarray, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    U = Psi / np.linalg.norm(Psi, axis=0)
    nu = residuals(Psi).nu

    def attribution(v: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(U, v, rcond=None)[0]

    v = rng.normal(size=len(U))
    for i in range(U.shape[1]):
        others = np.delete(U, i, axis=1)
        r = U[:, i] - others @ np.linalg.lstsq(others, U[:, i], rcond=None)[0]
        change = attribution(v + r)[i] - attribution(v)[i]
        np.testing.assert_allclose(abs(change) / np.linalg.norm(r), 1.0 / nu[i], rtol=1e-5)
        h = rng.normal(size=len(U))  # any other direction does no worse
        assert abs(attribution(v + h)[i] - attribution(v)[i]) / np.linalg.norm(h) <= (1.0 + 1e-6) / nu[i]


# --- rank deficiency


@st.composite
def dependent(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A random basis and columns that are combinations of some of its members; the mask tells who is dependent."""
    rng = np.random.default_rng(draw(seeds))
    n_basis = draw(st.integers(2, 6))
    Psi = rng.normal(size=(draw(st.integers(60, 150)), n_basis))
    is_dependent = np.zeros(n_basis, dtype=bool)
    columns = [Psi]
    for _ in range(draw(st.integers(1, 2))):
        members = rng.choice(n_basis, size=draw(st.integers(1, min(3, n_basis))), replace=False)
        columns.append(Psi[:, members] @ rng.choice([-2.0, -1.0, 1.0, 3.0], size=(len(members), 1)))
        is_dependent[members] = True
    mask = np.concatenate([is_dependent, np.ones(len(columns) - 1, dtype=bool)])
    order = rng.permutation(len(mask))
    return np.concatenate(columns, axis=1)[:, order] * 10.0 ** rng.uniform(-3, 3, len(mask)), mask[order]


@given(dependent())
def test_a_term_is_zero_exactly_when_it_lies_in_the_span_of_the_others(case: tuple[np.ndarray, np.ndarray]) -> None:
    Psi, is_dependent = case
    found = residuals(Psi)
    np.testing.assert_array_equal(found.nu == 0.0, is_dependent)
    np.testing.assert_allclose(found.nu, reference_novelty(Psi), rtol=0.0, atol=1e-10)
    assert found.rank == np.linalg.matrix_rank(Psi / np.linalg.norm(Psi, axis=0))


def random_columns(n: int, seed: int = 0) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).normal(size=(n, 120)))


def test_exact_duplicates_are_zero_and_the_others_as_without_one_of_them() -> None:
    a, b, c = random_columns(3)
    found = residuals(np.stack([a, b, a, c], axis=1)).nu
    expected = reference_novelty(np.stack([a, b, c], axis=1))
    assert found[0] == found[2] == 0.0
    np.testing.assert_allclose(found[[1, 3]], expected[[1, 2]], rtol=0.0, atol=1e-12)


def test_a_term_that_is_the_sum_of_two_others_makes_all_three_zero() -> None:
    a, b, c = random_columns(3)
    found = residuals(np.stack([a, b, a + b, c], axis=1)).nu
    assert found[:3].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(found[3], reference_novelty(np.stack([a, b, c], axis=1))[2], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("small", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_a_three_way_dependency_with_a_small_weight_is_found(small: float) -> None:
    a, b, c = random_columns(3)
    found = residuals(np.stack([a, a + small * b, b, c], axis=1)).nu
    assert found[:3].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(found[3], reference_novelty(np.stack([a, b, c], axis=1))[2], rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("small", [1e-2, 1e-4, 1e-6, 1e-8])
def test_a_four_way_dependency_costs_no_more_than_its_weights(small: float) -> None:
    a, b, c, d = random_columns(4)
    found = residuals(np.stack([a, a + small * (b + c), b, c, d], axis=1)).nu
    assert found[:2].tolist() == [0.0, 0.0]
    assert (found[2:4] <= 3.0 * PRECISION / small).all()
    np.testing.assert_allclose(found[4], reference_novelty(np.stack([a, b, c, d], axis=1))[3], rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("distance", [10.0**-k for k in range(3, 11)])
def test_near_duplicates_have_the_reference_value(distance: float) -> None:
    a, b, c, d = random_columns(4)
    Psi = np.stack([a, a + distance * b, c + 0.5 * b, d], axis=1)
    # The exact answer for the others: the near-duplicates span a and b.
    exact = reference_novelty(np.stack([a, b, c + 0.5 * b, d], axis=1))
    found = residuals(Psi).nu
    np.testing.assert_allclose(found[:2], reference_novelty(Psi)[:2], rtol=0.0, atol=1e-10)
    # Rounding of the data moves b by eps/distance: no algorithm in double precision can do better.
    np.testing.assert_allclose(found[2:], exact[2:], rtol=0.0, atol=max(1e-10, 1e-15 / distance))


@pytest.mark.parametrize("distance", [10.0**-k for k in range(3, 11)])
def test_near_duplicates_do_not_disturb_terms_orthogonal_to_their_difference(distance: float) -> None:
    Q = np.linalg.qr(np.random.default_rng(3).normal(size=(120, 4)))[0]
    a, b, c, d = Q.T
    found = residuals(np.stack([a, a + distance * b, c + a, d + 2 * c], axis=1)).nu
    expected = reference_novelty(np.stack([a, c + a, d + 2 * c], axis=1))
    np.testing.assert_allclose(found[2:], expected[1:], rtol=0.0, atol=1e-10)


def test_below_the_rank_tolerance_two_terms_count_as_one() -> None:
    a, b, c = random_columns(3)
    found = residuals(np.stack([a, a + 1e-14 * b, c], axis=1)).nu
    assert found[:2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(found[2], reference_novelty(np.stack([a, c], axis=1))[1], atol=1e-10)


def test_more_terms_than_rows_are_all_dependent() -> None:
    assert residuals(np.random.default_rng(0).normal(size=(5, 8))).nu.tolist() == [0.0] * 8


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-100, 1.0, 1e100, 1e200, 1e300])
def test_sizes_near_the_ends_of_the_floats_do_not_matter(scale: float) -> None:
    Psi = np.stack(random_columns(3), axis=1)
    expected = reference_novelty(Psi)
    one = Psi * np.array([scale, 1.0, 1.0])
    np.testing.assert_allclose(residuals(one).nu, expected, rtol=1e-10)
    np.testing.assert_allclose(residuals(one).lengths, np.linalg.norm(Psi, axis=0) * [scale, 1.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(residuals(Psi * scale).nu, expected, rtol=1e-10)
    np.testing.assert_allclose(
        conditional_residuals(one[:, :2], one[:, 2:])[0], conditional_residuals(Psi[:, :2], Psi[:, 2:])[0], rtol=1e-10
    )


def test_a_null_term_is_zero_says_so_and_does_not_disturb_the_others() -> None:
    a, b = random_columns(2)
    found = residuals(np.stack([a, 0 * a, b], axis=1))
    assert found.is_null.tolist() == [False, True, False]
    assert found.nu[1] == 0.0
    np.testing.assert_allclose(found.nu[[0, 2]], reference_novelty(np.stack([a, b], axis=1)), atol=1e-12)
    assert found.reconstruction(1).tolist() == [0.0, 0.0, 0.0]
    assert residuals(np.zeros((40, 2))).rank == 0


def test_no_terms_at_all() -> None:
    assert residuals(np.zeros((40, 0))).nu.shape == (0,)


@given(matrices(min_terms=2))
def test_the_fast_path_agrees_with_the_factorisation_where_it_is_taken(Psi: np.ndarray) -> None:
    accurate = residuals_of_factor(factor(unit_columns(Psi)[0])).nu
    fast = residuals(Psi).nu
    if (fast > GRAM_IS_ENOUGH).all():
        np.testing.assert_allclose(fast, accurate, rtol=1e-11)


@given(matrices(), st.integers(1, 39))
def test_factors_of_row_blocks_combine(Psi: np.ndarray, cut: int) -> None:
    R = combine(factor(Psi[:cut]), factor(Psi[cut:]))
    assert R.shape[0] <= Psi.shape[1]
    np.testing.assert_allclose(residuals_of_factor(R).nu, residuals(Psi).nu, rtol=1e-7, atol=1e-12)


@given(matrices(min_terms=2))
def test_the_reconstruction_leaves_the_residual(Psi: np.ndarray) -> None:
    found = residuals(Psi)
    U = Psi / np.linalg.norm(Psi, axis=0)
    for i in range(U.shape[1]):
        weights = found.reconstruction(i)
        assert weights[i] == 0.0
        np.testing.assert_allclose(np.linalg.norm(U[:, i] - U @ weights), found.nu[i], rtol=1e-6, atol=1e-10)


@given(matrices(min_terms=2))
def test_conditional_novelty_is_the_novelty_of_the_last_term(Psi: np.ndarray) -> None:
    np.testing.assert_allclose(
        conditional_residuals(Psi[:, :-1], Psi[:, -1:])[0], residuals(Psi).nu[-1], rtol=1e-7, atol=1e-11
    )


def test_conditional_novelty_of_terms_in_the_span_is_zero() -> None:
    a, b = random_columns(2)
    reference = np.stack([a, b, a - b], axis=1)
    assert conditional_residuals(reference, np.stack([3 * a + b, 0 * a], axis=1)).tolist() == [0.0, 0.0]
    assert conditional_residuals(np.zeros((120, 0)), a[:, None]).tolist() == [1.0]
    assert residuals(reference).rank == 2


def test_the_threshold_is_one_over_the_square_root_of_ten() -> None:
    assert pytest.approx(0.1, rel=1e-15) == TAU_ID**2
