"""Poles and domains: what is proved, what is shown by a point, what stays open."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import sobolev_novelty as sn
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.operators.interval_arithmetic import applied
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.report.resolution.domains import Answer, check_domain
from strategies import all_constants, expressions, small_constants


def box(*ranges: tuple[float, float]) -> np.ndarray:
    return np.array(ranges, dtype=float).T


@pytest.mark.parametrize(
    ("equation", "ranges", "answer"),
    [
        ("1/(x0 - 0.5)", [(0, 1)], "certain problem"),
        ("1/(x0**2 - 2*x0 + 1)", [(0, 3)], "certain problem"),  # touches zero without a change of sign
        ("tan(3*x0)", [(0, 1)], "certain problem"),
        ("log(x0 - x1)", [(1, 2), (0, 1.5)], "certain problem"),
        ("sqrt(x0)", [(-1, 1)], "certain problem"),
        ("exp(x0**3)", [(0, 10)], "certain problem"),
        ("x0/(x1 - x2*x3)", [(1, 2), (1, 5), (1, 2), (1, 2)], "certain problem"),
        ("sin(x0)/(x0*(x0 - 2))", [(-1, 3)], "certain problem"),
        ("arcsin(x0)", [(0, 2)], "certain problem"),
        ("x0**x1", [(-1, 1), (0, 2)], "certain problem"),
        ("1/(x0**2 - x0 + 1)", [(0, 1)], "safe"),
        ("log(x0 - x1)", [(1, 2), (0, 0.5)], "safe"),
        ("sqrt(1 - cos(x0))", [(-9, 9)], "safe"),
        ("arcsin(x0/x1)", [(0, 1), (1, 2)], "safe"),
        ("495/x0 - 450", [(0.9, 1.1)], "safe"),
        ("x0**-2 + x0**0.5", [(0.1, 2)], "safe"),
        ("x0 + 3", [(0, 1)], "safe"),
        ("1/(x0**2 + x1**2 - 2*x0*x1 + 0.0001)", [(0, 1), (0, 1)], "undecided"),
    ],
)
def test_the_answer_is_safe_certain_or_undecided(equation: str, ranges: list[tuple[float, float]], answer: str) -> None:
    assert check_domain(equation, box(*ranges)).answer.value == answer


@pytest.mark.parametrize("equation", ["sin(x0)/x0", "1/(1 + exp(-1000*x0))", "(x0 - 1)*(x0 - 2)/(x0 - 1)"])
def test_what_leaves_the_whole_finite_is_not_called_certain(equation: str) -> None:
    assert check_domain(equation, box((-2, 2))).answer is not Answer.CERTAIN


def test_a_finding_names_the_subexpression_and_the_place() -> None:
    found = check_domain("3*x0 + 2/(x0 - 1.25)", box((0, 2)))
    assert found.findings[0].region["x0"] == pytest.approx((1.25, 1.25))
    assert found.sentences == ("2/(x0 - 1.25) has a pole within the range of the inputs, at x0 = 1.25.",)
    undecided = check_domain("1/(x0**2 + x1**2 - 2*x0*x1 + 0.0001)", box((0, 1), (0, 1)))
    assert "could not be decided" in undecided.sentences[0]


def test_the_work_is_limited() -> None:
    found = check_domain("1/(x0**2 + x1**2 - 2*x0*x1 + 1e-5)", box((0, 1), (0, 1)), max_boxes=50)
    assert found.n_boxes < 150 and found.answer is Answer.UNDECIDED


RANGES = box((0.3, 2.0), (-1.0, 1.0), (0.0, 3.0))
CORNERS = np.array(list(product(*RANGES.T)))
POINTS = np.vstack([CORNERS, RANGES[0] + np.random.default_rng(0).random((10_000, 3)) * (RANGES[1] - RANGES[0])])


@settings(max_examples=400, deadline=None)
@given(expressions(constants=st.one_of(small_constants, all_constants)))
@example(sn.parse("square(1e200*x0)"))
@example(sn.parse("x0**1000", names=["x0"]))
@example(sn.parse("x0*1e308*x2"))
@example(sn.parse("1e-308/x0/1e308/(1e-308*x0)"))
def test_a_safe_expression_is_finite_at_every_point_of_the_box(e: Expression) -> None:
    if check_domain(e, RANGES, max_boxes=200).answer is Answer.SAFE:
        with np.errstate(all="ignore"):
            assert np.isfinite(sn.evaluate(e, POINTS)).all()


@pytest.mark.parametrize(
    ("equation", "ranges"),
    [
        ("square(1e200*x0)", [(1, 2)]),
        ("x0**1000", [(1, 3)]),
        ("x0*1e308*x1", [(1, 3), (1, 3)]),
        ("x0 + 1e308*10*x0", [(0, 1)]),
    ],
)
def test_what_overflows_at_the_rows_is_not_safe(equation: str, ranges: list[tuple[float, float]]) -> None:
    found = check_domain(equation, box(*ranges))
    assert found.answer is Answer.CERTAIN and "overflows within the range" in found.sentences[0]


def test_what_is_large_but_finite_does_not_overflow() -> None:
    assert check_domain("x0**900", box((1, 2))).answer is Answer.SAFE


def test_nothing_looked_at_is_not_safe() -> None:
    assert check_domain("x0", np.full((3, 1), np.nan)).answer is Answer.UNDECIDED
    for boxes in (0, -1, 1.5, True, None, "many"):
        with pytest.raises(ParameterError, match="'max_boxes' must be a whole number of at least 1. Got "):
            check_domain("x0", box((0, 1)), max_boxes=boxes)


@pytest.mark.parametrize("name", list(OPERATORS))
def test_bounds_hold_the_values_between_the_ends(name: str) -> None:
    op = OPERATORS[name]
    rng = np.random.default_rng(0)
    for _ in range(50):
        ends = [np.sort(rng.normal(scale=2.0, size=2)) for _ in range(op.arity)]
        bounds = applied(op, [(end[:1], end[1:]) for end in ends])
        points = [end[0] + rng.random(100) * (end[1] - end[0]) for end in ends]
        with np.errstate(all="ignore"):
            values = np.asarray(op.value(*points))
        if not bounds.trouble[0]:
            assert np.isfinite(values).all()
            assert (bounds.low[0] <= values).all() and (values <= bounds.high[0]).all()


def test_a_report_says_where_a_term_has_a_pole() -> None:
    X = np.r_[np.linspace(0.0, 0.9, 50), np.linspace(1.1, 2.0, 50)][:, None]
    report = sn.novelty("2/(x0 - 1) + x0", X)
    assert report.problems == ("1/(x0 - 1) has a pole within the range of the inputs, at x0 = 1.",)
    assert report.problems[0] in str(report).replace("\n", " ") and report.problems[0] in report.to_dict()["notes"]
    assert sn.novelty("2/(x0 + 1) + x0", X).problems == ()
