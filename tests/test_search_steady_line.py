"""The straight line on few rows: shrunk as far as rows left out ask for it."""

from __future__ import annotations

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.data import FloatArray
from sobolev_novelty.errors import ExtrapolationWarning
from sobolev_novelty.search import steady_line as module
from sobolev_novelty.search.choice import Contest, steady
from sobolev_novelty.search.engine import Candidate
from sobolev_novelty.search.steady_line import held_out_squares, least_squares_line, steadied, steady_line
from sobolev_novelty.search.validation import Rows, dealt_folds

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 12)) * np.geomspace(1e-3, 1e3, 12)
Y = X[:, 0] / 1e-3 - X[:, 11] / 1e3 + 1.5 * RNG.normal(size=40)
NAMES = tuple(f"x{k}" for k in range(12))
LINE = sn.parse(" + ".join(f"{c!r}*{name}" for c, name in zip([1.0] * 12, NAMES, strict=True)) + " + 1")


def ridge(X: FloatArray, y: FloatArray, w: FloatArray, penalty: float, centre: FloatArray, scale: FloatArray) -> object:
    """Weighted ridge regression with a free intercept, by its normal equations."""
    A = np.column_stack([np.ones(len(y)), (X - centre) / scale])
    lhs = A.T @ (w[:, None] * A) + penalty * np.diag([0.0, *np.ones(X.shape[1])])
    b = np.linalg.solve(lhs, A.T @ (w * y))
    return lambda Z: np.column_stack([np.ones(len(Z)), (Z - centre) / scale]) @ b


@pytest.mark.parametrize("weights", [None, np.random.default_rng(1).uniform(0.2, 3.0, 40)])
def test_the_penalty_is_the_one_with_the_smallest_errors_on_rows_left_out(weights: FloatArray | None) -> None:
    w = np.ones(40) if weights is None else weights / weights.mean()
    centre = np.average(X, axis=0, weights=w)
    scale = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=w))
    errors, lines = [], []
    for penalty in (0.0, *(40 * module.PENALTIES)):
        left_out = []
        for i in range(40):
            kept = np.arange(40) != i
            line = ridge(X[kept], Y[kept], w[kept], penalty, centre, scale)
            left_out.append(w[i] * (line(X[i : i + 1])[0] - Y[i]) ** 2)  # type: ignore[operator]
        errors.append(np.mean(left_out))
        lines.append(ridge(X, Y, w, penalty, centre, scale))
    best = int(np.argmin(errors))
    assert best > 0 and errors[best] < (1.0 - module.REQUIRED_GAIN) * errors[0]
    found = steady_line(X, Y, weights)
    assert found is not None
    np.testing.assert_allclose(found.at(X), lines[best](X), rtol=1e-9)  # type: ignore[operator]


def test_a_line_that_the_rows_determine_stays_that_of_least_squares() -> None:
    assert steady_line(X, X @ np.arange(12.0)) is None
    x = X[:, :2] / X[:, :2].std(axis=0)
    assert steady_line(x, x[:, 0] - x[:, 1] + 0.1 * Y) is None


@pytest.mark.parametrize("factors", [np.geomspace(1e4, 1e-5, 12), np.geomspace(1e160, 1e-160, 12)])
def test_units_of_the_columns_do_not_matter(factors: FloatArray) -> None:
    one, other = steady_line(X, Y), steady_line(X * factors, Y)
    assert one is not None and other is not None
    np.testing.assert_allclose(one.slopes, other.slopes * factors, rtol=1e-8)


def test_columns_that_repeat_each_other_or_stand_still_do_no_harm() -> None:
    wide = np.column_stack([X, X[:, 0], np.full(40, 7.0)])
    found = steady_line(wide, Y)
    assert found is not None and np.isfinite(found.slopes).all() and found.slopes[-1] == 0.0


def test_held_out_errors_are_those_of_lines_fitted_without_the_row() -> None:
    rows = Rows(X, Y, None, NAMES)
    folds = dealt_folds(rows, 5, 2)
    assert len(folds) == 10
    expected = np.zeros(40)
    for fold in folds:
        kept = np.setdiff1d(np.arange(40), fold)
        line = steady_line(X[kept], Y[kept]) or least_squares_line(X[kept], Y[kept], None)
        expected[fold] += 0.5 * (line.at(X[fold]) - Y[fold]) ** 2
    np.testing.assert_allclose(held_out_squares(LINE, rows, folds), expected)


def test_searched_equations_have_to_beat_the_steady_line() -> None:
    rows = Rows(X, Y, None, NAMES)
    plain = Candidate(LINE, LINE, 0.5, 0.5)
    contest = Contest.of([plain], rows)
    np.testing.assert_allclose(contest.squares, held_out_squares(LINE, rows, dealt_folds(rows, n_repeats=5)))


def test_only_lines_of_several_columns_on_few_rows_are_steadied() -> None:
    few = Rows(X, Y, None, NAMES)
    assert steady(LINE, few) == steadied(LINE, few) != LINE
    many = Rows(np.tile(X, (8, 1)), np.tile(Y, 8), None, NAMES)
    assert steady(LINE, many) == LINE
    for other in ("2*x0 + 1", "x0*x1 + 1", "3"):
        assert steady(sn.parse(other), few) == sn.parse(other)


def test_a_small_wide_table_without_a_law_gets_the_steady_line() -> None:
    rng = np.random.default_rng(3)
    slopes = rng.normal(size=12)
    table = rng.normal(size=(640, 12))
    target = table @ slopes + 4.0 * rng.normal(size=640)
    model = sn.SymbolicRegressor(budget=sn.Budget(300), max_complexity=60, random_state=0, verbose=False)
    model.fit(table[:40], target[:40])
    least_squares = least_squares_line(table[:40], target[:40], None).at(table[40:])
    assert len(model.expression_.variables) == 12
    with pytest.warns(ExtrapolationWarning, match="x0"):
        predicted = model.predict(table[40:])
    assert np.mean((predicted - target[40:]) ** 2) < np.mean((least_squares - target[40:]) ** 2)
