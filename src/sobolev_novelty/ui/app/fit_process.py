"""A search in a process of its own, told to stop over a pipe.

The page stays quick while it runs, and it ends with the server, however the server ends: a pipe that breaks stops it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from sobolev_novelty.core.digits import json_number
from sobolev_novelty.core.expression import short_text
from sobolev_novelty.errors import SobolevError
from sobolev_novelty.tables.files import Table
from sobolev_novelty.ui.app.words import in_words

if TYPE_CHECKING:
    from sobolev_novelty.search.loop.loop import SearchProgress

#: Seconds between two messages of a running search.
INTERVAL = 0.25
#: Characters of an equation in a live front; machine-made ones can be long.
MAX_SHOWN = 400

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What to search for."""

    table: Table
    target: str
    features: tuple[str, ...] | None = None  # the inputs; by default all numeric columns but the target
    seconds: float = 60.0  # how long
    max_complexity: int | None = None  # nodes of the largest equation
    select: str = "price"  # rule of choice


@dataclass(slots=True)
class Fit:
    """A search that runs or has ended; ``status`` is running, stopping, done or failed."""

    request: FitRequest
    status: str = "running"
    message: str = ""
    elapsed: float = 0.0
    n_evaluations: int = 0
    front: list[Row] = field(default_factory=list)
    model: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    _process: Any = None
    _connection: Connection | None = None

    @property
    def is_running(self) -> bool:
        """Whether the search has not ended yet."""
        return self.status in ("running", "stopping")

    @classmethod
    def start(cls, request: FitRequest, on_end: Callable[[Fit], None]) -> Fit:
        """Start a search; ``on_end`` is called from a thread of its own when a result is there."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        fit = cls(request)
        fit._process = context.Process(target=search, args=(theirs, request), daemon=True, name="sobolev fit")
        fit._connection = ours
        fit._process.start()
        theirs.close()
        threading.Thread(target=fit._listen, args=(on_end,), daemon=True).start()
        return fit

    def stop(self) -> None:
        """Ask the search to end after the round under way; what it has found is kept."""
        if self.status == "running" and self._connection is not None:
            self.status = "stopping"
            with suppress(OSError):
                self._connection.send("stop")

    def close(self) -> None:
        """End the process now."""
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join(5.0)
            self._process.kill()

    def to_dict(self) -> dict[str, Any]:
        """What the page shows, ready for JSON."""
        return {
            "status": self.status, "message": self.message, "elapsed": round(self.elapsed, 1),
            "seconds": self.request.seconds, "n_evaluations": self.n_evaluations, "target": self.request.target,
            "front": list(self.front), "notes": list(self.notes), "has_model": self.model is not None,
        }  # fmt: skip

    def _listen(self, on_end: Callable[[Fit], None]) -> None:
        assert self._connection is not None
        try:
            kind, content = self._connection.recv()
            while kind == "progress":
                self.front, self.elapsed, self.n_evaluations = content["front"], content["elapsed"], content["n"]
                kind, content = self._connection.recv()
        except (EOFError, OSError):
            words = "The search ended before it had a result: its process was ended from outside."
            kind, content = "failed", {"message": words}
        if kind == "done":
            self._finish(content, on_end)
        else:
            self.message, self.status = content["message"], "failed"
        self._connection.close()
        self._process.join(5.0)

    def _finish(self, content: dict[str, Any], on_end: Callable[[Fit], None]) -> None:
        """Keep the result; the search counts as done only when ``on_end`` has made what follows from it."""
        was_stopped = self.status == "stopping"
        self.front, self.model, self.notes = content["front"], content["model"], content["notes"]
        self.n_evaluations, self.elapsed = content["n"], content["elapsed"]
        self.message = "You stopped the search; the best so far was kept." if was_stopped else content["reason"]
        try:
            on_end(self)
        except SobolevError as error:
            self.message += f" It has no report: {in_words(error)}"
        finally:
            self.status = "done"


def search(connection: Connection, request: FitRequest) -> None:
    """The child process: search, tell, and end when told to or when nobody listens any more."""
    # Ctrl-C in the terminal is the server's affair, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Unwinding, not dying on the spot: a search may have processes of its own to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    stop = threading.Event()
    threading.Thread(target=_obey, args=(connection, stop), daemon=True).start()
    try:
        connection.send(("done", _searched(connection, request, stop)))
    except SobolevError as error:
        connection.send(("failed", {"message": in_words(error)}))
    except (BrokenPipeError, SystemExit):  # nobody waits for a result, nor for Python to tidy up
        os._exit(0)
    except Exception as error:
        logging.getLogger(__name__).exception("The search failed.")
        words = f"The search failed, and the fault is ours ({type(error).__name__}). The terminal shows the details."
        connection.send(("failed", {"message": words}))


def _obey(connection: Connection, stop: threading.Event) -> None:
    try:
        while True:
            connection.recv()
            stop.set()
    except (EOFError, OSError):  # the server is gone
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5.0)
        os._exit(0)


def _searched(connection: Connection, request: FitRequest, stop: threading.Event) -> dict[str, Any]:
    from sobolev_novelty.search.islands.cores import Islands
    from sobolev_novelty.search.model.regressor import SymbolicRegressor
    from sobolev_novelty.search.model.storage import model_to_dict
    from sobolev_novelty.search.problem.constraints import Constraints
    from sobolev_novelty.ui.fit import fit_table

    told = [-INTERVAL]
    started = time.monotonic()

    def tell(progress: SearchProgress) -> bool:
        if time.monotonic() - told[0] >= INTERVAL:
            told[0] = time.monotonic()
            connection.send(("progress", _progress(progress)))
        return stop.is_set()

    model = SymbolicRegressor(
        budget=request.seconds, constraints=Constraints(max_complexity=request.max_complexity), select=request.select,
        # One core is left to the page and the reports.
        parallel=Islands(max(1, (os.cpu_count() or 1) - 1)), random_state=0,
    )  # fmt: skip
    summary = fit_table(
        model, request.table, target=request.target, features=request.features, callback=tell, verbose=False
    )
    front = [
        _row(row["complexity"], row["r2"], expression, bool(row["chosen"])) | {"min_novelty": row["min_novelty"]}
        for row, expression in zip(summary.front, model.equations_["expression"], strict=True)
    ]
    notes = [summary.reason, summary.noise, *summary.notes]
    return {
        "front": front, "model": model_to_dict(model), "notes": notes, "n": summary.n_evaluations,
        "elapsed": time.monotonic() - started, "reason": summary.stop_reason,
    }  # fmt: skip


def _progress(progress: SearchProgress) -> dict[str, Any]:
    best = progress.best
    front = [_row(c.complexity, 1.0 - c.nmse, c.expression, c is best) for c in progress.front]
    return {"front": front, "elapsed": progress.seconds, "n": progress.n_evaluations}


def _row(complexity: int, r2: float | None, expression: Any, is_best: bool) -> Row:
    text = short_text(expression)
    shown = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return {
        "complexity": int(complexity), "r2": None if r2 is None else json_number(float(r2)), "equation": shown,
        "is_best": is_best,
    }  # fmt: skip
