"""Exact solutions, by numbers and by algebra."""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import psutil
import pytest
from hypothesis import given, settings, strategies as st

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.lab.bench.judging import exact
from sobolev_novelty.lab.bench.judging.exact import exact_solution, snapped, symbolic_verdict
from sobolev_novelty.lab.bench.problems.tasks import whitebox_tasks
from sobolev_novelty.language.parsing import parse

X = np.random.default_rng(0).uniform(1, 3, size=(200, 3))
TRUTH = parse("x0*(x1 + sin(x2))")


def numeric(model: str | Expression, truth: Expression = TRUTH, points: np.ndarray = X) -> bool:
    expression = parse(model) if isinstance(model, str) else model
    return exact_solution(expression, truth, points, algebra_seconds=0).numeric


@pytest.mark.parametrize("model", ["x0*x1 + x0*sin(x2)", "x0*x1 + x0*sin(x2) - 4.2", "-3.3*x0*(sin(x2) + x1)"])
def test_the_truth_in_another_form_with_an_offset_or_a_factor_is_exact(model: str) -> None:
    assert numeric(model)


@pytest.mark.parametrize(
    "model",
    ["x0*x1", "2*x0*(x1 + sin(x2)) + 1", "x0*(x1 + sin(x2)) + 1e-4*x0", "5", "log(x0 - 100)", "0*x0", "x0*x1 + x0*x2"],
)
def test_what_differs_by_more_than_a_constant_is_not_exact(model: str) -> None:
    assert not numeric(model)


def test_constants_that_a_fit_left_near_simple_numbers_are_moved_there() -> None:
    assert numeric("0.99996*x0*(1.00003*x1 + sin(0.99998*x2)) + 0.37")
    assert not numeric("0.99*x0*(1.01*x1 + sin(x2))")


@given(value=st.floats(-1e4, 1e4).filter(lambda v: abs(v) > 1e-5))
def test_snapping_moves_a_constant_by_at_most_a_thousandth_and_is_idempotent(value: float) -> None:
    once = snapped(Expression.of(value))
    assert abs(once.constants[0] - value) <= exact.SNAP_DISTANCE * abs(value)
    np.testing.assert_allclose(snapped(once).constants, once.constants, rtol=1e-15)


@given(
    numerator=st.integers(1, 40),
    denominator=st.integers(1, 12),
    sign=st.sampled_from([-1, 1]),
    pi=st.sampled_from([0, 1]),
)
def test_simple_numbers_stay(numerator: int, denominator: int, sign: int, pi: int) -> None:
    value = sign * numerator / denominator * np.pi**pi
    np.testing.assert_allclose(snapped(Expression.of(value)).constants[0], value, rtol=1e-14)


@pytest.mark.parametrize("task", whitebox_tasks(), ids=lambda task: task.name)
def test_every_truth_is_an_exact_solution_of_its_own_task_and_no_longer_with_another_term(task) -> None:
    points, y = task.sample(300, np.random.default_rng(1))
    truth = task.positional_expression
    assert numeric(truth, truth, points)
    disturbed = Expression.of(
        "add", truth, Expression.of("mul", 1e-3 * float(np.std(y)), Expression.of("square", "x0"))
    )
    assert not numeric(disturbed, truth, points)


@given(offset=st.floats(-10, 10), factor=st.floats(0.1, 10))
@settings(max_examples=30)
def test_offset_and_factor_alone_are_forgiven(offset: float, factor: float) -> None:
    assert numeric(Expression.of("add", TRUTH, offset))
    assert numeric(Expression.of("mul", factor, TRUTH))


@pytest.fixture(params=["alone", "forked"])
def child(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How SymPy is asked: by a fresh interpreter, or by a fork of one that has it."""
    import sympy  # noqa: F401

    if request.param == "alone":
        monkeypatch.delitem(sys.modules, "sympy")
    elif sys.platform != "linux":
        pytest.skip("Processes are forked on Linux only.")
    return str(request.param)


@pytest.mark.slow
@pytest.mark.usefixtures("child")
def test_algebra_agrees_with_srbench_on_rounded_constants() -> None:
    for model, expected in [
        ("1.0002*x0*x1 + x0*sin(x2) + 2.5", True),
        ("3.0*x0*(x1 + sin(x2))", True),
        ("x0*x1 + x0*x2", False),
        ("7", False),
    ]:
        verdict, reason = symbolic_verdict(parse(model), TRUTH)
        assert verdict is expected, reason


def test_both_verdicts_are_given_with_a_reason() -> None:
    verdict = exact_solution(parse("x0*x1 + x0*sin(x2)"), TRUTH, X)
    assert verdict.numeric and verdict.symbolic
    assert "SymPy: the difference is 0" in verdict.note


@pytest.mark.usefixtures("child")
def test_sympy_is_stopped_when_its_time_is_up() -> None:
    # Minutes of simplification.
    model = parse("+".join(f"sqrt(x0**{k} + sin(x1*{k}) + log(x2 + x1**{k}))*cos(x0/{k})" for k in range(2, 12)))
    begin = time.monotonic()
    verdict, reason = symbolic_verdict(model, TRUTH, seconds=0.05)
    assert verdict is None
    assert "no answer in 0.05 s" in reason
    assert time.monotonic() - begin < 2.0


@pytest.mark.skipif(sys.platform != "linux", reason="Processes are forked on Linux only.")
def test_a_child_that_fails_or_dies_gives_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    import sympy  # noqa: F401

    def fails(model: str, truth: str) -> tuple[bool, str]:
        raise ValueError(f"cannot simplify {model}")

    monkeypatch.setattr(exact, "_answer", fails)
    assert symbolic_verdict(parse("x0"), TRUTH) == (None, "SymPy failed: ValueError: cannot simplify x0")
    monkeypatch.setattr(exact, "_answer", lambda model, truth: os._exit(7))
    assert symbolic_verdict(parse("x0"), TRUTH) == (None, "SymPy failed: exit code 7")


def test_protected_operators_do_not_stop_algebra() -> None:
    verdict, reason = symbolic_verdict(parse("gpdiv(x0, x1)"), parse("x0/x1"))
    assert verdict is False, reason


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_what_asks_sympy_ends_with_the_job_that_is_killed() -> None:
    script = (
        "import sympy, time\n"
        "from sobolev_novelty.lab.bench.judging import exact\n"
        "from sobolev_novelty.language.parsing import parse\n"
        "exact._answer = lambda *_: time.sleep(120)\n"
        "exact.symbolic_verdict(parse('x0'), parse('x0'), 100.0)\n"
    )
    job = psutil.Popen([sys.executable, "-c", script])
    try:
        end = time.monotonic() + 60.0
        while not job.children() and time.monotonic() < end:
            time.sleep(0.1)
        (child,) = job.children()
    finally:
        job.kill()
        job.wait()
    child.wait(timeout=20.0)
    assert not child.is_running()
