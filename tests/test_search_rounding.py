"""Laws of data that were rounded."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.evaluation import derivatives
from sobolev_novelty.parsing import parse
from sobolev_novelty.search.choice import within_rounding
from sobolev_novelty.search.engine import Candidate
from sobolev_novelty.search.rounding import rounding, rounding_errors
from sobolev_novelty.search.validation import Rows

LAW = "0.5913*sin(log(x0 + 1)) - 0.175*square(x0)"


def table(kind: str) -> Rows:
    x = np.random.default_rng(0).uniform(0.1, 3.0, 400)
    X = x[:, None].astype(np.float32).astype(float) if kind == "single" else x[:, None]
    y = 0.5913 * np.sin(np.log(x + 1.0)) - 0.175 * x**2
    y = {"single": y.astype(np.float32).astype(float), "digits": np.round(y, 7), "double": y}[kind]
    return Rows(X, y, None, ("x0",))


def error(text: str, rows: Rows) -> float:
    prediction = derivatives([parse(text)], rows.sample, 0)[0, 0]
    return float(np.mean((rows.y - prediction) ** 2) / np.var(rows.y))


@pytest.mark.parametrize("kind", ["single", "digits"])
def test_the_error_that_rounding_leaves(kind: str):
    rows = table(kind)
    (expected,) = rounding_errors([parse(LAW)], rows)
    assert 0.5 < error(LAW, rows) / expected < 2.0


def test_numbers_with_all_their_digits_are_not_rounded():
    assert rounding_errors([parse(LAW)], table("double")).tolist() == [0.0]
    assert not rounding(np.random.default_rng(0).normal(size=20), decimals=True).any()


def test_settings_of_an_input_are_exact():
    assert not rounding(np.linspace(0.0, 1.0, 11), decimals=False).any()
    assert not rounding(np.arange(10.0), decimals=False).any()


def test_a_value_at_which_the_law_has_no_slope():
    x = np.linspace(-1.0, 1.0, 101).astype(np.float32).astype(float)
    rows = Rows(x[:, None], np.cbrt(np.abs(x)).astype(np.float32).astype(float), None, ("x0",))
    assert np.isfinite(rounding_errors([parse("cbrt(abs(x0))")], rows)).all()


def candidate(text: str, nmse: float) -> Candidate:
    return Candidate(parse(text), parse(text), nmse, 1.0)


def test_of_what_the_rows_allow_the_one_with_fewer_numbers():
    rows = table("single")
    law = candidate(LAW, error(LAW, rows))
    shorter = candidate("0.1 + 0.2*x0 + 0.3*exp(0.4*x0)", law.nmse)  # of as many nodes, with four numbers
    short = candidate("0.2*x0", 1e-6)
    longer = candidate(LAW + " + 1e-12*x0", 0.9 * law.nmse)
    assert within_rounding([short, shorter, law, longer], rows) == 2


def test_no_rule_where_the_data_are_exact_or_the_fit_is_not():
    rows = table("double")
    assert within_rounding([candidate(LAW, 1e-13)], rows) is None
    assert within_rounding([candidate(LAW, 1e-6)], table("single")) is None
    assert within_rounding([candidate(LAW, 1e-25)], table("single")) is None  # exact: nothing to decide


def test_an_exact_law_in_whole_numbers_goes_before_one_that_rounding_would_allow():
    x = np.arange(1.0, 2000.0)
    rows = Rows(x[:, None], x**2 + 1.0, None, ("x0",))
    near = candidate("square(x0) + 0.6", error("square(x0) + 0.6", rows))
    assert within_rounding([near], rows) == 0
    assert within_rounding([near, candidate("square(x0) + 1", 0.0)], rows) is None
