"""Models that other packages fitted here predict what their expressions do; without the package a test skips."""

from __future__ import annotations

import contextlib
import math
import operator
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.peers import from_model, front_of, system_of
from sobolev_novelty.language.peers.primitives import matching_operator

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, size=(200, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + X[:, 0] * X[:, 1]
FRESH = RNG.uniform(-3, 3, size=(100, 2))


@contextlib.contextmanager
def their_warnings() -> Iterator[None]:
    """Other people's deprecations are not ours to fail on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def package(name: str):
    """Import it; what it changes in NumPy and in the filters of warnings is undone."""
    with their_warnings(), np.errstate():
        return pytest.importorskip(name, exc_type=ImportError)


def assert_predicts(model: object, predicted: object, table: object = FRESH, *, within: float = 1e-6) -> None:
    """The expression gives the model's own predictions, and the model goes into ``novelty`` as it is."""
    theirs = np.asarray(predicted, dtype=float).ravel()
    ours = evaluate(from_model(model), table)
    known = np.isfinite(theirs) & np.isfinite(ours)
    assert known.mean() > 0.5
    np.testing.assert_allclose(ours[known], theirs[known], rtol=within, atol=within * np.std(Y))
    report = sn.novelty(model, table)
    assert report.expression == from_model(model)
    assert len(report) >= 1


PYSR_EQUATIONS = (
    "x1", "x0 * x1", "(square(x1) * 0.5) + sin(x0)", "cube(x0) - inv(x1)", "x0 ^ 2.0 / exp(x1)", "tanh(x0) + abs(x1)",
    "log(x0) + sqrt(x1)", "max(x0, x1) - min(x0, 0.25)", "relu(x0) + sign(x1) + cos(x0 * 2.5) - 1.0e-3",
    "greater(x0, x1) + cond(x0, x1)", "log10(x0) + log2(x1) + log1p(x0)", "atan(x0) + asinh(x1) + neg(x0)",
)  # fmt: skip


def test_pysr_reads_its_hall_of_fame_as_we_do(tmp_path) -> None:
    if find_spec("pysr") is None:
        pytest.skip("pysr is not installed")
    rows = "".join(f'{k},{1.0 / k},"{text}"\n' for k, text in enumerate(PYSR_EQUATIONS, start=1))
    (tmp_path / "hall_of_fame.csv").write_text("Complexity,Loss,Equation\n" + rows, encoding="utf-8")
    # Reading a run needs no Julia; importing pysr does. A stand-in takes its place, in a process of its own.
    code = """
import sys
from unittest.mock import MagicMock
for name in ("juliacall", "juliapkg"):
    sys.modules[name] = MagicMock(__path__=[], __spec__=None)
import numpy as np, sobolev_novelty as sn
from pysr import PySRRegressor
model = PySRRegressor.from_file(
    run_directory=".", binary_operators=["+", "-", "*", "/", "^", "max", "min", "greater", "cond"], n_features_in=2,
    unary_operators="square cube inv sin cos exp log sqrt tanh abs relu sign log10 log2 log1p atan asinh neg".split(),
)
X = np.random.default_rng(0).normal(size=(200, 2))
table = sn.rank(model, X)
for k, equation in enumerate(table["equation"]):
    with np.errstate(all="ignore"):
        theirs = np.asarray(model.predict(X, index=k), dtype=float)
    ours = equation(X)
    known = np.isfinite(theirs)
    assert known.sum() > 20, equation
    np.testing.assert_allclose(ours[known], theirs[known], rtol=1e-9, atol=1e-12, err_msg=str(equation))
assert sn.novelty(model, X).expression == sn.parse(model.get_best()["equation"])
print(len(table))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False, timeout=120,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == str(len(PYSR_EQUATIONS))


def test_the_digits_that_rils_rols_does_not_print_are_recovered(capsys) -> None:
    rils = package("rils_rols.rils_rols")
    with their_warnings():
        model = rils.RILSROLSRegressor(max_fit_calls=2000, max_time=3, random_state=0)
        model.fit(X, Y)
    assert_predicts(model, model.predict(FRESH))


def test_bingo_takes_absolute_values_that_its_text_omits() -> None:
    agraph = package("bingo.symbolic_regression.agraph.agraph")
    graph = agraph.AGraph(equation="sqrt(X_0) + log(X_1)*2.123456789012345 - sinh(X_0)/3.25 + abs(X_1) - cos(X_1)**2")
    assert_predicts(graph, graph.evaluate_equation_at(FRESH))
    assert "sqrtabs(x0)" in str(from_model(graph)) and "logabs(x1)" in str(from_model(graph))
    assert str(sn.parse("sqrt(X_0) + log(X_1)", dialect="bingo")) == "sqrtabs(x0) + logabs(x1)"


@pytest.mark.slow
def test_bingo_regressors_have_a_front() -> None:
    bingo = package("bingo.symbolic_regression.symbolic_regressor")
    with their_warnings():
        model = bingo.SymbolicRegressor(
            population_size=40, stack_size=12, max_time=3, use_simplification=False,
            operators={"+", "-", "*", "/", "sin", "sqrt", "log"},
        )  # fmt: skip
        model.fit(X, Y)
        predicted = model.predict(FRESH)
    assert_predicts(model, predicted)
    table = sn.rank(model, X)
    assert table["complexity"].is_monotonic_increasing
    assert len(table) == len(model.get_pareto_front())


def test_eggp_predicts_with_the_row_of_least_loss_and_ranks_all_rows() -> None:
    eggp = package("eggp")
    functions = "add,sub,mul,div,powerabs,aq,log,exp,sin,cos,tanh,abs,sqrt,square,cube,cbrt,logabs,sqrtabs,recip"
    with their_warnings():
        model = eggp.EGGP(gen=10, nPop=50, maxSize=15, nonterminals=functions).fit(X, Y)
        assert_predicts(model, model.predict(FRESH))
        assert len(sn.rank(model, X)) == len(model.results)
        named = pd.DataFrame(X, columns=["mass", "my speed"])
        model.fit(named, Y)
    assert set(sn.novelty(model, named).expression.variables) <= {"mass", "my speed"}


def test_symregg_predicts_with_its_last_row(tmp_path) -> None:
    if find_spec("symregg") is None:
        pytest.skip("symregg is not installed")
    # A process has room for one Haskell runtime, and eggp has taken it.
    code = """
import numpy as np, symregg, sobolev_novelty as sn
X = np.random.default_rng(0).uniform(-3, 3, (200, 2))
model = symregg.SymRegg(gen=100, maxSize=10, nonterminals="add,sub,mul,sin")
model.fit(X, 2.5 * X[:, 0] + 1.3 * X[:, 1] + 0.7)  # without a constant its predict fails
np.testing.assert_allclose(sn.evaluate(model, X), model.predict(X), rtol=1e-6, atol=1e-6)
assert len(sn.rank(model, X)) == len(model.results)
"""
    environment = {name: value for name, value in os.environ.items() if name != "GHCRTS"}  # eggp sets it for itself
    # It leaves its tables in the working folder.
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120, env=environment,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_itea_expressions_are_sums_of_transformed_products() -> None:
    itea = package("itea.regression")
    functions = {"log": np.log, "sin": np.sin, "id": lambda x: x, "sqrt.abs": lambda x: np.sqrt(np.abs(x))}
    expression = [("sin", [1, 0]), ("id", [0, 2]), ("id", [1, 1]), ("sqrt.abs", [1, -1])]
    with their_warnings():
        model = itea.ITExpr_regressor(expr=expression, tfuncs=functions, labels=[], fitness_f="r2").fit(X, Y)
        assert_predicts(model, model.predict(FRESH))
        whole = itea.ITEA_regressor(
            gens=5, popsize=20, expolim=(0, 2), tfuncs=functions, tfuncs_dx=functions, random_state=1, verbose=0,
            fitness_f="r2", labels=["u", "v"],
        )  # fmt: skip
        # After the search ITEA explains its result with a class that scikit-learn 1.6 and later refuse.
        with contextlib.suppress(AttributeError):
            whole.fit(X, Y)
        frame = pd.DataFrame(FRESH, columns=["u", "v"])
        assert_predicts(whole, whole.bestsol_.predict(FRESH), frame)


@pytest.mark.slow
def test_feyn_models_are_read_from_their_elements() -> None:
    feyn = package("feyn")
    data = pd.DataFrame(X, columns=["a_1", "b"]).assign(y=Y)
    fresh = pd.DataFrame(FRESH, columns=["a_1", "b"])
    with their_warnings():
        models = feyn.QLattice(random_seed=1).auto_run(data, "y", n_epochs=1)
        for model in models[:5]:
            assert_predicts(model, model.predict(fresh), fresh)
    assert len(sn.rank(models[:5], fresh)) == 5


def test_a_kan_is_its_symbolic_formula() -> None:
    kan = package("kan")
    torch = package("torch")
    with their_warnings():
        inputs = torch.tensor(X).float()
        model = kan.KAN(width=[2, 1], grid=3, k=3, seed=0, auto_save=False)
        model(inputs)
        model.fix_symbolic(0, 0, 0, "sin", fit_params_bool=False, verbose=False)
        model.fix_symbolic(0, 1, 0, "x^2", fit_params_bool=False, verbose=False)
        predicted = model(torch.tensor(FRESH).float()).detach().numpy()
        formula = model.symbolic_formula()
        assert_predicts(model, predicted, within=1e-3)
        assert_predicts(formula, predicted, within=1e-3)
    # The formula alone counts from 1, as its text would.
    assert set(sn.novelty(formula[0][0], FRESH).expression.variables) == {"x0", "x1"}


def protected_division(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return 1.0


@pytest.fixture
def primitives():
    gp = package("deap.gp")
    with their_warnings():
        pset = gp.PrimitiveSet("MAIN", 2)
        for function, arity in ((operator.add, 2), (operator.mul, 2), (operator.neg, 1), (math.cos, 1), (math.tanh, 1)):
            pset.addPrimitive(function, arity)
        pset.addPrimitive(protected_division, 2)
        pset.addPrimitive(lambda a: math.log(abs(a)) if a else 0.0, 1, name="plog")
        pset.addTerminal(math.pi, name="PI")
        pset.addEphemeralConstant("noise", lambda: random.uniform(-1, 1))
    return gp, pset


def test_deap_trees_are_evaluated_as_their_primitive_set_says(primitives) -> None:
    gp, pset = primitives
    random.seed(1)
    for _ in range(20):
        tree = gp.PrimitiveTree(gp.genFull(pset, 3, 5))
        compiled = gp.compile(tree, pset)
        theirs = np.array([compiled(*row) for row in FRESH])
        np.testing.assert_allclose(evaluate(from_model((tree, pset)), FRESH), theirs, rtol=1e-9, atol=1e-9)


def test_deap_halls_of_fame_are_ranked_and_names_are_the_users(primitives) -> None:
    gp, pset = primitives
    base, creator, tools = package("deap.base"), package("deap.creator"), package("deap.tools")
    pset.renameArguments(ARG0="mass", ARG1="speed")
    if not hasattr(creator, "PeersFitness"):
        creator.create("PeersFitness", base.Fitness, weights=(-1.0,))
        creator.create("PeersTree", gp.PrimitiveTree, fitness=creator.PeersFitness)
    hall = tools.HallOfFame(2)
    trees = [creator.PeersTree.from_string(text, pset) for text in ("mul(mass, speed)", "add(mass, cos(speed))")]
    for tree, loss in zip(trees, (2.0, 1.0), strict=True):
        tree.fitness.values = (loss,)
    hall.update(trees)
    frame = pd.DataFrame(FRESH, columns=["mass", "speed"])
    table = sn.rank((hall, pset), frame)
    assert table["loss"].tolist() == [1.0, 2.0]
    assert [str(e) for e in table["equation"]] == ["mass + cos(speed)", "mass*speed"]
    assert str(sn.novelty(trees[0], frame).expression) == "mass*speed"
    with pytest.raises(ParameterError, match=r"Give both: \(tree, pset\)"):
        sn.novelty(creator.PeersTree.from_string("plog(mass)", pset), frame)


def test_functions_are_told_from_what_they_compute() -> None:
    assert matching_operator(np.square, 1, "f").name == "square"
    assert matching_operator(lambda a, b: a - b, 2, "f").name == "sub"
    assert matching_operator(lambda a, b: np.where(np.abs(b) > 1e-3, np.divide(a, b), 1.0), 2, "f").name == "gpdiv"
    assert matching_operator(protected_division, 2, "f").name == "div"
    assert matching_operator(max, 2, "f").name == "max"
    with pytest.raises(ParameterError, match="'odd', that computes what no operator here does"):
        matching_operator(lambda a: a**5 - 1, 1, "odd")
    with pytest.raises(ParameterError, match="'if_then' with 3 operands"):
        matching_operator(lambda a, b, c: a, 3, "if_then")


def test_linear_models_behind_scalers_and_polynomials() -> None:
    from sklearn.linear_model import LassoCV, LinearRegression, Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler

    models = (
        LinearRegression(),
        make_pipeline(PolynomialFeatures(3), Ridge()),
        make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), LassoCV()),
        make_pipeline(MinMaxScaler(), PolynomialFeatures(2), RobustScaler(), LinearRegression()),
        make_pipeline(StandardScaler(with_mean=False), "passthrough", LinearRegression()),
        make_pipeline(StandardScaler(with_std=False), MaxAbsScaler(), LinearRegression(fit_intercept=False)),
        GridSearchCV(make_pipeline(PolynomialFeatures(2), Ridge()), {"ridge__alpha": [0.1, 1.0]}),
    )
    for model in models:
        assert_predicts(model.fit(X, Y), model.predict(FRESH), within=1e-10)
    frame = pd.DataFrame(X, columns=["mass", "speed"])
    assert set(from_model(LinearRegression().fit(frame, Y)).variables) == {"mass", "speed"}


def test_a_polynomial_of_scaled_inputs_is_that_of_the_inputs() -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

    rng = np.random.default_rng(0)
    rows = rng.uniform(1.0, 5.0, (200, 2))
    y = 2.0 * rows[:, 0] + 0.5 * rows[:, 1] ** 2 + 0.3 * rows[:, 0] * rows[:, 1] + 0.1 * rng.normal(size=200)
    plain = sn.novelty(make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(rows, y), rows, y)
    for scaler in (StandardScaler(), MinMaxScaler((-1, 1))):
        model = make_pipeline(scaler, PolynomialFeatures(2, include_bias=False), LinearRegression()).fit(rows, y)
        report = sn.novelty(model, rows, y)
        assert report.labels == plain.labels == ("1", "x0", "x1", "x0**2", "x0*x1", "x1**2")
        assert [v.determined for v in report.verdicts] == [v.determined for v in plain.verdicts]
        assert [v.determined for v in report.verdicts].count("yes") == 3
        np.testing.assert_allclose(report.coefficients, plain.coefficients, rtol=1e-6)
        np.testing.assert_allclose(report.table["low"], plain.table["low"], rtol=1e-6)
        both = LinearRegression().fit(model[:-1].transform(rows), np.column_stack([y, 3.0 * y]))
        assert list(sn.novelty(make_pipeline(*[step for _, step in model.steps[:-1]], both), rows)) == ["y0", "y1"]


def test_a_polynomial_far_from_zero_is_left_as_it_was_scaled() -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    rows = 300.0 + np.random.default_rng(0).normal(size=(100, 1))
    y = (rows[:, 0] - 300.0) ** 5
    model = make_pipeline(StandardScaler(), PolynomialFeatures(5), LinearRegression()).fit(rows, y)
    written = from_model(model)
    assert "- 3" in str(written) or "+ (-" in str(written)  # multiplied out, all digits would cancel
    np.testing.assert_allclose(evaluate(written, rows), model.predict(rows), rtol=0, atol=1e-8 * np.abs(y).max())


def test_linear_models_with_several_targets_are_systems() -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.multioutput import MultiOutputRegressor

    targets = np.column_stack([Y, Y**2])
    for model in (LinearRegression().fit(X, targets), MultiOutputRegressor(LinearRegression()).fit(X, targets)):
        reports = sn.novelty(model, X)
        assert list(reports) == ["y0", "y1"]
        for k, expression in enumerate(system_of(model).values()):
            np.testing.assert_allclose(evaluate(expression, FRESH), model.predict(FRESH)[:, k], rtol=1e-9)


def test_what_is_not_a_formula_is_refused_by_name() -> None:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    with pytest.raises(ParameterError, match="fitted model of HROCH, bingo, deap, .* Got sklearn.tree"):
        from_model(RandomForestRegressor(2).fit(X, Y))
    with pytest.raises(ParameterError, match="a step 'SplineTransformer'"):
        from_model(make_pipeline(SplineTransformer(), LinearRegression()).fit(X, Y))


def test_gplearn_and_operon_fronts_are_ranked() -> None:
    genetic = package("gplearn.genetic")
    operon = package("pyoperon.sklearn")
    with their_warnings():
        model = genetic.SymbolicRegressor(population_size=100, generations=3, random_state=0).fit(X, Y)
        other = operon.SymbolicRegressor(
            max_evaluations=3000, population_size=100, n_threads=1, random_state=1, objectives=["mse", "length"]
        ).fit(X.copy(), Y.copy())
    for fitted in (model, other):
        table = sn.rank(fitted, X, Y)
        assert table["complexity"].is_monotonic_increasing
        assert np.isfinite(table["loss"]).all()
        assert sn.rank(fitted, X)["loss"].notna().all()
    assert front_of(model)[-1].loss <= model._program.raw_fitness_


def test_ffx_fronts_are_ranked() -> None:
    ffx = package("ffx")
    with their_warnings():
        model = ffx.FFXRegressor().fit(np.abs(X), Y)
        table = sn.rank(model, np.abs(X))
    assert len(table) == len(model.models_)


def test_every_equation_of_a_pysindy_system_gets_a_report_and_is_pruned() -> None:
    ps = package("pysindy")
    rates = np.column_stack([X[:, 1], -X[:, 0] - 0.1 * X[:, 1]])
    with their_warnings():
        model = ps.SINDy(feature_library=ps.PolynomialLibrary(2), optimizer=ps.STLSQ(threshold=1e-2))
        model.fit(X, t=1.0, x_dot=rates, feature_names=["q", "p"])
    frame = pd.DataFrame(X, columns=["q", "p"])
    reports = sn.novelty(model, frame)
    assert list(reports) == ["q", "p"]
    assert [report.labels for report in reports.values()] == [("p",), ("q", "p")]
    pruned = sn.prune(model, frame, rates)
    assert str(pruned["q"]) == "p"
    assert list(sn.rank(model, frame)) == ["q", "p"]
    with pytest.raises(sn.DataError, match=r"one column per equation, 2 in all \(q, p\)"):
        sn.prune(model, frame, rates[:, 0])
