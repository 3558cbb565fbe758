"""Coverage of the 95 % intervals and bands on simulated laws.

Usage: python -m benchmarks.coverage [--repeats 40]

Laws with constants: classical ones with inner constants, and those white-box laws of SRBench and of textbooks whose
numbers a fit may change.
Each is simulated with 100 and 1000 rows and noise of 1 % and 10 % of the target's standard deviation; the equation is
refitted from its true constants. Counted is how often an interval holds the true value, and how often the band for the
law holds it at new rows. Writes ``results/benchmarks/coverage.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import sobolev_novelty as sn
from benchmarks.run import machine
from sobolev_novelty.lab.bench.problems.tasks import formula_tasks, whitebox_tasks
from sobolev_novelty.report.intervals.constants import parametrised

RESULT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "coverage.json"
TEXTBOOK = Path(__file__).resolve().parents[1] / "experiments" / "formulas" / "textbook.toml"
ROWS, NOISES, LEVEL = (100, 300, 1000), (0.01, 0.1), 0.95
#: Law and the ranges of its inputs.
CLASSICAL: dict[str, tuple[str, tuple[tuple[float, float], ...]]] = {
    "straight line": ("3.2*x0 - 1.7", ((-1.0, 4.0),)),
    "polynomial": ("0.8*x0**3 - 2.1*x0 + 0.4*x1**2 + 1.3", ((-2.0, 2.0), (-1.0, 3.0))),
    "exponential decay": ("2.4*exp(-0.7*x0) + 1.1", ((0.0, 4.0),)),
    "two decays": ("2.4*exp(-0.3*x0) + 1.6*exp(-2.5*x0)", ((0.0, 8.0),)),
    "logistic": ("9.5/(1 + 40*exp(-1.2*x0))", ((0.0, 8.0),)),
    "power law": ("2.5*x0**1.37", ((0.5, 6.0),)),
    "damped oscillation": ("1.8*exp(-0.25*x0)*cos(2.3*x0 + 0.4)", ((0.0, 10.0),)),
    "Michaelis–Menten": ("4.2*x0/(1.6 + x0)", ((0.1, 9.0),)),
    "Gaussian peak": ("3.1*exp(-0.9*(x0 - 2.4)**2) + 0.5", ((0.0, 5.0),)),
    "Arrhenius": ("5.5*exp(-3.4/x0)", ((0.8, 3.0),)),
    "saturation": ("2.2*tanh(0.8*x0) + 0.3*x1", ((0.0, 4.0), (-2.0, 2.0))),
    "mixed": ("1.4*x0*x1 - 0.6*sin(1.9*x1) + 2.2*log(x0 + 1.5)", ((0.0, 3.0), (-2.0, 2.0))),
}


def laws() -> dict[str, tuple[str, tuple[str, ...], Any]]:
    """Name -> equation, names of its inputs, and how inputs are drawn."""
    found: dict[str, tuple[str, tuple[str, ...], Any]] = {}
    for name, (equation, ranges) in CLASSICAL.items():
        low, high = np.array(ranges).T
        found[name] = (
            equation,
            tuple(f"x{k}" for k in range(len(ranges))),
            lambda n, rng, low=low, high=high: rng.uniform(low, high, (n, len(low))),
        )
    for task in (*whitebox_tasks(), *formula_tasks(TEXTBOOK)):
        numbers = [c for c in parametrised(task.expression).constants if not c.is_implied]
        if numbers:
            found[task.name] = (
                str(task.expression),
                task.variables,
                lambda n, rng, task=task: task.sample(n, rng)[0],
            )
    return found


def simulate(law: tuple[str, tuple[str, ...], Any], n: int, noise: float, rng: np.random.Generator) -> dict[str, Any]:
    """How many intervals were made and hit, and the same for the band at 50 new rows."""
    equation, names, draw = law
    X = draw(n, rng)
    truth = sn.parse(equation, names=names, variables="names")
    clean = sn.evaluate(truth, as_table(X, names))
    y = clean + noise * clean.std() * rng.normal(size=len(clean))
    found = sn.intervals(truth, as_table(X, names), y, level=LEVEL)
    new = as_table(draw(50, rng), names)
    _, low, high = found.band(new)
    law_there = sn.evaluate(truth, new)
    counts = {"band": [float(np.mean((low <= law_there) & (law_there <= high))), 1]}
    for kind in ("coefficient", "inner"):
        own = [item for item in found if item.kind == kind and np.isfinite([item.low, item.high]).all()]
        counts[kind] = [sum(item.low <= item.given <= item.high for item in own), len(own)]
    counts["not determined"] = [sum(item.verdict != "determined" for item in found), len(found)]
    return counts


def as_table(X: np.ndarray, names: tuple[str, ...]) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=list(names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    kinds = ("coefficient", "inner", "band", "not determined")
    per_law: dict[str, Any] = {}
    sums = {(n, noise): {kind: np.zeros(2) for kind in kinds} for n in ROWS for noise in NOISES}
    start = time.perf_counter()
    for name, law in laws().items():
        own = {kind: np.zeros(2) for kind in kinds}
        for (n, noise), total in sums.items():
            for _ in range(options.repeats):
                for kind, pair in simulate(law, n, noise, rng).items():
                    own[kind] += pair
                    total[kind] += pair
        per_law[name] = {"equation": law[0]} | {kind: share(own[kind]) for kind in kinds}
        print(name, per_law[name], flush=True)
    overall = {kind: share(sum(total[kind] for total in sums.values())) for kind in kinds}
    settings = [
        {"rows": n, "noise": noise} | {kind: share(total[kind]) for kind in kinds} for (n, noise), total in sums.items()
    ]
    n_intervals = int(sum(total[kind][1] for total in sums.values() for kind in ("coefficient", "inner")))
    result = {
        "level": LEVEL, "repeats": options.repeats, "n_laws": len(per_law), "n_intervals": n_intervals,
        "overall": overall, "settings": settings, "laws": per_law,
        "seconds": round(time.perf_counter() - start, 1), "machine": machine(),
    }  # fmt: skip
    print(overall, *settings, sep="\n")
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def share(pair: Any) -> float | None:
    return None if not pair[1] else round(float(pair[0] / pair[1]), 4)


if __name__ == "__main__":
    main()
