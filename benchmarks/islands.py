"""Seconds to the exact law on one core and on two: what a second island brings a user who waits for the law.

Usage: python -m benchmarks.islands [--seeds 3] [--limit 60] [--tasks …]

``SymbolicRegressor(n_jobs=…).fit`` on white-box tasks without noise, 1000 rows, in wall time: the machine must be idle.
The tasks are those that one core does not find within three seconds with seed 0 (it is run on all of them first, unless
tasks are named). A run without an exact fit counts with the limit. Writes
``results/benchmarks/islands.json``, and ``docs/speed.md`` anew.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks import page
from benchmarks.run import machine
from sobolev_novelty import Budget, SymbolicRegressor
from sobolev_novelty.bench.suites import suite_tasks, task_data

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "benchmarks" / "islands.json"
#: Tasks that are found sooner say nothing about islands: processes take a second to start.
SLOW = 3.0


def seconds(task: str, seed: int, n_jobs: int, limit: float) -> float:
    """Until the law is found; the limit where it is not."""
    part = task_data(task, seed, max_train_rows=1000, suite="whitebox")
    model = SymbolicRegressor(n_jobs=n_jobs, budget=Budget(None, limit), random_state=seed, verbose=False)
    begin = time.perf_counter()
    model.fit(part.X_train, part.y_train)
    taken = time.perf_counter() - begin
    return taken if "exact" in model.stop_reason_ else limit


def slow_tasks(limit: float) -> list[str]:
    """Tasks that one core finds, but not in the first seconds."""
    return [task for task in suite_tasks("whitebox") if SLOW < seconds(task, 0, 1, limit) < limit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--tasks", nargs="*")
    options = parser.parse_args()
    seconds("feynman_I_6_2a", 0, 1, 10.0)  # imports
    rows: list[dict[str, Any]] = []
    for task in options.tasks or slow_tasks(options.limit):
        for seed in range(options.seeds):
            one, two = (seconds(task, seed, n, options.limit) for n in (1, 2))
            rows.append({"task": task, "seed": seed, "one": one, "two": two})
            print(f"{task:20s} seed {seed}: {one:5.1f} s on one core, {two:5.1f} s on two", flush=True)
    slow = [row for row in rows if row["one"] > SLOW]
    ratio = statistics.median(row["one"] / row["two"] for row in slow)
    print(f"median over {len(slow)} runs that take one core more than {SLOW:g} s: {ratio:.2f} ×")
    found = {
        "machine": machine(),
        "load": os.getloadavg(),
        "limit": options.limit,
        "slow": SLOW,
        "named": bool(options.tasks),
        "median": ratio,
        "runs": rows,
    }
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    page.write_text(ROOT / "docs")


if __name__ == "__main__":
    main()
