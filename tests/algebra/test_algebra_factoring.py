"""Factoring: the same function with fewer nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from sobolev_novelty.algebra.factoring import factored, flattened
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.language.parsing import parse
from strategies import expressions

NAMES = ("x0", "x1", "x2")


def _values(expression: Expression) -> np.ndarray:
    rng = np.random.default_rng(1)
    sample = as_sample(rng.uniform(0.3, 2.0, (40, 3)), NAMES)
    return derivatives([expression], sample, 0)[0, 0]


@given(expressions(names=NAMES, max_leaves=8))
def test_a_factored_expression_is_the_same_function_and_not_longer(expression: Expression) -> None:
    for shorter in (factored(expression), flattened(expression)):
        assert shorter.complexity <= expression.complexity
        before, after = _values(expression), _values(shorter)
        # Cancelling a factor may widen the domain; where both are finite and of moderate size they agree.
        both = np.isfinite(before) & np.isfinite(after) & (np.abs(before) < 1e8)
        np.testing.assert_allclose(after[both], before[both], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("x0*x1 + x0*x2*sin(x1)", "x0*(x1 + x2*sin(x1))"),
        ("1/(x0*x2/(x1*x1) - x2/(x1*x1))", "square(x1)/(x2*(x0 - 1))"),
        ("sqrt(x0*x1 + x0*x2)", "sqrt(x0*(x1 + x2))"),
        ("(x0*x1 + x0*x2)/(x1 + x2)", "x0"),
        ("sqrt(square(x0 - x1))", "sqrt(square(x0 - x1))"),
    ],
)
def test_common_factors_are_taken_out(text: str, short: str) -> None:
    assert factored(parse(text)).complexity <= parse(short).complexity


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("sqrt(x2*(x2 - 2*x1) + x0*(x0 - 2) + 1 + square(x1))", "sqrt(square(x2 - x1) + square(x0 - 1))"),
        ("x0**2 + 4*x0*x1 + 4*x1**2 + 3", "square(x0 + 2*x1) + 3"),
        ("-x0**2 + 2*x0*x1 - x1**2", "-square(x0 - x1)"),
        ("x0**4 - 2*x0**2*sin(x1) + sin(x1)**2", "square(square(x0) - sin(x1))"),
    ],
)
def test_perfect_squares_are_completed(text: str, short: str) -> None:
    found = factored(parse(text))
    assert found.complexity <= parse(short).complexity
    np.testing.assert_allclose(_values(found), _values(parse(text)), rtol=1e-9, atol=1e-12)
