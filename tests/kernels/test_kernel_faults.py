"""Every allocation of the kernel fails in turn: the answer is the right one or a MemoryError, and nothing leaks.

The hook is in builds for tests only (``-DSOBOLEV_FAULTS``): ``make sanitize`` makes one, under AddressSanitizer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kernel_calls import CALLS
from sobolev_novelty.kernels.backend import native

_native = native()
pytestmark = pytest.mark.skipif(
    not hasattr(_native, "count_allocations"), reason="the kernel was not built with -DSOBOLEV_FAULTS (make sanitize)"
)


@pytest.fixture(autouse=True)
def no_fault_is_left() -> Iterator[None]:
    yield
    _native.count_allocations(-1)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_without_memory_the_answer_is_right_or_an_error(name: str, n_threads: int) -> None:
    call = CALLS[name]
    _native.count_allocations(-1)
    expected = call(n_threads)
    n_allocations = _native.count_allocations(-1)
    assert n_allocations > 3
    refused = 0
    for failing in range(n_allocations):
        _native.count_allocations(failing)
        try:
            found = call(n_threads)
        except MemoryError:
            refused += 1
            continue
        for part, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, right)
    assert refused > 0
