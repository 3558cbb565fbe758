"""Fitting batches of forms, and the clean-up of what reaches for the front."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from algebra_cases import POSITIVE, values
from sobolev_novelty.algebra.canonical import assemble
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.fits import SNAP_DISTANCE, Fitted, Fitter, clean_up, relative_loss, simple_number
from sobolev_novelty.search.fit.forms import Form, split_form

RNG = np.random.default_rng(4)


def _fitter(y: np.ndarray, weights: np.ndarray | None = None) -> Fitter:
    return Fitter(Rows(POSITIVE, y, weights))


def _form(*terms: str) -> Form:
    return split_form(parse(" + ".join(terms)))


def test_linear_coefficients_are_found_exactly_for_all_forms_of_a_batch() -> None:
    y = values(parse("2*x0 - 3*x1*x2 + 0.5"))
    good, poor = _fitter(y).fit([_form("x0", "x1*x2", "1"), _form("x2", "1")])
    np.testing.assert_allclose(good.coefficients, [2.0, -3.0, 0.5], rtol=1e-10)
    assert good.nmse < 1e-24 < poor.nmse < 1.0
    assert good.is_converged


def test_inner_constants_move_and_exponents_stay() -> None:
    (fitted,) = _fitter(values(parse("2*exp(-0.7*x0) + x1**3"))).fit([_form("exp(-1*x0)", "x1**3")], 40)
    np.testing.assert_allclose(fitted.terms[0].constants, [-0.7], rtol=1e-6)
    assert fitted.terms[1].constants == (3.0,)
    assert fitted.form.free == (True, False)


def test_rows_without_weight_do_not_count() -> None:
    y = values(parse("3*x0"))
    y[:10] = 100.0
    weights = np.ones(len(y))
    weights[:10] = 0.0
    (fitted,) = _fitter(y, weights).fit([_form("x0")])
    np.testing.assert_allclose(fitted.coefficients, [3.0], rtol=1e-12)
    assert fitted.nmse < 1e-24


def test_a_form_outside_its_domain_has_infinite_error_and_an_empty_batch_no_fits() -> None:
    fitter = _fitter(values(parse("x0")))
    (fitted,) = fitter.fit([_form("log(x0 - 100)")])
    assert fitted.nmse == math.inf
    assert fitter.fit([]) == []
    assert relative_loss(math.nan, fitter.rows.total) == math.inf


def test_a_constant_target_is_explained_by_itself_only() -> None:
    fitter = _fitter(np.full(POSITIVE.n_samples, 2.0))
    assert relative_loss(0.0, fitter.rows.total) == 0.0
    assert relative_loss(1e-9, fitter.rows.total) == math.inf


def test_given_coefficients_are_judged_as_they_are() -> None:
    y = values(parse("2*x0"))
    fitter = _fitter(y)
    fitted = Fitted((parse("x0"),), np.array([5.0]), 0.0, 0.0, True)
    assert fitter.with_coefficients(fitted, np.array([2.0])).nmse == 0.0
    wrong = fitter.with_coefficients(fitted, np.array([1.0])).nmse
    np.testing.assert_allclose(wrong, np.sum((y / 2.0) ** 2) / np.sum((y - y.mean()) ** 2))


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize("text", ["2*exp(-0.7*x0) + 0.5*x1", "sin(3*x0)*x1 - 0.25*x2", "1/(x0 + 2) + 3*x1*x2"])
def test_cleaning_up_never_makes_a_fit_worse(text: str, noise: float) -> None:
    y = values(parse(text)) + noise * RNG.normal(size=POSITIVE.n_samples)
    fitter = _fitter(y)
    fitted = fitter.fit([split_form(parse(text)), _form("x0", "x1", "x2"), _form("exp(1*x0)", "x1")])
    for before, after in zip(fitted, clean_up(fitter, fitted), strict=True):
        assert after.nmse <= max(4.0 * before.nmse, 1e-26)
        assert len(after.terms) <= len(before.terms)


def test_an_exact_fit_ends_with_simple_numbers_and_without_terms_that_vanish() -> None:
    y = values(parse("0.5*exp(-2*x0) + x1/3"))
    fitter = _fitter(y)
    fitted = fitter.fit([_form("exp(-1.9*x0)", "x1", "tanh(x2)")])
    (clean,) = clean_up(fitter, fitted)
    assert str(assemble(clean.terms, clean.coefficients.tolist())) == "0.5*exp(-2*x0) + 0.3333333333333333*x1"


@given(
    st.sampled_from([1.0, math.pi, 1.0 / math.pi, math.pi**2, math.sqrt(2.0)]),
    st.integers(1, 60),
    st.sampled_from([1, 2, 3, 4, 5, 6, 8, 10, 12]),
    st.sampled_from([-1.0, 1.0]),
    st.floats(-1e-9, 1e-9),
)
def test_numbers_within_rounding_of_a_simple_one_are_moved_there(
    base: float, numerator: int, denominator: int, sign: float, off: float
) -> None:
    simple = sign * numerator / denominator * base
    np.testing.assert_allclose(simple_number(simple * (1.0 + off)), simple, rtol=1e-14)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_never_moved_farther_than_rounding_and_only_once(value: float) -> None:
    moved = simple_number(value)
    assert abs(moved - value) <= max(SNAP_DISTANCE * abs(value), 1e-9)
    np.testing.assert_allclose(simple_number(moved), moved, rtol=1e-15)


@given(st.integers(0, 10**6))
def test_hardly_any_arbitrary_number_is_near_a_simple_one(seed: int) -> None:
    drawn = np.random.default_rng(seed).uniform(0.1, 10.0, 200)
    assert sum(simple_number(float(v)) != float(v) for v in drawn) <= 3


def test_simple_number_keeps_what_is_out_of_range() -> None:
    assert simple_number(3.0e7 + 1e-3) == 3.0e7 + 1e-3
    assert simple_number(1e-10) == 0.0
    assert Expression.of(simple_number(-0.0)).tokens == (0.0,)
