"""The one door to the screen: names from files may hold terminal escapes, which must show and not act."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer

from sobolev_novelty.errors import printable


def open_standard_streams() -> None:
    """Give what the caller has closed (``>&-``) to the null device: nothing to read, and what is printed is gone.

    Otherwise the next file that is opened gets the number of a closed stream, and what is printed goes there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
        if number and hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="replace")


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text."""
    typer.echo(printable(text), err=err, nl=nl)


def fail_after_printing(*problems: str) -> None:
    """A result that was printed but is not in the file where it was wanted: exit code 1 all the same."""
    if any(problems):
        echo(f"sobolev: {' '.join(filter(None, problems))}", err=True)
        raise typer.Exit(1)


def shown(data: Any) -> Any:
    """Plain data whose texts do nothing but show, for tables that bring escapes of their own."""
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, dict):
        return {key: shown(value) for key, value in data.items()}
    return [shown(part) for part in data] if isinstance(data, list | tuple) else data
