"""Numbers for people."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sobolev_novelty as sn
from sobolev_novelty.core.digits import MAX_DIGITS, interval_text, number_text, short_numbers
from sobolev_novelty.core.expression import short_text
from sobolev_novelty.language.convert import to_latex
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.report.render.formulas import short_formula

VALUES = st.floats(min_value=-1e12, max_value=1e12).filter(lambda v: v == 0.0 or abs(v) > 1e-12)


@given(VALUES, st.floats(min_value=1e-9, max_value=1e9))
def test_the_last_digit_shown_is_of_the_order_of_a_tenth_of_the_half_width(value: float, half: float) -> None:
    shown = float(number_text(value, half))
    is_cut = half / 10.0 < abs(value) * 10.0**-MAX_DIGITS
    at_least_one_digit = 0.5 * 10.0 ** math.ceil(math.log10(abs(value))) if value else 0.0
    if not is_cut:
        assert abs(shown - value) <= max(0.0501 * half, at_least_one_digit if half > abs(value) else 0.0)


@given(VALUES)
def test_a_number_without_an_interval_has_four_digits_and_a_small_whole_number_all_of_its_own(value: float) -> None:
    shown = float(number_text(value))
    assert abs(shown - value) <= 5.001e-4 * abs(value)


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (1.0 / 3.0, None, "0.3333"),
        (2010.0, None, "2010"),
        (math.inf, None, "–"),
        (None, None, "–"),
        (123.456, 40.0, "123"),
        (123.456, 4000.0, "1e+02"),
        (-0.98765, 0.002, "-0.9877"),
        (5.0, 0.0, "5"),
        (1.0 / 3.0, math.inf, "0.3333"),
    ],
)
def test_numbers_are_written_as_a_person_would(value: float | None, half: float | None, text: str) -> None:
    assert number_text(value, half) == text


def test_an_open_end_is_infinite() -> None:
    assert interval_text(-math.inf, 2.0, 1.0) == "−∞ … 2"


def test_no_display_shows_seventeen_digits() -> None:
    e = parse("0.123456789012345*sin(9.87654321098765*x0) + 1234.56789012345")
    for shown in (short_text(e), to_latex(e), short_formula(str(e)), e._repr_latex_()):
        assert "12345678" not in shown and "654321" not in shown
    assert parse(str(e)) == e
    assert to_latex(e, None).startswith("0.123456789012345")


def test_text_that_is_not_a_formula_stays_as_it_is() -> None:
    assert short_formula("term 0.123456789") == "term 0.123456789"


def test_a_formula_is_shown_with_four_digits_and_its_names_as_they_are() -> None:
    names = ("x1", "a 1.23456789", "b`2.3456789", "x10", "e5", "m_1")
    e = sn.parse("1.23456789*`a 1.23456789` + 12.5*x1 - 7654321.125*`b``2.3456789`/x10 + 1e-7*e5*m_1", names=names)
    shown = short_numbers(str(e))
    assert shown == "1.235*`a 1.23456789` + 12.5*x1 - 7.654e+06*`b``2.3456789`/x10 + 1e-07*e5*m_1"
    assert sn.parse(shown, names=names).variables == e.variables


def test_no_text_for_a_person_has_seventeen_digits() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (200, 1))
    y = 2.7642760034744 * X[:, 0] + rng.normal(size=200)
    text = "2.7642760034744*x0 + 3.1234567891234*sin(1.23456789012*x0) + 0.7777777777*x0**2"
    report = sn.novelty(text, X, y)
    pruned = sn.prune(text, X, y)
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=200), random_state=0).fit(X, y)
    shown = [str(report), *(str(report.explain(k)) for k in range(3)), str(pruned), repr(pruned)]
    shown += [*model.verdicts_["term"]]
    assert not [part for part in shown if re.search(r"\d\.\d{6}", part)]
    assert "1.23456789012" in "".join(report.labels)  # what is read again stays exact
