"""Equations judged by trajectories: integral matching, multiple shooting, and the solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynamical_systems import lorenz, predation, trajectory
from sobolev_novelty.dynamics.choice import SystemChoice
from sobolev_novelty.dynamics.differentiation import smooth
from sobolev_novelty.dynamics.integration import integrate
from sobolev_novelty.dynamics.matching import IntegralMatching, without_a_term
from sobolev_novelty.dynamics.rates import RateForms
from sobolev_novelty.dynamics.shooting import _Shooting, shoot
from sobolev_novelty.dynamics.trajectories import Trajectory
from sobolev_novelty.language.parsing import parse

T = np.linspace(0.0, 10.0, 200)
NAMES = ("x0", "x1")


@pytest.fixture(scope="module")
def measured() -> Trajectory:
    return Trajectory(T, trajectory(predation, [1.0, 0.5], T, noise=0.01), NAMES)


def test_derivatives_of_the_rates_agree_with_differences() -> None:
    forms = RateForms.of([parse("2*x0 - sin(3*x1)"), parse("x0*exp(-0.5*x1) + 1")], NAMES)
    rng = np.random.default_rng(0)
    theta, x = rng.uniform(0.5, 1.5, forms.n_parameters), rng.uniform(0.5, 1.5, (2, 5))
    f, f_theta = forms.along_parameters(theta, x)
    step = 1e-6
    for k in range(forms.n_parameters):
        moved = theta + step * np.eye(forms.n_parameters)[k]
        np.testing.assert_allclose(f_theta[:, k], (forms.along_parameters(moved, x)[0] - f) / step, atol=1e-4)
    f_x = forms.along_inputs(theta, x)
    for k in range(2):
        moved = x + step * np.eye(2)[k][:, None]
        np.testing.assert_allclose(f_x[:, k], (forms.along_parameters(theta, moved)[0] - f) / step, atol=1e-4)


def test_parameters_give_back_the_expressions() -> None:
    equations = [parse("2*x0 - sin(3*x1)"), parse("x0*exp(-0.5*x1) + 1")]
    forms = RateForms.of(equations, NAMES)
    x = np.random.default_rng(0).uniform(0.5, 1.5, (2, 50))
    theta = forms.parameters(equations, NAMES, x)
    assert [str(e) for e in forms.expressions(theta)] == [str(e) for e in equations] or np.allclose(
        forms.along_parameters(theta, x)[0], [2 * x[0] - np.sin(3 * x[1]), x[0] * np.exp(-0.5 * x[1]) + 1]
    )


def test_the_jacobian_of_shooting_agrees_with_differences(measured: Trajectory) -> None:
    equations = [parse("1.2*x0 - 0.8*x0*x1"), parse("0.6*x0*x1 - 1.2*sin(0.9*x1)")]
    problem = _Shooting(equations, NAMES, [measured], [smooth(measured)], 4)
    at = np.concatenate([problem.theta, problem.start.ravel()])
    residual, jacobian = problem._misfit(at)
    step = 1e-6
    for k in range(len(at)):
        moved = at + step * np.eye(len(at))[k]
        np.testing.assert_allclose(jacobian[:, k], (problem._misfit(moved)[0] - residual) / step, atol=2e-3)


def test_matching_finds_constants_from_noisy_states(measured: Trajectory) -> None:
    matched = IntegralMatching([measured], [smooth(measured)], 0, NAMES).fit(parse("x0 - x0*x1"))
    assert matched is not None
    np.testing.assert_allclose(np.sort(np.abs(matched.expression.constants)), [0.9, 1.3], rtol=0.02)


def test_shooting_finds_them_better(measured: Trajectory) -> None:
    found = shoot([parse("x0 - x0*x1"), parse("x0*x1 - x1")], NAMES, [measured], [smooth(measured)])
    assert found is not None and found.n_stretches == 1
    constants = [c for expression in found.expressions for c in expression.constants]
    np.testing.assert_allclose(np.sort(np.abs(constants)), [0.7, 0.9, 1.1, 1.3], rtol=0.01)
    np.testing.assert_allclose(found.errors, 0.0173, rtol=0.2)  # the noise, relative to the spread


def test_the_choice_keeps_what_the_data_need_and_drops_the_rest(measured: Trajectory) -> None:
    choice = SystemChoice([measured], [smooth(measured)], NAMES)
    fronts = [[parse("x0"), parse("x0 - x0*x1 + 0.01")], [parse("x0*x1 - x1"), parse("x1*(x0 - 1) + 0.02*x0**3")]]
    found = choice.best([parse("x0*x1 + x0 + 0.1*x1"), parse("x1")], fronts)
    x = np.random.default_rng(0).uniform(0.5, 2.0, (2, 50))
    for expression, truth in zip(found, predation(0.0, x), strict=True):
        assert len(expression.constants) == 2 and "x0**3" not in str(expression)
        forms = RateForms.of([expression], NAMES)
        values = forms.along_parameters(forms.parameters([expression], NAMES, x), x)[0][0]
        np.testing.assert_allclose(values, truth, atol=0.1)


def test_a_chaotic_trajectory_is_refined_in_stretches() -> None:
    t = np.linspace(0.0, 10.0, 400)
    measured = Trajectory(t, trajectory(lorenz, [-8.0, 8.0, 27.0], t, noise=0.01), ("x", "y", "z"))
    start = [parse("9*(y - x)"), parse("x*(27 - z) - 1.2*y"), parse("x*y - 2.5*z")]
    found = shoot(start, measured.names, [measured], [smooth(measured)])
    assert found is not None and found.n_stretches > 1
    x = np.random.default_rng(0).uniform(-10.0, 10.0, (3, 50))
    forms = RateForms.of(found.expressions, measured.names)
    rates = forms.along_parameters(forms.parameters(found.expressions, measured.names, x), x)[0]
    np.testing.assert_allclose(rates, np.array(lorenz(0.0, x)), atol=1.5)


def test_of_a_long_record_some_stretches_are_enough() -> None:
    t = np.linspace(0.0, 500.0, 40_000)
    x = np.column_stack([np.cos(2.0 * t), -2.0 * np.sin(2.0 * t)])
    measured = Trajectory(t, x + 0.01 * np.random.default_rng(0).standard_normal(x.shape), NAMES)
    curve = replace(smooth(Trajectory(t[:100], x[:100], NAMES)), t=t, x=x, rates=x, trust=x)
    found = shoot([parse("x1"), parse("-3.9*x0")], NAMES, [measured], [curve], only_short=True)
    assert found is not None and found.n_points < 30_000
    np.testing.assert_allclose(found.expressions[1].constants, [-4.0], rtol=1e-3)


def test_without_a_term_leaves_each_out_in_turn() -> None:
    assert sorted(str(e) for e in without_a_term(parse("x0 + x1 + 2"))) == ["x0 + 1", "x0 + x1", "x1 + 1"]
    assert list(without_a_term(parse("x0*x1"))) == []


def test_the_solver_is_accurate_and_says_why_it_stops() -> None:
    t = np.linspace(0.0, 10.0, 50)
    x = integrate([parse("x1"), parse("-4*x0")], NAMES, t, np.array([1.0, 0.0])).x
    np.testing.assert_allclose(x[:, 0], np.cos(2.0 * t), atol=1e-5)
    stopped = integrate([parse("-1/x0")], ["x0"], t, np.array([1.0]))
    assert stopped.diverged_at is not None and 0.4 < stopped.diverged_at < 0.6
    stiff = integrate([parse("-1e6*(x0 - 2)")], ["x0"], t, np.array([1.0]))
    np.testing.assert_allclose(stiff.x[1:, 0], 2.0, rtol=1e-5)
    beyond = integrate([parse("log(x0)")], ["x0"], t, np.array([0.5]))
    assert beyond.reason == "The equations have no finite value there."
