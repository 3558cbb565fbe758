"""Novelties of populations: the compiled kernel, the NumPy definition and m separate least-squares solves agree."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Geometry, Status, second_order_pairs
from sobolev_novelty.core.linear.projection import residuals
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.kernels import compile_programs, native_kernel, numpy_novelty
from sobolev_novelty.kernels.program import unique

NAMES = ["x0", "x1", "x2", "x3"]
of = Expression.of


def random_term(rng: np.random.Generator, size: int) -> list[object]:
    if size <= 1:
        return [float(rng.normal())] if rng.random() < 0.3 else [NAMES[rng.integers(4)]]
    if size == 2 or rng.random() < 0.3:
        return [OPERATORS[rng.choice(["sin", "cos", "exp", "square", "log"])], *random_term(rng, size - 1)]
    left = int(rng.integers(1, size - 1))
    op = OPERATORS[rng.choice(["add", "sub", "mul", "div"])]
    return [op, *random_term(rng, left), *random_term(rng, size - 1 - left)]


def random_population(seed: int, n_candidates: int, n_terms: int) -> list[Expression]:
    rng = np.random.default_rng(seed)
    return [Expression(random_term(rng, int(rng.integers(1, 9)))) for _ in range(n_candidates * n_terms)]


def by_least_squares(Psi: np.ndarray) -> np.ndarray:
    """Eq. 2, term by term: the reference, never the implementation."""
    unit = Psi / np.linalg.norm(Psi, axis=0)
    nu = []
    for i in range(Psi.shape[1]):
        others = np.delete(unit, i, axis=1)
        weights = np.linalg.lstsq(others, unit[:, i], rcond=None)[0]
        nu.append(np.linalg.norm(unit[:, i] - others @ weights))
    return np.array(nu)


def signature_matrix(terms: list[Expression], X: np.ndarray, order: int) -> np.ndarray:
    jets = kernels.derivatives(compile_programs(terms, NAMES), X, order)
    finite = np.isfinite(jets).all(axis=(0, 1))
    factors = Geometry(order).block_factors(X.std(axis=1))
    return (jets[:, :, finite] * factors[:, None] / np.sqrt(finite.sum())).reshape(len(jets), -1).T


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("n_samples", [40, 1000, 5003])
def test_novelties_of_a_population_equal_the_definition(
    order: int, n_samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(1).uniform(-1.5, 3.0, size=(4, n_samples))
    programs = compile_programs(random_population(order, 40, 6), NAMES)
    offsets = np.arange(0, 241, 6)
    ours = kernels.novelties(programs, offsets, X, geometry=Geometry(order))
    # Both read the same derivatives: a formula like sin(exp(exp(x))) amplifies the last digit beyond comparison.
    monkeypatch.setattr(numpy_novelty, "derivatives", kernels.derivatives)
    distinct, members = unique(programs)
    factors = Geometry(order).block_factors(X.std(axis=1))
    reference = numpy_novelty.novelties(distinct, members, offsets, X, factors, Geometry(order), False)
    np.testing.assert_array_equal(ours.status, reference.status)
    np.testing.assert_array_equal(ours.rows, reference.rows)
    assert (ours.status == Status.OK.code).sum() >= 10
    np.testing.assert_allclose(ours.nu, reference.nu, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(ours.lengths, reference.lengths, rtol=1e-11)


def test_novelties_equal_separate_least_squares() -> None:
    X = np.random.default_rng(2).normal(size=(4, 700))
    terms = [
        of("sin", "x0"),
        of("x0"),
        of("pow", "x0", 3.0),
        of("mul", "x0", "x1"),
        of("cos", "x2"),
        of(1.0),
        of("exp", "x3"),
    ]
    ours = kernels.novelties(compile_programs(terms, NAMES), [0, len(terms)], X)
    np.testing.assert_allclose(ours.nu, by_least_squares(signature_matrix(terms, X, 1)), rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(ours.lengths, np.linalg.norm(signature_matrix(terms, X, 1), axis=0), rtol=1e-12)


@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-4, 1e-6, 1e-9])
def test_small_novelties_keep_their_digits(distance: float) -> None:
    """x and x + ε sin x: the Gram matrix cannot tell them apart below 1e-8, the triangular factor can."""
    X = np.random.default_rng(3).uniform(-2.0, 2.0, size=(4, 900))
    near = of("add", "x0", of("mul", distance, of("sin", "x1")))
    terms = [of("x0"), near, of("cos", "x2")]
    ours = kernels.novelties(compile_programs(terms, NAMES), [0, 3], X)
    expected = by_least_squares(signature_matrix(terms, X, 1))
    np.testing.assert_allclose(ours.nu, expected, rtol=1e-6, atol=1e-14)


def test_dependent_terms_have_novelty_zero_and_leave_the_others_alone() -> None:
    X = np.random.default_rng(4).normal(size=(4, 300))
    terms = [of("x0"), of("mul", 3.0, "x0"), of("sin", "x1"), of("add", "x0", of("sin", "x1")), of("cos", "x2")]
    nu = kernels.novelties(compile_programs(terms, NAMES), [0, 5], X).nu
    np.testing.assert_array_equal(nu[:4], 0.0)
    span = by_least_squares(signature_matrix([terms[0], terms[2], terms[4]], X, 1))
    np.testing.assert_allclose(nu[4], span[2], atol=1e-10)


def test_a_null_term_has_novelty_zero_and_is_no_part_of_the_span() -> None:
    X = np.random.default_rng(5).normal(size=(4, 300))
    terms = [of("x0"), of("mul", 0.0, "x1"), of("sin", "x0")]
    ours = kernels.novelties(compile_programs(terms, NAMES), [0, 3], X)
    assert ours.nu[1] == 0.0 and ours.lengths[1] == 0.0
    np.testing.assert_allclose(
        ours.nu[[0, 2]], by_least_squares(signature_matrix([terms[0], terms[2]], X, 1)), atol=1e-12
    )


def test_rows_that_are_not_finite_are_left_out_for_all_terms() -> None:
    X = np.random.default_rng(6).normal(size=(4, 400))
    terms = [of("log", "x0"), of("x1"), of("div", 1.0, "x2")]
    X[2, ::7] = 0.0
    ours = kernels.novelties(compile_programs(terms, NAMES), [0, 3], X)
    kept = (X[0] > 0.0) & (X[2] != 0.0)
    assert ours.rows[0] == kept.sum()
    scales = X.std(axis=1)
    again = kernels.novelties(compile_programs(terms, NAMES), [0, 3], X[:, kept], scales=scales)
    np.testing.assert_allclose(ours.nu, again.nu, rtol=0.0, atol=1e-12)


def test_too_few_rows_and_no_terms_have_a_status_and_no_number() -> None:
    X = np.random.default_rng(7).normal(size=(4, 50))
    X[0, 31:] = np.nan
    ours = kernels.novelties(compile_programs([of("x0"), of("x1")], NAMES), [0, 1, 1, 2], X, scales=np.ones(4))
    assert [ours.status_of(c) for c in range(3)] == [Status.TOO_FEW_ROWS, Status.NO_TERMS, Status.OK]
    assert np.isnan(ours.nu[0]) and ours.nu[1] == 1.0 and ours.rows.tolist() == [31, 50, 50]
    assert "32" in Status.TOO_FEW_ROWS.sentence


@pytest.mark.parametrize("factor", [1e-220, 1e-100, 1e100, 1e220])
def test_novelty_does_not_change_when_a_term_is_scaled(factor: float) -> None:
    X = np.random.default_rng(8).normal(size=(4, 300))
    terms = [of("x0"), of("sin", "x0"), of("mul", "x1", "x2")]
    plain = kernels.novelties(compile_programs(terms, NAMES), [0, 3], X)
    scaled = kernels.novelties(compile_programs([terms[0], of("mul", factor, terms[1]), terms[2]], NAMES), [0, 3], X)
    np.testing.assert_allclose(scaled.nu, plain.nu, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(scaled.lengths[1], factor * plain.lengths[1], rtol=1e-11)


def test_shared_terms_change_nothing() -> None:
    X = np.random.default_rng(9).uniform(-1.0, 2.0, size=(4, 777))
    pool = random_population(3, 12, 1)
    members = np.random.default_rng(0).integers(len(pool), size=(30, 4))
    together = kernels.novelties(compile_programs(pool, NAMES), np.arange(0, 121, 4), X, members=members.ravel())
    for c, own in enumerate(members):
        alone = kernels.novelties(compile_programs([pool[i] for i in own], NAMES), [0, 4], X)
        np.testing.assert_allclose(together.nu[4 * c : 4 * c + 4], alone.nu, rtol=0.0, atol=1e-10)


def test_weights_and_order_enter_as_in_equation_1() -> None:
    X = np.random.default_rng(10).normal(size=(4, 256))
    terms = [of("square", "x0"), of("mul", "x0", "x1"), of("exp", "x2")]
    weights, scales = (0.7, 2.0, 0.3), np.array([1.0, 2.0, 0.5, 1.0])
    ours = kernels.novelties(compile_programs(terms, NAMES), [0, 3], X, geometry=Geometry(2, weights), scales=scales)
    jets = kernels.derivatives(compile_programs(terms, NAMES), X, 2)
    rows = [np.sqrt(weights[0] / 256) * jets[:, 0]]
    rows += [np.sqrt(weights[1] / (256 * 4)) * scales[j] * jets[:, 1 + j] for j in range(4)]
    for r, (j, k) in enumerate(second_order_pairs(4)):
        double = np.sqrt(weights[2] / (256 * 16)) * scales[j] * scales[k] * jets[:, 5 + r]
        rows += [double] if j == k else [double, double]
    expected = residuals(np.concatenate(rows, axis=1).T)
    np.testing.assert_allclose(ours.nu, expected.nu, atol=1e-12)
    np.testing.assert_allclose(ours.lengths, expected.lengths, rtol=1e-12)


def test_the_numpy_kernel_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(11).normal(size=(4, 200))
    programs = compile_programs([of("x0"), of("sin", "x0"), of("x1")], NAMES)
    ours = kernels.novelties(programs, [0, 2, 3], X)
    monkeypatch.setattr(kernels, "native", lambda: None)
    np.testing.assert_allclose(kernels.novelties(programs, [0, 2, 3], X).nu, ours.nu, atol=1e-12)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_every_instruction_set_gives_the_same(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(12).normal(size=(4, 333))
    programs = compile_programs(random_population(5, 8, 9), NAMES)
    best = kernels.novelties(programs, np.arange(0, 73, 9), X)
    monkeypatch.setattr(native_kernel, "level", lambda: level)
    np.testing.assert_allclose(kernels.novelties(programs, np.arange(0, 73, 9), X).nu, best.nu, atol=1e-8)
