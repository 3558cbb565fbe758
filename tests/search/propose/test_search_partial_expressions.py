"""Partial expressions: what a hole must equal, which terms come near to it, and the whole written down."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from algebra_cases import POSITIVE, allowed_operators, operators_of, values
from sobolev_novelty.algebra.outer import OUTERS
from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import ONE, Writer
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS
from sobolev_novelty.search.propose.partial_expressions import Partial, Step, open_hole, power_laws, write_form
from sobolev_novelty.search.propose.term_library import make_library

WRITER = Writer(DEFAULT_OPERATORS)
LIBRARY = make_library(POSITIVE, WRITER, np.random.default_rng(0), max_terms=800)
FACTORS = tuple(
    Product(tuple((parse(base), exponent) for base, exponent in powers.items()))
    for powers in ({"x0": 1.0}, {"x1": -2.0, "x2": 0.5}, {"x0 + x1": 1.0}, {"x2": 1.0, "sin(x0)": 1.0})
)
TERMS = tuple(parse(text) for text in ("x0", "square(x1)", "x0*x2", "exp(-1*x1)", "1"))
#: Steps around a positive inner sum that stay in the domain of each other.
STEPS = st.lists(st.sampled_from([*FACTORS, "sqrt", "inverse", "inverse sqrt", "square", "log", "exp"]), max_size=3)


def _whole(steps: list[Step], terms: tuple[Expression, ...], weights: list[float]) -> Expression | None:
    return write_form(Partial(tuple(steps), terms), weights, {}, WRITER)


@given(
    STEPS,
    st.lists(st.sampled_from(TERMS), min_size=1, max_size=3, unique=True),
    st.lists(st.floats(0.1, 3.0), min_size=3, max_size=3),
)
@settings(max_examples=150)
def test_undoing_the_steps_gives_the_inner_sum_back(
    steps: list[Step], terms: list[Expression], weights: list[float]
) -> None:
    coefficients = weights[: len(terms)]
    inner = np.array([values(term) for term in terms]).T @ coefficients
    whole = _whole(steps, tuple(terms), coefficients)
    assert whole is not None
    y = values(whole)
    if not np.isfinite(y).all() or np.ptp(inner) == 0.0 or not 1e-30 < np.abs(y).max() < 1e30:
        return
    hole = open_hole(tuple(steps), y, LIBRARY, WRITER)
    if hole is None:  # an exponential of a large number, say
        return
    seen = hole.w > 0.0
    np.testing.assert_allclose(hole.t[seen], inner[seen], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", OUTERS)
def test_a_hole_weighs_an_error_as_the_target_feels_it(name: str) -> None:
    outer = OUTERS[name]
    s = 0.2 + 0.3 * POSITIVE.X[0]
    template = outer.write(Expression.of("x0"))

    def apply(at: np.ndarray) -> np.ndarray:
        return evaluate(template, at[:, None])

    hole = open_hole((name,), apply(s), LIBRARY, WRITER)
    assert hole is not None
    np.testing.assert_allclose(hole.t, s, rtol=1e-8)
    slope = np.abs(apply(s + 1e-6) - apply(s - 1e-6)) / 2e-6
    np.testing.assert_allclose(hole.w, slope / np.median(slope), rtol=1e-5)


@given(allowed_operators, STEPS, st.lists(st.sampled_from(TERMS), min_size=1, max_size=3, unique=True))
@settings(max_examples=100)
def test_a_whole_is_written_in_allowed_operators(
    operators: tuple[str, ...], steps: list[Step], terms: list[Expression]
) -> None:
    writer = Writer(operators)
    whole = write_form(Partial(tuple(steps), tuple(terms)), [-0.5] * len(terms), {}, writer)
    assert whole is None or operators_of([whole]) <= set(operators)


def test_a_known_product_absorbs_the_factors_around_it() -> None:
    term = parse("square(x0)")
    known = {term: Product(((parse("x0"), 2.0),))}
    whole = write_form(Partial((FACTORS[0],), (term,)), [2.0], known, WRITER)
    assert whole is not None
    assert str(whole) == "2*cube(x0)"


@given(st.lists(st.integers(1, len(LIBRARY) - 1), min_size=1, max_size=2, unique=True), st.integers(0, 1000))
@settings(max_examples=40)
def test_a_pursuit_ends_at_a_planted_sum_or_explains_nearly_all_of_it(places: list[int], seed: int) -> None:
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(places))
    columns = LIBRARY.exact[places]
    y = weights @ (columns / np.abs(columns).max(axis=1, keepdims=True))
    hole = open_hole((), y, LIBRARY, WRITER)
    assert hole is not None
    pursuit = hole.pursuit()
    left = [pursuit.unexplained]
    for _ in range(6):
        top, gains = pursuit.best(3)
        if len(top) == 0:
            break
        assert list(gains) == sorted(gains, reverse=True)
        pursuit.add(hole.column(int(top[0])))
        left.append(pursuit.unexplained)
    assert all(after <= before + 1e-12 for before, after in pairwise(left))
    assert left[-1] < (1e-9 if len(places) == 1 else 1e-2)


def test_a_term_already_there_gains_nothing() -> None:
    y = values(parse("exp(x0)*x1 + x2"))
    hole = open_hole((), y, LIBRARY, WRITER)
    assert hole is not None
    pursuit = hole.pursuit((ONE, parse("x2")))
    gains = pursuit.gains()
    assert gains[LIBRARY.places[ONE]] == 0.0
    assert gains[LIBRARY.places[parse("x2")]] == 0.0
    np.testing.assert_allclose(pursuit.span.residual @ np.ones(len(y)), 0.0, atol=1e-12)


@given(st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]), min_size=3, max_size=3))
def test_the_exponents_of_a_power_law_are_found(powers: list[float]) -> None:
    y = 3.0 * np.prod(POSITIVE.X ** np.array(powers)[:, None], axis=0)
    hole = open_hole((), y, LIBRARY, WRITER)
    if hole is None:  # the target is constant
        assert not any(powers)
        return
    every, sure = power_laws(hole)
    assert every == sure == Product(tuple((parse(f"x{k}"), p) for k, p in enumerate(powers) if p))


def test_a_power_law_with_too_few_rows_is_none() -> None:
    hole = open_hole((), values(parse("x0*x1")), LIBRARY, WRITER)
    assert hole is not None
    hole.w[:] = 0.0
    assert power_laws(hole) == (Product(), Product())
