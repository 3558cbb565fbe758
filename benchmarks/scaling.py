"""Scaling curves in rows, terms, features, population and threads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.measure import seconds, wall_seconds
from benchmarks.populations import random_terms, random_trees
from sobolev_novelty import kernels
from sobolev_novelty.kernels import compile_programs

Curve = list[dict[str, float]]


def median_seconds(action: Any, repeats: int, *, is_wall: bool = False) -> float:
    action()
    return float(np.median([(wall_seconds if is_wall else seconds)(action) for _ in range(repeats)]))


def curves(repeats: int) -> dict[str, Curve]:
    return {
        "rows": rows(repeats),
        "terms": terms(repeats),
        "features": features(repeats),
        "population": population(repeats),
        "threads": threads(repeats),
    }


def rows(repeats: int) -> Curve:
    """Million node·rows per second of values and of values + gradient."""
    names = [f"x{k}" for k in range(4)]
    curve = []
    for n_rows in (10, 100, 1000, 10_000, 100_000):
        programs = compile_programs(random_trees(0, max(10, min(1000, 2_000_000 // n_rows)), names), names)
        X = np.random.default_rng(0).uniform(0.5, 3.0, size=(4, n_rows))
        work = len(programs.codes) * n_rows / 1e6
        speeds = {
            f"order {order}": work
            / median_seconds(lambda o=order, p=programs, x=X: kernels.derivatives(p, x, o), repeats)
            for order in (0, 1)
        }
        curve.append({"x": n_rows, **speeds})
    return curve


def novelty_time(n_terms: int, n_features: int, repeats: int, n_candidates: int = 50, n_threads: int = 0) -> float:
    """Microseconds per candidate, N = 1000, terms of 8 nodes; wall time where threads are counted."""
    names = [f"x{k}" for k in range(n_features)]
    X = np.random.default_rng(0).uniform(0.5, 3.0, size=(n_features, 1000))
    programs = compile_programs(random_terms(0, n_terms * n_candidates, names), names)
    offsets = np.arange(0, n_terms * n_candidates + 1, n_terms)
    action = lambda: kernels.novelties(programs, offsets, X, n_threads=max(1, n_threads))  # noqa: E731
    return median_seconds(action, repeats, is_wall=n_threads != 0) / n_candidates * 1e6


def terms(repeats: int) -> Curve:
    return [{"x": m, "µs per candidate": novelty_time(m, 5, repeats)} for m in (1, 2, 5, 10, 20, 40, 80)]


def features(repeats: int) -> Curve:
    return [{"x": d, "µs per candidate": novelty_time(5, d, repeats)} for d in (1, 2, 5, 10, 20, 50)]


def population(repeats: int) -> Curve:
    return [{"x": n, "µs per candidate": novelty_time(5, 5, repeats, n)} for n in (1, 10, 100, 1000, 3000)]


def threads(repeats: int) -> Curve:
    one = novelty_time(5, 5, repeats, 1000, 1)
    return [
        {"x": n, "speed-up": one / novelty_time(5, 5, repeats, 1000, n)} for n in range(1, (os.cpu_count() or 1) + 1)
    ]
