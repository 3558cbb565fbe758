"""Tasks an hour of the benchmark's runner: one worker, two workers, and a Dask cluster of two worker processes.

Usage: python -m benchmarks.tasks_per_hour [--tasks 24]

Every task is a real one: the genetic engine on a Feynman law with a budget in evaluations, so that the work is the same
whoever does it; process start, imports and assessment (novelty and the SymPy verdict) included.
Writes ``results/benchmarks/tasks_per_hour.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.run import machine
from sobolev_novelty.lab.bench.problems.suites import suite_tasks
from sobolev_novelty.lab.bench.running.experiment import experiment_from
from sobolev_novelty.lab.bench.running.run import run
from sobolev_novelty.lab.bench.running.store import Store

RESULT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "tasks_per_hour.json"


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A scheduler and two workers, each a process of its own with one thread."""
    where = folder / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    processes = [subprocess.Popen([*command, "--scheduler-file", str(where)], stderr=subprocess.DEVNULL)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    try:
        while not where.is_file():
            time.sleep(0.1)
        for _ in range(2):
            processes.append(subprocess.Popen([*worker, "--scheduler-file", str(where)], stderr=subprocess.DEVNULL))
        yield str(json.loads(where.read_text())["address"])
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def rate(n_tasks: int, folder: Path, name: str, **how: Any) -> dict[str, float]:
    table = {
        "tasks": list(suite_tasks("whitebox")[:n_tasks]),
        "max_train_rows": 500,
        "budget": 60.0,
        "methods": {"genetic": {"max_evaluations": 1500}},
    }
    store = Store(folder / f"{name}.sqlite")
    begin = time.perf_counter()
    summary = run(experiment_from(table, name), store, **how)
    seconds = time.perf_counter() - begin
    assert summary.statuses == {"done": n_tasks}, summary.statuses
    return {"seconds": seconds, "tasks_per_hour": 3600.0 * n_tasks / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=24)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found["1 worker"] = rate(options.tasks, folder, "one", n_jobs=1)
        found["2 workers"] = rate(options.tasks, folder, "two", n_jobs=2)
        with cluster(folder) as address:
            found["Dask, 2 workers"] = rate(options.tasks, folder, "dask", dask=address)
    for label, row in found.items():
        print(f"{row['tasks_per_hour']:8.0f} tasks an hour  {label}")
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"tasks": options.tasks, **found, "machine": machine()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
