"""The rows to measure next: what they tell apart, from which candidates, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from sobolev_novelty.algebra.terms import additive_terms
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.design.candidates import candidates_of
from sobolev_novelty.design.differences import (
    PRIOR,
    Curve,
    Places,
    Rival,
    contained,
    pairs_of_equations,
    without_each_term,
)
from sobolev_novelty.design.next_rows import _different
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.report.intervals.constants import parametrised, parametrised_terms

X = np.random.default_rng(0).uniform(0.2, 1.5, (25, 2))
BOX = {"x0": (0.0, 4.0), "x1": (0.0, 4.0)}
#: Two that are alike on X and differ in the box.
ALIKE = ["x0 + 0.5*x1", "1.2*tanh(x0) + 0.5*x1"]


def curves(texts: list[str], rows: FloatArray, sigma: float) -> list[Curve]:
    return [Curve.of(parametrised(parse(text)), as_sample(rows), sigma) for text in texts]


def length(law: Curve, rival: Curve, at: FloatArray) -> float:
    """Λ by plain ridge regression on all rows at once, written independently; ``at`` are the rows at hand."""
    p = len(law.slopes)
    covariance = np.linalg.inv(law.slopes[:, at] @ law.slopes[:, at].T + np.eye(p))
    Y = np.vstack([law.values - rival.values, np.linalg.cholesky(covariance).T @ law.slopes])
    J = np.vstack([rival.slopes.T, np.eye(len(rival.slopes))])
    padded = np.vstack([Y.T, np.zeros((len(rival.slopes), len(Y)))])
    rest = padded - J @ np.linalg.lstsq(J, padded, rcond=None)[0]
    return float((rest**2).sum())


def test_lengths_that_grow_row_by_row_are_those_of_one_regression_on_all_rows() -> None:
    far = np.random.default_rng(1).uniform(0.0, 4.0, (30, 2))
    at_hand, candidates = curves(ALIKE, X, 0.1), curves(ALIKE, far, 0.1)
    rivals = pairs_of_equations(at_hand, candidates, np.eye(2, dtype=bool))
    taken = [3, 7, 3, 21]
    for k in taken:
        expected = [rival.lengths[0] + rival.gains()[0, k] for rival in rivals]
        rivals = [rival.after(k) for rival in rivals]
        np.testing.assert_allclose([rival.lengths[0] for rival in rivals], expected)
    law, other = curves(ALIKE, np.vstack([X, far[taken]]), 0.1)
    at = np.arange(len(X))
    np.testing.assert_allclose(rivals[1].lengths[0], length(law, other, at), rtol=1e-8)
    np.testing.assert_allclose(rivals[0].lengths[0], length(other, law, at), rtol=1e-8)


def test_the_length_of_a_term_left_out_is_the_cost_of_deleting_it_by_its_novelty() -> None:
    terms = additive_terms(parse("2*x0 - 3*x1 + 0.5*x0*x1 + 1")).terms
    whole = parametrised_terms([t.coefficient for t in terms], [t.expression for t in terms])
    rows = np.random.default_rng(2).normal(size=(400, 2))
    curve = Curve.of(whole, as_sample(rows), 1e-4)  # so little noise that the prior does not count
    found = without_each_term(whole, curve, curve)
    nu = sn.novelties([list(terms)], rows, order=0)[0]
    cost = np.abs([t.coefficient for t in terms]) * nu.nu * nu.lengths / 1e-4 * np.sqrt(len(rows))
    np.testing.assert_allclose(np.sqrt([one.curves[0] for one in found]), cost, rtol=1e-4)


def test_a_rival_that_contains_the_law_is_never_told_from_it() -> None:
    found = contained(curves(["2*x0", "x0 + 0.3*x1", "3*x0", "sin(x0)"], X, 0.1))
    assert found.tolist() == [
        [True, True, True, False], [False, True, False, False], [True, True, True, False], [False, False, False, True],
    ]  # fmt: skip
    rows = sn.next_rows(["2*x0", "3*x0"], X, sigma=0.1)
    assert len(rows) == 0 and "one function with other constants: no row tells them apart" in rows.words


def test_rows_lie_where_the_equations_part_and_set_them_apart() -> None:
    rows = sn.next_rows(ALIKE, X, bounds=BOX, n=4, sigma=0.1)
    assert list(rows.columns) == ["x0", "x1"] and rows.shape == (4, 2)
    assert rows["x0"].max() == 4.0
    steps = rows.steps
    assert steps is not None and len(steps) == 5
    assert (np.diff(steps["risk"]) < 0.0).all() and (np.diff(steps["leading"]) > 0.0).all()
    assert "differ by" in rows.words and "σ = 0.1, as given" in rows.words


def test_chosen_rows_find_the_law_where_as_many_random_ones_do_not() -> None:
    """The law against an imitation, both refitted to 20 rows in a corner and 6 more, at 10 % noise."""
    law, imitation = "1.5*sin(x0)*x1", "1.4*x0*x1 - 0.2*x0**2*x1"
    rng = np.random.default_rng(3)
    right = {"chosen": 0, "random": 0}
    for _ in range(20):
        near = rng.uniform(0.2, 1.2, (20, 2))
        chosen = sn.next_rows([law, imitation], near, bounds=[(0.2, 3.0), (0.2, 2.0)], n=6, sigma=0.1)
        others = {"chosen": chosen.to_numpy(), "random": rng.uniform(0.2, 1.2, (6, 2))}
        for name, more in others.items():
            rows = np.vstack([near, more])
            y = evaluate(parse(law), rows) + 0.1 * rng.normal(size=len(rows))
            a, b = (sn.intervals(text, rows, y) for text in (law, imitation))
            right[name] += a.noise**2 * (26 - a.n_parameters) < b.noise**2 * (26 - b.n_parameters)
    assert right["chosen"] >= 18 and right["random"] <= right["chosen"] - 3


def test_terms_of_one_equation_part_and_the_words_say_when() -> None:
    near = np.linspace(-0.5, 0.5, 40)[:, None]
    rows = sn.next_rows("x0 + sin(x0)", near, bounds=[(-4.0, 4.0)], n=3, sigma=0.01)
    assert np.abs(rows["x0"]).max() > 2.0
    assert "Without sin(x0) it differs by" in rows.words and "distinct after 1 row" in rows.words
    few = sn.next_rows("x0 + sin(x0)", near[:12], bounds=[(-4.0, 4.0)], n=3, sigma=0.01)
    assert "ν" not in few.words  # fewer than 32 rows have no novelty


def test_no_measured_value_is_looked_at_and_the_same_call_gives_the_same_rows() -> None:
    y = evaluate(parse(ALIKE[0]), X)
    one = sn.next_rows(ALIKE, X, bounds=BOX, n=5, sigma=0.1)
    pd.testing.assert_frame_equal(pd.DataFrame(one), pd.DataFrame(sn.next_rows(ALIKE, X, bounds=BOX, n=5, sigma=0.1)))
    refitted = sn.next_rows(ALIKE, X, y + 0.1 * np.random.default_rng(0).normal(size=25), bounds=BOX, n=5)
    assert "from the residuals of the best fit" in refitted.words


def test_a_pool_gives_each_of_its_rows_once_under_its_own_number() -> None:
    pool = pd.DataFrame(
        {"x1": np.linspace(0.1, 4.0, 9), "x0": np.linspace(0.1, 4.0, 9), "note": 1.0}, index=list("abcdefghi")
    )
    rows = sn.next_rows(ALIKE, X, pool=pool, n=12, sigma=0.1)
    assert sorted(rows.index) == list("abcdefghi") and list(rows.columns) == ["x0", "x1"]
    assert "The pool has no more than 9 rows" in rows.words
    np.testing.assert_allclose(rows.to_numpy(), pool.loc[rows.index, ["x0", "x1"]].to_numpy())


def test_a_box_keeps_to_levels_whole_numbers_and_inputs_that_cannot_be_set() -> None:
    data = pd.DataFrame({"dose": X[:, 0], "batches": 3.0 * X[:, 1], "weather": X[:, 1]})
    rows = sn.next_rows(
        ["dose + weather + 0.1*batches", "1.2*tanh(dose) + weather + 0.1*batches**1.2"], data, n=6, sigma=0.1,
        bounds={"batches": (0.5, 7.5)}, levels={"dose": [0.0, 1.0, 5.0]}, integers=["batches"], fixed=["weather"],
    )  # fmt: skip
    assert set(rows["dose"]) <= {0.0, 1.0, 5.0} and set(rows["batches"]) <= set(range(1, 8))
    assert set(rows["weather"]) == {float(np.median(X[:, 1]))}
    held = sn.next_rows(ALIKE, X, bounds=BOX, fixed={"x1": 0.5}, n=2, sigma=0.1)
    assert set(held["x1"]) == {0.5}


def test_levels_of_all_inputs_are_the_whole_grid_and_a_box_reaches_its_corners() -> None:
    sample = as_sample(X)
    grid = candidates_of(sample, levels={"x0": [0, 1, 2], "x1": [5.0, 6.0]}).sample.X
    assert grid.shape == (2, 6) and len(np.unique(grid.T, axis=0)) == 6
    box = candidates_of(sample, bounds=[(0.0, 1.0), (-2.0, 3.0)]).sample.X.T
    assert {(0.0, -2.0), (0.0, 3.0), (1.0, -2.0), (1.0, 3.0)} <= set(map(tuple, box.tolist()))
    assert (box >= [0.0, -2.0]).all() and (box <= [1.0, 3.0]).all() and len(np.unique(box, axis=0)) == len(box)


def test_costs_turn_the_choice_to_cheaper_rows() -> None:
    free = sn.next_rows(ALIKE, X, bounds=BOX, n=3, sigma=0.3)
    dear = sn.next_rows(ALIKE, X, bounds=BOX, n=3, sigma=0.3, costs=lambda rows: 1.0 + 100.0 * (rows["x0"] > 3.0))
    assert free["x0"].max() > 3.0 >= dear["x0"].max()


def test_a_fitted_model_brings_what_it_nearly_chose_and_its_noise(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.uniform(0.0, 1.0, 30), "b": rng.uniform(0.0, 1.0, 30)})
    y = 2.0 * data["a"] + 3.0 * data["b"] + 0.3 * data["a"] * data["b"] + 0.05 * rng.normal(size=30)
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=500), random_state=0).fit(data, y)
    rows = sn.next_rows(model, data, bounds={"a": (0.0, 3.0), "b": (0.0, 3.0)}, n=4)
    assert list(rows.columns) == ["a", "b"] and len(rows) == 4
    assert "from the residuals of the model" in rows.words
    model.save(tmp_path / "model.json")
    loaded = sn.SymbolicRegressor.load(tmp_path / "model.json")
    assert len(sn.next_rows(loaded, data, n=2)) == 2


def test_rows_for_guesses_of_a_search_keep_apart_and_then_fill_the_box() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"a": rng.uniform(0.0, 1.0, 30), "b": rng.uniform(0.0, 1.0, 30)})
    y = 2.0 * data["a"] * data["b"] + 0.02 * rng.normal(size=30)
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=300), random_state=0).fit(data, y)
    rows = sn.next_rows(model, data, bounds=[(0.0, 2.0), (0.0, 2.0)], n=8).to_numpy()
    gaps = np.abs(rows[:, None] - rows[None]).max(axis=2) + 2.0 * np.eye(8)
    assert gaps.min() > 0.19
    assert (sn.next_rows(model, data, levels={"a": [0, 2], "b": [1]}, n=5)["b"] == 1.0).all()  # as far as levels allow


def test_equations_of_a_model_that_differ_by_less_than_the_noise_are_one() -> None:
    near, far = (Curve(np.full(5, value), np.zeros((1, 5))) for value in (0.5, 3.0))
    gone = Curve(np.full(5, np.nan), np.zeros((1, 5)))
    first = Curve(np.zeros(5), np.zeros((1, 5)))
    assert _different([first, near, far, gone, far]) == [0, 2]


def test_candidates_where_an_equation_is_not_finite_are_left_out_and_counted() -> None:
    rows = sn.next_rows(["log(x0) + x1", "x0 + x1"], X, bounds={"x0": (-1.0, 2.0)}, n=3, sigma=0.1)
    assert (rows["x0"] > 0.0).all() and "candidates were left out" in rows.words
    with pytest.raises(sn.DataError, match=r"No candidate has finite values of every equation; log\(x0 - 9\)"):
        sn.next_rows(["log(x0 - 9)", "x0 + x1"], X, sigma=0.1)


def test_an_equation_without_inputs_sends_rows_far_from_those_at_hand() -> None:
    rows = sn.next_rows("2.5", X, bounds=BOX, n=3, sigma=0.1)
    assert len(np.unique(rows.to_numpy(), axis=0)) == 3 and rows.to_numpy().max() == 4.0


def test_numbers_at_the_edge_of_floats_do_not_stop_it() -> None:
    for unit in (1e-150, 1e150):
        rows = sn.next_rows(["x0", "x0 + x0*x1"], X * [unit, 1.0], n=2)
        assert np.isfinite(rows.to_numpy()).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": {"q": (0, 1)}}, r"'bounds' names 'q', which is not a column of 'X'\. Columns are x0, x1\."),
        ({"bounds": {"x0": (2, 1)}}, r"'bounds' of x0 must be \(low, high\) with low ≤ high\. Got \(2, 1\)\."),
        ({"bounds": [(0, 1)]}, r"'bounds' must have one \(low, high\) per column of 'X', 2 in all\. Got 1\."),
        ({"levels": {"x0": []}}, r"'levels' of x0 must be a list of numbers\. Got \[\]\."),
        ({"integers": ["x0"], "bounds": {"x0": (0.2, 0.8)}}, r"there is no whole number from 0\.2 to 0\.8"),
        ({"fixed": {"x0": 1.0}, "levels": {"x0": [1]}}, r"'fixed' and 'levels' both name the input x0"),
        ({"pool": X, "bounds": BOX}, r"'pool' holds the rows to choose from, and 'bounds' describes a box"),
        ({"pool": pd.DataFrame({"x0": [1.0]})}, r"'pool' lacks columns of 'X': x1\. Add them\."),
        ({"pool": [[1.0, np.nan]]}, r"'pool' has 1 row\(s\) with missing values, the first is row 0"),
        ({"costs": [1.0, 2.0]}, r"'costs' of a box must be a function of a DataFrame of rows"),
        ({"costs": lambda rows: -1.0 - rows["x0"]}, r"'costs' must be above 0\. Got -"),
        ({"n": 0}, r"'n' must be a whole number from 1 to 1000\. Got 0\."),
        ({"sigma": 0.0}, r"'sigma' must be a number above 0, or None\. Got 0\.0\."),
    ],
)
def test_what_cannot_be_is_refused_with_its_name_its_value_and_the_remedy(options: dict, message: str) -> None:
    with pytest.raises(sn.SobolevError, match=message):
        sn.next_rows(ALIKE, X, **options)


def test_an_empty_list_and_an_equation_without_terms_are_refused() -> None:
    with pytest.raises(sn.ParameterError, match="'models' is an empty list"):
        sn.next_rows([], X)
    with pytest.raises(sn.ParameterError, match="'models' is the equation 0"):
        sn.next_rows("x0 - x0", X)


def test_a_rival_of_one_law_is_one_pair() -> None:
    slopes = Places(np.ones((1, 3)), np.ones((1, 2)))
    target = Places(np.arange(3.0)[None], np.arange(2.0)[None])
    found = Rival.of(slopes, [(4, target)])
    assert found.laws == (4,) and found.gains().shape == (1, 2)
    assert PRIOR == 3.0 and isinstance(as_sample(X), Sample)
