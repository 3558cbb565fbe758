"""A report with intervals, 15 terms and 1000 rows: ``python -m benchmarks.report``.

Processor seconds of the first call in a process, which also imports what it needs, and of the quickest of five more.
"""

from __future__ import annotations

import time

import numpy as np

import sobolev_novelty as sn

EQUATION = (
    "1.3*x0 + 2*x1 - x2 + 0.5*x0*x1 + sin(1.7*x2) + exp(-0.4*x3**2) + 2*x3*x4 - x4**2 + 0.3*x0**3 + "
    "cos(2.2*x1 + 0.3) + x1*x2*x3 + 0.2*x0*x4 + tanh(1.4*x0)*x1 + log(x4**2 + 2.5) + 3"
)


def once(X: np.ndarray, y: np.ndarray) -> float:
    begin = time.process_time()
    report = sn.novelty(EQUATION, X.copy(), y)
    assert len(report.table) == 15 and str(report)
    return time.process_time() - begin


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = sn.evaluate(EQUATION, X) + 0.1 * rng.normal(size=1000)
    first, later = once(X, y), min(once(X, y) for _ in range(5))
    print(f"first call {first:.2f} s, then {later:.2f} s (table with intervals, and text)")


if __name__ == "__main__":
    main()
