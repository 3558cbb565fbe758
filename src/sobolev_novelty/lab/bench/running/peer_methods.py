"""Other people's methods on the same splits and budgets, one thread each, judged through ``peers``.

Where a library does not take a time budget, the adapter runs rounds until the time is up. Whatever is not set here
is the library's default.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sobolev_novelty.algebra.terms import Term, additive_terms, sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import require
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.running.methods import MethodResult, method
from sobolev_novelty.language.peers import from_ffx, from_gplearn, from_hroch, from_pyoperon, from_pysindy

#: A mean error that is this share of the target's size is rounding: the law is found.
EXACT_SHARE = 1e-12


@method("gplearn")
def gplearn(
    X: FloatArray, y: FloatArray, *, seed: int, budget: float, standardize: bool = True, **options: Any
) -> MethodResult:
    """gplearn, generation by generation until the time is up or the law is found, with the functions SRBench gives it.

    SRBench standardizes the target of its black-box sets (gplearn draws its constants from [-1, 1]), and not that of
    its laws: a law whose target is standardized has a factor and an offset that gplearn cannot find. Where it is, the
    expression undoes it. Time is that of the processor: gplearn does no more on a machine that others use, too.
    """
    deadline = time.process_time() + budget
    genetic = require("gplearn.genetic", extra="bench")
    settings = {
        "population_size": 1000,
        "function_set": ("add", "sub", "mul", "div", "log", "sqrt", "sin", "cos"),
        "parsimony_coefficient": 0.001,
        "low_memory": True,
        **options,
    }
    center, scale = (float(np.mean(y)), float(np.std(y)) or 1.0) if standardize else (0.0, 1.0)
    z = (y - center) / scale
    exact = EXACT_SHARE * float(np.mean(np.abs(z)))
    model = genetic.SymbolicRegressor(**settings, generations=1, warm_start=True, random_state=seed, n_jobs=1)
    longest = 0.0
    while True:
        begin = time.process_time()
        model.fit(X, z)
        longest = max(longest, time.process_time() - begin)
        if time.process_time() + longest > deadline or model._program.raw_fitness_ <= exact:
            break
        model.set_params(generations=model.generations + 1)
    expression = from_gplearn(model)
    if standardize:
        expression = sum_of_terms([Term(center, Expression.of(1.0)), Term(scale, expression)])
    return MethodResult(expression, evaluations=settings["population_size"] * model.generations, sn_calls=0)


@method("pyoperon")
def pyoperon(X: FloatArray, y: FloatArray, *, seed: int, budget: float, **options: Any) -> MethodResult:
    """Operon with local search of constants and selection by description length, as its authors run it in SRBench.

    Description length needs the spread of the noise; Operon's default is 1, whatever the target's unit, and picks far
    too short a model for targets of order one. Its authors take the error of a random forest on its own training rows,
    and so do we, within the budget.
    """
    begin = time.perf_counter()
    sklearn = require("pyoperon.sklearn", extra="bench")
    settings = {
        "allowed_symbols": "add,sub,mul,aq,sin,cos,exp,logabs,sqrtabs,square,constant,variable",
        "objectives": ["r2", "length"],
        "optimizer_iterations": 5,
        "population_size": 1000,
        "max_length": 50,
        "generations": 1_000_000,
        "max_evaluations": 1_000_000_000,
        "uncertainty": [_forest_error(X, y, seed)],
        **options,
    }
    left = max(1, round(budget - (time.perf_counter() - begin)))  # whole seconds only
    model = sklearn.SymbolicRegressor(**settings, max_time=left, random_state=seed, n_threads=1)
    model.fit(X, y)
    # With two objectives Operon does not count: 0 means unknown.
    return MethodResult(from_pyoperon(model), evaluations=int(model.stats_["evaluation_count"]) or None, sn_calls=0)


def _forest_error(X: FloatArray, y: FloatArray, seed: int) -> float:
    """Root mean squared error of a random forest on the rows it was fitted on, at most 1000 of them."""
    from sklearn.ensemble import RandomForestRegressor

    rows = np.random.default_rng(seed).permutation(len(y))[:1000]
    forest = RandomForestRegressor(n_jobs=1, random_state=seed).fit(X[rows], y[rows])
    # A target that the forest repeats exactly has no noise to speak of; zero would divide by zero.
    return float(np.sqrt(np.mean((y[rows] - forest.predict(X[rows])) ** 2))) or 1e-6 * float(np.std(y)) or 1.0


@method("pysindy")
def pysindy(X: FloatArray, y: FloatArray, *, seed: int, budget: float, degree: int = 2) -> MethodResult:
    """PySINDy's thresholded least squares on polynomials and, for up to ten inputs, sines and cosines.

    Of eleven thresholds, from the largest down, a smaller one is taken only where it removes at least a hundredth of
    the squared error on a held-out quarter of the training rows.
    """
    ps = require("pysindy", extra="bench")
    held_out = np.random.default_rng(seed).random(len(y)) < 0.25
    scale = float(np.std(y)) or 1.0
    best = Expression.of(float(np.mean(y[~held_out])))
    best_error = float(np.mean((y[held_out] - best.constants[0]) ** 2))
    thresholds = np.geomspace(10.0, 1e-4, 11)
    for threshold in thresholds:
        library = ps.PolynomialLibrary(degree if X.shape[1] <= 30 else 1)
        if X.shape[1] <= 10:
            library = library + ps.FourierLibrary(1)
        optimizer = ps.STLSQ(threshold=threshold, alpha=1e-6, normalize_columns=True)
        model = ps.SINDy(feature_library=library, optimizer=optimizer)
        # The optimizer's thresholds are meant for targets of order one.
        model.fit(X[~held_out], t=1.0, x_dot=(y[~held_out] / scale)[:, None])
        terms = additive_terms(from_pysindy(model, names=[f"x{k}" for k in range(X.shape[1])]))
        expression = sum_of_terms([Term(scale * term.coefficient, term.expression) for term in terms])
        error = float(np.mean((y[held_out] - evaluate(expression, X[held_out])) ** 2))
        if error < 0.99 * best_error and best_error > 1e-20 * scale**2:
            best, best_error = expression, error
    return MethodResult(best, evaluations=len(thresholds), sn_calls=0)


@method("ffx")
def ffx(X: FloatArray, y: FloatArray, *, seed: int, budget: float) -> MethodResult:
    """FFX, which has neither a seed nor a time limit.

    Of its front the model with the least error is taken, as its regressor chooses.
    """
    module = require("ffx", extra="bench")
    model = module.FFXRegressor().fit(X, y)
    return MethodResult(from_ffx(model), evaluations=len(model.models_), sn_calls=0)


@method("hroch")
def hroch(X: FloatArray, y: FloatArray, *, seed: int, budget: float, **options: Any) -> MethodResult:
    """HROCH for the whole budget, in double precision.

    Importing it switches denormal numbers off for the whole process: run it in one of its own, as the runner does.
    """
    from sklearn.utils.validation import validate_data

    module = require("HROCH", extra="bench")

    class Regressor(module.SymbolicRegressor):  # type: ignore[misc, name-defined]
        """Written for scikit-learn before 1.6, whose two private names it uses."""

        _estimator_type = "regressor"

        def _validate_data(self, *arguments: Any, **checks: Any) -> Any:
            return validate_data(self, *arguments, **checks)

    settings = {"num_threads": 1, "precision": "f64", "time_limit": budget, "random_state": seed, **options}
    return MethodResult(from_hroch(Regressor(**settings).fit(X, y)), sn_calls=0)
