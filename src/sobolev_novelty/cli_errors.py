"""Errors on the command line: one line, with the options in place of the library's arguments, and exit code 1."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from sobolev_novelty.cli_screen import echo
from sobolev_novelty.errors import ParseError, SobolevError

#: Argument of the library -> option of the command line.
OPTIONS = {
    name: f"--{name}"
    for name in (
        "checkpoint", "decimal", "dialect", "drop", "encoding", "engine", "features", "index", "inputs", "level",
        "operators", "order", "out", "precision", "reasons", "retry", "row", "select", "separator", "sigma", "solver",
        "target", "tau", "time", "trajectory", "variables", "weights",
    )
} | {
    "base_url": "--llm", "calls": "--llm-calls", "model": "--model", "names": "--names", "tokens": "--llm-tokens",
    "chunk_rows": "--chunk-rows", "function_name": "--function", "language": "--to",
    "form": "--format", "has_header": "--no-header", "max_complexity": "--complexity",
    "max_degree": "--max-degree", "max_megabytes": "--max-megabytes",
    "max_evaluations": "--evaluations", "n_bootstrap": "--bootstrap", "n_jobs": "--jobs",
    "n_rows": "--rows", "n_terms": "--terms", "random_state": "--seed", "sample_weight": "--weights",
    "seconds": "--time",
}  # fmt: skip


@contextmanager
def one_line_errors(as_json: bool = False) -> Iterator[None]:
    """Turn an error raised on purpose, or a file that cannot be read or written, into one line and exit code 1."""
    try:
        yield
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
    """The message of an error as a user of the command line reads it.

    Examples
    --------
    >>> from sobolev_novelty.errors import ParameterError
    >>> one_line(ParameterError("'n_bootstrap' must be at least 0. Got -1."))
    '--bootstrap must be at least 0. Got -1.'
    """
    if isinstance(error, ParseError) and error.text:
        start = max(0, error.position - 20)
        near = error.text[start : error.position + 20]
        # The library writes variables="x0".
        reason = re.sub(r'(\w+)="(\w+)"', lambda m: f"{OPTIONS.get(m[1], m[1])} {m[2]}", error.reason)
        return " ".join(f"{reason} (Character {error.position + 1}, near {near!r}.)".split())
    if isinstance(error, OSError) and error.filename is not None and not isinstance(error, SobolevError):
        return f"'{error.filename}': {error.strerror}. Check the path and its permissions."
    return " ".join(_with_options(error).split()) or type(error).__name__


def _with_options(error: Exception) -> str:
    """The message with options for arguments: those it declares, otherwise the one it begins with.

    Each is replaced once, where it first stands: a column may have the name of an argument.
    """
    message = str(error)
    first = re.match(r"'(\w+)'", message)
    named = getattr(error, "arguments", ()) or (first.groups() if first else ())
    for name in named:
        message = message.replace(f"'{name}'", OPTIONS.get(name, f"'{name}'"), 1)
    return message
