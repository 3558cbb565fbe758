"""How long ``import sobolev_novelty`` takes: median of five fresh interpreters, warm cache, without their start.

Usage: python benchmarks/import_time.py [module ...]
"""

from __future__ import annotations

import statistics
import subprocess
import sys

LIMIT_S = 0.6
_CODE = "import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"


def import_time(module: str, n_runs: int = 5) -> float:
    """Median seconds of an import; one run before the clock warms the file cache."""

    def once() -> float:
        run = subprocess.run(
            [sys.executable, "-c", _CODE.format(module=module)], capture_output=True, text=True, check=True
        )
        return float(run.stdout)

    once()
    return statistics.median(once() for _ in range(n_runs))


if __name__ == "__main__":
    for name in sys.argv[1:] or ["sobolev_novelty", "sobolev_novelty.report.reporting", "sobolev_novelty.ui.cli.main"]:
        print(f"{name:28} {import_time(name):.3f} s  (limit for the package {LIMIT_S} s)")
