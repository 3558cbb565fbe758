"""Laws that a reduction leaves as a curve of one variable, and laws with a small correction."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray, as_sample
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS, Problem
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.search.propose.structure.proposals import structural_forms
from sobolev_novelty.search.propose.structure.small_sums import KEPT, single_terms
from sobolev_novelty.search.propose.subproblem import Variable

G = np.exp(np.random.default_rng(0).uniform(-2.0, 3.0, 300))


@pytest.mark.parametrize(
    ("law", "form"),
    [
        (lambda g: g**3 / np.expm1(0.16 * g), "cube(g)/(exp("),
        (lambda g: np.exp(-0.3 / g) / g**2, "exp(-"),
        (lambda g: np.sqrt(g) * np.log1p(0.7 * g), "sqrt(g)*log("),
        (lambda g: np.sin(1.3 * g) / g, "sin("),
    ],
)
def test_the_right_kind_is_among_the_first(law: Callable[[FloatArray], FloatArray], form: str):
    found = single_terms(Variable(Expression.of("g"), G), law(G), DEFAULT_OPERATORS)
    assert len(found) == KEPT
    assert any(form in str(e) for e in found[:3])


def test_a_constant_and_forbidden_functions():
    assert single_terms(Variable(Expression.of("g"), G), np.ones_like(G), DEFAULT_OPERATORS) == []
    assert single_terms(Variable(Expression.of("g"), G), G, ("add", "mul")) == []
    signed = single_terms(
        Variable(Expression.of("g"), np.linspace(-3, 3, 60)), np.linspace(-3, 3, 60), DEFAULT_OPERATORS
    )
    assert all(np.isfinite(evaluate(e, as_sample(np.linspace(-3, 3, 60), names=["g"]))).all() for e in signed)


def exact_forms(law: Callable[..., FloatArray], X: FloatArray, n_batches: int) -> list[str]:
    """The exact ones among the first structural forms of a law."""
    problem = Problem(Rows(as_sample(X), law(*X.T)))
    batches = itertools.islice(structural_forms(problem, np.random.default_rng(0)), n_batches)
    forms = dict.fromkeys(form for batch in batches for form in batch)
    values = [evaluate(form, problem.sample) for form in forms]
    spread = float(np.ptp(problem.y))
    return [str(e) for e, v in zip(forms, values, strict=True) if np.max(np.abs(v - problem.y)) < 1e-9 * spread]


def test_what_a_power_law_leaves_is_a_law():
    X = np.random.default_rng(1).uniform([1.0, 1.0, 1.0, 3.0], [3.0, 3.0, 2.0, 5.0], (400, 4))
    assert exact_forms(lambda a, b, c, d: a * b / d**2 - 0.02 * c * a**2 / (d**2 - c**2) ** 2, X, 40)


def test_a_product_of_smooth_functions_of_different_inputs():
    X = np.random.default_rng(1).uniform([1.0, 1.0, 1.0], [5.0, 5.0, 2.0], (400, 3))
    law = lambda a, b, c: (np.sin(a / 2) * np.sin(b * c / 2) / (a * np.sin(b / 2))) ** 2  # noqa: E731
    found = exact_forms(law, X, 60)
    assert found
    assert "sin(0.5*x0)" in found[0]


def test_the_cosine_of_an_angle_is_a_quotient():
    X = np.random.default_rng(1).uniform(1.0, 2.5, (300, 3))
    found = exact_forms(lambda a, b, c: np.arccos((np.cos(a) - b / (b + c)) / (1 - b / (b + c) * np.cos(a))), X, 40)
    assert any("arccos" in form for form in found)


def test_planck():
    X = np.random.default_rng(1).uniform(1.0, 3.0, (400, 4))
    y = X[:, 0] ** 3 * X[:, 1] / (X[:, 2] ** 2 * np.expm1(0.2 * X[:, 0] * X[:, 1] / X[:, 3]))
    model = SymbolicRegressor(budget=Budget(max_evaluations=3000), random_state=0).fit(X, y)
    assert model.score(X, y) > 1.0 - 1e-12
