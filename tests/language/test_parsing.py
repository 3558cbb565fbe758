"""The parser: what it reads, what it refuses, and that nothing else happens."""

from __future__ import annotations

import math
import time
import tracemalloc

import pytest
from hypothesis import example, given, settings, strategies as st

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, SPELLINGS
from sobolev_novelty.errors import ParameterError, ParseError
from sobolev_novelty.language.parsing import ParseLimits, parse
from strategies import AWKWARD_NAMES, all_constants, expressions

WIDE = ParseLimits(max_exponent=math.inf, max_length=10_000_000)

# -- round trips -------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(expressions(names=AWKWARD_NAMES, constants=all_constants, max_leaves=20))
def test_printing_and_parsing_gives_the_same_expression(e: Expression) -> None:
    assert parse(str(e), limits=WIDE) == e


@settings(max_examples=200)
@given(expressions(names=AWKWARD_NAMES))
def test_printing_and_parsing_with_all_names_known_gives_the_same_expression(e: Expression) -> None:
    assert parse(str(e), names=AWKWARD_NAMES, limits=WIDE) == e


@given(st.text(min_size=1))
def test_any_text_can_be_a_variables_name(name: str) -> None:
    e = Expression.of("add", name, Expression.of("sin", name))
    assert parse(str(e)) == e


@given(expressions())
def test_function_call_notation_gives_the_same_expression(e: Expression) -> None:
    text = e.fold(lambda leaf: str(Expression.of(leaf)), lambda op, args: f"{op.name}({', '.join(args)})")
    assert parse(text, limits=WIDE) == e


@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
def test_every_spelling_can_be_called_and_capitalised(spelling: str) -> None:
    op = SPELLINGS[spelling]
    operands = ", ".join(["a", "b"][: op.arity])
    expected = Expression.of(op, *["a", "b"][: op.arity])
    for text in (spelling, spelling.capitalize(), f"np.{spelling}", f"math.{spelling} "):
        assert parse(f"{text}({operands})") == expected


# -- the grammar -------------------------------------------------------------------------------------------------------

SAME = [
    ("-x**2", "neg(pow(x, 2))"),
    ("x**-2", "pow(x, -2)"),
    ("x**-y**2", "pow(x, neg(pow(y, 2)))"),
    ("x**-y*z", "mul(pow(x, neg(y)), z)"),
    ("-2**x", "neg(pow(2, x))"),
    ("-x*y", "mul(neg(x), y)"),
    ("a*-b*c", "mul(mul(a, neg(b)), c)"),
    ("a^b**c", "pow(a, pow(b, c))"),
    ("a - b - c", "sub(sub(a, b), c)"),
    ("a/b/c", "div(div(a, b), c)"),
    ("a/b*c", "mul(div(a, b), c)"),
    ("+x", "x"),
    ("a - +b", "sub(a, b)"),
    ("--x", "neg(neg(x))"),
    ("x − y·z", "sub(x, mul(y, z))"),
    ("2.0 x0^2", "mul(2, pow(x0, 2))"),
    ("x0 x1", "mul(x0, x1)"),
    ("0.5 1 + -2.0 x0 x1", "add(mul(0.5, 1), mul(mul(-2, x0), x1))"),
    ("sin(1 x0) cos(x1)", "mul(sin(mul(1, x0)), cos(x1))"),
    ("1/2 x", "mul(div(1, 2), x)"),
    ("2 (x + 1)", "mul(2, add(x, 1))"),
    ("pi (x0 + 1)", "mul(pi, add(x0, 1))"),
    ("x0 (x1 + 1)", "mul(x0, add(x1, 1))"),
    ("sin (x)", "sin(x)"),
    ("add(mul(X0, 2.5), sin(X1))", "x0*2.5 + sin(x1)"),
    ("max(a, b, c)", "max(max(a, b), c)"),
    ("add(a, b, c)", "a + b + c"),
    ("log(x, 2)", "log(x)/log(2)"),
    ("gauss(x)", "exp(-square(x))"),
    ("relu(x)", "max(x, 0)"),
    ("sec(x) + csc(x) + coth(x)", "inv(cos(x)) + inv(sin(x)) + inv(tanh(x))"),
    ("cond(a, b)", "max(sign(a), 0)*b"),
    ("x[:,0] + x[:, 3]", "x0 + x3"),
    ("x_{0}*X_{1}", "x0*x1"),
    ("x[0]*x[1]", "x0*x1"),
    ("X0 + X_1 + x2", "x0 + x1 + x2"),
    ("Sin(x) + Recip(Abs(x))", "sin(x) + inv(abs(x))"),
    ("np.pi*np.e", "pi*e"),
    ("((((x))))", "x"),
    ("\n x\t+\r\n y ", "x + y"),
]


@pytest.mark.parametrize(("text", "same"), SAME)
def test_notations_mean_what_python_and_their_authors_mean(text: str, same: str) -> None:
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("1.5E+10", 1.5e10), (".5", 0.5), ("2.", 2.0), ("-3", -3.0), ("- 3", -3.0), ("pi", math.pi),
     ("e", math.e), ("E", math.e), ("0e-400", 0.0), ("007", 7.0)],
)  # fmt: skip
def test_numbers_are_constants(text: str, value: float) -> None:
    assert parse(text).tokens == (value,)


def test_a_minus_before_a_bracket_is_an_operation() -> None:
    assert parse("-(2)") == Expression.of("neg", 2.0)
    assert parse("-pi").head is OPERATORS["neg"]


def test_constants_names_yield_to_declared_variables() -> None:
    assert parse("e*pi", names=["e", "pi"]).variables == ("e", "pi")
    assert parse("`e`*e").tokens == (OPERATORS["mul"], "e", math.e)
    assert parse("sin + lambda", names=["sin", "lambda"]).variables == ("sin", "lambda")


def test_gplearns_dialect_reads_calls_as_protected_operators() -> None:
    text = "div(log(X1), add(sqrt(X2), inv(X1)))"
    assert str(parse(text, dialect="gplearn")) == "gpdiv(gplog(x1), sqrtabs(x2) + gpinv(x1))"
    assert str(parse(text)) == "log(X1)/(sqrt(X2) + inv(X1))"
    assert parse("X1*X2", dialect="gplearn", names=["a", "b", "c"]).variables == ("b", "c")


# -- variables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "variables"),
    [
        ("X1 + X2", {}, ("X1", "X2")),
        ("x_1 + x_2", {}, ("x_1", "x_2")),
        ("x_0 + x_2", {}, ("x0", "x2")),
        ("X1 + X2", {"variables": "x1"}, ("x0", "x1")),
        ("X1 + X2", {"variables": "x0"}, ("x1", "x2")),
        ("X0", {"variables": "names"}, ("X0",)),
        ("x0 + x2", {"names": ["a", "b", "c"]}, ("a", "c")),
        ("x1 + x3", {"names": ["a", "b", "c"]}, ("a", "c")),
        ("x[:,1] + b", {"names": ["a", "b", "c"]}, ("b",)),
        ("x1 + x2", {"names": ["a", "b", "c"], "variables": "x1"}, ("a", "b")),
        ("x1 + x2", {"names": ["a", "b", "c"], "variables": "x0"}, ("b", "c")),
        ("x1 + x2", {"names": ["x1", "x2", "x0"]}, ("x1", "x2")),
        ("x1", {"names": ["x1", "x2"], "variables": "x0"}, ("x2",)),
        ("x1", {"names": ["only"]}, ("only",)),
        ("X0 + x1", {"names": ["x0", "x1"]}, ("x0", "x1")),
        ("x1 + X2", {"names": ["x1", "x2"]}, ("x1", "x2")),
        ("x[:,0] + x1", {"names": ["x1", "b"]}, ("x1",)),
        ("x[0]", {"names": ["x[0]", "b"]}, ("x[0]",)),
        ("`body mass`", {"names": ["body mass"]}, ("body mass",)),
    ],
)
def test_conventions_for_variables(text: str, options: dict, variables: tuple[str, ...]) -> None:
    assert parse(text, **options).variables == variables


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x1 + x2", {"names": ["a", "b", "c"]}, 'variables="x0" or variables="x1"'),
        ("x0 + x3", {"names": ["a", "b", "c"]}, "'x3' is out of range: numbering starts at 0 and there are 3 names"),
        ("x0", {"names": ["a"], "variables": "x1"}, "'x0' is out of range: numbering starts at 1"),
        ("x0", {"variables": "x1"}, "numbering starts at 1"),
        ("x0 + mess", {"names": ["mass", "x0"]}, "'mess' is not a known variable. Known: mass, x0"),
        ("x0", {"names": ["a"], "variables": "names"}, "'x0' is not a known variable"),
        ("I*x", {"names": ["x"]}, "imaginary unit"),
        ("x0 + X0", {}, "may be one variable or two"),
        ("x1 + x2", {"names": ["x0", "x1"]}, "'x1' is the name of a column, but"),
        ("x0 + X2", {"names": ["x0", "x1"]}, "'x0' is the name of a column, but"),
        ("`x0`", {"names": ["a"]}, "'x0' is not a known variable"),
    ],
)
def test_variables_that_cannot_be_told_are_errors(text: str, options: dict, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variables": "x2"}, "'variables' must be 'auto', 'x0', 'x1' or 'names'"),
        ({"dialect": "lisp"}, "'dialect' must be 'plain'"),
        ({"names": "ab"}, "'names' must be a list of names"),
        ({"names": ["a", "a"]}, "'a' twice"),
        ({"names": ["a", 3]}, "'names' must be a list of names"),
    ],
)
def test_wrong_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse("x", **options)


# -- refusals ----------------------------------------------------------------------------------------------------------

REFUSED = [
    ("", 0, "empty"),
    ("  \n", 0, "empty"),
    ("x +", 3, "ends where an operand"),
    ("2*(x0 + 1", 2, "never closed"),
    ("x0)", 2, "has no matching '\\('"),
    ("()", 1, "Expected a number, a variable"),
    ("sin()", 4, "'sin' lacks an argument"),
    ("sin(x,)", 6, "'sin' lacks an argument"),
    ("sin(x, y)", 0, r"takes 1 argument\(s\). Got 2"),
    ("pow(x)", 0, "takes 2"),
    ("(1, 2)", 2, "comma may only separate"),
    ("1,5", 1, "decimals are written with a point"),
    ("sin x", 0, r"write sin\(...\)"),
    ("2x", 1, r"write '\*'"),
    ("(x)(y)", 3, r"write '\*'"),
    ("x0.5", 2, "operator is missing"),
    ("1.2.3", 3, "operator is missing"),
    ("x*/y", 2, "Expected a number"),
    ("x//y", 2, "Floor division"),
    ("sine(x)", 0, "Did you mean 'sin'"),
    ("pi(x)", 0, r"write pi\*"),
    ("__import__('os')", 0, "not a known function"),
    ("x.__class__", 1, "attribute access"),
    ("np.linalg", 0, "attribute access"),
    ("y = x", 2, "right-hand side only"),
    ("x < 1", 2, "comparison"),
    ("x == 1", 2, "equals sign"),
    ("'x'", 0, "quotation mark"),
    ("lambda x: x", 0, "word of Python"),
    ("x if y else z", 2, "word of Python"),
    ("[x]", 0, "not a bracket"),
    ("x[1:2]", 1, "not a bracket"),
    ("{x}", 0, "not a bracket"),
    ("|x|", 0, "abs"),
    (r"\frac{1}{2}", 0, "LaTeX"),
    ("x²", 0, "Raised"),
    ("x % 2", 2, "not an operator"),
    ("`x", 0, "never closed"),
    ("``", 0, "at least one character"),
    ("nan + 1", 0, "not a finite"),
    ("zoo*x", 0, "not a finite"),
    ("1e400", 0, "too large"),
    ("1.3e-4450", 0, "too small"),
    ("9" * 401, 0, "more than 400"),
    ("x**99999999", 1, "exponent is larger"),
    ("pow(x, -99999999)", 0, "exponent is larger"),
    ("x[9999999]", 0, "index of this variable"),
    ("x" * 1_000_001, 0, "more than 1000000"),
    ("(" * 2000 + "x" + ")" * 2000, 1000, "nested more than 1000"),
    ("-" * 2000 + "x", 1000, "nested more than 1000"),
    ("x**" * 2000 + "x", 3001, "nested more than 1000"),
    ("x+" * 60_000 + "x", 100_000, "more than 100000 nodes"),
    ("x0 💥", 3, "not part of a formula"),
]


@pytest.mark.parametrize(("text", "position", "message"), REFUSED, ids=[text[:20] for text, _, _ in REFUSED])
def test_a_refusal_says_why_and_points_at_the_character(text: str, position: int, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse(text)
    assert caught.value.position == position
    assert caught.value.text == text
    if text:
        window, caret = str(caught.value).split("\n")[-2:]
        assert len(str(caught.value)) < 400
        assert caret.endswith("^")
        assert window[len(caret) - 1 : len(caret)] == text[position : position + 1].replace("\n", " ")


@pytest.mark.parametrize("text", [None, 3, b"x", ["x"]])
def test_what_is_no_text_is_refused(text) -> None:
    with pytest.raises(ParseError, match="An expression is text"):
        parse(text)


def test_messages_show_no_control_characters() -> None:
    with pytest.raises(ParseError, match="is not part of a formula") as caught:
        parse("`\x1b[31m\ud800` + \x1b", names=["a"])
    assert str(caught.value).replace("\n", "").isprintable()


def test_limits_can_be_raised() -> None:
    deep = "(" * 5000 + "x" + ")" * 5000
    assert parse(deep, limits=ParseLimits(max_depth=10_000)) == Expression.of("x")


# -- fuzzing -----------------------------------------------------------------------------------------------------------

REAL = [
    "0.788441871017756503747*omega_0**2*(-0.555384756150930294732*h - 1 + 0.555384756150930294732*m/alpha)**2",
    "(-0.5379348205909924 + (inv((90.81944340532995 + (0.06268692794635979 * x_5))) * arctan((x_6 * x_9))))",
    "((2.56000279351024) + (((-0.3439869471003642) * ((((x[:,1])**(3)) * ((x[:,0])**(2))))) + (np.cos(x[:,3]))))",
    "(0.018 + (0.914 * ((((tanh(sin(((-2.471) * X1))) + ((0.487 * X4) / (sqrt(1 + sin((0.814 * X5)) ^ 2)))))))))",
    "add(mul(X0, 2.5), sin(div(X1, -0.123)))",
    "-9.999 x + 27.992 x - 1.0 x z + 0.5 1 + 3e-4 sin(1 y)^2",
    "`body mass (kg)`*max(a, b, c) - log(x_{3}, 10)",
]
FRAGMENTS = [
    "(", ")", ",", "**", "^", "-", "+", "*", "/", " ", ".", "e", "1e", "9", "x", "x0", "x[", "[:,0]", "_{", "`", "np.",
    "sin(", "max(", "pi ", "I", "lambda", "nan", "\n", "\x00", "²", "٣", "−", "1e999", "=", "'",
]  # fmt: skip


def parses_or_refuses(text: str) -> None:
    try:
        e = parse(text)
    except ParseError as error:
        assert 0 <= error.position <= len(text)
        return
    assert parse(str(e), limits=WIDE) == e


@settings(max_examples=1500)
@given(st.text(max_size=200))
@example("\ud800")
@example("x\u2028+ y")
def test_any_text_is_read_or_refused(text: str) -> None:
    parses_or_refuses(text)


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
def test_any_mixture_of_fragments_is_read_or_refused(text: str) -> None:
    parses_or_refuses(text)


@settings(max_examples=1500)
@given(st.sampled_from(REAL), st.data())
def test_mutated_real_expressions_are_read_or_refused(text: str, data) -> None:
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 12)))
        replacement = data.draw(st.one_of(st.just(""), st.sampled_from(FRAGMENTS), st.text(max_size=4)))
        text = text[:start] + replacement + text[stop:]
    parses_or_refuses(text)


HOSTILE = [
    "(", ")", "-", "+", "x", "x ", "x+", "x*", "x**", "1 ", "9", "1e", "sin(", "f(", "max(x,", "`", "``", "x[", "x[:,",
    "x_{", " ", "\n", "x[ ", "((x)+", "-(", "a.", "np.", ".", "`a` ", "x0 (", "1e5+", "é", "x\t\t",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_anything_costs_little_time_and_memory(unit: str) -> None:
    for tail in ("", "x"):
        text = unit * ((1_000_000 - 1) // len(unit)) + tail
        tracemalloc.start()
        started = time.process_time()
        try:
            parses_or_refuses(text)
        finally:
            spent = time.process_time() - started
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert spent < 10
        assert peak < 50e6


@pytest.mark.parametrize("unit", ["x0+", "sin(x1)*", "2.5 x0 - ", "(x0)/"])
def test_time_grows_linearly_with_the_text(unit: str) -> None:
    limits = ParseLimits(max_nodes=10_000_000)

    def seconds(n_characters: int) -> float:
        text = unit * (n_characters // len(unit)) + "x0"
        started = time.process_time()
        str(parse(text, limits=limits))
        return time.process_time() - started

    seconds(30_000)
    assert seconds(900_000) < 40 * max(seconds(90_000), 0.02)


@pytest.mark.parametrize("text", ["-" * 900 + "x0", "**".join(["x0"] * 900), "sin(-" * 450 + "x0" + ")" * 450])
def test_what_is_read_is_printed_so_that_it_can_be_read_back(text: str) -> None:
    once = parse(text)
    assert parse(str(once)) == once


@pytest.mark.parametrize("text", ["-" * 1500 + "x0", "(" * 1500 + "x0" + ")" * 1500, "sin(" * 1500 + "x0" + ")" * 1500])
def test_deep_nesting_is_refused_all_the_same(text: str) -> None:
    with pytest.raises(ParseError, match="nested more than 1000 deep"):
        parse(text)
