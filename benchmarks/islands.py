"""Seconds to the exact law on one core and on two: what a second island brings a user who waits for the law.

Usage: python -m benchmarks.islands results/found_exact.sqlite results/dummies.sqlite [--seeds 3] [--limit 30]

``SymbolicRegressor(parallel=Islands(…)).fit`` on tasks without noise, 1000 rows, in wall time: the machine must be
idle. The tasks are those of stored sweeps whose law was found, but not within three seconds; those with dummy inputs
are left out. A run without an exact fit counts with the limit. Writes ``results/benchmarks/islands.json``, and
``docs/speed.md`` anew.
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
from sobolev_novelty import Islands, SymbolicRegressor
from sobolev_novelty.lab.bench.problems.suites import task_data
from sobolev_novelty.lab.bench.running.store import Store

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "benchmarks" / "islands.json"
#: Tasks that are found sooner say nothing about islands: processes take a second to start.
SLOW = 3.0


def seconds(suite: str, task: str, seed: int, islands: int, limit: float) -> float:
    """Until the law is found; the limit where it is not."""
    part = task_data(task, seed, max_train_rows=1000, suite=suite)
    model = SymbolicRegressor(parallel=Islands(islands), budget=limit, random_state=seed)
    begin = time.perf_counter()
    model.fit(part.X_train, part.y_train)
    taken = time.perf_counter() - begin
    return taken if "exact" in model.stop_reason_ else limit


def slow_tasks(path: Path, limit: float) -> list[tuple[str, str]]:
    """Suite and name of the tasks of a sweep that one core finds, but not in the first seconds."""
    store = Store(path, read_only=True)
    settings, rows = store.settings(), store.frame()
    plain = [
        name.removeprefix("method:")
        for name, value in settings.items()
        if name.startswith("method:") and not value.get("dummies")
    ]
    is_slow = rows["method"].isin(plain) & (rows["exact_numeric"] == 1) & rows["wall_time"].between(SLOW, limit)
    return [(settings["suite"], task) for task in sorted(set(rows["task"][is_slow]))]


def task_ratios(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Median time on one core over that on two, of the tasks whose median on one core is slow.

    Single runs that took one core long are not taken by themselves: they were unlucky, and any other run looks fast.
    """
    times: dict[str, tuple[float, float]] = {}
    for task in dict.fromkeys(row["task"] for row in rows):
        mine = [row for row in rows if row["task"] == task]
        times[task] = (statistics.median(row["one"] for row in mine), statistics.median(row["two"] for row in mine))
    return {task: one / two for task, (one, two) in times.items() if one > SLOW}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0)
    options = parser.parse_args()
    seconds("whitebox", "feynman_I_6_2a", 0, 1, 10.0)  # imports
    rows: list[dict[str, Any]] = []
    for suite, task in (found for path in options.stores for found in slow_tasks(path, options.limit)):
        for seed in range(options.seeds):
            one, two = (seconds(suite, task, seed, n, options.limit) for n in (1, 2))
            rows.append({"task": task, "seed": seed, "one": one, "two": two})
            print(f"{task:20s} seed {seed}: {one:5.1f} s on one core, {two:5.1f} s on two", flush=True)
    ratios = task_ratios(rows)
    ratio = statistics.median(ratios.values())
    print(f"median over {len(ratios)} tasks that take one core more than {SLOW:g} s: {ratio:.2f} ×")
    found = {
        "machine": machine(),
        "load": os.getloadavg(),
        "limit": options.limit,
        "slow": SLOW,
        "stores": [path.name for path in options.stores],
        "median": ratio,
        "tasks": ratios,
        "runs": rows,
    }
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    page.write_text(ROOT / "docs")


if __name__ == "__main__":
    main()
