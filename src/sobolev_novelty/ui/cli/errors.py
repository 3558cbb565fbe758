"""Errors on the command line: one line, with the options in place of the library's arguments, and exit code 1."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from sobolev_novelty.errors import SobolevError, in_callers_words
from sobolev_novelty.ui.cli.screen import echo

#: Argument of the library -> option of the command line.
OPTIONS = {
    name: f"--{name}"
    for name in (
        "bounds", "budget", "checkpoint", "decimal", "dialect", "drop", "encoding", "engine", "features", "fixed",
        "guesses", "index", "inputs", "integers", "level", "levels", "limit", "loss", "monotone", "nesting", "noise",
        "operators", "order", "out", "parallel", "pool", "port", "precision", "reasons", "retry", "row", "select",
        "separator", "sigma", "solver", "target", "tau", "template", "time", "trajectory", "units", "variables",
        "weights",
    )
} | {
    "base_url": "--llm", "calls": "--llm-calls", "model": "--model", "names": "--names", "tokens": "--llm-tokens",
    "chunk_rows": "--chunk-rows", "function_name": "--function", "language": "--to",
    "form": "--format", "has_header": "--no-header", "max_complexity": "--max-complexity",
    "max_degree": "--max-degree", "max_megabytes": "--max-megabytes",
    "max_evaluations": "--max-evaluations", "n_bootstrap": "--bootstrap", "n_jobs": "--jobs",
    "n_rows": "--rows", "n_terms": "--terms", "sample_weight": "--sample-weight",
    "max_depth": "--max-depth", "number": "--islands", "operator_costs": "--operator-costs",
    "pure_constants": "--pure-constants", "random_state": "--random-state", "seconds": "--budget",
    "structural": "--schedule", "threads": "--parallel",
}  # fmt: skip


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let the request to end (``kill``) do what Ctrl-C does, which keeps the best so far; both end with their code.

    The code is 128 and the number of the signal, as a shell has it: whoever runs the command in a script sees that it
    was not finished.
    """
    received: list[int] = []

    def stop(number: int, frame: object) -> NoReturn:
        received.append(number)
        raise KeyboardInterrupt

    ours = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # in the background of a script it is ignored
        ours.append(signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in ours}
    try:
        yield
    except KeyboardInterrupt:
        echo("sobolev: Stopped before there was a result.", err=True)
        raise typer.Exit(128 + (received or [signal.SIGINT])[-1]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise typer.Exit(128 + received[-1])


@contextmanager
def one_line_errors(as_json: bool = False) -> Iterator[None]:
    """Turn an error raised on purpose, or a file that cannot be read or written, into one line and exit code 1."""
    try:
        yield
    except BrokenPipeError:  # whoever read our output has gone (``| head``): Typer ends without a word
        raise
    except (SobolevError, OSError) as error:
        fail(error, as_json)


def fail(error: Exception, as_json: bool = False) -> NoReturn:
    """One line on standard error (and an object with the error where JSON was asked for); exit code 1."""
    message = one_line(error)
    if as_json:
        echo(json.dumps({"error": {"type": type(error).__name__, "message": message}}, ensure_ascii=False))
    echo(f"sobolev: {message}", err=True)
    raise typer.Exit(1) from None


def one_line(error: Exception) -> str:
    """The message of an error as a user of the command line reads it."""
    return in_callers_words(error, OPTIONS)
