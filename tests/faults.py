"""File operations that fail on demand: the n-th of opening, writing, syncing, replacing and SQL statements in a folder.

As SQLite does it: an operation is run with the first file operation failing, then with the second, and so on, until it
succeeds without meeting the fault. A write that fails leaves half of its bytes, as a full disk does.
"""

from __future__ import annotations

import errno
import io
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Faults:
    """Counts file operations and lets one of them fail, and all that follow if ``forever``."""

    def __init__(self, at: int, forever: bool = False) -> None:
        self.at = at
        self.forever = forever
        self.n_done = 0

    @property
    def was_met(self) -> bool:
        return self.n_done > self.at

    def strikes(self) -> bool:
        self.n_done += 1
        return self.n_done - 1 == self.at or (self.forever and self.was_met)


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Handle:
    """A file whose writes can fail halfway."""

    def __init__(self, handle: Any, faults: Faults) -> None:
        self._handle = handle
        self._faults = faults

    def write(self, content: Any) -> int:
        if self._faults.strikes():
            self._handle.write(content[: len(content) // 2])
            self._handle.flush()
            raise full_disk()
        return int(self._handle.write(content))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def __enter__(self) -> _Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self._handle.close()


@contextmanager
def injected(faults: Faults, folder: Path) -> Iterator[None]:  # noqa: C901
    """Let file operations below ``folder`` fail."""
    real_open, real_fsync, real_replace = io.open, os.fsync, os.replace

    def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        is_ours = isinstance(file, str | Path) and str(file).startswith(str(folder)) and set(mode) & set("wax+")
        if not is_ours:
            return real_open(file, mode, *arguments, **options)
        if faults.strikes():
            raise full_disk()
        return _Handle(real_open(file, mode, *arguments, **options), faults)

    def synced(descriptor: int) -> None:
        if faults.strikes():
            raise full_disk()
        real_fsync(descriptor)

    def replaced(source: Any, target: Any) -> None:
        if faults.strikes():
            raise full_disk()
        real_replace(source, target)

    class Connection(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            self._fail()
            return super().execute(*arguments)

        def executemany(self, *arguments: Any) -> sqlite3.Cursor:
            self._fail()
            return super().executemany(*arguments)

        def _fail(self) -> None:
            if faults.strikes():
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorname = "SQLITE_FULL"
                raise error

    real_connect = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return real_connect(*arguments, factory=Connection, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", opened)
        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "replace", replaced)
        patch.setattr(sqlite3, "connect", connect)
        yield


def every_fault(
    operation: Callable[[], object], check: Callable[[Exception | None], None], folder: Path, *, forever: bool = False
) -> int:
    """Run an operation with each of its file operations failing in turn; the number of faults that were tried.

    Parameters
    ----------
    operation : callable
        Makes its own preparations, which the faults may hit too.
    check : callable
        Told what the operation raised, None for nothing; asserts what must hold on the disk.
    """
    for n in range(1000):
        faults = Faults(n, forever)
        raised: Exception | None = None
        try:
            with injected(faults, folder):
                operation()
        except Exception as error:
            raised = error
        check(raised)
        if not faults.was_met:
            assert raised is None
            return n
    raise AssertionError("the operation never succeeds")
