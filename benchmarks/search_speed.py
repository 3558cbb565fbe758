"""Whole searches of this checkout against another one: evaluations a second on one core, and with two threads.

Usage: python -m benchmarks.search_speed --against CHECKOUT [--evaluations 20000] [--repeats 3] [--cases …]

The way a user takes, ``SymbolicRegressor().fit`` with a budget in evaluations, each run in a process of its own, both
checkouts in turn. The other checkout must hold a compiled kernel. Processor time, so that other load on the machine
does not enter; wall time where threads are compared, which says something on an idle machine only. An equal equation
and an equal front say that only the speed has changed. Writes ``results/benchmarks/search_speed.json``, and
``docs/speed.md`` anew.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "benchmarks" / "search_speed.json"

#: Law, engine, whether the engine gets the Sobolev signal, inputs and rows.
CASES: dict[str, tuple[str, str, bool, int, int]] = {
    "noisy law, genetic": ("noisy", "genetic", True, 5, 1000),
    "law without noise, genetic": ("exact", "genetic", True, 5, 1000),
    "paper_gp": ("exact", "paper_gp", False, 6, 500),
    "paper_gp + novelty": ("exact", "paper_gp", True, 6, 500),
    "paper_mcts": ("exact", "paper_mcts", False, 6, 500),
    "paper_mcts + novelty": ("exact", "paper_mcts", True, 6, 500),
}
PAPER_OPERATORS = ("add", "sub", "mul", "div", "sqrt", "exp", "log", "sin", "cos")

#: What a child process runs: nothing of ``benchmarks`` is imported, so that any checkout can be the other one.
CHILD = """
import json, resource, sys, time
import numpy as np
import sobolev_novelty as sn
from sobolev_novelty import Budget, SymbolicRegressor

law, engine, novelty, d, n, operators, evaluations, seed, n_islands = json.loads(sys.argv[1])
rng = np.random.default_rng(5)
X = rng.uniform(0.5, 3.0, (n, d))
x = X.T
y = x[0] * np.exp(-((x[1] - x[2] * x[4]) ** 2) / (2.0 * x[3]))
if law == "noisy":
    y = y + rng.normal(0.0, 0.1 * y.std(), n)
else:  # beyond what is found within the budget
    y = y + np.sin(x[0] * x[3] + np.tanh(x[4] - x[1])) * np.sqrt(x[2] + x[1] ** 2)
options = {} if operators is None else {"operators": operators}
if hasattr(sn, "Islands"):
    options["parallel"] = sn.Islands(n_islands)
    options["constraints"] = None if operators is None else sn.Constraints(max_complexity=30)
else:  # a checkout of 0.1
    options |= {"n_jobs": n_islands, "max_complexity": None if operators is None else 30}
model = SymbolicRegressor(
    engine=engine, novelty=novelty, budget=Budget(max_evaluations=evaluations), random_state=seed, **options,
)
wall, spent = time.perf_counter(), time.process_time()
model.fit(X, y)
wall, spent = time.perf_counter() - wall, time.process_time() - spent
others = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "evaluations": model.n_evaluations_, "seconds": spent, "wall": wall,
    "busiest": max(spent, others.ru_utime + others.ru_stime), "r2_train": float(model.score(X, y)),
    "equation": str(model.expression_), "front": model.equations_.to_json(double_precision=15),
}))
"""  # fmt: skip


def run(checkout: Path, case: str, evaluations: int, seed: int, n_islands: int = 1) -> dict[str, Any]:
    law, engine, novelty, d, n = CASES[case]
    operators = PAPER_OPERATORS if engine.startswith("paper") else None
    kept = [path for path in sys.path if path and not Path(path).resolve().is_relative_to(ROOT)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(checkout / "src"), *kept]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    arguments = json.dumps([law, engine, novelty, d, n, operators, evaluations, seed, n_islands])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, arguments], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"rate": found["evaluations"] / found["seconds"]}


def compared(case: str, before: Path, evaluations: int, repeats: int) -> dict[str, Any]:
    """Both checkouts in turn, one seed after the other."""
    pairs = [(run(before, case, evaluations, seed), run(ROOT, case, evaluations, seed)) for seed in range(repeats)]
    row = {
        "evaluations": evaluations,
        "rate before": statistics.median(old["rate"] for old, _ in pairs),
        "rate": statistics.median(new["rate"] for _, new in pairs),
        "ratios": [new["rate"] / old["rate"] for old, new in pairs],
        "r2 before": [old["r2_train"] for old, _ in pairs],
        "r2": [new["r2_train"] for _, new in pairs],
        "same equation and front": [
            (old["equation"], old["front"]) == (new["equation"], new["front"]) for old, new in pairs
        ],
    }
    row["ratio"] = statistics.median(row["ratios"])
    print(f"{case:28s} {row['rate before']:6.0f} → {row['rate']:6.0f} evaluations a second, {row['ratio']:.2f} ×")
    return row


def threads(evaluations: int, repeats: int) -> dict[str, Any]:
    """Time of the noisy law on one core over that on two (two islands): what passes, and what the busier one works."""
    case = "noisy law, genetic"
    pairs = [(run(ROOT, case, evaluations, seed, 1), run(ROOT, case, evaluations, seed, 2)) for seed in range(repeats)]
    ratios = [one["wall"] / two["wall"] for one, two in pairs]
    working = statistics.median(one["seconds"] / two["busiest"] for one, two in pairs)
    load = os.getloadavg()[0]
    print(f"two cores against one: wall {statistics.median(ratios):.2f} ×, processor {working:.2f} × (load {load:.1f})")
    r2 = [(one["r2_train"], two["r2_train"]) for one, two in pairs]
    return {"ratio": statistics.median(ratios), "ratios": ratios, "processor": working, "r2": r2, "load": load}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True)
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--threads", action="store_true", help="also two threads against one")
    options = parser.parse_args()
    from benchmarks import page
    from benchmarks.run import machine

    stored: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    before = options.against.resolve()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=before, capture_output=True, text=True, check=True
    )
    stored |= {"before": commit.stdout.strip(), "machine": machine()}
    for case in options.cases:
        row = compared(case, before, options.evaluations, options.repeats)
        stored.setdefault("cases", {})[case] = row | {"commit": stored["machine"]["commit"]}
        RESULT.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    if options.threads:
        stored["threads"] = threads(options.evaluations, options.repeats)
        RESULT.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    page.write_text(ROOT / "docs")


if __name__ == "__main__":
    main()
