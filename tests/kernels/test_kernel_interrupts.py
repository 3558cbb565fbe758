"""Ctrl-C inside a long call of the compiled kernel; arrays that another thread writes to meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sobolev_novelty import kernels
from sobolev_novelty.kernels.backend import native
from sobolev_novelty.language.parsing import parse

pytestmark = pytest.mark.skipif(native() is None, reason="the compiled kernel was not built")

#: Seconds from the signal to the exception that a person still calls at once; of processor time, because the machine
#: that runs the tests may be busy with other things.
AT_ONCE = 0.5


@pytest.fixture
def python_handles_sigint() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def seconds_to_interrupt(call: Callable[[], object], after: float = 0.15) -> float:
    """Seconds between Ctrl-C and the end of the call, which must not have ended by itself."""
    sent, ended = [], []

    def send() -> None:
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
        ended.append(True)
        timer.join()
        time.sleep(1.0)
    assert not ended, "the call ended before it was interrupted"
    return time.process_time() - sent[0]


def long_terms(n: int) -> list[str]:
    return [f"sin({k + 1}*x0)*exp(cos({k + 2}*x1))" for k in range(n)]


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 2.0, (2, 2_000_000))


@pytest.mark.usefixtures("python_handles_sigint")
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_end_at_once(X: np.ndarray, order: int) -> None:
    programs = kernels.compile_programs([parse("+".join(long_terms(60)))], ("x0", "x1"))
    assert seconds_to_interrupt(lambda: kernels.derivatives(programs, X, order=order)) < AT_ONCE


@pytest.mark.usefixtures("python_handles_sigint")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_fit_ends_at_once(X: np.ndarray, n_threads: int) -> None:
    programs = kernels.compile_programs([parse(term) for term in long_terms(20)], ("x0", "x1"))
    y = np.sin(X[0] * 7.3)
    offsets = np.array([0, 20], dtype=np.int64)
    free = np.ones(len(programs.constants), dtype=bool)

    def fit() -> object:
        return kernels.fit(programs, offsets, free, X, y, n_iterations=50, n_threads=n_threads)

    assert seconds_to_interrupt(fit) < AT_ONCE


@pytest.mark.usefixtures("python_handles_sigint")
@pytest.mark.parametrize("near", [0.0, 1e-9], ids=["distinct", "near repetitions"])
def test_novelty_of_many_terms_ends_at_once(near: float) -> None:
    from sobolev_novelty.metric.batch import novelties

    X = np.random.default_rng(0).uniform(0.5, 2.0, (4000, 2))
    terms = [parse(f"sin({1 + near * k if near else k + 1!r}*x0)") for k in range(1500)]
    assert seconds_to_interrupt(lambda: novelties([terms], X)) < AT_ONCE


@pytest.mark.usefixtures("python_handles_sigint")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_pursuit_ends_at_once(n_threads: int) -> None:
    rng = np.random.default_rng(0)
    columns = kernels.unit_columns(rng.normal(size=(60_000, 100)))
    directions = rng.normal(size=(12_000, 100)).astype(np.float32)
    members, offsets = np.arange(12_000), np.arange(0, 12_001, 12)

    def offers() -> object:
        return kernels.offers(columns, directions, members, offsets, n_top=3, n_threads=n_threads)

    assert seconds_to_interrupt(offers) < AT_ONCE


def test_a_thread_that_writes_to_the_programs_does_no_harm() -> None:
    """The kernel checks and uses a copy of the programs."""
    X = np.random.default_rng(0).uniform(0.5, 2.0, (2, 200_000))
    programs = kernels.compile_programs([parse("+".join(long_terms(20)))], ("x0", "x1"))
    module = native()
    assert module is not None
    expected = kernels.derivatives(programs, X)
    codes = np.array(programs.codes)
    arrays = (codes, programs.offsets, np.array(programs.constants), programs.constant_offsets)
    for pause in np.linspace(0.0, 0.01, 10):
        codes[:] = programs.codes
        out = expected.copy()

        def call(out: np.ndarray = out) -> None:
            with contextlib.suppress(ValueError):  # the writer was first, and was seen
                module.derivatives(arrays, X, 0, out, 1, -1)

        caller = threading.Thread(target=call)
        caller.start()
        time.sleep(pause)
        codes[:] = 2**30
        caller.join()
        np.testing.assert_array_equal(out, expected)
