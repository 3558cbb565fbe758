"""Seconds of `next_rows` for ten rivals, ten inputs and a pool of 10,000: ``python -m benchmarks.next_rows``.

Processor seconds of one core, the first call in a process, which also imports what it needs, and the quickest of five
more; bars: must 2 s, aim 0.5 s.
"""

from __future__ import annotations

import time

import numpy as np

import sobolev_novelty as sn

#: Ten equations in ten inputs, two to six constants each.
RIVALS = (
    "1.2*x0*x1 + 0.5*x2", "1.1*x0*x1 + 0.4*sin(1.3*x2)", "2*x0*tanh(0.6*x1) + 0.5*x2 - 0.1*x3",
    "1.2*x0*x1 + 0.3*x2 + 0.2*x4*x5", "3*log(1 + 0.4*x0*x1) + 0.5*x2", "1.5*x0*x1/(1 + 0.1*x6) + 0.5*x2",
    "1.2*x0*x1*exp(-0.05*x7) + 0.5*x2", "0.9*x0*x1 + 0.5*x2 + 0.1*x8**2", "1.2*x0*x1 + 0.5*x2 + 0.2*cos(0.7*x9)",
    "1.8*sqrt(x0*x1 + 0.3) + 0.5*x2 - 0.4",
)  # fmt: skip


def once(X: np.ndarray, pool: np.ndarray) -> float:
    begin = time.process_time()
    rows = sn.next_rows(list(RIVALS), X, pool=pool, n=10, sigma=0.1)
    assert rows.shape == (10, 10) and rows.index.is_unique
    return time.process_time() - begin


def main() -> None:
    rng = np.random.default_rng(0)
    X, pool = rng.uniform(0.2, 2.0, (50, 10)), rng.uniform(0.2, 4.0, (10_000, 10))
    first, later = once(X, pool), min(once(X, pool) for _ in range(5))
    print(
        f"10 rivals, 10 inputs, pool of 10,000, 10 rows: first call {first:.2f} s, then {later:.2f} s (must 2, aim 0.5)"
    )


if __name__ == "__main__":
    main()
