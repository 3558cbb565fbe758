"""Evaluation: values and input gradients of 1000 random trees at 1000 rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.measure import Measure, at_least, at_most, in_turn, seconds
from benchmarks.populations import gplearn_programs, lambdified, operon_trees, random_trees
from sobolev_novelty import kernels
from sobolev_novelty.kernels import compile_programs, numpy_kernel

NAMES = ["x0", "x1", "x2", "x3"]
N_ROWS = 1000


def sample(n_rows: int = N_ROWS, n_features: int = 4) -> Any:
    return np.random.default_rng(0).uniform(0.5, 3.0, size=(n_features, n_rows))


def operon(trees: list[Any], X: Any) -> tuple[Any, Any]:
    """A call that evaluates the trees with pyoperon, and the array it fills."""
    import pyoperon

    table = np.asfortranarray(X.T.astype(np.float32))  # the dataset keeps a view: the array must live as long
    dataset = pyoperon.Dataset(table)
    columns = sorted(dataset.Variables, key=lambda v: v.Index)
    translated = operon_trees(trees, {name: v.Hash for name, v in zip(NAMES, columns, strict=True)})
    result = np.empty(len(trees) * X.shape[1], dtype=np.float32)
    rows = pyoperon.Range(0, X.shape[1])

    def run(keep: Any = (table, dataset)) -> None:
        pyoperon.EvaluateTrees(translated, dataset, rows, result, 1)

    return run, result


def measures(repeats: int) -> tuple[list[Measure], dict[str, float]]:
    """The three lines of the table about evaluation, and million node·rows per second of every evaluator."""
    trees = random_trees(0, 1000, NAMES)
    programs = compile_programs(trees, NAMES)
    X = sample()
    work = len(programs.codes) * N_ROWS / 1e6
    speeds: dict[str, float] = {}
    found: list[Measure] = []

    # All write to an array that is there already, as pyoperon does.
    outputs = [np.empty((len(trees), rows, N_ROWS)) for rows in (1, 5)]

    def values() -> Any:
        return kernels.derivatives(programs, X, 0, out=outputs[0])

    def gradient() -> Any:
        return kernels.derivatives(programs, X, 1, out=outputs[1])

    run_operon, result = operon(trees, X)
    times = in_turn(values, run_operon, 3 * repeats)
    ours, theirs = values()[:, 0], result.reshape(len(trees), -1)
    with np.errstate(all="ignore"):
        agree = (np.abs(ours - theirs) <= 1e-3 * np.abs(ours) + 1e-3) | ~np.isfinite(ours)
    note = f"float64 against float32; {agree.all(axis=1).mean():.0%} of the trees agree to 1e-3 at every row"
    found.append(
        at_least(
            "values, 1000 trees × 1000 rows, vs pyoperon EvaluateTrees", times[:, 1] / times[:, 0], 1.2, 2, note=note
        )
    )
    speeds["sobolev values"], speeds["pyoperon values (float32, batch)"] = (work / np.median(times, axis=0)).tolist()

    times = in_turn(gradient, lambda: numpy_kernel.derivatives(programs, X, 1), repeats)
    found.append(at_least("values + input gradient vs the NumPy kernel", times[:, 1] / times[:, 0], 5, 8))
    speeds["sobolev values + gradient"], speeds["NumPy kernel values + gradient"] = (
        work / np.median(times, axis=0)
    ).tolist()

    times = in_turn(values, gradient, 3 * repeats)
    found.append(at_most("input gradient, cost relative to values (4 inputs)", times[:, 1] / times[:, 0], 3.5, 2.5))

    speeds["NumPy kernel values"] = work / seconds(lambda: numpy_kernel.derivatives(programs, X, 0))
    speeds |= _peers(trees[:200], X)
    return found, speeds


def _peers(trees: list[Any], X: Any) -> dict[str, float]:
    """gplearn and SymPy, on fewer trees: they are slower, and SymPy takes 20 ms to translate one gradient."""
    table = np.ascontiguousarray(X.T)
    genetic = gplearn_programs(trees, NAMES)
    plain = lambdified(trees, NAMES)
    with_gradient = lambdified(trees[:50], NAMES, with_gradient=True)
    with np.errstate(all="ignore"):
        return {
            "gplearn values": _work(trees, range(len(trees)), X) / _best(lambda: [p.execute(table) for p in genetic]),
            "SymPy lambdify values (warm)": _work(trees, plain, X) / _best(lambda: [f(*X) for f in plain.values()]),
            "SymPy lambdify values + gradient (warm)": _work(trees, with_gradient, X)
            / _best(lambda: [f(*X) for f in with_gradient.values()]),
        }


def _work(trees: list[Any], indices: Iterable[int], X: Any) -> float:
    """Million node·rows."""
    return float(sum(len(trees[i]) for i in indices) * X.shape[1] / 1e6)


def _best(action: Any) -> float:
    action()
    return float(np.median([seconds(action) for _ in range(5)]))
