"""Run one job in a process of its own, with a timeout that really ends it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from sobolev_novelty.lab.bench.running.starting import StartedJob, start_job
from sobolev_novelty.lab.bench.running.worker import ENVIRONMENT
from sobolev_novelty.lab.evidence.origin import circumstances, without_folders
from sobolev_novelty.lab.evidence.scratch import folder_prefix

_POLL_SECONDS = 0.02
#: Of temporary folders.
KIND = "bench"
#: Characters of a crashed worker's output that are kept.
_OUTPUT_TAIL = 4000


def run_isolated(request: dict[str, Any]) -> dict[str, Any]:
    """Run a request (see ``Experiment.request``) in a child process and return its result.

    The child is killed, with everything it started, ``timeout`` seconds after the start if the fit is not done, or
    ``assess_timeout`` seconds after the fit; what it had found by then is kept. This function raises nothing a task can
    cause: every end has a status.

    Returns columns of the store; ``status`` is ``done``, ``failed``, ``timeout``, ``memory`` or ``crashed``; or
    ``environment`` where this machine could not run the job (a full disk, a missing package, the system's out-of-memory
    killer), which is no result.
    """
    # Read before the child imports the sources, which may be edited while it runs.
    origin = circumstances()
    try:
        folder = Path(tempfile.mkdtemp(prefix=folder_prefix(KIND)))
    except OSError as error:
        return {"status": ENVIRONMENT, "traceback": f"No temporary folder: {error.strerror or error}", **origin}
    try:
        try:
            result = _run(request, folder)
        except OSError as error:
            result = {"status": ENVIRONMENT, "traceback": f"{type(error).__name__}: {error.strerror or error}"}
        if "traceback" in result:
            result["traceback"] = without_folders(result["traceback"])
        return {**result, **origin}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    result_path = folder / "result.json"
    output_path = folder / "output.txt"
    child = start_job({**request, "result_path": str(result_path)}, output_path)
    begin = time.monotonic()
    try:
        was_killed = not _wait(child, result_path, begin + request["timeout"], request["assess_timeout"])
    finally:
        _kill_group(child)
        exit_code = child.wait()
    return _collect(request, result_path, output_path, was_killed=was_killed, exit_code=exit_code)


def _wait(child: StartedJob, result_path: Path, deadline: float, assess_timeout: float) -> bool:
    """Whether the child ended by itself."""
    fit_seen = False
    while child.poll() is None:
        if not fit_seen and result_path.exists():
            fit_seen = True
            deadline = time.monotonic() + assess_timeout
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _kill_group(child: StartedJob) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # every job leads a group of its own


def _collect(
    request: dict[str, Any], result_path: Path, output_path: Path, *, was_killed: bool, exit_code: int
) -> dict[str, Any]:
    if result_path.exists():
        written: dict[str, Any] = json.loads(result_path.read_text(encoding="utf-8"))
        result: dict[str, Any] = written["result"]
        if not written["is_final"] and result.get("status") != ENVIRONMENT:
            what = "ran out of time" if was_killed else f"ended with exit code {exit_code}"
            result["exact_note"] = f"The assessment {what}; the fit was finished before."
        return result
    if was_killed:
        return {
            "status": "timeout",
            "wall_time": request["timeout"],
            "traceback": f"Killed after {request['timeout']} s.",
        }
    tail = output_path.read_text(encoding="utf-8", errors="replace")[-_OUTPUT_TAIL:]
    name = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
    if exit_code == -signal.SIGKILL:
        return {"status": ENVIRONMENT, "traceback": "The system killed the process, probably for want of memory."}
    # C++ libraries answer a refused allocation by aborting.
    status = "memory" if "bad_alloc" in tail or "MemoryError" in tail else "crashed"
    return {"status": status, "traceback": f"The process ended with {name}.\n{tail}"}
