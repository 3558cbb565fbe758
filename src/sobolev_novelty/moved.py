"""Where modules were before 0.2: old import paths answer for one release, with a warning.

Each line of ``moved.txt`` names a folder and what moved there, with a new name after ">" where it got one. A folder
that has the name of an old module hands on what is asked of that.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "sobolev_novelty."


def _moved() -> dict[str, str]:
    found = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        folder, _, names = line.partition(": ")
        for entry in names.split():
            old, _, name = entry.partition(">")
            found[old] = f"{folder}.{name or old.rpartition('.')[2]}".lstrip(".")
    return found


MOVED = _moved()
#: Old modules whose name a folder has now: the folder hands on what is asked of them.
_FOLDERS = {old: MOVED.pop(old) for old in ("report", "search.loop", "search.islands")}


def new_path(old: str) -> str | None:
    """Where a module, named without the package, is now; None where it did not move.

    >>> new_path("search.regressor"), new_path("bench.paper"), new_path("errors")
    ('search.model.regressor', 'lab.bench.showing.paper', None)
    """
    head, tail = old, ""
    while head:
        if head in MOVED:
            return MOVED[head] + tail
        head, dot, last = head.rpartition(".")
        tail = f"{dot}{last}{tail}"
    return None


class _OldPaths(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not fullname.startswith(PACKAGE) or new_path(fullname.removeprefix(PACKAGE)) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = PACKAGE + str(new_path(old.removeprefix(PACKAGE)))
        try:
            sys.modules[old] = importlib.import_module(new)
        except ModuleNotFoundError as error:
            if error.name != new:
                raise
            raise ModuleNotFoundError(f"No module named '{old}'", name=old) from None
        warnings.warn(f"'{old}' is now '{new}'.", DeprecationWarning, stacklevel=2)


def install() -> None:
    """Let old paths answer."""
    if not any(isinstance(finder, _OldPaths) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldPaths())


def forwarded(folder: str) -> Callable[[str], Any]:
    """``__getattr__`` of a folder that has the name of an old module."""

    def get(name: str) -> Any:
        module = importlib.import_module(PACKAGE + _FOLDERS[folder.removeprefix(PACKAGE)])
        if name.startswith("__") or not hasattr(module, name):
            raise AttributeError(f"module '{folder}' has no attribute '{name}'")
        warnings.warn(f"'{folder}.{name}' is now '{module.__name__}.{name}'.", DeprecationWarning, stacklevel=2)
        return getattr(module, name)

    return get
