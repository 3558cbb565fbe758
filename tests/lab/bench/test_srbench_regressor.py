"""The regressor for SRBench's harness keeps to the interface it documents."""

from __future__ import annotations

import importlib.util

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor

from places import ROOT

pytest.importorskip("sobolev_novelty.search.model.regressor")
PATH = ROOT / "examples" / "srbench" / "regressor.py"


@pytest.fixture(scope="module")
def regressor():
    spec = importlib.util.spec_from_file_location("srbench_regressor", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fitted(regressor):
    X = np.random.default_rng(0).uniform(1, 3, size=(200, 2))
    frame = pd.DataFrame(X, columns=["mass", "speed"])
    est = clone(regressor.est)
    est.set_params(**regressor.eval_kwargs["test_params"])
    est.fit(frame, X[:, 0] * X[:, 1] ** 2)
    return est, frame


def test_the_estimator_is_a_regressor_that_can_be_cloned_and_seeded(regressor) -> None:
    assert is_regressor(regressor.est)
    assert clone(regressor.est).set_params(random_state=7).get_params()["random_state"] == 7
    assert isinstance(regressor.eval_kwargs, dict)


def test_the_model_is_text_that_sympy_reads_in_the_names_of_the_columns(regressor, fitted) -> None:
    sympy = pytest.importorskip("sympy")
    est, frame = fitted
    names = {name: sympy.Symbol(name) for name in frame.columns}
    expression = sympy.parse_expr(regressor.model(est, frame), local_dict=names)
    assert {str(symbol) for symbol in expression.free_symbols} <= set(frame.columns)
    values = sympy.lambdify(list(names.values()), expression, "numpy")(*frame.to_numpy().T)
    np.testing.assert_allclose(np.broadcast_to(values, len(frame)), est.predict(frame), rtol=1e-6)


def test_complexity_is_the_number_of_nodes(regressor, fitted) -> None:
    est, _ = fitted
    assert regressor.complexity(est) == len(est.expression_)
