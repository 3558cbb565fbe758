"""Methods return expressions in x0, x1, … that fit the training part."""

from __future__ import annotations

import time
import tomllib
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LinearRegression

from places import ROOT
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.problems.suites import r_squared
from sobolev_novelty.lab.bench.running import peer_methods
from sobolev_novelty.lab.bench.running.methods import METHODS, MethodResult, find_method, linear

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, size=(150, 2))
Y = 2.0 * X[:, 0] * X[:, 1] - X[:, 1] ** 2


def fitted(name: str, budget: float, **options: object) -> MethodResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return find_method(name)(X, Y, seed=0, budget=budget, **options)


def check(result: MethodResult, least: float) -> None:
    assert set(result.expression.variables) <= {"x0", "x1"}
    r2 = r_squared(Y, evaluate(result.expression, X))
    assert r2 is not None and r2 >= least


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 6), scale=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=25, deadline=None)
def test_linear_is_ordinary_least_squares(seed: int, n_features: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    A, b = scale * rng.normal(3.0, 1.0, size=(40, n_features)), rng.normal(size=40)
    ours = evaluate(linear(A, b, seed=0, budget=1.0).expression, A)
    np.testing.assert_allclose(ours, LinearRegression().fit(A, b).predict(A), rtol=1e-7, atol=1e-8)


def test_constant_and_repeated_columns_do_not_stop_linear() -> None:
    A = np.column_stack([X, X[:, 0], np.full(len(X), 7.0)])
    assert np.isfinite(evaluate(linear(A, Y, seed=0, budget=1.0).expression, A)).all()


@pytest.mark.parametrize("engine", ["genetic", pytest.param("mcts", marks=pytest.mark.slow)])
def test_engines_run_with_and_without_the_signal(engine: str) -> None:
    plain = fitted(engine, 20.0, max_evaluations=300)
    guided = fitted(f"{engine}+novelty", 20.0, max_evaluations=300)
    check(plain, 0.5)
    check(guided, 0.5)
    assert plain.sn_calls == 0
    assert guided.sn_calls is not None and guided.sn_calls > 0
    assert plain.evaluations is not None and plain.evaluations > 0


def test_the_ablation_is_an_option_of_the_guided_method() -> None:
    check(fitted("mcts+novelty", 20.0, max_evaluations=200, guidance={"order": 0}), 0.3)


def test_options_of_the_engine_reach_it() -> None:
    options = {"structural": False, "population_size": 20, "n_offspring": 10}
    check(fitted("genetic", 60.0, max_evaluations=100, engine_options=options), 0.3)
    with pytest.raises(ValueError, match="Genetic has no option 'structure'"):
        fitted("genetic", 1.0, engine_options={"structure": False})


def test_ffx_gives_an_expression() -> None:
    pytest.importorskip("ffx")
    check(fitted("ffx", 1.0), 0.9)


def test_gplearn_gives_an_expression_and_counts_its_evaluations() -> None:
    pytest.importorskip("gplearn")
    result = fitted("gplearn", 1.0, population_size=100)
    check(result, 0.0)
    assert result.evaluations is not None and result.evaluations >= 100


def test_gplearn_finds_a_law_as_it_stands_and_ends_there() -> None:
    pytest.importorskip("gplearn")
    table = np.random.default_rng(0).uniform(1.0, 5.0, (200, 3))
    started = time.process_time()
    found = find_method("gplearn")(
        table, table[:, 0] * table[:, 1] / table[:, 2], seed=0, budget=60.0, standardize=False
    )
    assert time.process_time() - started < 55.0
    assert set(found.expression.variables) == {"x0", "x1", "x2"} and not found.expression.constants
    assert r_squared(table[:, 0] * table[:, 1] / table[:, 2], evaluate(found.expression, table)) == 1.0


def test_the_experiment_with_laws_leaves_gplearns_target_as_it_is() -> None:
    experiments = ROOT / "experiments"
    laws = tomllib.loads((experiments / "peers.toml").read_text(encoding="utf-8"))
    assert laws["suite"] == "whitebox" and laws["methods"]["gplearn"]["standardize"] is False


def test_operon_finds_a_simple_law() -> None:
    pytest.importorskip("pyoperon")
    # Generations, not seconds, end it: what it finds must not depend on who else uses the machine.
    check(fitted("pyoperon", 120.0, generations=20), 0.99)


def test_operons_choice_of_a_model_does_not_depend_on_the_unit_of_the_target() -> None:
    pytest.importorskip("pyoperon")
    # Without the spread of the noise it answers a small target with a constant or a line, whatever its front has.
    noisy = Y + 0.05 * np.random.default_rng(1).normal(size=len(Y))
    for unit in (1e-3, 1.0, 1e3):
        result = find_method("pyoperon")(X, unit * noisy, seed=0, budget=120.0, generations=20)
        assert r_squared(unit * Y, evaluate(result.expression, X)) > 0.95


def test_the_spread_of_the_noise_has_the_unit_of_the_target() -> None:
    spread = peer_methods._forest_error(X, Y, 0)
    assert 0.0 < spread < 0.2 * np.std(Y)
    assert peer_methods._forest_error(X, 1024.0 * Y, 0) == pytest.approx(1024.0 * spread)
    assert peer_methods._forest_error(X, np.full(len(Y), 3.0), 0) == 1.0


def test_pysindy_finds_a_polynomial_and_only_its_terms() -> None:
    pytest.importorskip("pysindy")
    result = fitted("pysindy", 1.0)
    check(result, 1.0 - 1e-9)
    assert result.expression.complexity < 15


def test_the_registry_names_what_the_experiments_use() -> None:
    find_method("linear")
    assert {
        "linear",
        "gplearn",
        "pyoperon",
        "pysindy",
        "ffx",
        "hroch",
        "genetic",
        "genetic+novelty",
        "mcts",
        "mcts+novelty",
    } <= set(METHODS)
