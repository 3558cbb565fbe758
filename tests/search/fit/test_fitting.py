"""Fits: statuses instead of exceptions, the same result for any company and any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels import compile_programs, numpy_kernel
from sobolev_novelty.search.fit.fitting import FitStatus, fit, fit_terms

of = Expression.of
X = np.random.default_rng(0).uniform(0.5, 3.0, size=(400, 2))


def forms(rate: float, shift: float) -> list[Expression]:
    return [of("exp", of("mul", rate, "x0")), of("log", of("add", "x1", shift)), of(1.0)]


FREE = [True, True, False]
TARGET = 1.5 * np.exp(-0.8 * X[:, 0]) - 0.6 * np.log(X[:, 1] + 0.3) + 0.2
NOISY = TARGET + 0.01 * np.random.default_rng(1).normal(size=400)


def test_an_exact_form_is_recovered() -> None:
    result = fit_terms([forms(-0.5, 1.0)], X, TARGET, free=[FREE], n_iterations=40)[0]
    assert result.status is FitStatus.CONVERGED and result.loss < 1e-18
    np.testing.assert_allclose(result.coefficients, [1.5, -0.6, 0.2], atol=1e-6)
    np.testing.assert_allclose([t.constants[-1] for t in result.terms], [-0.8, 0.3, 1.0], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_compiled_fit_equals_the_numpy_fit(weighted: bool) -> None:
    rng = np.random.default_rng(2)
    terms = [t for _ in range(30) for t in forms(float(rng.normal(-0.6, 0.2)), float(rng.uniform(0.2, 1.5)))]
    programs = compile_programs(terms, ["x0", "x1"])
    offsets, free = np.arange(0, 91, 3), np.array(FREE * 30)
    weights = rng.uniform(0.1, 2.0, size=400) if weighted else None
    ours = kernels.fit(programs, offsets, free, X.T, NOISY, weights, n_iterations=30)
    reference = numpy_kernel.fit(programs, offsets, free, np.ascontiguousarray(X.T), NOISY, weights, n_iterations=30)
    np.testing.assert_allclose(ours.loss, reference.loss, rtol=1e-8)
    assert (ours.status == FitStatus.CONVERGED).mean() > 0.8


def test_linear_coefficients_alone_are_least_squares() -> None:
    terms = [of("x0"), of("x1"), of("sin", "x0"), of(1.0)]
    result = fit_terms([terms], X, NOISY, n_iterations=0)[0]
    Phi = np.column_stack([X[:, 0], X[:, 1], np.sin(X[:, 0]), np.ones(400)])
    expected, loss = np.linalg.lstsq(Phi, NOISY, rcond=None)[:2]
    np.testing.assert_allclose(result.coefficients, expected, rtol=1e-10)
    np.testing.assert_allclose(result.loss, loss[0], rtol=1e-12)


def test_nearly_dependent_terms_are_fitted_through_their_columns() -> None:
    """x and x + 1e-6 sin x: the inner products alone would lose the difference."""
    terms = [of("x0"), of("add", "x0", of("mul", 1e-6, of("sin", "x1"))), of(1.0)]
    result = fit_terms([terms], X, np.sin(X[:, 1]), n_iterations=0)[0]
    assert result.status is FitStatus.CONVERGED and result.loss < 1e-12


def test_dependent_terms_get_zero_and_the_status_says_so() -> None:
    result = fit_terms([[of("x0"), of("mul", 2.0, "x0"), of("x1")]], X, X[:, 0] + X[:, 1], free=[[False]])[0]
    assert result.status is FitStatus.SINGULAR and result.coefficients[1] == 0.0
    np.testing.assert_allclose(result.coefficients[[0, 2]], 1.0)


def test_a_constant_that_a_coefficient_absorbs_stays_where_it_is() -> None:
    result = fit(of("mul", 2.0, "x0"), X, 3.0 * X[:, 0] + np.sin(X[:, 1]))
    assert result.terms[0].constants == (2.0,) and result.status is FitStatus.CONVERGED


def test_a_form_without_finite_values_has_a_status() -> None:
    result = fit(of("log", of("sub", "x0", 1.0)), X, NOISY)
    assert result.status is FitStatus.NON_FINITE and result.loss == np.inf
    assert result.terms[0] == of("log", of("sub", "x0", 1.0)) and result.coefficients[0] == 0.0


def test_a_candidate_without_terms_explains_nothing() -> None:
    empty, full = fit_terms([[], [of("x0")]], X, NOISY)
    np.testing.assert_allclose(empty.loss, NOISY @ NOISY)
    assert full.loss < empty.loss


def test_more_starts_are_never_worse_and_escape_a_bad_one() -> None:
    wave = [of("sin", of("mul", 0.3, "x0")), of(1.0)]
    y = np.sin(6.0 * X[:, 0])
    one = fit_terms([wave], X, y, free=[[True, False]], n_iterations=30)[0]
    many = fit_terms([wave], X, y, free=[[True, False]], n_iterations=30, n_starts=60, rng=np.random.default_rng(0))[0]
    assert many.loss <= one.loss and many.loss < 1e-10 < one.loss


def test_a_result_depends_neither_on_threads_nor_on_company() -> None:
    population = [forms(-0.1 * k, 0.5) for k in range(1, 7)]
    options = {"free": [FREE] * 6, "n_starts": 3}
    one = fit_terms(population, X, NOISY, rng=np.random.default_rng(5), **options)
    two = fit_terms(population, X, NOISY, rng=np.random.default_rng(5), n_threads=2, **options)
    assert [(f.loss, f.terms) for f in one] == [(f.loss, f.terms) for f in two]
    first = fit_terms(population[:3], X, NOISY, rng=np.random.default_rng(5), free=[FREE] * 3, n_starts=3)
    assert [f.loss for f in first] == [f.loss for f in one[:3]]


def test_misuse_is_named() -> None:
    with pytest.raises(ParameterError, match="'rng' is needed"):
        fit_terms([forms(1.0, 1.0)], X, NOISY, n_starts=2)
    with pytest.raises(ParameterError, match="'n_starts' must be at least 1"):
        fit_terms([forms(1.0, 1.0)], X, NOISY, n_starts=0)
    with pytest.raises(DataError, match="'free' has 1 entries for candidate 0, which has 3"):
        fit_terms([forms(1.0, 1.0)], X, NOISY, free=[[True]])
    with pytest.raises(DataError, match="'free' must have one entry per candidate"):
        fit_terms([forms(1.0, 1.0)], X, NOISY, free=[])
