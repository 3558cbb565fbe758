"""What long, wide and deep inputs cost: seconds and peak memory of each, in a process of its own.

::

    python -m benchmarks.limits            # all cases -> results/benchmarks/limits.json and docs/limits.md
    python -m benchmarks.limits CASE       # one case, as JSON on standard output
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "results" / "benchmarks" / "limits.json"
PAGE = ROOT / "docs" / "limits.md"
MARKS = ("<!-- limits: made by benchmarks/limits.py -->", "<!-- end -->")
RNG = np.random.default_rng(0)


def _formula(text: str) -> Callable[[], object]:
    from sobolev_novelty import novelty

    X = RNG.uniform(0.5, 1.5, (50, 7))
    return lambda: novelty(text, X)


def _terms(n_terms: int, n_rows: int = 1000, n_inputs: int = 7) -> Callable[[], object]:
    from sobolev_novelty import novelty

    X = RNG.uniform(0.5, 1.5, (n_rows, n_inputs))
    return lambda: novelty("+".join(f"sin({k + 1}*x{k % n_inputs})" for k in range(n_terms)), X)


#: Writes a wide table, in a process of its own: what is measured is who reads it.
_WIDE = """
import sys, numpy as np, pandas as pd
values = np.round(np.random.default_rng(0).normal(size=(40, 40_000)), 3)
frame = pd.DataFrame(values, columns=[f"c{k}" for k in range(40_000)])
if sys.argv[2] == "named":
    frame.insert(0, "id", [f"s{k}" for k in range(40)])
frame.to_parquet(sys.argv[1]) if sys.argv[1].endswith("parquet") else frame.to_csv(sys.argv[1], index=False)
"""


def _columns(name: str, *, kind: str = "", with_words: bool = True) -> Callable[[], object]:
    from sobolev_novelty.tables.files import read_table
    from sobolev_novelty.ui.match import match_equation

    path = Path(tempfile.mkdtemp()) / name
    subprocess.run([sys.executable, "-c", _WIDE, str(path), kind], check=True)

    def run() -> object:
        report = match_equation("c0 + c1*c39999", read_table(path)).report()
        return str(report) if with_words else report

    return run


def _rows(n_rows: int) -> Callable[[], object]:
    from sobolev_novelty import novelty

    X = RNG.uniform(0.5, 1.5, (n_rows, 3))
    return lambda: novelty("x0 + sin(x1) + x1*x2", X)


def _bomb() -> Callable[[], object]:
    from sobolev_novelty.errors import DataError
    from sobolev_novelty.tables.files import read_table

    path = Path(tempfile.mkdtemp()) / "bomb.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n")
        for _ in range(430):
            file.write(b"1,2\n" * 1_000_000)

    def run() -> object:
        try:
            return read_table(path)
        except DataError as error:
            return str(error)

    return run


#: Name -> what it is, and how it is made ready.
CASES: dict[str, tuple[str, Callable[[], Callable[[], object]]]] = {
    "sum": ("a sum of 8,000 equal terms (24 KB)", lambda: _formula("+".join(["x0"] * 8000))),
    "max": ("a maximum of 33,000 operands (132 KB)", lambda: _formula(f"max({','.join(['x0', 'x1'] * 16_500)})")),
    "terms50": ("50 terms, 1,000 rows", lambda: _terms(50)),
    "terms200": ("200 terms, 1,000 rows", lambda: _terms(200)),
    "few_rows200": ("200 terms, 50 rows of 3 inputs: all are relations", lambda: _terms(200, 50, 3)),
    "few_rows500": ("500 terms, 50 rows of 3 inputs: all are relations", lambda: _terms(500, 50, 3)),
    "columns": (
        "a CSV of 40,000 columns and 40 rows: reading, novelty",
        lambda: _columns("wide.csv", with_words=False),
    ),
    "verdicts": ("the same with every word of the report", lambda: _columns("wide.csv")),
    "named": ("the same with a column of names", lambda: _columns("wide.csv", kind="named")),
    "parquet": ("the same as parquet (pyarrow's own description of it takes 180 MB)", lambda: _columns("wide.parquet")),
    "rows": ("1,000,000 rows, 3 terms", lambda: _rows(1_000_000)),
    "bomb": ("a 1.7 MB .csv.gz that holds 1.7 GB: refused", _bomb),
}


def measure(case: str) -> dict[str, float]:
    """Seconds of one case after a first small call, and the peak memory of the process."""
    import pandas  # noqa: F401

    from sobolev_novelty import novelty

    str(novelty("x0 + x1", RNG.uniform(size=(50, 2))))
    run = CASES[case][1]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin, processor = time.perf_counter(), time.process_time()
    run()
    return {
        "seconds": round(time.perf_counter() - begin, 3),
        "processor_seconds": round(time.process_time() - processor, 3),
        "megabytes_before": round(before),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def table(found: dict[str, dict[str, float]]) -> str:
    """The measurements as Markdown."""
    lines = ["| input | processor seconds | peak MB (before) |", "| --- | ---: | ---: |"]
    lines += [
        f"| {CASES[name][0]} | {row['processor_seconds']:.2f} | {row['megabytes']} ({row['megabytes_before']}) |"
        for name, row in found.items()
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Entry point."""
    if arguments:
        print(json.dumps(measure(arguments[0])))
        return
    found = {}
    for case in CASES:
        command = [sys.executable, "-m", "benchmarks.limits", case]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found[case] = json.loads(done.stdout)
        print(case, found[case], flush=True)
    STORED.write_text(json.dumps(found, indent=1) + "\n")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{table(found)}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
