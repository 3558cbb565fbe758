"""Operators that a user registers."""

from __future__ import annotations

import json
import math
import pickle
import warnings

import numpy as np
import pytest
import sympy

import sobolev_novelty as sn
from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.geometry import Geometry
from sobolev_novelty.core.operators import OPERATORS, own_operators
from sobolev_novelty.engines.igsr.grammar import gbnf
from sobolev_novelty.engines.igsr.talk.protocol import Vocabulary
from sobolev_novelty.engines.transformer.tokenizer import SKELETON_NAMES
from sobolev_novelty.errors import DataError, ExpressionError, KernelError, ParameterError, ParseError, SobolevError
from sobolev_novelty.kernels import mixed_kernel, native_kernel, numpy_kernel
from sobolev_novelty.kernels.backend import native
from sobolev_novelty.language.peers.primitives import matching_operator

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (200, 2))
needs_compiled = pytest.mark.skipif(native() is None, reason="the compiled kernel was not built")


def softplus(a):
    return np.log1p(np.exp(a))


def sigmoid(a):
    return 1.0 / (1.0 + np.exp(-a))


@pytest.fixture(autouse=True)
def _clean_table():
    before = tuple(OPERATORS)
    yield
    for row in own_operators():
        sn.unregister_operator(row.name)
    assert tuple(OPERATORS) == before


@pytest.fixture
def ramp():
    sn.register_operator("ramp", softplus, derivative=sigmoid)


# --- evaluation


def test_a_registered_function_is_read_evaluated_and_printed(ramp):
    e = sn.parse("2*ramp(x0) - x1")
    assert str(e) == "2*ramp(x0) - x1"
    assert sn.parse(str(e)) == e
    expected = 2 * softplus(X[:, 0]) - X[:, 1]
    np.testing.assert_allclose(e(X), expected, rtol=1e-15)
    np.testing.assert_allclose(sn.evaluate(e, X), expected, rtol=1e-14)
    np.testing.assert_allclose(sn.to_numpy(e)(X), expected, rtol=1e-15)
    assert e(x0=0.0, x1=1.0) == pytest.approx(2 * math.log(2) - 1)
    assert e(x0=np.zeros((2, 3)), x1=1.0).shape == (2, 3)


def test_the_name_of_a_parser_formula_may_be_registered_and_then_means_the_users():
    before = sn.parse("softplus(x0)")
    sn.register_operator("softplus", softplus)
    assert str(sn.parse("softplus(x0)")) == "softplus(x0)"
    sn.unregister_operator("softplus")
    assert sn.parse("softplus(x0)") == before


def test_two_operands_keep_their_order():
    sn.register_operator("excess", lambda a, b: a - b**2, arity=2)
    np.testing.assert_allclose(sn.parse("excess(x0, x1)")(X), X[:, 0] - X[:, 1] ** 2, rtol=1e-15)


def test_outside_the_domain_the_value_is_nan_and_the_function_is_not_asked():
    sn.register_operator("lgam", np.vectorize(math.lgamma), domain=(0.001, math.inf))
    values = sn.parse("lgam(x0)")(x0=np.array([-1.0, 0.0, 2.5, np.nan]))
    np.testing.assert_allclose(values, [np.nan, np.nan, math.lgamma(2.5), np.nan])
    assert "leaves the domain of lgam" in sn.check_domain("lgam(x0)", X).sentences[0]
    assert not sn.check_domain("lgam(3 + x0)", X).findings


def test_values_that_are_not_finite_are_data():
    sn.register_operator("root", np.sqrt, domain=None)
    assert np.isnan(sn.parse("root(x0)")(X)).any()
    assert sn.novelty("root(x0) + x1", X).n_used < len(X)


def test_a_function_may_write_into_its_argument():
    def careless(a):
        a *= 2.0
        return a

    sn.register_operator("twice", careless)
    kept = X.copy()
    np.testing.assert_allclose(sn.parse("twice(x0)")(X), 2 * X[:, 0])
    sn.novelty("twice(x0) + square(x1)", X)
    np.testing.assert_array_equal(X, kept)


# --- derivatives


@pytest.mark.parametrize(
    ("options", "made_by"),
    [
        ({"derivative": sigmoid}, ("", "complex steps")),
        ({}, ("complex steps", "central differences")),
        ({"derivative": lambda a: np.real(sigmoid(a))}, ("", "central differences")),
    ],
)
def test_derivatives_of_first_and_second_order_are_those_of_the_function(options, made_by):
    sn.register_operator("ramp", softplus, **options)
    assert OPERATORS["ramp"].derived_by == made_by
    _compare("ramp(x0*x1) + x0*ramp(0.5*x1)", "log1p(exp(x0*x1)) + x0*log1p(exp(0.5*x1))", 1e-7)


def test_a_function_without_complex_numbers_is_differentiated_by_differences():
    sn.register_operator("ramp", np.vectorize(lambda a: math.log1p(math.exp(a))))
    assert OPERATORS["ramp"].derived_by == ("central differences",) * 2
    _compare("ramp(x0*x1)", "log1p(exp(x0*x1))", 1e-5)


@pytest.mark.parametrize("takes_complex", [True, False])
@pytest.mark.parametrize("is_given", [True, False])
def test_derivatives_along_two_operands_are_those_of_the_function(takes_complex, is_given):
    part = (lambda a: a) if takes_complex else np.real
    derivative = (lambda a, b: part(2 * a * np.sin(b)), lambda a, b: part(a**2 * np.cos(b))) if is_given else None
    sn.register_operator("wave", lambda a, b: part(a**2 * np.sin(b)), arity=2, derivative=derivative)
    _compare("wave(x0 + x1, x0)", "(x0 + x1)**2*sin(x0)", 1e-5)


def _compare(own, builtin, tolerance):
    programs = [kernels.compile_programs([sn.parse(text)], ["x0", "x1"]) for text in (own, builtin)]
    found, expected = (kernels.derivatives(p, X.T, 2)[0] for p in programs)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_the_jacobian_along_constants_is_that_of_the_function(ramp):
    own, builtin = (sn.parse(text) for text in ("ramp(1.5*x0 + 0.3)", "log1p(exp(1.5*x0 + 0.3))"))
    found, expected = (kernels.jacobians(kernels.compile_programs([e], ["x0", "x1"]), X.T)[1] for e in (own, builtin))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_at_the_edge_of_a_domain_differences_stay_inside():
    sn.register_operator("half", np.vectorize(lambda a: a * math.sqrt(a)), domain=(0.0, 10.0))
    slope = OPERATORS["half"].first[0](np.array([0.0, 4.0]), np.array([0.0, 8.0]))
    np.testing.assert_allclose(slope, [0.0, 3.0], atol=5e-3)


# --- reports


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("options", [{"derivative": sigmoid}, {}])
def test_novelty_is_that_of_the_same_function_in_builtin_operators(options, order):
    sn.register_operator("ramp", softplus, **options)
    own = sn.novelty("ramp(x0) + x0 + 2*x1", X, order=order)
    builtin = sn.novelty("log(1 + exp(x0)) + x0 + 2*x1", X, order=order)
    np.testing.assert_allclose(own.nu, builtin.nu, rtol=0.0, atol=1e-9)
    assert [(v.distinct, v.needed) for v in own.verdicts] == [(v.distinct, v.needed) for v in builtin.verdicts]


def test_a_report_with_a_target_judges_own_operators(ramp):
    y = 2 * softplus(X[:, 0]) + X[:, 1] + 0.01 * rng.normal(size=len(X))
    own, builtin = (sn.novelty(f"2*{f} + x1", X, y=y) for f in ("ramp(1.1*x0)", "log1p(exp(1.1*x0))"))
    assert "2*ramp(1.1*x0) + x1" in str(own)
    for mine, theirs in zip(own.verdicts, builtin.verdicts, strict=True):
        assert (mine.distinct, mine.needed, mine.determined) == (theirs.distinct, theirs.needed, theirs.determined)
        np.testing.assert_allclose(mine.interval, theirs.interval, rtol=1e-4)


def test_pruning_keeps_an_own_operator_that_is_needed(ramp):
    y = 2 * softplus(X[:, 0]) + X[:, 1]
    assert str(sn.prune("2*ramp(x0) + x1 + 1e-9*square(x0)", X, y).expression.rounded(6)) == "2*ramp(x0) + x1"


def test_the_report_says_how_derivatives_were_made():
    sn.register_operator("ramp", softplus)
    sn.register_operator("rough", np.vectorize(math.tanh))
    sn.register_operator("known", softplus, derivative=sigmoid)
    note = "Derivatives: of ramp by complex steps, of rough by central differences."
    assert note in sn.novelty("ramp(x0) + rough(x1)", X).notes
    assert not sn.novelty("ramp(x0) + rough(x1)", X, order=0).notes
    assert not sn.novelty("known(x0) + x1", X).notes
    assert "Second derivatives: of known by complex steps." in sn.novelty("known(x0) + x1", X, order=2).notes


def test_streaming_gives_the_same_novelty(ramp):
    whole = sn.novelty("ramp(x0) + x0", X)
    parts = sn.novelty_of_chunks("ramp(x0) + x0", [X[:100], X[100:]])
    np.testing.assert_allclose(parts.nu, whole.nu, atol=1e-9)


def test_algebra_leaves_an_own_operator_as_it_is(ramp):
    terms = sn.additive_terms(sn.parse("ramp(x0)*(x0 + 1) + ramp(x0 + x0)"))
    assert [str(term) for term in terms] == ["1*(ramp(x0)*x0)", "1*(ramp(x0))", "1*(ramp(x0 + x0))"]


# --- kernels


@needs_compiled
def test_ordinary_programs_stay_with_the_compiled_kernel(ramp, monkeypatch):
    def refused(*arguments, **options):
        raise AssertionError("the slow way was taken")

    for module in (mixed_kernel, numpy_kernel):
        for name in ("derivatives", "jacobians", "fit"):
            monkeypatch.setattr(module, name, refused)
    programs = kernels.compile_programs([sn.parse("sin(1.5*x0)"), sn.parse("x1")], ["x0", "x1"])
    kernels.derivatives(programs, X.T, 1)
    kernels.jacobians(programs, X.T)
    kernels.fit(programs, [0, 2], [True], X.T, X[:, 0])
    kernels.novelties(programs, [0, 2], X.T)


@needs_compiled
def test_of_a_mixed_population_only_programs_with_own_operators_are_slow(ramp, monkeypatch):
    texts = ["sin(1.5*x0)", "ramp(x0)", "x0*x1", "ramp(2*x1 + 1)"]
    programs = kernels.compile_programs([sn.parse(t) for t in texts], ["x0", "x1"])
    plain = kernels.compile_programs([sn.parse(t) for t in texts[::2]], ["x0", "x1"])
    counted = []
    compiled = native_kernel.derivatives
    monkeypatch.setattr(
        native_kernel, "derivatives", lambda m, p, *rest: counted.append(p.n_programs) or compiled(m, p, *rest)
    )
    found = kernels.derivatives(programs, X.T, 2)
    assert counted == [2]
    np.testing.assert_array_equal(found[::2], kernels.derivatives(plain, X.T, 2))
    out = np.empty_like(found)
    assert kernels.derivatives(programs, X.T, 2, out=out) is out
    np.testing.assert_array_equal(out, found)
    with pytest.raises(KernelError, match="wrong shape"):
        kernels.derivatives(programs, X.T, 2, out=np.empty(3))


@needs_compiled
@pytest.mark.parametrize("with_triangles", [True, False])
def test_a_mixed_population_gives_what_the_numpy_kernel_gives(ramp, monkeypatch, with_triangles):
    lists = [["sin(1.5*x0)", "x0"], ["ramp(0.7*x0)", "x0"], ["x1", "square(x1)"], ["ramp(x1)"], ["x0*x1"]]
    programs = kernels.compile_programs([sn.parse(t) for terms in lists for t in terms], ["x0", "x1"])
    offsets = np.concatenate([[0], np.cumsum([len(terms) for terms in lists])])
    y = np.sin(1.4 * X[:, 0]) + softplus(0.9 * X[:, 0])
    free = np.ones(len(programs.constants), dtype=bool)

    def everything():
        return (
            kernels.novelties(programs, offsets, X.T, geometry=Geometry(1), with_triangles=with_triangles),
            kernels.fit(programs, offsets, free, X.T, y),
            kernels.jacobians(programs, X.T),
        )

    mixed = everything()
    monkeypatch.setattr(kernels, "native", lambda: None)
    plain = everything()
    np.testing.assert_allclose(mixed[0].lengths, plain[0].lengths, rtol=1e-9)
    np.testing.assert_array_equal(mixed[0].rows, plain[0].rows)
    np.testing.assert_array_equal(mixed[0].status, plain[0].status)
    if not with_triangles:
        np.testing.assert_allclose(mixed[0].nu, plain[0].nu, atol=1e-9)
    else:
        np.testing.assert_allclose(np.abs(mixed[0].triangles), np.abs(plain[0].triangles), atol=1e-9)
    for name in ("coefficients", "constants", "loss"):
        np.testing.assert_allclose(getattr(mixed[1], name), getattr(plain[1], name), rtol=1e-4, atol=1e-8)
    for ours, theirs in zip(mixed[2], plain[2], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_an_opcode_that_nobody_registered_is_refused(ramp):
    programs = kernels.compile_programs([sn.parse("ramp(x0)")], ["x0", "x1"])
    programs.codes[0] = -999_999
    with pytest.raises(KernelError, match="unknown operator"):
        kernels.derivatives(programs, X.T)


# --- search, files, export


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(1)
    inputs = draw.uniform(-3.0, 3.0, (120, 1))
    return inputs, 2.0 * softplus(inputs[:, 0]) + 1.0


def fitted(data, engine="genetic", **options):
    return sn.SymbolicRegressor(
        engine, operators=["add", "sub", "mul", "ramp"], budget=sn.Budget(max_evaluations=400), random_state=0,
        **options,
    ).fit(*data)  # fmt: skip


@pytest.mark.parametrize("engine", ["genetic", "mcts"])
def test_a_search_finds_a_law_with_an_own_operator(ramp, data, engine):
    model = fitted(data, engine)
    assert str(model.expression_.rounded(6)) in ("2*ramp(x0) + 1", "1 + 2*ramp(x0)")
    np.testing.assert_allclose(model.predict(data[0]), data[1], rtol=1e-9)


def test_inner_constants_of_an_own_operator_are_fitted(ramp, data):
    y = 1.5 * softplus(0.7 * data[0][:, 0] + 0.4)
    model = sn.SymbolicRegressor(
        operators=["add", "mul", "ramp"], guesses=["2.0*ramp(0.5*x0 + 1.0)"], budget=sn.Budget(max_evaluations=200),
        random_state=0
    ).fit(data[0], y)  # fmt: skip
    np.testing.assert_allclose(model.predict(data[0]), y, rtol=1e-5)


def test_a_search_with_own_operators_runs_on_one_island_and_says_so(ramp, data):
    with pytest.warns(UserWarning, match=r"ramp are registered in this process only: the search runs on one island"):
        model = fitted(data, parallel=sn.Islands(2))
    assert "ramp" in str(model.expression_)


def test_a_search_without_own_operators_does_not_change_when_some_are_registered(data):
    def found():
        model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=200), random_state=0).fit(*data)
        return [str(e) for e in model.equations_["expression"]]

    before = found()
    sn.register_operator("ramp", softplus)
    assert found() == before


def test_a_saved_model_names_its_operators_and_loads_where_they_are_registered(ramp, data, tmp_path):
    model, path = fitted(data), tmp_path / "model.json"
    model.save(path)
    assert list(json.loads(path.read_text())["own_operators"]) == ["ramp"]
    loaded = sn.SymbolicRegressor.load(path)
    assert loaded.expression_ == model.expression_
    np.testing.assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))
    sn.unregister_operator("ramp")
    with pytest.raises(DataError, match=r"'ramp', that is not registered here. Register the same function before"):
        sn.SymbolicRegressor.load(path)
    sn.register_operator("ramp", np.add, arity=2)
    with pytest.raises(DataError, match="of 1 operand"):
        sn.SymbolicRegressor.load(path)
    sn.register_operator("ramp", np.tanh, replace=True)
    with pytest.raises(DataError, match="another function under the name 'ramp'"):
        sn.SymbolicRegressor.load(path)


@pytest.mark.parametrize(
    "hostile", [3, ["ramp"], {"ramp": 1}, {"ramp": {"at": [], "values": []}}, {"ramp": {"at": [["x"]], "values": [1]}}]
)
def test_a_damaged_entry_of_a_model_file_is_an_error_of_ours(ramp, data, tmp_path, hostile):
    path = tmp_path / "model.json"
    fitted(data).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"own_operators": hostile}))
    with pytest.raises(DataError, match=r"model\.json"):
        sn.SymbolicRegressor.load(path)


def test_a_model_without_own_operators_names_none(data, tmp_path):
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=50), random_state=0).fit(*data)
    model.save(tmp_path / "model.json")
    assert "own_operators" not in json.loads((tmp_path / "model.json").read_text())


def test_sympy_gets_an_undefined_function_or_the_expression_that_was_given(ramp):
    x = sympy.Symbol("x0")
    assert sn.to_sympy(sn.parse("2*ramp(x0)")) == 2 * sympy.Function("ramp")(x)
    assert sn.from_sympy(2 * sympy.Function("ramp")(x)) == sn.parse("2*ramp(x0)")
    sn.register_operator("ramp", softplus, sympy=lambda a: sympy.log(1 + sympy.exp(a)), replace=True)
    assert sn.to_sympy(sn.parse("ramp(x0)")) == sympy.log(1 + sympy.exp(x))


@pytest.mark.parametrize("language", ["numpy", "jax", "torch", "c", "cpp", "julia", "excel"])
def test_no_other_language_can_have_it_and_the_error_says_so(ramp, language):
    with pytest.raises(ExpressionError, match="'ramp' is an own operator.*cannot be written in another language"):
        sn.parse("ramp(x0) + 1").to(language)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (None, r"\operatorname{ramp}\left(x_{0}\right)"),
        (r"\zeta", r"\zeta\left(x_{0}\right)"),
        (r"\left[{0}\right]_{+}", r"\left[x_{0}\right]_{+}"),
    ],
)
def test_latex_is_the_name_or_the_template(latex, expected):
    sn.register_operator("ramp", softplus, latex=latex)
    assert sn.to_latex(sn.parse("2*ramp(x0)")) == rf"2 \, {expected}"


def test_a_page_shows_it(ramp):
    assert "<mi>ramp</mi>" in sn.novelty("ramp(x0) + x1", X).to_html()


def test_the_transformer_does_not_offer_it(ramp):
    assert "ramp" not in SKELETON_NAMES


def test_a_language_model_is_told_its_name(ramp):
    vocabulary = Vocabulary(("x0",), ("add", "ramp"), ((0.0, 1.0),))
    assert '"ramp("' in gbnf(vocabulary, 1)


def test_a_function_in_a_foreign_model_is_recognised_once_it_is_registered():
    def odd(a):
        return math.sin(a) / (2.0 + a * a)

    with pytest.raises(ParameterError, match="register_operator"):
        matching_operator(odd, 1, "odd")
    sn.register_operator("odd", np.vectorize(odd))
    assert matching_operator(odd, 1, "theirs").name == "odd"


# --- names, errors, the life of a registration


@pytest.mark.parametrize(
    "name", ["sin", "Sin", "ln", "sum", "pi", "e", "x0", "X_3", "lambda", "nan", "two words", "", "_f", 3, "é"]
)
def test_a_name_that_is_taken_or_not_a_word_is_refused(name):
    with pytest.raises(ParameterError, match="'name' must"):
        sn.register_operator(name, softplus)


def test_a_second_registration_needs_replace(ramp):
    old = sn.parse("ramp(x0)")
    with pytest.raises(ParameterError, match="replace=True"):
        sn.register_operator("ramp", np.tanh)
    sn.register_operator("ramp", np.tanh, replace=True)
    assert old(x0=0.0) == pytest.approx(math.log(2.0))
    assert sn.parse("ramp(x0)")(x0=0.0) == 0.0
    assert sn.parse("ramp(x0)") != old


def test_what_was_unregistered_is_not_read_and_old_expressions_still_work(ramp):
    old = sn.parse("ramp(x0)")
    stored = pickle.dumps(old)
    assert pickle.loads(stored) == old
    sn.unregister_operator("ramp")
    with pytest.raises(ParseError, match="register_operator"):
        sn.parse("ramp(x0)")
    with pytest.raises(ExpressionError, match="register_operator"):
        pickle.loads(stored)
    with pytest.raises(ParameterError, match="ramp"):
        sn.SymbolicRegressor(operators=["ramp"]).fit(X, X[:, 0])
    assert old(x0=0.0) == pytest.approx(math.log(2.0))
    with pytest.raises(ParameterError, match="registered"):
        sn.unregister_operator("ramp")


def test_a_variable_of_the_same_name_is_printed_between_backticks(ramp):
    e = sn.parse("ramp(`ramp`)")
    assert e.variables == ("ramp",)
    assert str(e) == "ramp(`ramp`)"


def _sums(a):
    return a - a.mean()


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (3, {}, "'function' must be a function"),
        (softplus, {"arity": 3}, "'arity' must be a whole number from 1 to 2"),
        (softplus, {"arity": 2}, "failed for an array"),
        (math.lgamma, {}, "numpy.vectorize"),
        (np.mean, {}, "one real number per argument"),
        (_sums, {}, "each number alone"),
        (lambda a: a + 1j, {}, "one real number per argument"),
        (lambda a: np.full(a.shape, np.nan), {}, "no finite value"),
        (lambda a: np.sqrt(a - 100.0), {}, r"domain=\(low, high\)"),
        (softplus, {"derivative": np.cos}, "the function's slope there is"),
        (softplus, {"derivative": 3}, "'derivative' must be callable"),
        (softplus, {"derivative": (np.cos, np.sin)}, "one per operand"),
        (softplus, {"domain": (1.0, 0.0)}, "low below high"),
        (softplus, {"domain": "all"}, "low below high"),
        (softplus, {"latex": "{0"}, "'latex' must be text"),
        (softplus, {"sympy": "log"}, "'sympy' must be a function"),
    ],
)
def test_what_cannot_be_registered_is_refused_with_the_remedy(function, options, message):
    with pytest.raises(SobolevError, match=message):
        sn.register_operator("ramp", function, **options)
    assert "ramp" not in OPERATORS


def test_a_kink_does_not_make_a_right_derivative_wrong():
    sn.register_operator("hinge", lambda a: np.maximum(a, 0.0), derivative=lambda a: 1.0 * (a > 0.0))
    assert OPERATORS["hinge"].derived_by[0] == ""


def test_a_failure_in_use_is_an_error_that_names_the_operator():
    def picky(a):
        if np.any(np.abs(a) > 50.0):
            raise RuntimeError("too large")
        return np.tanh(a)

    sn.register_operator("picky", picky)
    with pytest.raises(ExpressionError, match="'picky' failed for an array of 1 numbers: RuntimeError: too large"):
        sn.parse("picky(x0)")(x0=60.0)


def test_registering_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sn.register_operator("ramp", softplus)
        sn.register_operator("modulus", np.abs)
        sn.register_operator("steep", lambda a: np.exp(a**9))


def test_an_expression_can_be_built_from_the_name(ramp):
    assert str(Expression.of("ramp", "x0")) == "ramp(x0)"
