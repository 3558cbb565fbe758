"""Fits of a population against scipy.optimize.least_squares on lambdified code; and what a second thread brings."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.evaluation import NAMES, sample
from benchmarks.measure import Measure, at_least, in_turn, wall_seconds
from benchmarks.populations import random_terms, random_trees
from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.kernels import compile_programs
from sobolev_novelty.kernels.program import unique

of = Expression.of
N_CANDIDATES = 300
N_SCIPY = 20


def form(theta: Any) -> list[Expression]:
    """Three terms of four nodes with one inner constant each, and an intercept: 12 + 1 nodes, 3 inner, 4 linear."""
    a, b, c = (float(t) for t in theta)
    return [
        of("exp", of("mul", a, "x0")),
        of("sin", of("mul", b, "x1")),
        of("log", of("add", c, "x2")),
        of(1.0),
    ]


def measures(repeats: int) -> list[Measure]:
    return [fits(repeats), *threads(repeats)]


def problem() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = sample(n_features=3)
    y = 1.2 * np.exp(-0.7 * X[0]) + 0.5 * np.sin(1.3 * X[1]) - 0.8 * np.log(X[2] + 0.4) + 0.3
    starts = np.array([-0.5, 1.0, 0.8]) + 0.3 * rng.normal(size=(N_CANDIDATES, 3))
    return X, y + 0.01 * rng.normal(size=X.shape[1]), np.maximum(starts, [-2.0, 0.1, 0.05])


def fits(repeats: int) -> Measure:
    import sympy
    from scipy.optimize import least_squares

    X, y, starts = problem()
    programs = compile_programs([term for theta in starts for term in form(theta)], NAMES[:3])
    offsets = np.arange(0, 4 * N_CANDIDATES + 1, 4)
    free = np.tile([True, True, True, False], N_CANDIDATES)
    x, p = sympy.symbols("x0:3"), sympy.symbols("p0:7")
    text = p[3] * sympy.exp(p[0] * x[0]) + p[4] * sympy.sin(p[1] * x[1]) + p[5] * sympy.log(p[2] + x[2]) + p[6]
    model = sympy.lambdify((*x, *p), text, "numpy")

    def ours() -> Any:
        return kernels.fit(programs, offsets, free, X, y, n_iterations=8)

    def theirs() -> Any:
        with np.errstate(all="ignore"):
            return [
                2.0 * least_squares(lambda q: model(*X, *q) - y, [*theta, 1.0, 1.0, 1.0, 1.0], max_nfev=8).cost
                for theta in starts[:N_SCIPY]
            ]

    times = in_turn(ours, theirs, repeats)
    per_candidate = times / [N_CANDIDATES, N_SCIPY]
    note = (
        f"{1.0 / np.median(per_candidate[:, 0]):.0f} fits a second; median loss {np.median(ours().loss):.6f}, "
        f"SciPy's {np.median(theirs()):.6f} (trf, 2-point, 7 parameters, max_nfev = 8)"
    )
    name = "fitted candidates per second (12 nodes, 3 inner, 4 linear, 8 iterations, N = 1000) vs SciPy least_squares"
    return at_least(name, per_candidate[:, 1] / per_candidate[:, 0], 50, 200, note=note)


def threads(repeats: int) -> list[Measure]:
    """Two threads against one, in turn."""
    X = sample()
    trees = compile_programs(random_trees(0, 1000, NAMES), NAMES)
    terms = compile_programs(random_terms(3, 5000, NAMES), NAMES)
    terms, members = unique(terms)  # Python, on one thread
    offsets = np.arange(0, 5001, 5)
    out = np.empty((1000, 5, X.shape[1]))  # fresh memory would measure the system's page faults
    actions = {
        "values + gradient": lambda n: kernels.derivatives(trees, X, 1, out=out, n_threads=n),
        "novelties": lambda n: kernels.novelties(terms, offsets, X, members=members, n_threads=n),
    }
    found = []
    for name, action in actions.items():
        action(2)
        ratios = [wall_seconds(lambda a=action: a(1)) / wall_seconds(lambda a=action: a(2)) for _ in range(4 * repeats)]
        found.append(at_least(f"two threads vs one, population of 1000, {name}", ratios, 1.7, 1.9))
    return found
