"""Nothing but rounding is not a term of its own."""

from __future__ import annotations

import numpy as np
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.report.resolution.rounding_errors import is_rounding

X = np.random.default_rng(0).uniform(1.0, 5.0, (200, 2))


@pytest.mark.parametrize(
    "text",
    [
        "cos(x0)**2 + sin(x0)**2 - 1",
        "x1*(cos(x0)**2 + sin(x0)**2 - 1)",
        "(x0 + x1)**2 - x0**2 - 2*x0*x1 - x1**2",
        "exp(log(x0)) - x0",
        "log(cos(x0)**2 + sin(x0)**2)",
    ],
)
def test_a_term_that_is_all_rounding_is_not_distinct(text: str) -> None:
    report = sn.novelty([text, "x1"], X, X[:, 1] + 0.1 * np.cos(40.0 * X[:, 0]))
    assert [v.distinct for v in report.verdicts] == ["constant", "yes"]
    assert [v.needed for v in report.verdicts] == ["constant", "yes"]
    assert "Term 0 is constant up to rounding: its novelty is that of rounding errors." in report.notes
    assert report.summary.startswith("The only term besides the intercept is distinct")
    assert sn.novelty([text], X).summary == "The equation is constant on these rows."


@pytest.mark.parametrize(
    "text", ["1e-14*sin(x0)", "x0 + 1e6", "x0**20", "exp(-40*x0)", "1e-300*x0", "495/(x0 + 1e3) - 450", "x0 - 3"]
)
def test_small_and_shifted_terms_are_not_taken_for_rounding(text: str) -> None:
    assert not is_rounding([parse(text)], as_sample(X)).any()


def test_a_wave_that_no_row_shows_is_unresolved_and_not_constant() -> None:
    whole = np.arange(60.0)
    assert sn.novelty("sin(6.283185307179586*x0) + x0", whole).verdicts[0].distinct == "unresolved"


def test_own_operators_pass_their_errors_on() -> None:
    sn.register_operator("twice", lambda a: 2.0 * a)
    try:
        assert is_rounding([parse("twice(sin(x0)**2 + cos(x0)**2) - 2")], as_sample(X)).all()
        assert not is_rounding([parse("twice(x0) - 2")], as_sample(X)).any()
    finally:
        sn.unregister_operator("twice")
