"""A process that has imported what jobs need, and forks one for each.

``python -m sobolev_novelty.lab.bench.running.nursery``

The imports of a job take two seconds of processor time, as long as many a fit. The nursery reads one line of JSON for
each job from standard input, answers with the process number of the job and, when it has ended, with its exit code. It
runs nothing itself, so jobs start equal. When its standard input closes it ends, and what it started with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import sys
from importlib import import_module
from typing import NoReturn

import numpy as np

from sobolev_novelty.lab.bench.running.worker import end_with_parent, run_request

#: Imported before the first job: what every fit of ours and its assessment need.
PRELOADED = (
    "sobolev_novelty.lab.bench.judging.judge",
    "sobolev_novelty.lab.bench.running.methods",
    "sobolev_novelty.lab.bench.problems.suites",
    "sobolev_novelty.search.model.regressor",
    "sobolev_novelty.engines.genetic",
    "sobolev_novelty.engines.mcts",
    "sympy",
)
_POLL_SECONDS = 0.02


def main() -> None:
    """Fork a job for each line on standard input, one at a time."""
    end_with_parent()
    for name in PRELOADED:
        with contextlib.suppress(ImportError):  # the job will say what it misses
            import_module(name)
    while line := sys.stdin.buffer.readline():
        begun, says_begun = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(begun)
            _job(line, says_begun)
        os.close(says_begun)
        os.read(begun, 1)  # the job leads its own group now, and can be killed with all that it starts
        os.close(begun)
        _tell(pid)
        _tell(_exit_code(pid))


def _job(line: bytes, says_begun: int) -> NoReturn:
    os.setsid()
    end_with_parent()
    given = json.loads(line)
    output = os.open(given["output_path"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(says_begun)
    # A method that asks nobody for a seed shall not repeat the one before.
    random.seed()
    np.random.seed()  # noqa: NPY002
    run_request(given["request"])


def _exit_code(pid: int) -> int:
    """How a job ended; where standard input closes first, the job is killed and the nursery ends."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if select.select([0], [], [], _POLL_SECONDS)[0]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os._exit(1)


def _tell(number: int) -> None:
    os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    main()
