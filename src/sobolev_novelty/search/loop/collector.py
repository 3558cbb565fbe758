"""Python's collector of cyclic garbage while a search runs.

A search keeps hundreds of thousands of small immutable objects, none of them in a cycle; looking through all of them
again and again took a tenth of a genetic search and a quarter of the paper's engines.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Young objects are looked at this many times less often, and so are all others.
RARER = 10

_lock = threading.Lock()
_under_way: list[tuple[int, int, int]] = []  # the thresholds to return to, once per search of this process


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect less often until the last search that asked for it has ended; a collector that is off stays off.

    >>> before = gc.get_threshold()
    >>> with rare_collections():
    ...     gc.get_threshold()[0] == RARER * before[0]
    True
    >>> gc.get_threshold() == before
    True
    """
    with _lock:
        before = _under_way[0] if _under_way else gc.get_threshold()
        _under_way.append(before)
        gc.set_threshold(RARER * before[0], *before[1:])
    try:
        yield
    finally:
        with _lock:
            _under_way.pop()
            if not _under_way:
                gc.set_threshold(*before)
