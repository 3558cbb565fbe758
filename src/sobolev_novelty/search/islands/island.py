"""One island of a search as a process, ``python -m sobolev_novelty.search.islands.island``.

Speaks with the process that started it through its standard input and output, in pickles: both ends are this package,
on this machine, and nobody else has the pipe. A process of its own rather than ``multiprocessing``, because that runs
the user's script again where it lacks ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
from typing import IO, Any

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.islands.islands import Reply, Report, Spec, serve

_LENGTH = struct.Struct("<Q")


def write(stream: IO[bytes], value: Any) -> None:
    """One value, with its length before it."""
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """The next value; EOFError at the end, and where the other side died in the middle of one."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


class ProcessLink:
    """The way to an island in a process of this machine."""

    def __init__(self, spec: Spec) -> None:
        try:
            pickle.dumps(spec)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ParameterError(
                f"'engine' cannot be sent to another process ({error}), so there can be one island only. "
                "Give a number of cores as 'parallel', or define the engine in a module that can be imported."
            ) from error
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            # -P: a file in the folder one stands in must not pass for a module.
            [sys.executable, "-P", "-m", "sobolev_novelty.search.islands.island"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._reports: queue.SimpleQueue[Report | str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        with contextlib.suppress(OSError):  # told by the first 'receive'
            write(self._stdin, spec)

    def _listen(self) -> None:
        try:
            while True:
                self._reports.put(read(self._stdout))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._reports.put("its process ended")

    def receive(self, *, wait: bool) -> Report | None:
        """See :class:`~sobolev_novelty.search.islands.islands.Link`."""
        try:
            report = self._reports.get(block=wait)
        except queue.Empty:
            return None
        if isinstance(report, str):
            raise EOFError(report)
        return report

    def send(self, reply: Reply) -> None:
        """See :class:`~sobolev_novelty.search.islands.islands.Link`."""
        write(self._stdin, reply)

    def close(self) -> None:
        """See :class:`~sobolev_novelty.search.islands.islands.Link`."""
        self._process.kill()
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()


def main() -> None:
    """The process: read what to do, search, report."""
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print must not come between the pickles
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):  # nobody is there any more
        try:
            serve(read(incoming), lambda report: write(outgoing, report), lambda: read(incoming))
        except (EOFError, BrokenPipeError):
            raise
        except Exception as error:  # whatever ended the search is told to who began it
            write(outgoing, f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
