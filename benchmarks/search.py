"""Fitted candidates a second, whole searches: our engines and pyoperon on the same rows with one thread.

Usage: python -m benchmarks.search [--seconds 20] [--repeats 3]

A candidate counts when its constants have been fitted. Ours are the loop's evaluations: linear coefficients and inner
constants of one form, repeated forms not counted. Structural forms, which screen thousands of terms for each form that
is fitted, take much of a short run; so the engine is also measured without them. pyoperon's are its offspring, each
with five iterations of Levenberg–Marquardt, as its authors run it in SRBench; its limit of 50 nodes is theirs as well.
The target is Friedman's function with noise, so that neither side stops early. Processor time; the sides take turns.
Writes ``results/benchmarks/search.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.run import machine

RESULT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "search.json"
N_ROWS, N_COLUMNS = 1000, 5


def data() -> tuple[np.ndarray, np.ndarray]:
    """Friedman's first function of five inputs, with noise of a tenth of its spread."""
    rng = np.random.default_rng(7)
    X = rng.uniform(0.0, 1.0, (N_ROWS, N_COLUMNS))
    y = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return X, y + rng.normal(0.0, 0.1 * y.std(), N_ROWS)


def ours(engine: str, novelty: bool, **options: object) -> Callable[[float, int], dict[str, float]]:
    """Evaluations of the loop."""

    def run(seconds: float, seed: int) -> dict[str, float]:
        from sobolev_novelty import SymbolicRegressor
        from sobolev_novelty.search.contract.registry import engine_named

        X, y = data()
        chosen = engine_named(engine, **options)
        begin = time.process_time()
        model = SymbolicRegressor(engine=chosen, novelty=novelty, budget=seconds, random_state=seed)
        model.fit(X, y)
        return _measured(model.n_evaluations_, begin, model.score(X, y))

    return run


def operon(seconds: float, seed: int) -> dict[str, float]:
    """Offspring of one objective: with two pyoperon does not count."""
    from pyoperon.sklearn import SymbolicRegressor

    X, y = data()
    begin = time.process_time()
    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,aq,sin,cos,exp,logabs,sqrtabs,square,constant,variable",
        optimizer_iterations=5,
        population_size=1000,
        pool_size=1000,
        max_length=50,
        generations=1_000_000,
        max_evaluations=1_000_000_000,
        max_time=int(seconds),
        n_threads=1,
        random_state=seed,
    )
    model.fit(X, y)
    n_candidates = 1000 * (int(model.stats_["generations"]) + 1)
    return _measured(n_candidates, begin, model.score(X, y))


def _measured(n_candidates: int, begin: float, r2: float) -> dict[str, float]:
    spent = time.process_time() - begin
    return {"candidates": n_candidates, "seconds": spent, "rate": n_candidates / spent, "r2_train": float(r2)}


SIDES = {
    "genetic": ours("genetic", False),
    "genetic+novelty": ours("genetic", True),
    "genetic, evolution alone": ours("genetic", False, structural=False),
    "genetic+novelty, evolution alone": ours("genetic", True, structural=False),
    "mcts": ours("mcts", False),
    "mcts+novelty": ours("mcts", True),
    "pyoperon": operon,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
    for seed in range(options.repeats):
        for name, side in SIDES.items():
            runs[name].append(side(options.seconds, seed))
            print(f"{name:34s} {runs[name][-1]['rate']:9.0f} candidates a second, R² {runs[name][-1]['r2_train']:.4f}")
    rates = {name: statistics.median(run["rate"] for run in found) for name, found in runs.items()}
    result: dict[str, Any] = {
        "rows": N_ROWS,
        "columns": N_COLUMNS,
        "rates": rates,
        "ratios to pyoperon": {name: rate / rates["pyoperon"] for name, rate in rates.items() if name != "pyoperon"},
        "runs": runs,
        "machine": machine(),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    for name, ratio in result["ratios to pyoperon"].items():
        print(f"{ratio:8.2f} × pyoperon  {name}")


if __name__ == "__main__":
    main()
