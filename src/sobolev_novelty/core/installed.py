"""What installed packages bring under a name (entry points): found by reading names alone, loaded when asked for.

A package that is broken or missing a part of its own says so when its name is used, and only then.
"""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import Any

from sobolev_novelty.errors import ParameterError, shortened

#: The distribution that this is.
OWN = "sobolev-novelty"


@dataclass(frozen=True, slots=True)
class Brought:
    """Something of a package: its name, ``module:attribute``, and whose it is."""

    name: str
    place: str
    package: str

    def load(self) -> Any:
        """The object itself; one sentence where its package is broken, whatever the import raised."""
        try:
            return importlib.metadata.EntryPoint(self.name, self.place, "").load()
        except Exception as error:
            raise self.problem(f"cannot be loaded ({type(error).__name__}: {shortened(str(error))})") from error

    def problem(self, what: str) -> ParameterError:
        """An error that says whose fault it is and what to do."""
        remedy = f"Install that package again, with what it needs, or remove it: pip uninstall {self.package}."
        return ParameterError(f"'{self.name}' of the package '{self.package}', {self.place}, {what}. {remedy}")


def brought(group: str) -> dict[str, Brought]:
    """What installed packages bring to a group such as ``sobolev.commands``, by name; nothing is imported.

    Where two packages bring the same name, ours stays, and otherwise that of the first package in the alphabet.

    >>> brought("sobolev.no_such_group")
    {}
    """
    found = [
        Brought(point.name, point.value, OWN if point.dist is None else point.dist.name)
        for point in importlib.metadata.entry_points(group=group)
    ]
    ordered = sorted(found, key=lambda one: (one.package != OWN, one.package), reverse=True)
    return {one.name: one for one in ordered}


__all__ = ["OWN", "Brought", "brought"]
