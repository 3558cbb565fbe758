"""Which family of structural forms finds which law by itself: each family alone, without evolution.

Usage: python -m benchmarks.families [--suite whitebox] [--every 1] [--noise 0] [--seconds 4] [--jobs 1]
       python -m benchmarks.families --show

A law counts as found where a form is exact after its fit; with noise, where its fit to the rows leaves less than twice
the noise and its fit to rows without noise a thousandth of their variance. Families that are tried on reduced problems
explore them first, each time. Seconds are those of the processor. Writes ``results/benchmarks/families.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.problems.suites import suite_tasks, task_data
from sobolev_novelty.search.contract.engine import Candidate, Engine, Guidance, Problem, State
from sobolev_novelty.search.loop.loop import Budget, run
from sobolev_novelty.search.propose.structure.families import NAMES

RESULT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "families.json"
N_ROWS, EXACT, NEAR = 1000, 1e-20, 1e-3


class Silent(Engine[State]):
    """An engine without ideas of its own."""

    def __init__(self, structural: str, guidance: Guidance = None) -> None:
        self.structural, self.guidance = structural, guidance

    def start(self, problem: Problem, rng: np.random.Generator) -> State:
        """Nothing to remember."""
        return State()

    def propose(self, state: State, rng: np.random.Generator) -> Iterable[Expression]:
        """A constant, while structural forms come."""
        return [Expression.of(1.0)] if state.beside is not None and state.beside.is_turn else []

    def observe(self, state: State, scored: list[Candidate]) -> State:
        """Nothing to learn."""
        return state


def found_by(task: str, *, suite: str, noise: float, seconds: float) -> dict[str, float]:
    """Seconds that each family took to find the law; only those that found it."""
    data = task_data(task, 0, max_train_rows=N_ROWS, noise=noise, suite=suite)
    clean = task_data(task, 0, max_train_rows=N_ROWS, suite=suite)
    scale = 10.0 ** np.round(np.log10(np.maximum(np.median(np.abs(data.X_train), axis=0), 1e-300)))
    size = float(np.median(np.abs(data.y_train))) or 1.0
    X, y, truth = data.X_train / scale, data.y_train / size, clean.y_train / size
    left = 2.0 * float(np.var(y - truth) / np.var(y))
    found = {}
    for name in NAMES:
        begin = time.process_time()
        budget = Budget(seconds=seconds, clock="processor")
        result = run(Problem(Rows(as_sample(X), y)), Silent(name), budget, np.random.default_rng(0))
        for candidate in result.front:
            with np.errstate(all="ignore"):
                error = float(np.mean((evaluate(candidate.expression, X) - truth) ** 2) / np.var(truth))
            if candidate.nmse <= max(left, EXACT) and error < (NEAR if noise else EXACT):
                found[name] = time.process_time() - begin
                break
    return found


def table(found: dict[str, dict[str, float]]) -> str:
    """Laws found by each family, those that only it found, and the median of the seconds."""
    lines = ["| family | laws found | by no other | median s |", "| --- | ---: | ---: | ---: |"]
    alone = Counter(next(iter(by)) for by in found.values() if len(by) == 1)
    for name in NAMES:
        seconds = [by[name] for by in found.values() if name in by]
        median = f"{np.median(seconds):.2f}" if seconds else "–"
        lines.append(f"| {name} | {len(seconds)} | {alone[name]} | {median} |")
    lines.append(f"\n{sum(map(bool, found.values()))} of {len(found)} laws are found by some family.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="whitebox")
    parser.add_argument("--every", type=int, default=1, help="every so many tasks")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    stored = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    if not asked.show:
        tasks = suite_tasks(asked.suite)[:: asked.every]
        one = partial(found_by, suite=asked.suite, noise=asked.noise, seconds=asked.seconds)
        with ProcessPoolExecutor(asked.jobs) as pool:
            found = dict(zip(tasks, pool.map(one, tasks), strict=True))
        stored[f"{asked.suite}, noise {asked.noise:g}, {asked.seconds:g} s"] = found
        RESULT.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for title, found in stored.items():
        print(f"{title}\n\n{table(found)}\n")


if __name__ == "__main__":
    main()
