"""Least squares of terms: costs, errors and collinearity against separate solves."""

from __future__ import annotations

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.linear.least_squares import collinearity, fit_columns


def columns_and_target(seed: int, n: int = 90, m: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3, 3, (m, 1)) + rng.normal(size=(m, 1))
    columns[1] = columns[0] / columns[0].std() + 0.05 * columns[1] / columns[1].std()
    y = rng.normal(size=m) @ (columns / columns.std(axis=1, keepdims=True)) + rng.normal(size=n)
    return columns, y


def rss_of(columns: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    A = np.column_stack([np.ones(len(y)), *columns]) * np.sqrt(w)[:, None]
    target = y * np.sqrt(w)
    A = A / np.linalg.norm(A, axis=0)
    return float(np.sum((target - A @ np.linalg.lstsq(A, target, rcond=None)[0]) ** 2))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_weighted", [False, True])
def test_costs_of_leaving_out_one_or_two_terms_are_those_of_refitting(seed: int, is_weighted: bool) -> None:
    columns, y = columns_and_target(seed)
    w = np.random.default_rng(seed).uniform(0.1, 2.0, len(y)) if is_weighted else np.ones(len(y))
    found = fit_columns(columns, y, w if is_weighted else None)
    rss = rss_of(columns, y, w)
    np.testing.assert_allclose(found.rss, rss, rtol=1e-10)
    for i in range(4):
        np.testing.assert_allclose(found.drop_one[i], rss_of(np.delete(columns, i, 0), y, w) - rss, rtol=1e-7)
        for j in range(i):
            np.testing.assert_allclose(
                found.drop_pairs(i, np.array([j]))[0], rss_of(np.delete(columns, [i, j], 0), y, w) - rss, rtol=1e-7
            )


def test_errors_are_those_of_the_textbook() -> None:
    columns, y = columns_and_target(7)
    A = np.column_stack([np.ones(len(y)), *columns])
    b = np.linalg.solve(A.T @ A, A.T @ y)
    variance = float(np.sum((y - A @ b) ** 2)) / (len(y) - 5)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))
    found = fit_columns(columns, y)
    np.testing.assert_allclose(found.coefficients, b[1:], rtol=1e-6)
    np.testing.assert_allclose(found.standard_errors, errors[1:], rtol=1e-6)
    np.testing.assert_allclose(found.t, np.abs(b / errors)[1:], rtol=1e-6)


def test_dependent_and_constant_terms_cost_nothing_and_are_not_determined() -> None:
    x = np.linspace(0.0, 1.0, 60)
    found = fit_columns(np.array([x, 2.0 * x, x**2, np.full(60, 3.0)]), 5.0 * x + x**2)
    assert found.is_dependent.tolist() == [True, True, False, True]
    assert found.drop_one[[0, 1, 3]].tolist() == [0.0, 0.0, 0.0] and found.drop_one[2] > 0.0
    assert np.isinf(found.standard_errors[[0, 1, 3]]).all() and np.isinf(found.variance_inflation[0])
    assert found.drop_pairs(0, np.array([1]))[0] > 0.1


def test_condition_indices_and_proportions_add_up() -> None:
    columns, _ = columns_and_target(3)
    found = collinearity(columns)
    np.testing.assert_allclose(found.proportions.sum(axis=0), 1.0)
    assert found.indices[0] == 1.0 and (np.diff(found.indices) >= 0.0).all()


def test_more_terms_than_rows_are_all_dependent() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(50, 40))
    found = fit_columns(columns, columns[0])
    assert found.is_dependent.all()
    assert found.rss < 1e-20 * found.tss
    np.testing.assert_array_equal(found.drop_one, 0.0)
    np.testing.assert_array_equal(found.variance_inflation, np.inf)
    seen = collinearity(columns)
    assert seen.indices.shape == (51,) and np.isinf(seen.indices[-1])
    np.testing.assert_allclose(seen.proportions.sum(axis=0), 1.0)


def test_a_report_on_more_terms_than_rows_is_printed_and_drawn() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0.5, 1.5, size=(40, 2)), rng.normal(size=40)
    text = " + ".join(f"sin({k + 1}*x{k % 2})" for k in range(50))
    for report in (sn.novelty(text, X), sn.novelty(text, X, y)):
        assert len(report) == 50
        assert "50" in str(report) and "<html" in report.to_html()
        assert len(report.table) == len(report.statistics) == 50
