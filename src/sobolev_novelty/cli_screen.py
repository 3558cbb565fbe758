"""The one door to the screen: names from files may hold terminal escapes, which must show and not act."""

from __future__ import annotations

from typing import Any

import typer

from sobolev_novelty.errors import printable


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text."""
    typer.echo(printable(text), err=err, nl=nl)


def shown(data: Any) -> Any:
    """Plain data whose texts do nothing but show, for tables that bring escapes of their own."""
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, dict):
        return {key: shown(value) for key, value in data.items()}
    return [shown(part) for part in data] if isinstance(data, list | tuple) else data
