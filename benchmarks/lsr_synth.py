"""LSR-Synth: laws found, and laws within 10 % at every row, on test rows and in extrapolation.

Usage: python -m benchmarks.lsr_synth [results/lsr_synth.sqlite]    print what is stored; `sobolev bench run
       experiments/lsr_synth.toml` makes it

``SOBOLEV_DATA`` must name the folder with ``anchors/lsr_synth.json``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.problems.anchors import AnchorTask, anchor_tasks
from sobolev_novelty.lab.bench.problems.suites import task_data
from sobolev_novelty.lab.bench.running.store import Store
from sobolev_novelty.language.parsing import parse

STORE = Path(__file__).resolve().parents[1] / "results" / "lsr_synth.sqlite"
#: Largest relative error of a law that is "within 10 % everywhere".
TOLERANCE = 0.1


def is_near(expression: Expression, X: FloatArray, y: FloatArray) -> bool:
    """Whether every prediction lies within a tenth of the value."""
    with np.errstate(all="ignore"):
        error = np.abs(evaluate(expression, X) - y)
    return bool((error <= TOLERANCE * np.abs(y)).all())


def row_of(task: AnchorTask, text: str | None, seed: int) -> tuple[bool, bool]:
    """Whether an equation is near the truth on the test rows, and in extrapolation too."""
    if text is None:
        return False, False
    part = task_data(task.name, seed, suite="lsr_synth")
    on_test = is_near(parse(text), part.X_test, part.y_test)
    return on_test, on_test and is_near(parse(text), *task.extrapolation())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", nargs="?", type=Path, default=STORE)
    frame = Store(parser.parse_args().store, read_only=True).frame()
    tasks = {task.name: task for task in anchor_tasks("lsr_synth")}
    print("| method | runs | tasks | found, by numbers | by SymPy | within 10 % on test rows | and in extrapolation |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for method, rows in frame.groupby("method"):
        near = [row_of(tasks[row.task], row.expression, int(row.seed)) for row in rows.itertuples()]
        shares = [
            rows["exact_numeric"].fillna(0).mean(), rows["exact_symbolic"].fillna(0).mean(),
            np.mean([on_test for on_test, _ in near]), np.mean([beyond for _, beyond in near]),
        ]  # fmt: skip
        cells = [method, str(len(rows)), str(rows["task"].nunique()), *(f"{100 * share:.1f} %" for share in shares)]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
