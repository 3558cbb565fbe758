"""What is read in an answer, and what is counted instead."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.engines.igsr.talk.answers import read_answer
from sobolev_novelty.engines.igsr.talk.protocol import Vocabulary
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.contract.engine import DEFAULT_OPERATORS

VOCABULARY = Vocabulary(("x0", "x1"), DEFAULT_OPERATORS, ((0.5, 2.0), (0.5, 2.0)))
NAMED = Vocabulary(("mass", "body length"), DEFAULT_OPERATORS, ((0.5, 2.0), (0.5, 2.0)))


def terms(text: str, vocabulary: Vocabulary = VOCABULARY) -> list[str]:
    return [str(term) for term in read_answer(text, vocabulary, max_terms=20).terms]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sin(2*x0)", "sin(2*x0)"),
        ("1. sin(x0)", "sin(x0)"),
        ("2) `x0*x1`", "x0*x1"),
        ("(3) x0*x1", "x0*x1"),
        ("- **x0/x1**", "x0/x1"),
        ("* x0 * x1", "x0*x1"),
        ("• x0*x1", "x0*x1"),
        ("> x0*x1", "x0*x1"),
        ("Term 1: x0^2", "square(x0)"),
        ("y = 3*sin(x0)", "sin(x0)"),
        ("f(x0, x1) = x0*x1", "x0*x1"),
        ("exp(-x0) # it decays", "exp(-x0)"),
        ("x0*x1 (interaction of both)", "x0*x1"),
        ("x0**2: quadratic growth", "square(x0)"),
        ("`exp(-x0)` and so on", "exp(-x0)"),
        ('"x0*x1",', "x0*x1"),
        (r"$\frac{x_0}{\sqrt{x_1}}$", "x0/sqrt(x1)"),
        (r"\sin\left(x_0\right) \cdot x_1", "sin(x0)*x1"),
        (r"x_{0}^{2}", "square(x0)"),
        (r"\frac{\frac{x_0}{x_1}}{x_1}", "x0/x1/x1"),
        ("np.sin(x0)*x1", "sin(x0)*x1"),
    ],
)
def test_what_surrounds_a_term_is_stripped(line: str, expected: str) -> None:
    assert terms(line) == [expected]


def test_an_answer_in_markdown_is_read_line_by_line() -> None:
    text = "Sure! Here are some terms:\n```\nx0*x1\nsin(x0)\n```\nI hope this helps."
    found = read_answer(text, VOCABULARY, max_terms=8)
    assert [str(term) for term in found.terms] == ["x0*x1", "sin(x0)"]
    assert (found.n_offered, found.n_malformed, found.n_repeated) == (4, 2, 0)


@pytest.mark.parametrize(
    "text",
    ['{"terms": ["x0*x1", "sin(x0)"]}', '```json\n["x0*x1", "sin(x0)"]\n```', "x0*x1, sin(x0)", "x0*x1 + sin(x0)"],
)
def test_lists_and_sums_are_several_terms(text: str) -> None:
    assert terms(text) == ["x0*x1", "sin(x0)"]


def test_thoughts_are_not_read() -> None:
    assert terms("<think>\nx0**3\n</think>\nx0*x1") == ["x0*x1"]
    assert terms("<think>\nx0**3") == []


def test_terms_said_before_are_counted() -> None:
    found = read_answer("x0*x1\nx0*x1\n2*x0*x1\nsin(x0)", VOCABULARY, known=(parse("sin(x0)"),), max_terms=8)
    assert [str(term) for term in found.terms] == ["x0*x1"] and found.n_repeated == 3


def test_operators_that_are_not_allowed_are_respelled_or_refused() -> None:
    few = Vocabulary(("x0", "x1"), ("mul",), ((0.5, 2.0), (0.5, 2.0)))
    assert terms("x0**3\nsin(x0)", few) == ["x0*(x0*x0)"]


def test_numbers_of_variables_are_not_guessed() -> None:
    assert terms("x2\nx_1\nX0") == ["x1", "x0"]
    assert terms("x0\nx1\nmass", NAMED) == ["mass"]


def test_names_with_spaces_are_written_between_backticks() -> None:
    assert terms("mass*`body length`", NAMED) == ["mass*`body length`"]
    assert terms("1. `mass*`body length``", NAMED) == []


@pytest.mark.parametrize(
    "line",
    ["__import__('os').system('x')", "9**9**9**9", "x0**9**9**9", "x0**1000", "3.5", "x7", "gpdiv(x0, x1)", "tan(x0)",
     "(" * 100_000 + "x0" + ")" * 100_000, "1e999*x0", "<b>x0</b>", "lambda x0: x0", "x0 if x1 else 2", "x0; x1",
     "[" * 100_000, "\\frac{" * 50_000, "`" * 100_000, "$" * 100_000, "{" * 100_000 + '"'],
)  # fmt: skip
def test_what_is_not_a_term_of_the_problem_is_counted_quickly(line: str) -> None:
    begin = time.process_time()
    found = read_answer(line, VOCABULARY, max_terms=8)
    assert found.terms == () or line == "x0; x1"
    assert time.process_time() - begin < 1.0


@given(st.text(max_size=300))
def test_any_text_at_all_can_be_read(text: str) -> None:
    for term in read_answer(text, VOCABULARY, max_terms=8).terms:
        assert set(term.variables) <= {"x0", "x1"} and parse(str(term)) is not None


@given(st.text(alphabet='x01*()+-/^ \n`$\\{}[]".,=:sincoexp#', max_size=200))
def test_any_text_of_formula_characters_can_be_read(text: str) -> None:
    for term in read_answer(text, VOCABULARY, max_terms=8).terms:
        assert set(term.variables) <= {"x0", "x1"}


def test_a_million_characters_are_read_in_time() -> None:
    begin = time.process_time()
    read_answer("x0*x1, " * 140_000, VOCABULARY, max_terms=8)
    read_answer("sin(x0)\n" * 120_000, VOCABULARY, max_terms=8)
    assert time.process_time() - begin < 2.0
