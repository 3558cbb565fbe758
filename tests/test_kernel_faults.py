"""Every allocation of the kernel fails in turn: the answer is the right one or a MemoryError, and nothing leaks.

The hook is in builds for tests only (``-DSOBOLEV_FAULTS``): ``make sanitize`` makes one, under AddressSanitizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sobolev_novelty import kernels
from sobolev_novelty.batch import novelties
from sobolev_novelty.kernels.backend import native
from sobolev_novelty.parsing import parse

_native = native()
pytestmark = pytest.mark.skipif(
    not hasattr(_native, "count_allocations"), reason="the kernel was not built with -DSOBOLEV_FAULTS (make sanitize)"
)
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


def novelty(n_threads: int) -> list[np.ndarray]:
    lists = [[parse(term) for term in TERMS], [parse(term) for term in TERMS[:3]], [parse("x0"), parse("2*x0")]]
    return [found.nu for found in novelties(lists, inputs().T, n_jobs=n_threads)]


def pursuit(n_threads: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    columns = kernels.unit_columns(rng.normal(size=(300, 40)), n_threads=n_threads)
    directions = np.linalg.qr(rng.normal(size=(40, 5)))[0].T
    return list(kernels.offers(columns, directions, [0, 1, 2, 3, 4], [0, 2, 5], n_top=7, n_threads=n_threads))


CALLS: dict[str, Callable[[], list[np.ndarray]]] = {
    **{
        f"derivatives of order {order}, {n} threads": lambda order=order, n=n: derivatives(order, n)
        for order in (0, 1, 2)
        for n in (1, 2)
    },
    **{f"jacobians, {n} threads": lambda n=n: jacobians(n) for n in (1, 2)},
    **{f"fits, {n} threads": lambda n=n: fits(n) for n in (1, 2)},
    **{f"novelties, {n} threads": lambda n=n: novelty(n) for n in (1, 2)},
    **{f"pursuit, {n} threads": lambda n=n: pursuit(n) for n in (1, 2)},
}


@pytest.fixture(autouse=True)
def no_fault_is_left() -> Iterator[None]:
    yield
    _native.count_allocations(-1)


@pytest.mark.parametrize("name", CALLS)
def test_without_memory_the_answer_is_right_or_an_error(name: str) -> None:
    call = CALLS[name]
    _native.count_allocations(-1)
    expected = call()
    n_allocations = _native.count_allocations(-1)
    assert n_allocations > 3
    refused = 0
    for failing in range(n_allocations):
        _native.count_allocations(failing)
        try:
            found = call()
        except MemoryError:
            refused += 1
            continue
        for part, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, right)
    assert refused > 0
