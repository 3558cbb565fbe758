"""Hypothesis strategies: random expressions."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS

NAMES = ("x0", "x1", "x2")
#: Operators whose values stay of the size of their operands: rounding errors stay small, whatever they are composed of.
TAME = ("add", "sub", "mul", "neg", "sin", "cos", "tanh", "arctan", "abs", "min", "max")
#: Names that a printer must treat with care.
AWKWARD_NAMES = (
    "x0", "x_0", "X0", "X1", "x_1", "x10", "x00", "e", "E", "pi", "I", "sin", "Sin", "max", "lambda", "nan",
    "sec", "mass", "E_n",
    "body mass (kg)", "a`b", "`", "x[0]", "x_{1}", "θ", "2x", "np.sin", "-", " ",
)  # fmt: skip

#: Constants of moderate size, exact in a few digits.
small_constants = st.integers(-3000, 3000).map(lambda k: k / 1000)
#: Every finite float.
all_constants = st.floats(allow_nan=False, allow_infinity=False)


def expressions(
    names: Sequence[str] = NAMES,
    operators: Sequence[str] = tuple(OPERATORS),
    max_leaves: int = 12,
    constants: st.SearchStrategy[float] = small_constants,
) -> st.SearchStrategy[Expression]:
    """Random expressions over these variables and operators."""
    leaves = st.one_of(st.sampled_from(tuple(names)), constants).map(Expression.of)
    by_arity = {n: [name for name in operators if OPERATORS[name].arity == n] for n in (1, 2)}

    def grow(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        ways = [
            st.builds(Expression.of, st.sampled_from(heads), *[children] * arity)
            for arity, heads in by_arity.items()
            if heads
        ]
        return st.one_of(ways)

    return st.recursive(leaves, grow, max_leaves=max_leaves)
