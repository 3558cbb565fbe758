"""Intervals of constants: against textbook formulas, on curved models, and where nothing is determined."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from sobolev_novelty.algebra.terms import Term, additive_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import DataError, ParameterError

RNG = np.random.default_rng(0)
X_LINE = np.linspace(0.0, 3.0, 120)
Y_LINE = 3.0 * X_LINE + 2.0 + 0.2 * RNG.normal(size=120)


def test_a_linear_equation_has_the_t_intervals_of_the_textbook() -> None:
    from scipy import stats

    found = sn.intervals("3*x0 + 2", X_LINE, Y_LINE)
    fit = stats.linregress(X_LINE, Y_LINE)
    t = stats.t.ppf(0.975, len(X_LINE) - 2)
    np.testing.assert_allclose(found[0].estimate, fit.slope, rtol=1e-10)
    np.testing.assert_allclose([found[0].low, found[0].high], fit.slope + t * fit.stderr * np.array([-1, 1]), rtol=1e-9)
    wanted = fit.intercept + t * fit.intercept_stderr * np.array([-1, 1])
    np.testing.assert_allclose([found[1].low, found[1].high], wanted, rtol=1e-9)


def test_sigma_gives_normal_intervals_whatever_the_residuals_are() -> None:
    found = sn.intervals("3*x0 + 2", X_LINE, Y_LINE, sigma=0.7)
    A = np.column_stack([X_LINE, np.ones(120)])
    errors = 0.7 * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    np.testing.assert_allclose([item.half_width for item in found], 1.959963984540054 * errors, rtol=1e-9)
    each = sn.intervals("3*x0 + 2", X_LINE, Y_LINE, sigma=np.full(120, 0.7))
    pd.testing.assert_frame_equal(each.table, found.table)


def test_a_row_of_weight_zero_does_not_count_and_a_common_factor_changes_nothing() -> None:
    weights = np.r_[np.ones(100), np.zeros(20)]
    weighted = sn.intervals("3*x0 + 2", X_LINE, Y_LINE, sample_weight=weights)
    without = sn.intervals("3*x0 + 2", X_LINE[:100], Y_LINE[:100])
    scaled = sn.intervals("3*x0 + 2", X_LINE, Y_LINE, sample_weight=7.0 * weights)
    np.testing.assert_allclose(weighted.table[["low", "high"]], without.table[["low", "high"]], rtol=1e-9)
    np.testing.assert_allclose(scaled.table[["low", "high"]], without.table[["low", "high"]], rtol=1e-9)


def refitted_loss(name: str, value: float, x: np.ndarray, y: np.ndarray) -> float:
    """The best loss of a*exp(-k*x) + c with one constant held, by a dense grid over the rate."""
    best = math.inf
    for k in [value] if name == "k" else np.linspace(0.3, 1.2, 4001):
        columns = {"a": np.exp(-k * x), "c": np.ones_like(x)}
        held = value * columns.pop(name) if name in columns else 0.0
        A = np.column_stack(list(columns.values()))
        r = y - held - A @ np.linalg.lstsq(A, y - held, rcond=None)[0]
        best = min(best, float(r @ r))
    return best


def test_at_both_ends_the_loss_with_the_others_refitted_is_at_the_threshold() -> None:
    from scipy import stats

    rng = np.random.default_rng(3)
    x = np.linspace(0.0, 4.0, 60)
    y = 2.0 * np.exp(-0.7 * x) + 1.0 + 0.15 * rng.normal(size=60)
    found = sn.intervals("2*exp(-0.7*x0) + 1", x, y)
    least = refitted_loss("k", -found[1].estimate, x, y)
    threshold = least * (1.0 + stats.t.ppf(0.975, 57) ** 2 / 57)
    for item, name in zip(found, ("a", "k", "c"), strict=True):
        for end in (item.low, item.high):
            rise = refitted_loss(name, -end if name == "k" else end, x, y) - least
            np.testing.assert_allclose(rise, threshold - least, rtol=0.03)
    assert found[2].high - found[2].estimate < 0.8 * (found[2].estimate - found[2].low)  # not symmetric


@pytest.mark.parametrize(
    ("equation", "verdicts"),
    [
        ("2*sin(x0)*(3*x0 + 6)", ["flat", "flat", "flat"]),
        ("2*x0 + 3*(x0 + x0) + 1", ["flat", "flat", "determined"]),
        ("0*sin(3*x0) + x0", ["determined", "flat", "determined"]),
    ],
)
def test_constants_that_make_up_for_each_other_are_flat(equation: str, verdicts: list[str]) -> None:
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 3.0, 100)
    y = sn.evaluate(equation, x) if "0*sin" not in equation else x + 0.0
    found = sn.intervals(equation, x, y + (0.1 * rng.normal(size=100) if "0*sin" not in equation else 0.0))
    assert [item.verdict for item in found] == verdicts


def test_a_saturated_constant_is_bounded_on_one_side() -> None:
    x = np.linspace(0.0, 3.0, 200)
    y = 2.0 * np.tanh(500.0 * x) - 4.0 + np.random.default_rng(5).normal(size=200)
    rate = sn.intervals("2*tanh(500*x0) - 4", x, y)[1]
    assert rate.verdict == "one-sided"
    assert 0.0 < rate.low < 500.0 and rate.high == math.inf


def test_a_term_that_the_others_imitate_is_flat_though_its_interval_is_finite() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 0.1, 200)
    y = x + 0.01 * rng.normal(size=200)
    found = sn.intervals("sin(x0) + 2*x0 + 1", x, y)
    assert [item.verdict for item in found] == ["flat", "flat", "determined"]
    assert math.isfinite(found[0].low)


def test_verdicts_do_not_depend_on_the_origin_of_the_temperature() -> None:
    rng = np.random.default_rng(0)
    T = rng.uniform(10.0, 30.0, 100)
    y = 3.0 * T + 2.0 + 5.0 * rng.normal(size=100)
    celsius, kelvin = (sn.intervals("3*x0 + 2", T + shift, y) for shift in (0.0, 273.15))
    np.testing.assert_allclose([celsius[0].low, celsius[0].high], [kelvin[0].low, kelvin[0].high], rtol=1e-9)
    assert [item.verdict for item in celsius] == [item.verdict for item in kelvin] == ["determined"] * 2


def test_fewer_rows_than_constants_leave_everything_open() -> None:
    found = sn.intervals("3*sin(x0) + 2*x0 + 5*x0**2", [1.0, 2.0], [1.0, 3.0])
    assert {item.verdict for item in found} == {"flat"}


def test_an_exact_law_is_determined_to_rounding() -> None:
    found = sn.intervals("2.9*exp(-0.5*x0)", X_LINE, 3.0 * np.exp(-0.6 * X_LINE))
    np.testing.assert_allclose([item.estimate for item in found], [3.0, -0.6], rtol=1e-9)
    assert all(item.verdict == "determined" and item.half_width < 1e-8 for item in found)
    assert found.text == "3*exp(-0.6*x0)"


def test_the_table_the_text_and_the_dictionary_agree() -> None:
    frame = pd.DataFrame({"time": X_LINE})
    found = sn.intervals("2*time + 1", frame, Y_LINE)
    assert list(found.table.columns) == ["constant", "kind", "given", "estimate", "low", "high", "verdict"]
    assert found.table["constant"].tolist() == ["time", "1"]
    assert found.table["given"].tolist() == [2.0, 1.0]
    assert found.to_dict()["constants"][0]["estimate"] == found[0].estimate
    assert found.text in repr(found) and "determined" in repr(found)
    assert "17" not in found.latex()
    assert len(found.text) < 30


def test_the_band_of_a_line_is_the_textbook_one() -> None:
    from scipy import stats

    found = sn.intervals("3*x0 + 2", X_LINE, Y_LINE)
    new = np.array([0.0, 1.5, 10.0])
    values, low, high = found.band(new)
    A = np.column_stack([X_LINE, np.ones(120)])
    B = np.column_stack([new, np.ones(3)])
    width = found.noise * np.sqrt(np.einsum("ij,jk,ik->i", B, np.linalg.inv(A.T @ A), B))
    np.testing.assert_allclose(high - values, stats.t.ppf(0.975, 118) * width, rtol=1e-9)
    np.testing.assert_allclose(values - low, high - values)
    wider = found.band(new, observation=True)
    np.testing.assert_allclose(wider[2] - wider[0], stats.t.ppf(0.975, 118) * np.hypot(width, found.noise), rtol=1e-9)


def test_a_band_is_infinite_only_where_open_constants_matter() -> None:
    x = np.column_stack([X_LINE, X_LINE])
    found = sn.intervals("2*x0 + x1 + 1", x, Y_LINE)
    _, low, high = found.band(np.array([[1.0, 1.0], [1.0, 2.0]]))
    assert math.isfinite(high[0]) and high[1] == math.inf and low[1] == -math.inf
    with pytest.raises(DataError, match="lacks columns"):
        found.band(pd.DataFrame({"x0": [1.0]}))


def test_intervals_of_terms_are_those_of_their_coefficients() -> None:
    terms = additive_terms(sn.parse("3*x0 + 2")).terms
    found = sn.term_intervals(terms, X_LINE, Y_LINE)
    whole = sn.intervals("3*x0 + 2", X_LINE, Y_LINE)
    np.testing.assert_allclose([i.low for i in found], whole.table["low"])
    assert sn.term_intervals([], X_LINE, Y_LINE) == ()


def test_constants_inside_terms_are_refitted_beside_a_coefficient() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 4.0, 100)
    y = 2.0 * np.exp(-0.7 * x) + 0.05 * rng.normal(size=100)
    held = sn.term_intervals([Term(2.0, Expression.of("exp", Expression.of("neg", "x0")))], x, y)
    free = sn.term_intervals([Term(2.0, sn.parse("exp(-0.7*x0)"))], x, y)
    assert free[0].low < 2.0 < free[0].high
    assert not held[0].low < 2.0 < held[0].high


def test_rows_outside_the_domain_are_left_out() -> None:
    found = sn.intervals("2*log(x0)", np.r_[-1.0, X_LINE[1:]], np.r_[9.0, 2.0 * np.log(X_LINE[1:])])
    assert found.n_rows == 119
    with pytest.raises(DataError, match="not finite in any row"):
        sn.intervals("log(x0)", -X_LINE - 1.0, Y_LINE)


def test_rows_at_the_edge_of_a_domain_are_left_out() -> None:
    found = sn.intervals("2*sqrt(x0 - 0) + 1", X_LINE, 2.0 * np.sqrt(X_LINE) + 1.0 + 0.1 * RNG.normal(size=120))
    assert found.n_rows == 119 and found[0].verdict == "determined"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"level": 1.5}, "'level' must be a number above 0 and below 1"),
        ({"sigma": 0.0}, "'sigma' must be a number above 0"),
        ({"sigma": 1.0, "sample_weight": np.ones(120)}, "Give one of them"),
        ({"sample_weight": -np.ones(120)}, "must not be negative"),
    ],
)
def test_wrong_options_are_explained(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        sn.intervals("3*x0 + 2", X_LINE, Y_LINE, **options)  # type: ignore[arg-type]


def test_a_law_is_covered_about_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 4.0, 100)
    hits = []
    for _ in range(200):
        y = 2.0 * np.exp(-0.7 * x) + 1.0 + 0.1 * rng.normal(size=100)
        found = sn.intervals("2*exp(-0.7*x0) + 1", x, y)
        hits.append([item.low <= truth <= item.high for item, truth in zip(found, (2.0, -0.7, 1.0), strict=True)])
    assert 0.91 <= np.mean(hits) <= 0.985


def test_all_of_fifteen_terms_are_determined_by_a_thousand_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    equation = (
        "1.3*x0 + 2*x1 - x2 + 0.5*x0*x1 + sin(1.7*x2) + exp(-0.4*x3**2) + 2*x3*x4 - x4**2 + 0.3*x0**3 + "
        "cos(2.2*x1 + 0.3) + x1*x2*x3 + 0.2*x0*x4 + tanh(1.4*x0)*x1 + log(x4**2 + 2.5) + 3"
    )
    y = sn.evaluate(equation, X) + 0.1 * rng.normal(size=1000)
    terms = additive_terms(sn.parse(equation)).terms
    found = sn.term_intervals(terms, X, y)
    assert len(found) == 15 and {item.verdict for item in found} == {"determined"}


def test_an_equation_with_thousands_of_constants_is_refused_at_once() -> None:
    X = np.random.default_rng(0).uniform(1.0, 2.0, (50, 1))
    with pytest.raises(sn.ParameterError, match="'equation' has 8000 constants; intervals are found for at most 500"):
        sn.intervals("+".join(["x0"] * 8000), X, X[:, 0])
