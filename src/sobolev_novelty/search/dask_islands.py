"""Islands of a search on a Dask cluster, one long task each; reports and replies go through queues of the scheduler.

A task whose worker dies is begun again by the scheduler on another one. The first island keeps what it had reported,
and tells it the best of that with its next reply.
"""

from __future__ import annotations

import contextlib
import pickle
import time
import uuid
from collections.abc import Callable
from typing import Any

from sobolev_novelty.errors import ParameterError, require
from sobolev_novelty.search.islands import Link, Reply, Report, Spec, serve

#: Seconds between two looks for a report.
_LOOK = 0.02


def opened_on(client: Any) -> Callable[[Spec], Link]:
    """What starts islands on the cluster of a ``dask.distributed.Client``."""
    distributed = require("distributed", extra="dask")
    if not isinstance(client, distributed.Client):
        raise ParameterError(f"'client' must be a dask.distributed.Client. Got {type(client).__name__}.")
    return lambda spec: _DaskLink(client, spec)


class _DaskLink:
    """The way to an island on a cluster."""

    def __init__(self, client: Any, spec: Spec) -> None:
        distributed = require("distributed", extra="dask")
        name = f"sobolev-island-{uuid.uuid4().hex}"
        self._reports = distributed.Queue(f"{name}-reports", client=client)
        self._replies = distributed.Queue(f"{name}-replies", client=client)
        self._task = client.submit(_task, spec, name, pure=False, key=name)

    def receive(self, *, wait: bool) -> Report | None:
        """See :class:`~sobolev_novelty.search.islands.Link`."""
        while True:
            if self._reports.qsize():
                report: Report = pickle.loads(self._reports.get())  # of our own task
                return report
            if self._task.status in ("error", "cancelled", "lost"):
                error = self._task.exception(timeout=1) if self._task.status == "error" else None
                raise EOFError(f"its task is {self._task.status}" if error is None else repr(error))
            if not wait:
                return None
            time.sleep(_LOOK)  # the scheduler logs a 'get' that ran out of time as an error

    def send(self, reply: Reply) -> None:
        """See :class:`~sobolev_novelty.search.islands.Link`."""
        self._replies.put(pickle.dumps(reply))

    def close(self) -> None:
        """See :class:`~sobolev_novelty.search.islands.Link`; a task that runs ends at its next exchange."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._replies.put(pickle.dumps(Reply(must_end=True)))
            self._task.cancel()


def _task(spec: Spec, name: str) -> None:
    """An island on a worker."""
    distributed = require("distributed", extra="dask")
    reports, replies = (distributed.Queue(f"{name}-{which}") for which in ("reports", "replies"))
    serve(spec, lambda report: reports.put(pickle.dumps(report)), lambda: pickle.loads(replies.get()))
