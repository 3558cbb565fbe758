"""Conversions agree with the expression they come from."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import time

import numpy as np
import pytest
import sympy
from hypothesis import given, settings

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.errors import DataError, ExpressionError, ParameterError
from sobolev_novelty.kernels import compile_programs
from sobolev_novelty.kernels.numpy_kernel import derivatives
from sobolev_novelty.language.convert import from_sympy, to_cpp, to_latex, to_numpy, to_numpy_source, to_sympy
from sobolev_novelty.language.parsing import parse
from strategies import AWKWARD_NAMES, NAMES, TAME, expressions

X = np.random.default_rng(0).uniform(0.3, 2.0, (40, 3))


def values(e: Expression) -> np.ndarray:
    return to_numpy(e, NAMES)(X)


# -- NumPy -----------------------------------------------------------------------------------------------------------


@given(expressions())
def test_the_numpy_callable_equals_the_kernel(e: Expression) -> None:
    kernel = derivatives(compile_programs([e], NAMES), np.ascontiguousarray(X.T))[0, 0]
    np.testing.assert_array_equal(values(e), kernel)


@given(expressions())
def test_numpy_source_computes_the_same(e: Expression) -> None:
    scope: dict = {}
    exec(to_numpy_source(e, "g", NAMES), scope)  # our own text, in a test
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(scope["g"](X), values(e), rtol=1e-9)


def test_source_of_a_long_sum_compiles() -> None:
    e = parse(" + ".join(f"{k}*x0" for k in range(1, 2001)))
    scope: dict = {}
    exec(to_numpy_source(e), scope)
    np.testing.assert_allclose(scope["f"](X), 2001000 * X[:, 0])


def test_source_stays_short_where_templates_repeat_their_operand() -> None:
    e = Expression.of("x0")
    for _ in range(40):
        e = Expression.of("gplog", Expression.of("sign", e))
    assert len(to_numpy_source(e)) < 20_000
    assert len(to_cpp(e)) < 20_000


def test_the_callable_pickles_and_checks_its_input() -> None:
    f = to_numpy(parse("mass*speed**2/2"), ["mass", "speed"])
    np.testing.assert_allclose(pickle.loads(pickle.dumps(f))(X[:, :2]), X[:, 0] * X[:, 1] ** 2 / 2)
    with pytest.raises(DataError, match=r"shape \(n_samples, 2\)"):
        f(X)
    with pytest.raises(ExpressionError, match="does not say which column"):
        to_numpy(parse("mass"))
    with pytest.raises(ExpressionError, match="'mass' is not among the names"):
        to_numpy(parse("mass"), ["speed"])


# -- C++ -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
def test_compiled_cpp_gives_the_same_values(tmp_path) -> None:
    heads = [Expression.of(op, *NAMES[: op.arity]) for op in OPERATORS.values()]
    texts = [
        "-(-2)*x0 - -x1**-2",
        "sign(x0 - 1)/sign(x1 - 1.2)",
        "pow(cube(x0), x1)",
        "1/2 + x0/3",
        "gplog(sin(x0)*gpdiv(x1, x2 - 1))",
    ]
    forms = heads + [parse(text) for text in texts]
    parts = [to_cpp(e, f"f{k}", NAMES) for k, e in enumerate(forms)]
    calls = "".join(f'std::printf("%.17g\\n", f{k}(x));' for k in range(len(forms)))
    nan = float("nan")
    table = np.vstack([X[:10], [[nan, 1.0, 2.0], [1.0, nan, 2.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -0.5]]])
    rows = ",".join("{" + ",".join(map(repr, row)) + "}" for row in table.tolist()).replace("nan", "NAN")
    main = f"#include <cstdio>\nint main() {{ const double X[][3] = {{{rows}}}; for (auto& x : X) {{ {calls} }} }}"
    (tmp_path / "forms.cpp").write_text("\n".join([*parts, main]))
    subprocess.run(["g++", "-std=c++17", "-Werror", "forms.cpp", "-o", "forms"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "forms"], capture_output=True, text=True, check=True).stdout.split()
    got = np.array(printed, dtype=float).reshape(len(table), len(forms)).T
    expected = np.array([to_numpy(e, NAMES)(table) for e in forms])
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)


def test_names_reach_cpp_only_as_escaped_comments() -> None:
    source = to_cpp(parse('`a\n*/ system("x")`*2'), names=['a\n*/ system("x")'])
    assert "// x[0]: 'a\\n*/ system(\"x\")'" in source
    with pytest.raises(ParameterError, match="must be an identifier"):
        to_cpp(parse("x0"), "f(); int g")


# -- SymPy -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(expressions(operators=TAME, max_leaves=8))
def test_sympy_and_back_keeps_the_values(e: Expression) -> None:
    for evaluate in (True, False):
        back = from_sympy(to_sympy(e, evaluate=evaluate))
        np.testing.assert_allclose(values(back), values(e), rtol=1e-8, atol=1e-8)


UNPROTECTED = [name for name in OPERATORS if name not in ("gpdiv", "gplog", "gpinv")]


@pytest.mark.parametrize("name", UNPROTECTED)
def test_every_operator_goes_to_sympy_and_back(name: str) -> None:
    e = Expression.of(name, *NAMES[: OPERATORS[name].arity])
    np.testing.assert_allclose(values(from_sympy(to_sympy(e))), values(e), rtol=1e-12)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ("2*x - 3*y/z", "2*x - 3*y/z"),
        ("x**Rational(1, 2)", "sqrt(x)"),
        ("1/sqrt(x)", "1/sqrt(x)"),
        ("x**-2", "1/x**2"),
        ("-x", "-x"),
        ("-x/y", "-x/y"),
        ("x/2", "0.5*x"),
        ("exp(-x)", "exp(-x)"),
        ("pi*x", "3.141592653589793*x"),
        ("Max(x, y, z)", "max(max(x, y), z)"),
        ("sec(x)", "inv(cos(x))"),
        ("-1/(x*y)", "-1/(x*y)"),
    ],
)
def test_sympy_forms_become_the_natural_ones(obj: str, expected: str) -> None:
    back = from_sympy(sympy.sympify(obj))
    table = np.random.default_rng(1).uniform(0.5, 2.0, (5, 3))
    wanted = to_numpy(parse(expected), ["x", "y", "z"])(table)
    np.testing.assert_allclose(to_numpy(back, ["x", "y", "z"])(table), wanted)
    assert len(back) <= len(parse(expected)) + 1


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (sympy.I * sympy.Symbol("x"), "'I' is not a finite real number"),
        (sympy.oo, "'oo' is not a finite"),
        (sympy.zoo, "'zoo' is not a finite"),
        (sympy.gamma(sympy.Symbol("x")), "SymPy's 'gamma' has no counterpart"),
        (sympy.Function("g")(sympy.Symbol("x")), "SymPy's 'g' has no counterpart"),
        ("x + 1", "Use parse for text"),
        (True, "Got bool"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(obj, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        from_sympy(obj)


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9**9", "exp(exp(exp(1000)))", "x0 + 2**9999", "1/0 + x0", "log(0)", "cosh(9999)**9999",
        "max(x0, sin(exp(1e15)))", "min(x0, cos(1e300), tan(2**999))",
    ],
)  # fmt: skip
def test_huge_constants_do_not_keep_sympy_busy(text: str) -> None:
    begin = time.process_time()
    assert to_sympy(parse(text)) is not None
    assert time.process_time() - begin < 2.0


def test_a_tree_too_deep_for_sympy_is_refused_or_converted() -> None:
    deep = Expression((OPERATORS["sin"],) * 20_000 + ("x0",))
    with pytest.raises(ExpressionError, match="too deeply"):
        from_sympy(to_sympy(deep))


# -- LaTeX -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("(x0+x1)**2", r"\left(x_{0} + x_{1}\right)^{2}"),
        ("x0**(x1+1)", r"x_{0}^{x_{1} + 1}"),
        ("(x0/x1)**2", r"\left(\frac{x_{0}}{x_{1}}\right)^{2}"),
        ("(x0/(1 + 1/x1))", r"\frac{x_{0}}{1 + \frac{1}{x_{1}}}"),
        ("(x0**2)**3", r"\left(x_{0}^{2}\right)^{3}"),
        ("x0**2**3", r"x_{0}^{2^{3}}"),
        ("sin(x0)**2", r"\left(\sin\left(x_{0}\right)\right)^{2}"),
        ("-(x0 + 1)", r"-\left(x_{0} + 1\right)"),
        ("(-x0)**2", r"\left(-x_{0}\right)^{2}"),
        ("(-2)**x0", r"\left(-2\right)^{x_{0}}"),
        ("x0 - (x1 - 2)", r"x_{0} - \left(x_{1} - 2\right)"),
        ("x0 - (-2)", r"x_{0} - \left(-2\right)"),
        ("x0*(-2)", r"x_{0} \, \left(-2\right)"),
        ("x0*(x1 + 1)", r"x_{0} \, \left(x_{1} + 1\right)"),
        ("2*3", r"2 \cdot 3"),
        ("x0*2", r"x_{0} \cdot 2"),
        ("1.5e-7*x0", r"1.5 \times 10^{-7} \, x_{0}"),
        ("(1e20)**x0", r"\left(10^{20}\right)^{x_{0}}"),
        ("sqrt(x0)/abs(x1)", r"\frac{\sqrt{x_{0}}}{\left|x_{1}\right|}"),
        ("omega_0*E_n + mass*x_12", r"\omega_{0} \, E_{n} + \mathrm{mass} \, x_{12}"),
        ("`body mass_%`", r"\text{body mass\_\%}"),
        ("square(x0 + 1)", r"\left(x_{0} + 1\right)^{2}"),
        ("log1p(-x0)", r"\log\left(1 + \left(-x_{0}\right)\right)"),
    ],
)
def test_latex_has_the_brackets_it_needs(text: str, latex: str) -> None:
    assert to_latex(parse(text)) == latex


def test_latex_rounds_constants_on_request() -> None:
    assert to_latex(parse("3.14159265*x0 + 123456789"), precision=3) == r"3.14 \, x_{0} + 1.23 \times 10^{8}"
    assert parse("x0/2")._repr_latex_() == r"$\frac{x_{0}}{2}$"


@given(expressions(names=AWKWARD_NAMES))
def test_latex_brackets_are_balanced(e: Expression) -> None:
    text = to_latex(e)
    assert text.count(r"\left") == text.count(r"\right")
    bare = text.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max(x0, sin(exp(1e15)))", "nan"),
        ("x0 + sin(exp(1e15))", "nan"),
        ("x0 + exp(1e15)", "x0 + oo"),
        ("x0 + 1e150*1e60", "x0 + 1.0e+210"),
    ],
)
def test_numbers_that_sympy_would_compute_for_minutes_become_their_values(text: str, expected: str) -> None:
    """In arithmetic without bound sin(exp(1e15)) needs some 10**15 digits."""
    assert str(to_sympy(parse(text))) == expected
