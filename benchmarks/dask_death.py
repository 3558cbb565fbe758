"""A Dask cluster of two worker processes one of which is killed, against one island by itself.

Usage: python -m benchmarks.dask_death [--evaluations 3000] [--seeds 4]
       python -m benchmarks.dask_death --show    what is stored

Every island has the same number of evaluations, so the result does not depend on the load. One worker is killed with
SIGKILL when the islands together have spent a third of theirs; Dask starts another. Fronts are compared at every
complexity: the least error of an equation that is not more complex. Writes ``results/benchmarks/dask_death.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.guidance_cost import targets
from benchmarks.run import machine
from sobolev_novelty import Budget, Islands, SymbolicRegressor

RESULT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "dask_death.json"
#: Errors that differ by less than this share are equal.
TOLERANCE = 0.01


def front(model: SymbolicRegressor) -> np.ndarray:
    """Least error of an equation of at most 1, 2, … 60 nodes."""
    table = model.equations_
    return np.array([table["loss"][table["complexity"] <= c].min() for c in range(1, 61)])


def fitted(X: np.ndarray, y: np.ndarray, seed: int, evaluations: int, client: Any) -> tuple[np.ndarray, int]:
    killed: list[int] = []

    def kill_once(progress: Any) -> bool:
        if client is not None and not killed and progress.n_evaluations > evaluations:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return False

    total = evaluations if client is None else 3 * evaluations
    parallel = 1 if client is None else Islands(client=client)
    model = SymbolicRegressor(parallel=parallel, budget=Budget(max_evaluations=total), random_state=seed)
    model.fit(X, y, callback=kill_once, verbose=False)
    return front(model), len(killed)


def shown(stored: dict[str, Any]) -> str:
    """A table of what is stored."""
    lines = [
        "| target | seed | complexities at which the cluster is better | worse | least error, one island | cluster |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in stored["runs"]:
        cells = (row["better"], row["worse"], f"{row['alone']:.4f}", f"{row['cluster']:.4f}")
        lines.append(f"| {row['target']} | {row['seed']} | {' | '.join(map(str, cells))} |")
    return "\n".join(
        [*lines, "", f"{stored['evaluations']} evaluations per island; commit {stored['machine']['commit']}."]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if options.show:
        print(shown(json.loads(RESULT.read_text())))
        return
    from distributed import Client, LocalCluster

    rows: list[dict[str, Any]] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for name, (X, y) in targets().items():
            for seed in range(options.seeds):
                alone, _ = fitted(X, y, seed, options.evaluations, None)
                cluster_front, n_killed = fitted(X, y, seed, options.evaluations, client)
                worse = cluster_front > (1.0 + TOLERANCE) * alone
                better = alone > (1.0 + TOLERANCE) * cluster_front
                rows.append({"target": name, "seed": seed, "killed": n_killed, "better": int(better.sum()),
                             "worse": int(worse.sum()), "alone": alone[-1], "cluster": cluster_front[-1]})  # fmt: skip
                print(rows[-1], flush=True)
    RESULT.write_text(
        json.dumps({"machine": machine(), "evaluations": options.evaluations, "runs": rows}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
