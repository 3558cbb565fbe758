"""A fit on a million rows of ten columns: time and peak memory of a process of its own.

Usage: python -m benchmarks.long_table [--rows 1_000_000]

The table is made in the process, so its 88 MB are counted, as are Python and every import.
Writes ``results/benchmarks/long_table.json``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RESULT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "long_table.json"
N_COLUMNS = 10
LIMIT_MB = 2000.0


def fit(n_rows: int) -> dict[str, object]:
    """Two laws of three of the ten columns: one without noise, one with."""
    from sobolev_novelty import SymbolicRegressor

    rng = np.random.default_rng(3)
    X = rng.uniform(1.0, 3.0, (n_rows, N_COLUMNS))
    law = 2.5 * X[:, 2] * np.exp(-X[:, 7]) + np.square(X[:, 4])
    found: dict[str, object] = {}
    for name, y in (("exact", law), ("noisy", law + rng.normal(0.0, 0.1, n_rows))):
        begin = time.perf_counter()
        model = SymbolicRegressor(budget=10.0, random_state=0).fit(X, y, verbose=False)
        found[name] = {
            "seconds": time.perf_counter() - begin,
            "expression": str(model.expression_),
            "nmse": float(np.mean((model.predict(X) - law) ** 2) / np.var(law)),
        }
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(fit(options.rows)))
        return
    command = [sys.executable, "-m", "benchmarks.long_table", "--inside", "--rows", str(options.rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = {"rows": options.rows, "columns": N_COLUMNS, "limit_mb": LIMIT_MB, **json.loads(done.stdout)}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
