"""Numbers for people."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.convert import to_latex
from sobolev_novelty.digits import MAX_DIGITS, interval_text, number_text
from sobolev_novelty.expression import short_text
from sobolev_novelty.parsing import parse
from sobolev_novelty.render.formulas import short_formula

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
