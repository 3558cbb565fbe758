"""One novelty: report, batch verb, NumPy kernel and C kernel give the same numbers, on awkward lists too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import sobolev_novelty as sn
from sobolev_novelty import kernels
from sobolev_novelty.algebra.terms import Term
from sobolev_novelty.core.geometry import INTERCEPTS, Geometry, Status, without_intercept
from sobolev_novelty.core.linear.projection import PRECISION, SAME, residuals
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.errors import DataError
from sobolev_novelty.metric.batch import evaluated, normalised_factor
from sobolev_novelty.metric.signatures import signatures

#: Terms with exact relations (sin(x0 + 1e-4), log(x1**2), …), repetitions, near repetitions, poles and overflow.
POOL = (
    "1", "x0", "2*x0", "x1", "sin(x0)", "cos(x0)", "sin(x0 + 1e-4)", "sin(x0 + 0.5)", "exp(x1)", "exp(1.00000001*x1)",
    "exp(x1 + 1)", "x0*x1", "x0**2", "(x0 + 1)**2", "x0 + 1e-6*cos(x1)", "cos(1.000001*x0)", "tanh(x0)", "log(x1)",
    "log(x1**2)", "x1*exp(x1)", "sqrt(x1)", "x0/x1", "sin(x0)**2", "cos(x0)**2", "cos(2*x0)", "exp(2*x1)",
    "1e200*x0**3", "1e-200*x1", "1/(x0 - 1.5)", "0*x0", "1e305*x0", "x0 - x0**2/1e9",
)  # fmt: skip

lists = st.lists(st.sampled_from(POOL), min_size=1, max_size=8)


def table(seed: int) -> np.ndarray:
    """Inputs with a missing entry and one outside the domain of logarithms."""
    X = np.random.default_rng(seed).uniform(0.5, 2.5, size=(120, 2))
    if seed % 2:
        X[3, 0], X[7, 1] = np.nan, -1.0
    return X


@given(
    candidates=st.lists(lists, min_size=1, max_size=4),
    seed=st.integers(0, 5),
    order=st.sampled_from([0, 1, 2]),
    intercept=st.sampled_from(INTERCEPTS),
)
@example(candidates=[["1", "x0", "x0 - x0**2/1e9", "x0**2"]], seed=0, order=0, intercept="term")
def test_report_batch_and_both_kernels_agree(
    candidates: list[list[str]], seed: int, order: int, intercept: str
) -> None:
    X = table(seed)
    geometry = Geometry(order, intercept=intercept)
    found = sn.novelties(candidates, X, order=order, intercept=intercept)
    for terms, batch in zip(candidates, found, strict=True):
        report = sn.novelty(terms, X, order=order, intercept=intercept)
        assert (report.status, report.n_used) == (batch.status, batch.n_used)
        np.testing.assert_array_equal(report.nu, batch.nu)
        own = signatures([term.expression for term in batch.terms], as_sample(X), geometry)
        assert own.n_used == batch.n_used
        if batch.status is Status.OK:
            expected = residuals(own.Psi)
            # Two terms that differ by δ leave a third one that resembles their difference known to 1e-16/δ (guide.md).
            distances = np.linalg.svd(expected.R, compute_uv=False)
            nearest = distances[distances > SAME].min(initial=1.0)
            # What rounding leaves of a redundant term passes for a direction where weights cost least (guide.md).
            spare = distances[distances <= SAME].max(initial=0.0)
            rounding = min((spare / PRECISION) ** 2, 1e-6)
            nu = without_intercept(expected.nu, expected.lengths, geometry)
            np.testing.assert_allclose(batch.nu, nu, rtol=0.0, atol=max(1e-9, 1e-15 / nearest, rounding))
            np.testing.assert_array_equal(batch.nu == 0.0, nu == 0.0)
            np.testing.assert_allclose(batch.lengths, expected.lengths, rtol=1e-9)


@given(
    candidates=st.lists(lists, min_size=1, max_size=4), seed=st.integers(0, 5), intercept=st.sampled_from(INTERCEPTS)
)
def test_the_numpy_kernel_gives_the_same_rows_statuses_and_novelties(
    candidates: list[list[str]], seed: int, intercept: str
) -> None:
    terms = [[sn.parse(text) for text in texts] for texts in candidates]
    geometry = Geometry(intercept=intercept)
    compiled = evaluated(terms, as_sample(table(seed)), geometry)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "native", lambda: None)
        plain = evaluated(terms, as_sample(table(seed)), geometry)
    np.testing.assert_array_equal(compiled.rows, plain.rows)
    np.testing.assert_array_equal(compiled.status, plain.status)
    # The last digit of a sine differs, and near repetitions make 1e8 of it.
    np.testing.assert_allclose(compiled.nu, plain.nu, rtol=0.0, atol=1e-6)


@given(terms=lists, more=st.sampled_from(POOL), seed=st.integers(0, 5), intercept=st.sampled_from(INTERCEPTS))
def test_a_further_term_never_raises_a_novelty(terms: list[str], more: str, seed: int, intercept: str) -> None:
    X = table(seed)
    before, after = sn.novelties([terms, [*terms, more]], X, intercept=intercept)
    if before.status is after.status is Status.OK and before.n_used == after.n_used:
        assert (np.nan_to_num(after.nu[:-1]) <= np.nan_to_num(before.nu) + 1e-9).all()


#: Terms that differ by more than rounding can reach: see the exception that guide.md names.
TAME = ("1", "x0", "x1", "sin(2*x0)", "exp(x1)", "x0*x1", "x0**2", "log(x1)", "x0/x1", "1e200*x0**3", "tanh(x0)")


@given(
    terms=st.lists(st.sampled_from(TAME), min_size=1, max_size=6, unique=True),
    seed=st.integers(0, 5),
    order=st.sampled_from([0, 1, 2]),
)
def test_a_free_intercept_takes_out_of_a_term_what_the_constant_rebuilds(
    terms: list[str], seed: int, order: int
) -> None:
    # Beside the constant the same residual is left, and the length that it is compared with is the centred one.
    X = table(seed)
    free, rival = sn.novelties([terms, [*terms, "1"]], X, order=order, intercept="free")
    of_term = sn.novelties([[*terms, "1"]], X, order=order)[0]
    if free.status is Status.OK:
        np.testing.assert_allclose(rival.nu[:-1], free.nu, atol=1e-9)
        assert np.isnan(rival.nu[-1])
        left = np.nan_to_num(free.nu) * free.lengths
        np.testing.assert_allclose(left / of_term.lengths[:-1], of_term.nu[:-1], atol=1e-9)


def test_a_near_repetition_does_not_hide_an_exact_relation() -> None:
    X = np.random.default_rng(0).uniform(0.5, 2.5, (200, 2))
    relation = "3*cos(x0) + 2*sin(x0) + sin(x0 + 1e-4)"
    assert sn.novelty(relation, X).nu.tolist() == [0.0, 0.0, 0.0]
    beside = sn.novelty(relation + " + exp(x1) + exp(1.00000001*x1)", X).nu
    assert beside[:3].tolist() == [0.0, 0.0, 0.0]
    assert (beside[3:] > 0.0).all() and (beside[3:] < 1e-7).all()


def test_exact_repetitions_beside_a_near_pair_are_zero() -> None:
    X = np.random.default_rng(1).uniform(0.5, 2.5, (200, 2))
    found = sn.novelties([["x0*x1", "x0*x1", "exp(x1)", "exp(1.00000001*x1)", "cos(x0)"]], X)[0]
    assert found.nu[:2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(
        found.nu[4], sn.novelty(["x0*x1", "exp(x1)", "x1*exp(x1)", "cos(x0)"], X).nu[3], atol=1e-6
    )


def test_one_missing_row_costs_one_row_everywhere() -> None:
    X = np.random.default_rng(2).uniform(-1.0, 1.0, (100, 2))
    whole = sn.novelty("x0 + x1", X[1:])
    X[0, 0] = np.nan
    programs = kernels.compile_programs([sn.parse("x0"), sn.parse("x1")], ["x0", "x1"])
    alone = kernels.novelties(programs, [0, 2], np.ascontiguousarray(X.T))
    assert alone.rows.tolist() == [99]
    for nu in (alone.nu, sn.novelty("x0 + x1", X).nu):
        np.testing.assert_allclose(nu, whole.nu, atol=1e-3)  # the spread of x1 still counts all of its entries


def test_slopes_that_overflow_when_standardized_drop_the_row_in_both_kernels() -> None:
    x = np.linspace(1.0, 2.0, 100) * 1e5
    x[:40] = 0.5
    sample = as_sample(x)
    terms = [[sn.parse("x0**2*1e295"), sn.parse("x0")], [sn.parse("x0**2*1e300/1e5"), sn.parse("x0")]]
    compiled = evaluated(terms, sample)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "native", lambda: None)
        plain = evaluated(terms, sample)
    assert compiled.rows.tolist() == plain.rows.tolist() == [100, 40]
    np.testing.assert_allclose(compiled.nu, plain.nu, atol=1e-10)


def test_the_normalised_factor_has_the_geometry_of_the_signatures() -> None:
    sample = as_sample(table(0))
    terms = [sn.parse(text) for text in ("x0", "x1", "x0*x1", "2*x0", "sin(x0)")]
    R = normalised_factor(terms, sample)
    assert R is not None
    Psi = signatures(terms, sample).Psi
    unit = Psi / np.linalg.norm(Psi, axis=0)
    np.testing.assert_allclose(R.T @ R, unit.T @ unit, atol=1e-12)
    assert normalised_factor(terms, sample.rows(np.arange(10))) is None


def test_the_batch_verb_takes_text_expressions_and_lists_and_does_not_depend_on_threads() -> None:
    X = table(0)
    mixed = ["x0 + sin(x0)", sn.parse("x0 + sin(x0)"), [Term(1.0, sn.parse("x0")), "sin(x0)"]]
    one, two = sn.novelties(mixed, X), sn.novelties(mixed, X, n_jobs=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.nu, one[0].nu)
        np.testing.assert_array_equal(a.nu, b.nu)
    assert sn.novelties([], X) == []
    zero = sn.novelties(["x0 - x0"], X)[0]
    assert zero.status is Status.NO_TERMS and len(zero) == 0 and zero.penalty() == 1.0


def test_one_column_without_a_name_is_the_only_variable() -> None:
    x = np.linspace(-1.0, 1.0, 100)[:, None]
    expected = sn.novelty("2*sin(x0) + x0", x).nu
    np.testing.assert_array_equal(sn.novelty("2*sin(x) + x", x).nu, expected)
    np.testing.assert_array_equal(sn.evaluate("t**2", x), x[:, 0] ** 2)
    with pytest.raises(sn.ParseError, match="is not a known variable"):
        sn.novelty("x + z", x)


@pytest.mark.parametrize(
    "verb",
    [
        lambda X: sn.novelties(["x0"], X),
        lambda X: sn.prune("x0", X, np.ones(100)),
        lambda X: sn.rerank(["x0"], X, [1.0]),
        lambda X: sn.feedback("x0", X),
        lambda X: sn.accepts("x0", X),
        lambda X: sn.evaluate("x0", X),
        lambda X: sn.TermArchive().update(["x0"], X),
        lambda X: sn.SymbolicRegressor().fit(X, np.ones(100)),
        lambda X: sn.prune("x0", np.ones((100, 1)), X[:, 0]),
    ],
)
def test_verbs_refuse_dask_with_a_sentence(verb: object) -> None:
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(DataError, match=r"is a Dask collection.*compute\(\)"):
        verb(dask_array.ones((100, 1)))  # type: ignore[operator]


def test_public_names_are_what_they_say_after_other_calls() -> None:
    sn.novelty("x0", np.ones((40, 1)))
    assert callable(sn.evaluate)
    assert set(dir(sn)) == {*sn.__all__, "__version__"}
    for name in sn.__all__:
        assert getattr(sn, name) is not None
