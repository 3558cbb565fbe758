"""novelty() and its report: the facts that follow from the theory, on expressions, against independent references."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest
import sympy
from hypothesis import given, strategies as st

import sobolev_novelty as sn
from reference import TERMS, inputs, reference_matrix, reference_novelty
from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.geometry import Status
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.metric.batch import conditional_novelty
from sobolev_novelty.report.reporting import novelty, novelty_of_arrays

subsets = st.lists(st.sampled_from(TERMS), min_size=2, max_size=6, unique=True)
seeds = st.integers(0, 10**6)
coefficients = st.lists(st.floats(0.1, 10.0).map(lambda b: round(b, 3)), min_size=6, max_size=6)


def equation(terms: list[str], b: list[float]) -> str:
    return " + ".join(f"{c}*({term})" for c, term in zip(b, terms, strict=False))


# --- against m least-squares solves on a matrix assembled from SymPy's derivatives


@given(
    terms=subsets,
    seed=seeds,
    order=st.sampled_from([0, 1, 2]),
    weights=st.tuples(*[st.floats(0.01, 100.0)] * 3),
    coordinates=st.sampled_from(["standardized", "raw"]),
)
def test_novelty_is_the_residual_of_m_least_squares_solves(
    terms: list[str], seed: int, order: int, weights: tuple[float, float, float], coordinates: str
) -> None:
    X = inputs(seed)
    report = novelty(terms, X, order=order, weights=weights, coordinates=coordinates)
    Psi = reference_matrix(terms, X, order=order, weights=weights, coordinates=coordinates)
    np.testing.assert_allclose(report.nu, reference_novelty(Psi), rtol=1e-6, atol=1e-10)
    assert ((report.nu >= 0.0) & (report.nu <= 1.0)).all()
    np.testing.assert_allclose(report.inflation, 1.0 / report.nu**2)
    np.testing.assert_allclose(report.sensitivity, 1.0 / report.nu)
    np.testing.assert_array_equal(report.qualified, report.nu > 1.0 / np.sqrt(10.0))


@given(term=st.sampled_from(TERMS), seed=seeds, order=st.sampled_from([0, 1, 2]))
def test_one_term_alone_has_novelty_one(term: str, seed: int, order: int) -> None:
    assert novelty([term], inputs(seed), order=order).nu.tolist() == [1.0]


@given(terms=subsets, b=coefficients, seed=seeds)
def test_novelty_sees_neither_coefficients_nor_their_common_scale(terms: list[str], b: list[float], seed: int) -> None:
    # Changing the coefficients changes σ_s too.
    X = inputs(seed)
    one, other = novelty(equation(terms, b), X), novelty(equation(terms, [1.0] * 6), X)
    assert one.labels == other.labels
    np.testing.assert_allclose(one.nu, other.nu, rtol=1e-8, atol=1e-12)


@given(terms=subsets, seed=seeds, data=st.data())
def test_permuting_terms_permutes_novelties(terms: list[str], seed: int, data: st.DataObject) -> None:
    X = inputs(seed)
    order = data.draw(st.permutations(range(len(terms))))
    permuted = novelty([terms[i] for i in order], X).nu
    np.testing.assert_allclose(permuted, novelty(terms, X).nu[list(order)], rtol=1e-6, atol=1e-11)


@given(terms=subsets, seed=seeds)
def test_adding_a_term_never_raises_the_novelty_of_another(terms: list[str], seed: int) -> None:
    X = inputs(seed)
    assert (novelty(terms, X).nu[:-1] <= novelty(terms[:-1], X).nu + 1e-9).all()


@given(terms=subsets, b=coefficients, seed=seeds)
def test_contribution_is_the_cost_of_deleting_and_refitting(terms: list[str], b: list[float], seed: int) -> None:
    X = inputs(seed)
    report = novelty([Term(c, sn.parse(t)) for c, t in zip(b, terms, strict=False)], X)
    raw = reference_matrix(terms, X)
    weights = np.array(b[: len(terms)])
    sigma = np.sqrt(np.mean((raw[: len(X)] * np.sqrt(len(X)) @ weights) ** 2))
    Psi = raw / sigma
    s = Psi @ weights
    for i in range(len(terms)):
        others = np.delete(Psi, i, axis=1)
        rest = s - others @ np.linalg.lstsq(others, s, rcond=None)[0]
        np.testing.assert_allclose(report.contribution[i], np.linalg.norm(rest), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(report.lengths, np.linalg.norm(Psi, axis=0), rtol=1e-9)


@given(terms=subsets, seed=seeds, order=st.sampled_from([0, 1, 2]))
def test_conditional_novelty_is_the_novelty_of_the_last_term(terms: list[str], seed: int, order: int) -> None:
    X = inputs(seed)
    found = conditional_novelty(terms[-1:], terms[:-1], X, order=order)
    np.testing.assert_allclose(found[0], novelty(terms, X, order=order).nu[-1], rtol=1e-6, atol=1e-10)


def test_conditional_novelty_of_several_terms_is_one_at_a_time() -> None:
    X = inputs(0)
    both = conditional_novelty(["sin(x0)", "sin(x0)"], ["x0"], X)
    assert both[0] == both[1] > 0.0
    assert conditional_novelty(["x0"], [], X).tolist() == [1.0]
    assert np.isnan(conditional_novelty(["log(x0 - 5)"], ["x0"], X)).all()


# --- dependent terms


def test_a_function_identity_is_a_dependency() -> None:
    report = novelty(["sin(x0)**2", "cos(x0)**2", "1", "x1"], inputs(1, 200))
    assert report.nu[:3].tolist() == [0.0, 0.0, 0.0]
    expected = reference_novelty(reference_matrix(["sin(x0)**2", "1", "x1"], inputs(1, 200)))[2]
    np.testing.assert_allclose(report.nu[3], expected, rtol=0.0, atol=1e-10)
    assert np.isinf(report.inflation[:3]).all()
    assert report.contribution[:3].tolist() == [0.0, 0.0, 0.0]


def test_terms_that_agree_in_value_but_not_in_slope_are_told_apart() -> None:
    x = np.arange(40) * 2 * np.pi
    report = novelty(["x0", "x0 + sin(x0)"], x)
    assert (novelty(["x0", "x0 + sin(x0)"], x, order=0).nu < 1e-12).all()
    assert (report.nu > 0.0).all()


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e100, 1e200])
def test_units_of_the_terms_do_not_matter(size: float) -> None:
    X = inputs(2)
    expected = novelty(["x0", "sin(x0)", "x1"], X)
    found = novelty([f"{size}*x0", "sin(x0)", "x1"], X)
    np.testing.assert_allclose(found.nu, expected.nu, rtol=1e-9)
    big = novelty(f"{size}*x0 + {size}*x1 + {size}*sin(x0)", X)
    np.testing.assert_allclose(big.contribution, novelty("x0 + x1 + sin(x0)", X).contribution, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_units_of_the_inputs_do_not_matter_in_standardized_coordinates(size: float) -> None:
    X = inputs(2)
    found = novelty(["x0", "x1", "abs(x0)"], X * size).nu
    np.testing.assert_allclose(found, novelty(["x0", "x1", "abs(x0)"], X).nu, rtol=1e-9)


# --- rows and statuses


def test_rows_that_are_not_used_are_counted_by_reason() -> None:
    X = np.linspace(0.0, 2.0, 100)[:, None].copy()
    X[:5] = np.nan
    X[5] = 0.0
    X[6:9] = -1.0
    report = novelty("sqrt(x0) + x0", X)
    assert report.n_samples == 100
    assert report.n_used == 91
    assert report.dropped == {
        "an input is missing or not finite": 5,
        "a term's value is not finite": 3,
        "a term's derivative is not finite": 1,
    }
    assert report.n_used + sum(report.dropped.values()) == report.n_samples


@pytest.mark.parametrize(("n", "status"), [(31, Status.TOO_FEW_ROWS), (32, Status.OK)])
def test_thirty_one_rows_give_a_status_and_no_number(n: int, status: Status) -> None:
    X = np.linspace(-1.0, 1.0, 100)
    X[n:] = np.nan
    report = novelty("x0 + x0**2", X)
    assert report.status is status
    assert np.isnan(report.nu).all() == (status is not Status.OK)
    assert not (report.qualified & np.isnan(report.nu)).any()
    assert np.isnan(report.gram).all() == np.isnan(report.reconstruction).all() == (status is not Status.OK)


def test_too_few_rows_say_which_term_and_what_to_do() -> None:
    report = novelty("x0 + log(x0 - 1.5)", inputs(0, 40))
    assert report.status is Status.TOO_FEW_ROWS
    assert any("Term 1 is finite in only" in note and "check its domain" in note for note in report.notes)
    with pytest.raises(ParameterError, match="There is nothing to explain: Fewer than 32 rows"):
        report.explain(0)


def test_an_equation_that_is_zero_has_no_terms() -> None:
    report = novelty("x0 - x0", inputs(0))
    assert report.status is Status.NO_TERMS
    assert len(report) == 0
    assert json.loads(report.to_json())["status"] == "no_terms"
    with pytest.raises(ParameterError, match="There is nothing to explain: The expression is zero"):
        report.explain(0)


def test_a_null_term_is_zero_and_says_so() -> None:
    X = inputs(0)
    X[:, 1] = 0.0
    report = novelty(["x0", "x1**2"], X)
    assert report.nu.tolist() == [1.0, 0.0]
    assert report.is_null.tolist() == [False, True]
    assert "Term 1 is zero on the sample (null): its novelty is 0." in report.notes
    assert "Column 'x1' is constant: it carries no derivative information along this input." in report.notes


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6, -3.3])
def test_a_constant_column_is_noted_whatever_its_value(value: float) -> None:
    X = inputs(0, 1000)
    X[:, 1] = value
    assert any("Column 'x1' is constant" in note for note in novelty("x0 + 1", X).notes)
    assert not any("constant" in note for note in novelty("x0 + 1", X, coordinates="raw").notes)


def test_an_undistributed_factor_is_noted() -> None:
    factors = [f"(x0*{k} + x1 + sin({k}*x0) + {k})" for k in range(1, 8)]
    assert any("left undistributed" in note for note in novelty("*".join(factors), inputs(0)).notes)


# --- arrays and tensors


def test_arrays_give_what_the_expressions_give() -> None:
    X = inputs(3)
    x, y = X.T
    one = novelty(["x0", "x0*x1"], X)
    other = novelty_of_arrays([x, x * y], [[1 + 0 * x, 0 * x], [y, x]], scales=X.std(axis=0))
    np.testing.assert_allclose(other.nu, one.nu, rtol=1e-12)
    assert other.labels == ("term 0", "term 1")


def test_tensor_terms_are_judged_by_all_components_together() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 50, 3, 3))
    values[2] = values[0] - 2.0 * values[1]
    gradients = rng.normal(size=(3, 2, 50, 3, 3))
    gradients[2] = gradients[0] - 2.0 * gradients[1]
    assert novelty_of_arrays(values, gradients).nu.tolist() == [0.0, 0.0, 0.0]
    values[2, :, 0, 0] += 1.0
    flat = novelty_of_arrays(values.reshape(3, -1), gradients.reshape(3, 2, -1)).nu
    np.testing.assert_allclose(novelty_of_arrays(values, gradients).nu, flat, rtol=1e-10)


def test_an_array_term_that_is_zero_is_named() -> None:
    report = novelty_of_arrays([np.ones(40), np.zeros(40)], labels=["one", "nothing"], coefficients=[2.0, 3.0])
    assert report.notes == ("Term nothing is zero on the sample (null): its novelty is 0.",)
    assert report.coefficients.tolist() == [2.0, 3.0]


# --- bootstrap


def test_the_bootstrap_is_determined_by_its_seed() -> None:
    X = inputs(4, 60)
    runs = [novelty("x0 + sin(x0) + x1", X, n_bootstrap=50, random_state=seed).bootstrap for seed in (1, 1, 2)]
    assert all(run is not None for run in runs)
    np.testing.assert_array_equal(runs[0].lower, runs[1].lower)
    assert not np.array_equal(runs[0].lower, runs[2].lower)


def test_the_bootstrap_interval_surrounds_the_novelty_and_narrows_with_rows() -> None:
    widths = []
    for n in (100, 1600):
        report = novelty("x0 + sin(x0) + x0*x1", inputs(5, n), n_bootstrap=200, random_state=0)
        spread = report.bootstrap
        assert spread is not None
        assert ((spread.lower <= report.nu) & (report.nu <= spread.upper)).all()
        assert ((spread.lower >= 0.0) & (spread.upper <= 1.0)).all()
        assert ((spread.stability >= 0.0) & (spread.stability <= 1.0)).all()
        widths.append(spread.upper - spread.lower)
    assert (widths[1] < 0.5 * widths[0]).all()
    assert {"lower", "upper", "stability"} <= set(report.table.columns)
    assert report.to_dict()["terms"][0]["interval"] == [spread.lower[0], spread.upper[0]]


def test_a_verdict_far_from_the_threshold_is_stable_and_one_near_it_is_not() -> None:
    X = inputs(6, 80)
    nu = novelty("x0 + sin(x0)", X).nu[0]
    far = novelty("x0 + x1", X, n_bootstrap=200, random_state=0).bootstrap
    near = novelty("x0 + sin(x0)", X, tau=float(nu), n_bootstrap=200, random_state=0).bootstrap
    assert far is not None
    assert near is not None
    assert far.stability.tolist() == [1.0, 1.0]
    assert 0.2 < near.stability[0] < 0.8


def test_whole_samples_are_resampled_for_tensor_terms() -> None:
    rng = np.random.default_rng(0)
    report = novelty_of_arrays(
        rng.normal(size=(2, 64, 3)), rng.normal(size=(2, 4, 64, 3)), n_bootstrap=20, random_state=0
    )
    assert report.bootstrap is not None
    assert ((report.bootstrap.lower <= 1.0) & (report.bootstrap.upper >= report.bootstrap.lower)).all()


# --- the report as a thing to read


def test_the_table_has_one_row_a_term() -> None:
    table = novelty("2*x0 - 3*x1", inputs(0)).table
    paper = ["term", "coefficient", "novelty", "inflation", "contribution", "qualified"]
    assert list(table.columns) == [*paper, "distinct", "nu_free", "needed", "loss"]
    assert table["term"].tolist() == ["x0", "x1"]
    assert table["coefficient"].tolist() == [2.0, -3.0]


def test_explain_rebuilds_the_term_from_the_others() -> None:
    X = inputs(0)
    report = novelty(["x0", "2*x0 + 0.001*x1", "x1**2"], X)
    found = report.explain(0)
    assert found.residual == report.nu[0]
    assert found.parts[0][0] == "2*x0 + 0.001*x1"
    np.testing.assert_allclose(found.parts[0][1], 0.5, rtol=1e-4)
    Psi = reference_matrix(["x0", "2*x0 + 0.001*x1", "x1**2"], X)
    weights = dict(found.parts)
    rebuilt = sum(weights.get(label, 0.0) * column for label, column in zip(report.labels[1:], Psi.T[1:], strict=True))
    np.testing.assert_allclose(np.linalg.norm(Psi[:, 0] - rebuilt) / np.linalg.norm(Psi[:, 0]), report.nu[0], rtol=1e-6)
    assert "x0 ≈ 0.5*(2*x0 + 0.001*x1)" in str(found)
    assert str(report.explain(-1)) == str(report.explain(2))


def test_explain_of_an_independent_term_says_so() -> None:
    alone = novelty("x0", inputs(0)).explain(0)
    assert str(alone) == "x0: no other term rebuilds any of it (novelty 1)."
    with pytest.raises(ParameterError, match="'i' must be the number of a term, 0 to 0. Got 1."):
        novelty("x0", inputs(0)).explain(1)


def test_the_gram_matrix_is_that_of_the_normalised_signatures() -> None:
    terms = ["x0", "sin(x0)", "x1"]
    X = inputs(0)
    Psi = reference_matrix(terms, X)
    U = Psi / np.linalg.norm(Psi, axis=0)
    np.testing.assert_allclose(novelty(terms, X).gram, U.T @ U, atol=1e-12)


def test_json_holds_no_infinity_and_reads_back(tmp_path: object) -> None:
    report = novelty(["x0", "x0", "x1"], inputs(0), n_bootstrap=3, random_state=0)
    stored = json.loads(report.to_json())
    assert stored["terms"][0]["inflation"] is None
    assert stored["terms"][0]["novelty"] == 0.0
    assert stored["n_qualified"] == 1
    report.to_json(tmp_path / "report.json")  # type: ignore[operator]
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == stored  # type: ignore[operator]


def test_an_equation_comes_as_text_sympy_expression_or_list() -> None:
    frame = pd.DataFrame(inputs(0), columns=["mass", "speed"])
    by_text = novelty("2*mass + speed**2", frame)
    mass, speed = sympy.symbols("mass speed")
    np.testing.assert_allclose(sorted(novelty(2 * mass + speed**2, frame).nu), sorted(by_text.nu))
    assert novelty(["mass", "speed**2"], frame).nu.tolist() == by_text.nu.tolist()
    assert by_text.names == ("mass", "speed")
    assert novelty([Term(4.0, sn.parse("mass", names=["mass"]))], frame).coefficients.tolist() == [4.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "'order' must be 0, 1 or 2. Got 3."),
        ({"tau": 1.5}, "'tau' must be a number from 0 to 1. Got 1.5."),
        ({"tau": float("nan")}, "'tau' must be a number from 0 to 1. Got nan."),
        ({"weights": (1.0, -1.0)}, "'weights' must be one to three numbers of at least 0"),
        ({"weights": (1.0,) * 4}, r"'weights' must be one to three numbers of at least 0 \(λ0, λ1, λ2\)"),
        ({"coordinates": "polar"}, "'coordinates' must be 'standardized', 'raw', 'tangent' or 'path'. Got 'polar'."),
        ({"n_bootstrap": -1}, "'n_bootstrap' must be a whole number from 0 to 1000000. Got -1."),
    ],
)
def test_an_option_outside_its_range_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        novelty("x0", inputs(0), **options)  # type: ignore[arg-type]


def test_bad_lists_are_refused() -> None:
    with pytest.raises(ParameterError, match="'equation' is an empty list. Give at least one term."):
        novelty([], inputs(0))
    with pytest.raises(ParameterError, match="'coefficients' must have one finite number per term, 1 in all."):
        novelty_of_arrays(np.ones((1, 40)), coefficients=[1.0, 2.0])
    with pytest.raises(ParameterError, match="'labels' must have one entry per term: 1. Got 2."):
        novelty_of_arrays(np.ones((1, 40)), labels=["a", "b"])
    with pytest.raises(DataError, match="'X' has no rows"):
        novelty("x0", np.ones((0, 1)))


def test_an_order_given_as_a_float_is_that_order() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = sn.novelty("x0 + x0*x1", X, order=1.0)  # type: ignore[arg-type]
    assert str(found) == str(sn.novelty("x0 + x0*x1", X, order=1))


def test_a_formula_of_too_many_terms_is_refused_at_once() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    long = "+".join(f"sin({k}*x0 + x1)" for k in range(1, 1001))
    started = time.perf_counter()
    with pytest.raises(ParameterError, match="'equation' has 1000 terms, and 'max_terms' is 300. Give fewer terms, or"):
        sn.novelty(long, X)
    assert time.perf_counter() - started < 5.0
    assert len(sn.novelty("x0 + x1 + sin(x0)", X, max_terms=3).terms) == 3
    assert len(sn.novelty([f"sin({k}*x0)" for k in range(1, 302)], X, max_terms=None).terms) == 301
    with pytest.raises(ParameterError, match="'equation' has 3 terms, and 'max_terms' is 2"):
        sn.novelty(["x0", "x1", "x0*x1"], X, max_terms=2)
    for odd in (0, -1, 1.5, True, "many"):
        with pytest.raises(ParameterError, match="'max_terms' must be a whole number of at least 1, or None. Got"):
            sn.novelty("x0", X, max_terms=odd)
