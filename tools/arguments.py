"""What each argument of the public calls may be, as tables of Markdown: docs/arguments.md is made of them.

The words are those of the errors: both are made from the tables that :mod:`sobolev_novelty.core.parameters` looks at.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import sobolev_novelty as sn
from sobolev_novelty.core.parameters import kinds_of

#: Classes whose methods take arguments of their own.
WITH_METHODS = (
    "DynamicsRegressor", "Expression", "NoveltyAccumulator", "NoveltyReport", "SymbolicRegressor", "TermArchive",
)  # fmt: skip


def calls() -> Iterator[tuple[str, Any]]:
    """Public functions, classes and methods that have a table, by name."""
    for name in sorted(dir(sn), key=str.lower):
        found = getattr(sn, name)
        if kinds_of(found):
            yield f"sn.{name}", found
        if name in WITH_METHODS:
            for method, value in inspect.getmembers(found, callable):
                if not method.startswith("_") and kinds_of(value):
                    yield f"sn.{name}.{method}", value


def default_of(parameter: inspect.Parameter) -> str:
    """How the default is written; nothing where there is none."""
    value = parameter.default
    if value is inspect.Parameter.empty or repr(value) == "<factory>":
        return ""
    if callable(value):
        return "nothing is told" if value.__name__ == "silent" else ""
    return f"`{value:.4g}`" if isinstance(value, float) else f"`{value!r}`"


def table(name: str, function: Any) -> str:
    """The table of one call."""
    lines = [f"## `{name}`", "", "| argument | must be | by default |", "| --- | --- | --- |"]
    parameters = inspect.signature(function).parameters
    for argument, kind in kinds_of(function).items():
        lines.append(f"| `{argument}` | {kind.words} | {default_of(parameters[argument])} |")
    return "\n".join(lines)


def main() -> int:
    print("\n\n".join(table(name, function) for name, function in calls()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
