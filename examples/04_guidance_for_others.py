"""The signal in other people's search: gplearn's parsimony, and the choice from pyoperon's Pareto front.

Nothing here needs our engines. Where a package is not installed its part is skipped.
"""

# %%
import warnings
from importlib.util import find_spec

import numpy as np

import sobolev_novelty as sn
from sobolev_novelty.core.score import base_score, nmse
from sobolev_novelty.language import peers

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 2))
y = 2.4 * np.sin(X[:, 0]) + 0.8 * X[:, 1] ** 2 + 0.05 * rng.normal(size=300)


def shortfall(expression):
    """What R_SN takes off, before its weight: 0 where every term is novel, 1 where none is."""
    report = sn.novelty(expression, X)
    return float(np.mean(np.maximum(0, 1 - report.nu / report.tau) ** 2)) if report.status is sn.Status.OK else 1.0


def describe(expression):
    error = nmse(y, sn.evaluate(expression, X))
    size = f"{expression.complexity} nodes, {len(sn.novelty(expression, X))} term(s)"
    return f"R² {1 - error:.4f}, {size}, shortfall {shortfall(expression):.2f}"


# %% gplearn: a few generations at a time, and more parsimony while the best program repeats itself.
# `parsimony_coefficient`, `generations` and `warm_start` are gplearn's public parameters: nothing is patched.
if find_spec("gplearn"):
    from gplearn.genetic import SymbolicRegressor as Gplearn

    def evolve(guided):
        model = Gplearn(
            population_size=300, generations=4, function_set=("add", "sub", "mul", "sin"), warm_start=True,
            parsimony_coefficient=0.0005, random_state=1,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for generations in (4, 8, 12, 16):
                model.set_params(generations=generations).fit(X, y)
                if guided:
                    penalty = shortfall(peers.from_model(model))
                    model.set_params(parsimony_coefficient=0.0005 * (1 + 9 * penalty))
        return peers.from_model(model)

    for guided in (False, True):
        found = evolve(guided)
        print(f"gplearn {'with' if guided else 'without'} the signal: {describe(found)}")
        print("   ", str(found)[:110])
        print("    pruned:", str(sn.prune(found, X, y))[:110])
else:
    print("gplearn is not installed: pip install gplearn")

# %% pyoperon: its search is left as it is; the equation is chosen from its Pareto front by R_SN instead of by error.
if find_spec("pyoperon"):
    from pyoperon.sklearn import SymbolicRegressor as Operon

    operon = Operon(
        allowed_symbols="add,sub,mul,sin,constant,variable", objectives=["mse", "length"], population_size=200,
        generations=100, max_evaluations=20_000, n_threads=1, random_state=0,
    )  # fmt: skip
    operon.fit(X.copy(), y.copy())
    front = [peers.pyoperon.from_pyoperon(operon, tree=entry["tree"]) for entry in operon.pareto_front_]
    scores = [base_score(nmse(y, sn.evaluate(e, X)), e.complexity, len(y)) for e in front]
    by_error = min(front, key=lambda e: nmse(y, sn.evaluate(e, X)))
    by_signal = sn.rerank(front, X, scores)[0].candidate
    print(f"pyoperon, {len(front)} on the front")
    print("  chosen by error:", describe(by_error))
    print("  chosen by R_SN: ", describe(by_signal))
else:
    print("pyoperon is not installed: pip install pyoperon")
