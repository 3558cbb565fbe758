"""The accumulator on more rows than fit: speed, peak memory, and the in-memory answer on a prefix.

Usage: python benchmarks/streaming.py [--rows 100_000_000]

Rows are generated block by block in a process of its own, whose peak resident memory is what is reported (Python,
NumPy and the generator included). At the prefix the accumulator's report is set beside ``novelty`` of the same rows in
memory.
Writes ``results/benchmarks/streaming.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "benchmarks" / "streaming.json"
#: Five terms of three inputs; the first two are nearly the same on these rows.
EQUATION = "1.5*sin(x0) + 0.3*x0 - 2*exp(-x2) + x1**2*x2 + 0.1*x0*x2/(1 + x1**2)"
BLOCK_ROWS = 250_000
PREFIX_ROWS = 1_000_000
LIMIT_MB = 300.0
TOLERANCE = 1e-10


def blocks(n_rows: int) -> Iterator[np.ndarray]:
    """Blocks of rows; block k depends on k only."""
    for k in range(-(-n_rows // BLOCK_ROWS)):
        rows = min(BLOCK_ROWS, n_rows - k * BLOCK_ROWS)
        yield np.random.default_rng([2024, k]).uniform([-1.0, -2.0, 0.0], [1.0, 2.0, 3.0], (rows, 3))


def stream(n_rows: int) -> dict[str, Any]:
    """One pass over all rows; the prefix's numbers on the way."""
    from sobolev_novelty import NoveltyAccumulator, kernels

    found = NoveltyAccumulator(EQUATION)
    prefix: dict[str, Any] = {}
    updating = cpu = 0.0
    start = time.perf_counter()
    for block in blocks(n_rows):
        wall, processor = time.perf_counter(), time.process_time()
        found.update(block)
        updating += time.perf_counter() - wall
        cpu += time.process_time() - processor
        if found.n_samples == PREFIX_ROWS:
            prefix = _numbers(found.report())
    total = time.perf_counter() - start
    report = found.report()
    return {
        "rows": report.n_samples,
        "seconds": round(total, 2),
        "seconds_updating": round(updating, 2),
        "processor_seconds_updating": round(cpu, 2),
        "rows_per_second": round(n_rows / updating),
        "rows_per_processor_second": round(n_rows / cpu),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "kernel": kernels.backend().name,
        "novelty": report.nu.tolist(),
        "prefix": prefix,
    }


def in_memory() -> dict[str, Any]:
    """The prefix as one array."""
    from sobolev_novelty.report.reporting import novelty

    return _numbers(novelty(EQUATION, np.concatenate(list(blocks(PREFIX_ROWS)))))


def _numbers(report: Any) -> dict[str, Any]:
    return {name: getattr(report, name).tolist() for name in ("nu", "lengths", "contribution", "coefficients")}


def _fresh(task: str, n_rows: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--task", task, "--rows", str(n_rows)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def measure(n_rows: int) -> dict[str, Any]:
    """Both tasks in fresh processes, and what they have to show."""
    streamed, whole = _fresh("stream", n_rows), _fresh("memory", n_rows)
    prefix = streamed.pop("prefix")
    difference = {name: float(np.max(np.abs(np.subtract(prefix[name], whole[name])))) for name in whole}
    git = ["git", "rev-parse", "--short", "HEAD"]
    return {
        "task": f"{n_rows} rows x 3 inputs x 5 terms, order 1, one core",
        "equation": EQUATION,
        **streamed,
        "prefix_rows": PREFIX_ROWS,
        "prefix_novelty_in_memory": whole["nu"],
        "largest_difference": difference,
        "is_met": {
            f"peak RSS <= {LIMIT_MB:g} MB": streamed["peak_rss_mb"] <= LIMIT_MB,
            f"prefix equal to {TOLERANCE:g}": max(difference.values()) <= TOLERANCE,
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "numpy": np.__version__,
            "load": [round(x, 2) for x in os.getloadavg()],
            "commit": subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip(),
            "date": time.strftime("%Y-%m-%d"),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="The accumulator on more rows than fit.")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--task", choices=["stream", "memory"], help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    if options.rows < PREFIX_ROWS:
        parser.error(f"--rows must be at least {PREFIX_ROWS}, the prefix that is compared.")
    if options.task:
        print(json.dumps(stream(options.rows) if options.task == "stream" else in_memory()))
        return
    found = measure(options.rows)
    text = json.dumps(found, indent=1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
