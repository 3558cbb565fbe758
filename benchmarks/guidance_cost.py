"""What guidance costs: evaluations per second with the signal, as a share of those without it.

Usage: python -m benchmarks.guidance_cost [--evaluations 4000] [--seeds 4]

Both arms have the same budget in evaluations, the same data and the same seed; processor time, in turn. A guided search
fits other forms than a plain one, and forms differ in cost, so single pairs scatter: the figure is the median over
targets and seeds. Writes ``results/benchmarks/guidance_cost.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import sobolev_novelty as sn
from benchmarks.measure import spread
from benchmarks.run import machine

RESULT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "guidance_cost.json"
ENGINES = {
    "genetic": sn.Genetic,
    "genetic, evolution alone": lambda: sn.Genetic(structural=False),
    "mcts": sn.MCTS,
}


def targets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Noisy laws of five inputs, so that neither arm stops early."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (1000, 5))
    a, b, c, d, e = X.T
    clean = {
        "sum": a * np.sin(b) + c**2 / d + 0.3 * e,
        "friedman": 10.0 * np.sin(np.pi * a * b / 9.0) + 2.0 * (c - 1.5) ** 2 + 3.0 * d + e,
        "quotient": a * b / (1.0 + c * d) + np.exp(-e),
    }
    return {name: (X, y + 0.1 * y.std() * rng.normal(size=len(y))) for name, y in clean.items()}


def rate(engine: sn.Engine, data: tuple[np.ndarray, np.ndarray], *, novelty: bool, n: int, seed: int) -> float:
    """Evaluations per second of processor time."""
    model = sn.SymbolicRegressor(engine, novelty=novelty, budget=sn.Budget(max_evaluations=n), random_state=seed)
    begin = time.process_time()
    model.fit(*data)
    return float(model.n_evaluations_ / (time.process_time() - begin))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    found = {}
    for name, engine in ENGINES.items():
        pairs = []
        for target, data in targets().items():
            for seed in range(options.seeds):
                n = options.evaluations
                plain, guided = (rate(engine(), data, novelty=on, n=n, seed=seed) for on in (False, True))
                pairs.append({"target": target, "seed": seed, "plain": plain, "guided": guided})
        ratios = [pair["guided"] / pair["plain"] for pair in pairs]
        median, low, high = spread(ratios)
        total = sum(p["plain"] ** -1 for p in pairs) / sum(p["guided"] ** -1 for p in pairs)
        found[name] = {"median": median, "quartiles": [low, high], "of all runs together": total, "pairs": pairs}
        print(f"{name:26s} median {median:.3f} (quartiles {low:.3f} … {high:.3f}), all runs together {total:.3f}")
    RESULT.write_text(json.dumps({"ratios": found, "machine": machine()}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
