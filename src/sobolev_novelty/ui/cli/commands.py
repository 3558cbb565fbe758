"""Commands that installed packages bring to ``sobolev`` (entry points ``sobolev.commands``), the lab's among them.

One is a ``typer.Typer`` or a function that typer can read. Its module is imported when it is asked for, or for the list
of all. A broken one says so in that list and where it is called; the others work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

from sobolev_novelty.core.installed import OWN, Brought, brought
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.ui.cli.errors import fail


@cache
def _brought() -> dict[str, Brought]:
    return brought("sobolev.commands")


class Commands(TyperGroup):  # typer's way to say where commands come from
    """Our commands, then those of packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        own = super().list_commands(ctx)
        return [*own, *(name for name in sorted(_brought()) if name not in own)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; ours cannot be replaced."""
        own = super().get_command(ctx, cmd_name)
        if own is None and cmd_name in _brought():
            return _command(_brought()[cmd_name])
        if own is None and all(found.package != OWN for found in _brought().values()):
            remedy = (
                "it was installed before it had all its commands. Install it again: make setup, or pip install -e ."
            )
            fail(ParameterError(f"No command '{cmd_name}'. If this checkout has one, {remedy}"))
        return own


def _command(found: Brought) -> Any:
    """What a package brings, as a command; one that tells what is wrong where it is broken."""
    panel = {} if found.package == OWN else {"rich_help_panel": f"From {found.package}"}
    try:
        value = found.load()
        if not (isinstance(value, typer.Typer) or callable(value)):
            raise found.problem("is not a typer.Typer or a function")
        return _made(found.name, value, panel)
    except ParameterError as error:
        problem = error
    except Exception as error:  # annotations that typer cannot read
        problem = found.problem(f"is not a command that typer can read ({error})")

    def broken() -> None:
        fail(problem)

    taken = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _made(found.name, broken, {**panel, "help": f"Broken: {problem}", "context_settings": taken})


def _made(name: str, value: Callable[..., Any] | typer.Typer, options: dict[str, Any]) -> Any:
    outer = typer.Typer(add_completion=False)
    outer.callback()(lambda: None)  # a group, even of one
    if isinstance(value, typer.Typer):
        outer.add_typer(value, name=name, **options)
    else:
        outer.command(name, **options)(value)
    made: Any = typer.main.get_command(outer)
    return made.commands[name]


__all__ = ["Commands"]
