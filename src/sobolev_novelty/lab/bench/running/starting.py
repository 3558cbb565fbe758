"""Starting a job in a process of its own: forked from a nursery on Linux, from nothing elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, Protocol

from sobolev_novelty.lab.evidence.origin import engine_fingerprint

#: One thread per task: methods are compared at equal cost, and ``n_jobs`` decides how many cores are used.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
#: Forking a process that has imported numerical libraries is safe here only.
_FORKS = sys.platform == "linux"


class StartedJob(Protocol):
    """A running job; it leads a process group of its own."""

    pid: int

    def poll(self) -> int | None:
        """The exit code, None while it runs."""

    def wait(self) -> int:
        """The exit code, when it has ended."""


def start_job(request: dict[str, Any], output_path: Path) -> StartedJob:
    """Start the job of a request whose output goes to a file."""
    if not _FORKS:
        return _AloneJob(request, output_path)
    return _nursery().start(request, output_path)


def _environment() -> dict[str, str]:
    return {**os.environ, **_ONE_THREAD, "PYTHONHASHSEED": "0"}


class _AloneJob:
    """A job in a fresh interpreter, which ends when the pipe to it closes."""

    def __init__(self, request: dict[str, Any], output_path: Path) -> None:
        with output_path.open("wb") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "sobolev_novelty.lab.bench.running.worker"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=_environment(),
            )
        self.pid = self._child.pid
        _send(self._child, request)

    def poll(self) -> int | None:
        return self._child.poll()

    def wait(self) -> int:
        if self._child.stdin is not None:
            self._child.stdin.close()
        return self._child.wait()


class _Nursery:
    """The process that forks the jobs of this thread, one at a time."""

    def __init__(self, key: tuple[object, ...]) -> None:
        self.key = key
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sobolev_novelty.lab.bench.running.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what a buffer has read ahead, 'select' does not see
            start_new_session=True,
            env=_environment(),
        )
        weakref.finalize(self, _end, self.process)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def start(self, request: dict[str, Any], output_path: Path) -> StartedJob:
        _send(self.process, {"request": request, "output_path": str(output_path)})
        return _ForkedJob(self)

    @property
    def has_answer(self) -> bool:
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0.0)[0])

    def answer(self) -> int:
        """The next number it tells."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise OSError("The process that starts jobs has ended.")
        return int(line)


class _ForkedJob:
    def __init__(self, nursery: _Nursery) -> None:
        self._nursery = nursery
        self._exit_code: int | None = None
        self.pid = nursery.answer()

    def poll(self) -> int | None:
        if self._exit_code is None and self._nursery.has_answer:
            self._exit_code = self._nursery.answer()
        return self._exit_code

    def wait(self) -> int:
        if self._exit_code is None:
            self._exit_code = self._nursery.answer()
        return self._exit_code


def _send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    left = memoryview((json.dumps(message) + "\n").encode())
    with contextlib.suppress(BrokenPipeError):  # it died at once; the exit code says how
        while left:
            left = left[os.write(process.stdin.fileno(), left) :]


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


_of_this_thread = threading.local()


def _nursery() -> _Nursery:
    """That of this thread; a new one where sources, environment or folder are not what they were when it began."""
    key = (engine_fingerprint(), os.getcwd(), tuple(sorted(os.environ.items())))
    known: _Nursery | None = getattr(_of_this_thread, "nursery", None)
    if known is None or known.key != key or not known.is_alive:
        known = _of_this_thread.nursery = _Nursery(key)
    return known
