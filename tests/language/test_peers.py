"""Expressions of real fitted models predict what the models predict."""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.peers import (
    from_ffx,
    from_gplearn,
    from_hroch,
    from_model,
    from_pyoperon,
    from_pysindy,
    from_pysr,
    read_hall_of_fame,
)
from sobolev_novelty.language.peers.pysr import FrontEntry, best_entry

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, size=(200, 3))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + X[:, 0] * X[:, 1] + 1e-3 * X[:, 2]
FRESH = RNG.uniform(-4, 4, size=(300, 3))
EVERYTHING = ("add", "sub", "mul", "div", "sqrt", "log", "abs", "neg", "inv", "max", "min", "sin", "cos", "tan")


@pytest.mark.parametrize("functions", [EVERYTHING, ("add", "mul", "div", "inv", "log", "sqrt")])
@pytest.mark.parametrize("seed", range(3))
def test_gplearn_programs_are_evaluated_as_gplearn_does(functions: tuple[str, ...], seed: int) -> None:
    genetic = pytest.importorskip("gplearn.genetic")
    model = genetic.SymbolicRegressor(
        population_size=100, generations=3, function_set=functions, init_depth=(3, 6), random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
        for program in [model._program, *model._programs[-1][:50]]:
            np.testing.assert_allclose(
                evaluate(from_gplearn(program), FRESH), program.execute(FRESH), rtol=1e-9, atol=1e-9
            )
        np.testing.assert_allclose(evaluate(from_model(model), FRESH), model.predict(FRESH), rtol=1e-9, atol=1e-9)


def test_gplearn_names_and_functions_of_ones_own() -> None:
    genetic = pytest.importorskip("gplearn.genetic")
    functions = pytest.importorskip("gplearn.functions")
    options = {"population_size": 20, "generations": 1, "random_state": 0}
    named = genetic.SymbolicRegressor(feature_names=["a", "b", "c"], **options).fit(X, Y)
    assert set(from_gplearn(named).variables) <= {"a", "b", "c"}
    assert set(from_gplearn(named, names=["u", "v", "w"]).variables) <= {"u", "v", "w"}
    own = functions.make_function(function=lambda a: a**2, name="mine", arity=1)
    foreign = genetic.SymbolicRegressor(function_set=[own], init_method="full", **options).fit(X, Y)
    with pytest.raises(ParameterError, match="'mine'"):
        from_gplearn(foreign)


@pytest.mark.parametrize(
    "symbols",
    [
        "add,sub,mul,div,aq,pow,constant,variable",
        "add,mul,sin,cos,exp,logabs,sqrtabs,square,cbrt,tanh,constant,variable",
        "add,sub,mul,abs,fmin,fmax,asin,acos,atan,log1p,powabs,constant,variable",
    ],
)
def test_operon_trees_are_evaluated_as_operon_does(symbols: str) -> None:
    sklearn = pytest.importorskip("pyoperon.sklearn")
    model = sklearn.SymbolicRegressor(
        allowed_symbols=symbols, max_evaluations=3000, population_size=100, n_threads=1, random_state=1, max_length=30
    ).fit(X, Y)
    trees = [model.model_, *(entry["tree"] for entry in model.pareto_front_)]
    trees += [individual.Genotype for individual in model.individuals_[:100]]
    n_compared = 0
    for tree in trees:
        theirs = np.asarray(model.evaluate_model(tree, FRESH), dtype=float)
        ours = evaluate(from_pyoperon(model, tree=tree), FRESH)
        # Single precision: compare where the function is tame.
        usable = np.isfinite(theirs) & np.isfinite(ours) & (np.abs(ours) < 1e6)
        if usable.mean() < 0.5:
            continue
        n_compared += 1
        scale = np.abs(ours[usable]).max() + 1e-30
        assert np.median(np.abs(theirs[usable] - ours[usable])) / scale < 1e-4
    assert n_compared > len(trees) / 3
    np.testing.assert_allclose(evaluate(from_model(model), X), model.predict(X), rtol=1e-3, atol=1e-3 * np.std(Y))


@pytest.mark.parametrize(
    "kind", ["Fmin", "Fmax", "Abs", "Add", "Sub", "Mul", "Div", "Pow", "Powabs", "Aq", "Cbrt", "Square"]
)
def test_every_operon_primitive_means_what_operon_computes(kind: str) -> None:
    operon = pytest.importorskip("pyoperon")
    head = operon.Node(getattr(operon.NodeType, kind))
    tree = operon.Tree([*[operon.Node.Constant(0.25), operon.Node.Constant(0.5)][: head.Arity], head])
    tree.UpdateNodes()
    dataset = operon.Dataset(np.asfortranarray(np.zeros((1, 1))))
    theirs = operon.Evaluate(operon.DispatchTable(), tree, dataset, operon.Range(0, 1))
    model = SimpleNamespace(model_=tree, variables_={})
    np.testing.assert_allclose(evaluate(from_pyoperon(model), [[0.0]]), theirs, rtol=1e-6)


def test_operon_text_with_many_digits_says_the_same() -> None:
    sklearn = pytest.importorskip("pyoperon.sklearn")
    from sobolev_novelty.language.parsing import parse

    model = sklearn.SymbolicRegressor(max_evaluations=3000, n_threads=1, random_state=2).fit(X, Y)
    read = parse(model.get_model_string(model.model_, 12), names=["x0", "x1", "x2"], variables="x1")
    np.testing.assert_allclose(evaluate(from_pyoperon(model), X), evaluate(read, X), rtol=1e-6, atol=1e-8)


def test_pysindy_models_are_their_terms_times_coefficients() -> None:
    ps = pytest.importorskip("pysindy")
    model = ps.SINDy(
        feature_library=ps.PolynomialLibrary(3) + ps.FourierLibrary(2), optimizer=ps.STLSQ(threshold=1e-4, alpha=1e-8)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, t=1.0, x_dot=np.column_stack([Y, Y**2, X[:, 0]]), feature_names=["a", "b", "c"])
        predicted = np.asarray(model.predict(FRESH))
    for target in range(3):
        expression = from_pysindy(model, target=target)
        frame = pd.DataFrame(FRESH, columns=["a", "b", "c"])
        np.testing.assert_allclose(evaluate(expression, frame), predicted[:, target], rtol=1e-8, atol=1e-8)
        renamed = from_pysindy(model, target=target, names=["x0", "x1", "x2"])
        np.testing.assert_allclose(evaluate(renamed, FRESH), predicted[:, target], rtol=1e-8, atol=1e-8)
    with pytest.raises(ParameterError, match="'target' must be given: the model has 3 targets"):
        from_pysindy(model)
    with pytest.raises(ParameterError, match="'target' must be below 3"):
        from_pysindy(model, target=3)


HALL = """Complexity,Loss,Equation
1,4.2,"x1"
3,1.5,"x0 * x1"
5,0.9,"(x0 * x1) + 0.51"
8,0.01,"(square(x1) * 0.5) + sin(x0) + (x0 * x1)"
12,0.0099,"(square(x1) * 0.5) + sin(x0) + (x0 * x1) + cube(x2) * 1.0e-3 - inv(x2 ^ 2.0)"
"""


@pytest.fixture
def hall(tmp_path):
    (tmp_path / "hall_of_fame.csv").write_text(HALL, encoding="utf-8")
    return tmp_path


def test_a_hall_of_fame_is_read_from_its_file_or_folder(hall) -> None:
    entries = read_hall_of_fame(hall)
    assert entries == read_hall_of_fame(hall / "hall_of_fame.csv")
    assert [entry.complexity for entry in entries] == [1, 3, 5, 8, 12]
    np.testing.assert_allclose(evaluate(entries[3].expression, X), Y - 1e-3 * X[:, 2])
    assert best_entry(entries) == entries[3]


def test_a_fitted_pysr_model_is_read_without_pysr(hall) -> None:
    frame = pd.read_csv(hall / "hall_of_fame.csv").rename(columns=str.lower)

    class Regressor:
        equations_ = frame

        def get_best(self) -> pd.Series:
            return frame.iloc[3]

    Regressor.__module__ = "pysr.sr"
    assert from_model(Regressor()) == read_hall_of_fame(hall)[3].expression
    assert from_pysr(Regressor(), index=0) == Expression.of("x1")
    assert "juliacall" not in sys.modules


def test_what_is_no_hall_of_fame_is_refused(tmp_path) -> None:
    with pytest.raises(DataError, match="There is no hall of fame"):
        read_hall_of_fame(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"lacks the column\(s\) complexity, equation, loss"):
        read_hall_of_fame(tmp_path / "other.csv")
    with pytest.raises(DataError, match="is empty"):
        best_entry([])
    with pytest.raises(ParameterError, match="no table 'equations_'"):
        from_pysr(object())


def test_one_entry_is_the_best_of_one() -> None:
    entry = FrontEntry(1, 0.0, Expression.of("x0"))
    assert best_entry([entry]) == entry


def test_anything_with_a_sympy_method_will_do_and_other_things_are_refused() -> None:
    sympy = pytest.importorskip("sympy")

    class Model:
        def sympy(self) -> object:
            return sympy.sin(sympy.Symbol("x0")) + 1

    np.testing.assert_allclose(evaluate(from_model(Model()), X), np.sin(X[:, 0]) + 1)
    with pytest.raises(ParameterError, match="or a fitted model of HROCH, .*ffx, gplearn, .*pyoperon, pysindy, pysr"):
        from_model(3)


def test_ffx_models_are_evaluated_as_ffx_does() -> None:
    ffx = pytest.importorskip("ffx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ffx.FFXRegressor().fit(np.abs(X), Y)
        assert len(model.models_) > 1
        for found in model.models_:
            np.testing.assert_allclose(
                evaluate(from_ffx(found), np.abs(FRESH)), found.simulate(np.abs(FRESH)), rtol=1e-9, atol=1e-9
            )
        np.testing.assert_allclose(evaluate(from_model(model), np.abs(X)), model.predict(np.abs(X)), rtol=1e-9)
    assert set(from_ffx(model, names=["u", "v", "w"]).variables) <= {"u", "v", "w"}


def test_every_base_of_ffx_is_known() -> None:
    bases = pytest.importorskip("ffx.core.bases")
    models = pytest.importorskip("ffx.core.models")
    operators = [bases.OperatorBase(bases.SimpleBase(1, 2), number, thr=0.5) for number in range(1, 7)]
    product = bases.ProductBase(bases.SimpleBase(0, -1), operators[0])
    model = models.FFXModel(
        [1.0, *range(2, 9)], [*operators, product], [0.5], [bases.SimpleBase(2, 2)], ["a", "b", "c"]
    )
    np.testing.assert_allclose(evaluate(from_ffx(model), FRESH), model.simulate(FRESH), rtol=1e-9)
    assert str(from_ffx(models.ConstantModel(2.5, 3))) == "2.5"


def test_hroch_models_are_read_from_their_text() -> None:
    # The library itself is run in a process of its own (test_bench_run): importing it switches denormals off.
    model = SimpleNamespace(sexpr_="((x0*x2)-(sqrt(x1)/cosh(x0)))")
    expected = FRESH[:, 0] * FRESH[:, 2] - np.sqrt(np.abs(FRESH[:, 1])) / np.cosh(FRESH[:, 0])
    table = np.column_stack([FRESH[:, 0], np.abs(FRESH[:, 1]), FRESH[:, 2]])
    np.testing.assert_allclose(evaluate(from_hroch(model), table), expected, rtol=1e-12)
    assert set(from_hroch(model, names=["u", "v", "w"]).variables) == {"u", "v", "w"}
    with pytest.raises(ParameterError, match="must be a fitted HROCH regressor"):
        from_hroch(SimpleNamespace())
