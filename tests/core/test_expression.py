"""Expressions as values: sequences, slices, folds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.core.expression import Expression, format_number
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.errors import ExpressionError
from strategies import AWKWARD_NAMES, all_constants, expressions


@given(expressions())
def test_every_position_starts_a_subtree_that_is_a_slice(e: Expression) -> None:
    for start in range(len(e)):
        subtree = e.subtree(start)
        assert subtree.tokens == e.tokens[start : e.end(start)]
        assert Expression(subtree.tokens) == subtree
        assert e.replace(start, subtree) == e


@given(expressions(), expressions(), st.data())
def test_replacing_a_subtree_changes_the_size_by_the_difference(e: Expression, other: Expression, data) -> None:
    start = data.draw(st.integers(0, len(e) - 1))
    replaced = e.replace(start, other)
    assert len(replaced) == len(e) - len(e.subtree(start)) + len(other)
    assert Expression(replaced.tokens) == replaced


@given(expressions())
def test_children_and_head_rebuild_the_expression(e: Expression) -> None:
    if e.children:
        assert isinstance(e.head, Operator)
        assert Expression.of(e.head, *e.children) == e
        assert e.depth == 1 + max(child.depth for child in e.children)
        assert e.complexity == 1 + sum(child.complexity for child in e.children)
    else:
        assert e.depth == e.complexity == 1


@given(expressions())
def test_fold_and_nested_tuples_rebuild_the_expression(e: Expression) -> None:
    assert e.fold(Expression.of, lambda op, args: Expression.of(op, *args)) == e
    assert Expression.from_nested(e.fold(lambda leaf: leaf, lambda op, args: (op, *args))) == e


@given(expressions(), expressions())
def test_equal_expressions_have_equal_hashes(a: Expression, b: Expression) -> None:
    assert (a == b) == (a.tokens == b.tokens)
    assert hash(a) == hash(Expression(a.tokens))
    assert a == Expression(a.tokens)


@given(expressions(names=AWKWARD_NAMES, constants=all_constants))
def test_expressions_survive_pickling(e: Expression) -> None:
    assert pickle.loads(pickle.dumps(e)) == e


@given(expressions())
def test_constants_can_be_exchanged_in_prefix_order(e: Expression) -> None:
    values = [float(k) for k in range(len(e.constants))]
    assert e.with_constants(values).constants == tuple(values)
    assert e.with_constants(e.constants) == e


@given(all_constants)
def test_printed_numbers_read_back_as_the_same_float(value: float) -> None:
    assert float(format_number(value)) == value


def test_renaming_leaves_other_variables_alone() -> None:
    assert str(Expression.of("add", "a", "b").rename({"a": "c"})) == "c + b"


def test_an_expression_cannot_be_changed() -> None:
    e = Expression.of("x0")
    with pytest.raises(AttributeError, match="immutable"):
        e.tokens = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), r"1 operand\(s\) are missing"),
        ((OPERATORS["add"], "x0"), r"1 operand\(s\) are missing"),
        (("x0", "x1"), "more than one tree: token 1"),
        ((float("nan"),), "must be finite"),
        (("",), "needs a name"),
        ((None,), "Got None"),
    ],
)
def test_tokens_that_are_no_tree_are_refused(tokens, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        Expression(tokens)


def test_building_with_the_wrong_number_of_operands_is_refused() -> None:
    with pytest.raises(ExpressionError, match=r"'sin' takes 1 operand\(s\). Got 2"):
        Expression.of("sin", "x0", "x1")
    with pytest.raises(ExpressionError, match="'sine' is not an operator"):
        Expression.of("sine", "x0")
    with pytest.raises(ExpressionError, match="has 1 constants"):
        Expression.of("add", "x0", 1.0).with_constants([1.0, 2.0])


def test_numpy_scalars_become_floats() -> None:
    e = Expression.of("add", np.float32(0.5), np.int64(2))  # type: ignore[arg-type]
    assert e.constants == (0.5, 2.0)
    assert all(type(c) is float for c in e.constants)


def test_deep_expressions_fold_and_print_without_recursion() -> None:
    e = Expression((OPERATORS["sin"],) * 50_000 + ("x0",))
    assert e.depth == 50_001
    assert str(e).count("sin(") == 50_000
