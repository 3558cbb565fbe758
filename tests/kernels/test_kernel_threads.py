"""Many threads of the kernel's and of Python's at once.

``tools/sanitize.sh thread`` runs this file under ThreadSanitizer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_kernel_interrupts import long_terms, python_handles_sigint, seconds_to_interrupt  # noqa: F401

from kernel_calls import CALLS
from sobolev_novelty import kernels
from sobolev_novelty.kernels.backend import native
from sobolev_novelty.language.parsing import parse


def assert_equal(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for part, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, right)


@pytest.mark.parametrize("n_threads", [2, 3, 8])
@pytest.mark.parametrize("name", CALLS)
def test_the_answer_does_not_depend_on_the_number_of_threads(name: str, n_threads: int) -> None:
    assert_equal(CALLS[name](n_threads), CALLS[name](1))


@pytest.mark.parametrize("name", CALLS)
def test_several_python_threads_may_make_the_same_call_at_once(name: str) -> None:
    expected = CALLS[name](1)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(CALLS[name], [1, 2, 3, 2] * 3):
            assert_equal(found, expected)


def test_several_python_threads_may_make_different_calls_at_once() -> None:
    expected = {name: call(1) for name, call in CALLS.items()}
    names = list(CALLS) * 4
    with ThreadPoolExecutor(4) as pool:
        for name, found in zip(names, pool.map(lambda name: CALLS[name](2), names), strict=True):
            assert_equal(found, expected[name])


def test_threads_share_programs_and_samples() -> None:
    """The arrays of one program are read by all callers, and by the threads of each."""
    programs = kernels.compile_programs([parse(f"sin({k}*x0)*x1") for k in range(1, 30)], ("x0", "x1"))
    X = np.random.default_rng(0).uniform(0.5, 2.0, (2, 700))
    expected = kernels.derivatives(programs, X, order=1)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda n: kernels.derivatives(programs, X, order=1, n_threads=n), [1, 2, 3, 4] * 3):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(native() is None, reason="the compiled kernel was not built")
@pytest.mark.usefixtures("python_handles_sigint")
def test_threads_of_a_call_learn_that_it_was_interrupted() -> None:
    programs = kernels.compile_programs([parse("+".join(long_terms(60)))] * 4, ("x0", "x1"))
    X = np.random.default_rng(0).uniform(0.5, 2.0, (2, 1_000_000))
    seconds_to_interrupt(lambda: kernels.derivatives(programs, X, order=1, n_threads=3))
