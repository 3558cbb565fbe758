"""One small call of every function of the kernel that works with threads, for tests of memory and of threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.batch import novelties

NAMES = ("x0", "x1")
TERMS = ["x0", "x0*x1", "sin(2*x0)", "exp(0.3*x1)", "1/(x0 + 0.5)", "x0 + 1e-9*x1"]


def inputs() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 2.0, (2, 300))


def derivatives(order: int, n_threads: int) -> list[np.ndarray]:
    programs = kernels.compile_programs([parse(term) for term in TERMS], NAMES)
    return [kernels.derivatives(programs, inputs(), order=order, n_threads=n_threads)]


def jacobians(n_threads: int) -> list[np.ndarray]:
    programs = kernels.compile_programs([parse(term) for term in TERMS], NAMES)
    return list(kernels.jacobians(programs, inputs(), n_threads=n_threads))


def fits(n_threads: int) -> list[np.ndarray]:
    """The last candidate has dependent columns, for which the kernel needs more room while it fits."""
    programs = kernels.compile_programs([parse(term) for term in [*TERMS, "x0", "x0", "2*x0"]], NAMES)
    free = np.ones(len(programs.constants), dtype=bool)
    X = inputs()
    found = kernels.fit(
        programs, np.array([0, 3, 6, 9]), free, X, np.sin(2.1 * X[0]) + X[1], n_iterations=10, n_threads=n_threads
    )
    return [found.coefficients, found.constants, found.loss, found.status]


def novelty(n_threads: int, order: int = 1) -> list[np.ndarray]:
    lists = [[parse(term) for term in TERMS], [parse(term) for term in TERMS[:3]], [parse("x0"), parse("2*x0")]]
    return [found.nu for found in novelties(lists, inputs().T, order=order, n_jobs=n_threads)]


def pursuit(n_threads: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    left, right = kernels.JoinedColumns.of(rng.normal(size=(300, 40))), rng.uniform(1.0, 2.0, size=(8, 40))
    logs = kernels.JoinedColumns("mul", right, right, np.arange(8), np.arange(8)[::-1], is_log=True)
    columns = kernels.unit_columns(kernels.LazyColumns((left, logs)), n_threads=n_threads)
    directions = np.linalg.qr(rng.normal(size=(40, 5)))[0].T
    lengths = kernels.joined_lengths(logs, n_threads=n_threads)
    return [lengths, *kernels.offers(columns, directions, [0, 1, 2, 3, 4], [0, 2, 5], n_top=7, n_threads=n_threads)]


#: By a name; each takes the number of threads and gives arrays.
CALLS: dict[str, Callable[[int], list[np.ndarray]]] = {
    "values": lambda n: derivatives(0, n),
    "derivatives of order 1": lambda n: derivatives(1, n),
    "derivatives of order 2": lambda n: derivatives(2, n),
    "jacobians": jacobians,
    "fits": fits,
    "novelties": novelty,
    "novelties of second derivatives": lambda n: novelty(n, order=2),
    "pursuit": pursuit,
}
