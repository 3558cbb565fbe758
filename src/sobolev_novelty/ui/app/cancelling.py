"""Work in a thread of the server that another thread can end.

A report of many terms takes minutes. It runs where it was asked for, beside the table, which may be large; a process of
its own would need a copy of it. What ends it is an exception that the interpreter raises in its thread at the next
line of Python.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sobolev_novelty.errors import SobolevError

T = TypeVar("T")


class Cancelled(SobolevError):
    """What was under way was ended by the user."""


class _Ended(BaseException):
    """Not an ``Exception``: nothing on the way up takes it for a failure that it can go on after."""


@dataclass(slots=True)
class Cancellable:
    """The work under way, at most one piece at a time.

    >>> work = Cancellable()
    >>> work.cancel()  # there is none
    False
    """

    _thread: int | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def run(self, work: Callable[[], T]) -> T:
        """Do some work, which may be cancelled, in the thread that asks; what it runs so itself is part of it."""
        mine = threading.get_ident()
        if self._thread == mine:
            return work()
        try:
            try:
                self._thread = mine
                return work()
            finally:
                self._end(mine)
        except _Ended:
            self._end(mine)  # it may have struck while the work was ending anyway
            raise Cancelled("Cancelled: what was shown before stays.") from None

    def _end(self, thread: int) -> None:
        with self._guard:
            self._thread = None
            _raise_in(thread, None)

    def cancel(self) -> bool:
        """End the work under way; whether there was any."""
        with self._guard:
            if self._thread is None:
                return False
            _raise_in(self._thread, _Ended)
            return True


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Let a thread raise an exception soon; None takes back one that it has not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if exception is None else ctypes.py_object(exception)
    )
