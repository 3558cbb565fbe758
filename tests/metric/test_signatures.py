"""Signatures: Eq. 1 block by block, the common finite subset, and arrays instead of expressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reference import TERMS, inputs, reference_matrix
from sobolev_novelty.core.geometry import MIN_ROWS, Geometry, Status
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.signatures import signatures, signatures_of_arrays

subsets = st.lists(st.sampled_from(TERMS), min_size=1, max_size=5, unique=True)
weights = st.tuples(*[st.floats(0.01, 100.0)] * 3)


@given(
    terms=subsets,
    seed=st.integers(0, 10**6),
    order=st.sampled_from([0, 1, 2]),
    weights=weights,
    coordinates=st.sampled_from(["standardized", "raw"]),
)
def test_inner_products_are_those_of_equation_1(
    terms: list[str], seed: int, order: int, weights: tuple[float, float, float], coordinates: str
) -> None:
    # Inner products, because Hessian entries j ≠ k may be stored once with weight √2 or twice.
    X = inputs(seed)
    found = signatures([parse(t) for t in terms], as_sample(X), Geometry(order, weights, coordinates))
    expected = reference_matrix(terms, X, order=order, weights=weights, coordinates=coordinates)
    np.testing.assert_allclose(found.Psi.T @ found.Psi, expected.T @ expected, rtol=1e-10, atol=1e-10)
    assert found.n_used == len(X)
    assert found.status is Status.OK


@given(terms=subsets, seed=st.integers(0, 10**6))
def test_first_order_signatures_are_equation_1_entry_by_entry(terms: list[str], seed: int) -> None:
    X = inputs(seed)
    found = signatures([parse(t) for t in terms], as_sample(X))
    np.testing.assert_allclose(found.Psi, reference_matrix(terms, X), rtol=1e-10, atol=1e-12)
    assert found.Psi.shape == (len(X) * 3, len(terms))


def test_all_terms_share_the_rows_where_all_are_finite() -> None:
    # sqrt(x0) is finite at 0 but its derivative is not; log(x1) is not finite below 0.
    X = np.ones((100, 2))
    X[:10, 0] = 0.0
    X[5:20, 1] = -1.0
    X[30, 0] = np.nan
    found = signatures([parse("sqrt(x0)"), parse("log(x1)"), parse("x1")], as_sample(X))
    assert found.n_used == 100 - 20 - 1
    np.testing.assert_array_equal(np.flatnonzero(~found.used), [*range(20), 30])
    assert np.isfinite(found.Psi).all()
    # N of Eq. 1 is the number of rows used.
    np.testing.assert_allclose(np.linalg.norm(found.Psi[: found.n_used, 2]), 1.0)


def test_a_missing_input_no_term_reads_costs_no_row() -> None:
    X = np.ones((50, 2))
    X[:40, 1] = np.nan
    assert signatures([parse("x0")], as_sample(X)).n_used == 50


def test_order_zero_keeps_rows_whose_derivative_is_infinite() -> None:
    X = np.linspace(0.0, 1.0, 50)
    assert signatures([parse("sqrt(x0)")], as_sample(X), Geometry(0)).n_used == 50
    assert signatures([parse("sqrt(x0)")], as_sample(X), Geometry(1)).n_used == 49


def test_a_derivative_that_overflows_when_standardized_is_not_finite() -> None:
    X = np.linspace(1.0, 2.0, 100)[:, None] * 1e5
    X[:40] = 0.5
    found = signatures([parse("x0*1e300")], as_sample(X))
    assert np.isfinite(found.Psi).all()
    steep = signatures([parse("x0**2*1e300/1e5")], as_sample(X))
    assert np.isfinite(steep.Psi).all()
    assert steep.n_used == 40


@pytest.mark.parametrize(("n", "status"), [(31, Status.TOO_FEW_ROWS), (32, Status.OK)])
def test_thirty_two_rows_are_enough_and_thirty_one_are_not(n: int, status: Status) -> None:
    assert MIN_ROWS == 32
    x = np.linspace(0.0, 1.0, n)
    assert signatures([parse("x0")], as_sample(x)).status is status
    assert status.sentence.endswith(".")


def test_no_terms_have_a_status_of_their_own() -> None:
    assert signatures([], as_sample(np.ones(40))).status is Status.NO_TERMS


@given(terms=subsets, seed=st.integers(0, 10**6), order=st.sampled_from([0, 1]))
def test_arrays_give_the_signatures_of_the_expressions(terms: list[str], seed: int, order: int) -> None:
    X = inputs(seed)
    sample = as_sample(X)
    by_expression = signatures([parse(t) for t in terms], sample, Geometry(order))
    raw = reference_matrix(terms, X, coordinates="raw") * np.sqrt(len(X))
    raw[len(X) :] *= np.sqrt(2.0)
    blocks = raw.T.reshape(len(terms), 3, len(X))
    found = signatures_of_arrays(
        blocks[:, 0], blocks[:, 1:] if order else None, scales=X.std(axis=0) if order else None
    )
    np.testing.assert_allclose(found.Psi, by_expression.Psi, rtol=1e-9, atol=1e-10)


def test_components_of_tensor_terms_add_up_in_the_inner_product() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 40, 3, 3))
    gradients = rng.normal(size=(3, 2, 40, 3, 3))
    values[1, 7, 2, 2] = np.nan  # one bad component spoils its sample
    found = signatures_of_arrays(values, gradients, scales=[2.0, 0.5])
    assert found.n_used == 39
    keep = np.arange(40) != 7
    n = 39
    gram = np.einsum("anij,bnij->ab", values[:, keep], values[:, keep]) / n
    scaled = gradients[:, :, keep] * np.array([2.0, 0.5])[:, None, None, None]
    gram += np.einsum("adnij,bdnij->ab", scaled, scaled) / (2 * n)
    np.testing.assert_allclose(found.Psi.T @ found.Psi, gram, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "'order' must be 0, 1 or 2. Got 3."),
        ({"weights": (1.0, 0.0, 1.0)}, r"'weights' must be three positive numbers .*Got \(1.0, 0.0, 1.0\)."),
        ({"weights": (1.0, np.nan, 1.0)}, "'weights' must be three positive numbers"),
        ({"weights": (1.0, 1.0)}, "'weights' must be three positive numbers"),
        ({"coordinates": "polar"}, "'coordinates' must be one of standardized, raw, tangent, path. Got 'polar'."),
    ],
)
def test_a_geometry_outside_its_range_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Geometry(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((np.ones(5),), {}, DataError, r"'values' needs at least 2 dimensions, terms first. Got shape \(5,\)."),
        (([["a"]],), {}, DataError, "'values' cannot be read as numbers"),
        ((np.ones((2, 40)), np.ones((2, 40))), {}, DataError, "'gradients' needs at least 3 dimensions"),
        ((np.ones((2, 40)), np.ones((2, 3, 41))), {}, DataError, r"\(2, n_features, 40\). Got \(2, 3, 41\)."),
        (
            (np.ones((2, 40)), np.ones((2, 3, 40))), {"scales": [1.0]}, DataError,
            r"'scales' must have one entry per feature, shape \(3,\). Got shape \(1,\).",
        ),
        (
            (np.ones((2, 40)), np.ones((2, 1, 40))), {"scales": [np.nan]}, DataError,
            "'scales' must be finite and not negative.",
        ),
        ((np.ones((2, 40)),), {"geometry": Geometry(1)}, ParameterError, "order 1, but .* values only: give order 0"),
        (
            (np.ones((2, 40)), np.ones((2, 1, 40))), {"geometry": Geometry(2)}, ParameterError,
            "order 2, but the arrays hold values and gradients: give order 1",
        ),
    ],
)  # fmt: skip
def test_arrays_of_the_wrong_shape_are_refused(
    arguments: tuple[object, ...], options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        signatures_of_arrays(*arguments, **options)  # type: ignore[arg-type]
