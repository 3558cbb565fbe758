"""What the tests of rewriting share: a sample, subsets of the operators, and what "the same function" means."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS

NAMES = ("x0", "x1", "x2")
#: Positive inputs: powers and roots are real, poles are rare.
POSITIVE = Sample(np.random.default_rng(1).uniform(0.3, 2.0, (3, 60)), NAMES)
#: Inputs of both signs.
SIGNED = Sample(np.random.default_rng(2).uniform(-2.0, 2.0, (3, 60)), NAMES)

#: Operators that rewriting knows rules for, and a few functions that it must leave alone.
REWRITTEN = ("add", "sub", "mul", "div", "neg", "pow", "square", "cube", "sqrt", "inv", "exp", "log", "sin", "tanh")

#: Sets of operators a user may allow.
allowed_operators = st.sets(st.sampled_from((*DEFAULT_OPERATORS, "pow"))).map(lambda names: tuple(sorted(names)))


def values(expression: Expression, sample: Sample = POSITIVE) -> np.ndarray:
    """Values on the rows of the sample; not finite outside the domain."""
    return derivatives([expression], sample, 0)[0, 0]


def operators_of(expressions: Iterable[Expression]) -> set[str]:
    """Names of all operators in the expressions."""
    return {token.name for e in expressions for token in e.tokens if isinstance(token, Operator)}


def assert_same_function(
    after: Expression, before: Expression, sample: Sample = POSITIVE, *, share: float = 1.0, rtol: float = 1e-6
) -> None:
    """Equal where both are finite and of moderate size, on at least ``share`` of those rows.

    Cancelling a factor may widen the domain, and cancellation can take all digits at a single row.
    """
    old, new = values(before, sample), values(after, sample)
    both = np.isfinite(old) & np.isfinite(new) & (np.abs(old) < 1e8)
    close = np.isclose(new[both], old[both], rtol=rtol, atol=1e-7)
    assert close.mean() >= share if both.any() else True, f"{before} became {after}"
