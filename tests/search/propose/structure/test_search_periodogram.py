"""Targets that oscillate many times are found by their frequency."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.search.propose.structure.periodogram import KEPT, waves
from sobolev_novelty.search.propose.subproblem import Variable

RNG = np.random.default_rng(3)
X = RNG.uniform([1.0, 1.0, 1.0], [2.0, 2.0, 4.0], (500, 3))


def variables() -> list[Variable]:
    return [Variable(Expression.of(f"x{k}"), np.ascontiguousarray(X[:, k])) for k in range(3)]


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_right_argument_has_the_highest_peak(noise: float):
    y = np.sin(14.0 * X[:, 0] * X[:, 1] / X[:, 2]) ** 2 + noise * RNG.normal(size=500)
    found = waves(variables(), y)
    assert len(found) == KEPT
    assert "x0*x1/x2" in str(found[0])
    frequency = max(found[0].constants)
    assert frequency == pytest.approx(28.0, rel=0.02)  # sin² has twice the frequency of its sine


def test_what_does_not_vary_has_no_waves():
    constant = [Variable(Expression.of("x0"), np.full(500, 2.0))]
    assert waves(constant, X[:, 0]) == []


def test_interference_is_found():
    y = np.sin(14.0 * X[:, 0] * X[:, 1] / X[:, 2]) ** 2
    model = SymbolicRegressor(budget=Budget(max_evaluations=2000), random_state=0).fit(X, y)
    assert model.score(X, y) > 1.0 - 1e-12
