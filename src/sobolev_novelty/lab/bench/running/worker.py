"""The child process that runs one job: ``python -m sobolev_novelty.lab.bench.running.worker``.

It reads one line of JSON (the request) from standard input, and writes its result to the file the request names, once
after the fit and again after each part of the assessment; each write replaces the file whole. So whoever kills it
keeps what was found. When standard input closes, its parent is gone, and it ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

GIB = 1024**3
#: Status of a job that this machine could not run: not a result of the method, never stored.
ENVIRONMENT = "environment"


def main() -> None:
    """Run the request on standard input."""
    request = json.loads(sys.stdin.readline())
    end_with_parent()
    _end_with_standard_input()
    run_request(request)


def run_request(request: dict[str, Any]) -> NoReturn:
    """Run a request, and end this process."""
    limit = int(request["memory"] * GIB)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result: dict[str, Any] = {}
    try:
        _run(request, result)
    except (ImportError, OSError) as error:
        # A missing package, a full disk, too many open files: of the machine, not of the method.
        result.update(status=ENVIRONMENT, traceback=f"{type(error).__name__}: {error}")
    except MemoryError:
        result.update(status="memory", traceback=f"More than {request['memory']} GiB of address space was needed.")
    except BaseException:
        result.update(status="failed", traceback=_shortened(traceback.format_exc()))
    _write(request, result, is_final=True)
    # Native threads of a method may not want to end.
    os._exit(0)


def _run(request: dict[str, Any], result: dict[str, Any]) -> None:
    from sobolev_novelty.errors import ParameterError
    from sobolev_novelty.lab.bench.judging.judge import assess_exactness, assess_fit, assess_novelty
    from sobolev_novelty.lab.bench.problems.suites import task_data
    from sobolev_novelty.lab.bench.problems.tasks import task_units
    from sobolev_novelty.lab.bench.running.methods import find_method

    part = task_data(
        request["task"],
        request["seed"],
        max_train_rows=request["max_train_rows"],
        noise=request["noise"],
        suite=request.get("suite"),
    )
    if request.get("dummies"):
        part = part.with_dummies(request["dummies"], request["seed"])
    options = request["options"] | (task_units(request["task"]) if request.get("with_units") else {})
    try:
        fit = find_method(request["method"])
    except ParameterError as error:
        raise ImportError(str(error)) from error
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a foreign search may divide by zero a million times
        found = fit(part.X_train, part.y_train, seed=request["seed"], budget=request["budget"], **options)
    result.update(
        wall_time=time.perf_counter() - begin,
        expression=str(found.expression),
        complexity=found.expression.complexity,
        evaluations=found.evaluations,
        sn_calls=found.sn_calls,
        extra=json.dumps(found.extra, sort_keys=True),
    )
    result.update(assess_fit(found.expression, part), status="done")
    _write(request, result)
    result.update(assess_novelty(found.expression, part))
    _write(request, result)
    result.update(assess_exactness(found.expression, part))


def _shortened(text: str) -> str:
    """A runaway recursion leaves half a megabyte of traceback: its ends say all."""
    return text if len(text) <= 8000 else f"{text[:4000]}\n… {len(text) - 8000} characters …\n{text[-4000:]}"


def _write(request: dict[str, Any], result: dict[str, Any], *, is_final: bool = False) -> None:
    from sobolev_novelty.core.output import write_whole

    write_whole(Path(request["result_path"]), json.dumps({"result": result, "is_final": is_final}))


def end_with_parent() -> None:
    """Let the system end this process with its parent, even inside native code that never lets a Python thread run."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _end_with_standard_input() -> None:
    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
