"""How well an equation gives a target, against scikit-learn and by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.report import source as report_source
from sobolev_novelty.report.quality import MAX_POINTS, N_FOLDS

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (400, 2))
Y = 2.0 * X[:, 0] + 3.0 / X[:, 1] + RNG.normal(0.0, 0.2, 400)


def test_r2_is_that_of_the_equation_as_given() -> None:
    from sklearn.metrics import r2_score

    found = sn.novelty("2*x0 + 3/x1 + 0.5", X, Y).fit_quality
    assert found is not None
    prediction = 2.0 * X[:, 0] + 3.0 / X[:, 1] + 0.5
    np.testing.assert_allclose(found.r2, r2_score(Y, prediction), rtol=1e-12)
    np.testing.assert_allclose(found.rmse, np.sqrt(np.mean((Y - prediction) ** 2)), rtol=1e-12)
    np.testing.assert_allclose(found.residual_quantiles[2], np.median(Y - prediction), rtol=1e-12)
    assert found.n_rows == 400


def test_refitted_and_cross_validated_r2_are_those_of_linear_regression() -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import r2_score

    found = sn.novelty("7*x0 + 1/x1", X, Y).fit_quality
    assert found is not None
    features = np.column_stack([X[:, 0], 1.0 / X[:, 1]])
    np.testing.assert_allclose(found.refitted_r2, LinearRegression().fit(features, Y).score(features, Y), rtol=1e-10)
    order, held = np.random.default_rng(0).permutation(400), np.empty(400)
    for k in range(N_FOLDS):
        test = order[k::N_FOLDS]
        train = np.setdiff1d(order, test)
        held[test] = LinearRegression().fit(features[train], Y[train]).predict(features[test])
    np.testing.assert_allclose(found.cv_r2, r2_score(Y, held), rtol=1e-10)
    assert found.r2 < found.cv_r2 < found.refitted_r2


def test_weights_count_in_r2() -> None:
    from sklearn.metrics import r2_score

    weights = RNG.uniform(0.0, 1.0, 400)
    found = sn.novelty("2*x0 + 3/x1", X, Y, sample_weight=weights).fit_quality
    assert found is not None
    prediction = 2.0 * X[:, 0] + 3.0 / X[:, 1]
    np.testing.assert_allclose(found.r2, r2_score(Y, prediction, sample_weight=weights), rtol=1e-12)


def test_effects_are_in_the_unit_of_the_target() -> None:
    found = sn.novelty("2*x0 + 3/x1 + 5", X, Y).fit_quality
    assert found is not None
    low, middle, high = np.quantile(2.0 * X[:, 0], (0.05, 0.5, 0.95))
    np.testing.assert_allclose(found.effects[0], [low - middle, high - middle], rtol=1e-12)
    np.testing.assert_array_equal(found.effects[2], [0.0, 0.0])  # an intercept moves nothing


def test_there_is_no_fit_without_a_target_and_none_on_no_rows() -> None:
    assert sn.novelty("x0", X).fit_quality is None
    assert sn.novelty("x0", X).to_dict()["fit"] is None
    assert sn.novelty("log(-x0)", X, Y).fit_quality is None


def test_json_has_the_numbers_and_the_page_some_points() -> None:
    rows = RNG.uniform(0.5, 2.0, (1000, 1))
    report = sn.novelty("x0", rows, rows[:, 0])
    stored = json.loads(report.to_json())["fit"]
    assert stored["r2"] == 1.0 and "points" not in stored
    assert report.fit_quality is not None and report.fit_quality.points.shape == (2, MAX_POINTS)


def test_a_prediction_that_overflows_gives_no_numbers_but_a_report() -> None:
    report = sn.novelty([sn.Term(1e200, sn.parse("x0")), sn.Term(-1e200, sn.parse("1/x1"))], X, Y)
    assert report.to_dict()["fit"]["r2"] is None
    assert report.to_html() and str(report)


def test_rows_are_said_to_be_used_only_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "All 400 rows were used." in str(sn.novelty("2*x0 + 3/x1", X, Y))
    monkeypatch.setattr("sobolev_novelty.report.reporting.MAX_KEPT_BYTES", 0)
    monkeypatch.setattr(report_source, "MAX_VERDICT_ROWS", 100)
    report = sn.novelty("2*x0 + 3/x1", X, Y)
    said = "All 400 rows were used; the words come from 100 of them, evenly spaced."
    assert said in " ".join(str(report).split()) and said in report.to_html()
    assert report.to_dict()["n_judged"] == 100 and report.to_dict()["fit"]["n_rows"] == 100
