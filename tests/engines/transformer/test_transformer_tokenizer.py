"""Tokens: they round-trip, both kinds, and foreign operators are rewritten without changing the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from needs_torch import corpus, corpus_unit, one_thread  # noqa: F401
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.engines.transformer.tokenizer import (
    ARITY,
    CONSTANT,
    FLOAT_NAMES,
    N_SKELETON,
    SKELETON_NAMES,
    decode,
    encode,
    float_tokens,
    from_prefix,
    rewritten,
    to_prefix,
)
from sobolev_novelty.errors import ExpressionError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from strategies import expressions

pytestmark = pytest.mark.torch

OPERATORS = ("add", "sub", "mul", "inv", "abs", "square", "sqrt", "sin", "cos", "tan", "arctan", "log", "exp", "cube")
three_digits = st.builds(
    lambda sign, digits, power: float(f"{sign}{digits}e{power}"),
    st.sampled_from(("", "-")), st.integers(100, 999), st.integers(-10, 8),
)  # fmt: skip


@given(expressions(operators=OPERATORS, constants=three_digits))
def test_tokens_with_floats_round_trip(expression: Expression) -> None:
    assert decode(encode(expression, with_floats=True)) == expression


@given(expressions(operators=OPERATORS))
def test_skeleton_tokens_and_constants_round_trip(expression: Expression) -> None:
    tokens, constants = to_prefix(expression)
    assert from_prefix(tokens.tolist(), constants.tolist()) == expression
    skeleton = decode(encode(expression, with_floats=False))
    assert skeleton == expression.with_constants([1.0] * len(expression.constants))


@pytest.mark.usefixtures("corpus_unit")
@pytest.mark.parametrize("law", ["lean", "e2esr"])
def test_the_corpus_unit_writes_the_same_tokens(law: str) -> None:
    for with_floats in (False, True):
        source = corpus(law, with_floats=with_floats)
        batch = source.batch(0, 50)
        for row, index in enumerate(batch.indices.tolist()):
            candidate = source.candidate(index)
            formula = from_prefix(candidate.tokens.tolist(), candidate.constants.tolist())
            written = [token for token in batch.tokens[row].tolist() if token > 2]
            assert encode(formula, with_floats=with_floats) == written
            if with_floats:
                assert decode(written) == formula  # to the last digit of every constant


def test_names_and_arities_agree() -> None:
    assert len(SKELETON_NAMES) == N_SKELETON == 28
    assert SKELETON_NAMES[CONSTANT] == "<c>" and FLOAT_NAMES[N_SKELETON : N_SKELETON + 2] == ("+", "-")
    assert {FLOAT_NAMES[k]: int(n) for k, n in enumerate(ARITY) if n and k < N_SKELETON} == {
        name: 2 if name in ("add", "sub", "mul") else 1 for name in OPERATORS
    }


def test_inputs_have_the_names_that_are_given() -> None:
    expression = parse("mass*speed", names=["speed", "mass"])
    tokens = encode(expression, with_floats=False, names=["speed", "mass"])
    assert [SKELETON_NAMES[t] for t in tokens] == ["mul", "x1", "x0"]
    assert decode(tokens, names=["speed", "mass"]) == expression


@pytest.mark.parametrize(
    "text",
    [
        "x0/x1", "1/x0", "-x0", "x0**2", "x0**3", "x0**4", "x0**7", "x0**0.5", "x0**1.5", "x0**-2.5", "x0**-1",
        "x0**x1", "x0**0.3", "log10(x0)", "log2(x0)", "log1p(x0)", "tanh(x0)", "sigmoid(x0)", "cot(x0)",
        "-2*x0/(x1 - 3)**4", "x0**0",
    ],
)  # fmt: skip
def test_rewriting_does_not_change_the_values(text: str) -> None:
    X = np.random.default_rng(0).uniform(0.5, 2.0, (50, 2))
    expression = parse(text)
    plain = rewritten(expression)
    assert set(plain.tokens) <= {*expression.tokens, *plain.tokens}
    encode(plain, with_floats=False)
    np.testing.assert_allclose(evaluate(plain, X), evaluate(expression, X), rtol=1e-12)


def test_what_has_no_token_is_named() -> None:
    with pytest.raises(ExpressionError, match="'arcsin' cannot be written"):
        rewritten(parse("arcsin(x0)"))
    with pytest.raises(ExpressionError, match="'div' has no token"):
        encode(parse("x0/x1"), with_floats=False)
    with pytest.raises(ExpressionError, match="'x10' is not one of the first 10 inputs"):
        encode(parse("x10"), with_floats=False)
    with pytest.raises(ExpressionError, match="has no tokens"):
        float_tokens(1e20)
    with pytest.raises(ExpressionError, match="has no tokens"):
        float_tokens(0.0)
    with pytest.raises(ExpressionError, match="followed by digits"):
        decode([N_SKELETON, 3, 4])
    with pytest.raises(ExpressionError, match="is not part of a formula"):
        decode([500])


@given(st.floats(1e-8, 9e10))
def test_a_constant_is_rounded_to_three_digits(value: float) -> None:
    read = decode(list(float_tokens(-value))).constants[0]
    assert math.isclose(read, -value, rel_tol=0.0051)
