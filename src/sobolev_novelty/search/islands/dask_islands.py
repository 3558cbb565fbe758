"""Islands of a search on a Dask cluster, one long task each; reports and replies go through queues of the scheduler.

A task whose worker dies is begun again by the scheduler on another one, which may have an island already: tasks leave
the worker's pool of threads, so that none stands in the way of another that it is waiting for. The first island keeps
what the dead one had reported, and tells its successor the best of that with the next reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from sobolev_novelty.errors import ParameterError, require
from sobolev_novelty.search.islands.islands import Link, Reply, Report, Spec, serve

#: Seconds between two looks for a report, between two looks at the cluster, and for which it may be without workers.
_LOOK, _CHECK, _PATIENCE = 0.02, 1.0, 30.0
#: What the client of a cluster that is gone says of itself.
_OVER = ("closing", "closed")


def n_workers(client: Any) -> int:
    """Workers of the cluster of a ``dask.distributed.Client``."""
    return len(_checked(client).scheduler_info().get("workers", ()))


def opened_on(client: Any) -> Callable[[Spec], Link]:
    """What starts islands on the cluster of a ``dask.distributed.Client``; OSError where it is gone."""
    _checked(client)

    def opened(spec: Spec) -> Link:
        with _reaching(client, OSError):
            return _DaskLink(client, spec)

    return opened


def _checked(client: Any) -> Any:
    distributed = require("distributed", extra="dask")
    if not isinstance(client, distributed.Client):
        raise ParameterError(f"'client' must be a dask.distributed.Client. Got {type(client).__name__}.")
    if client.status in _OVER:
        raise ParameterError(f"'client' must be connected to its cluster. Got one that is {client.status}.")
    return client


@contextlib.contextmanager
def _reaching(client: Any, gone: type[Exception]) -> Iterator[None]:
    """Whatever a client raises once its cluster is gone, as one error: an AttributeError, a KeyError, a broken pipe."""
    try:
        yield
    except EOFError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        raise gone("the client of the cluster is closed" if client.status in _OVER else repr(error)) from error


class _DaskLink:
    """The way to an island on a cluster."""

    def __init__(self, client: Any, spec: Spec) -> None:
        distributed = require("distributed", extra="dask")
        self._client, self._distributed = client, distributed
        self._name = f"sobolev-island-{uuid.uuid4().hex}"
        self._reports = distributed.Queue(f"{self._name}-reports", client=client)
        self._replies: Any = None  # of the life that reported last
        self._task = client.submit(_task, spec, self._name, pure=False, key=self._name)

    def receive(self, *, wait: bool) -> Report | None:
        """See :class:`~sobolev_novelty.search.islands.islands.Link`."""
        with _reaching(self._client, EOFError):
            return self._received(wait=wait)

    def _received(self, *, wait: bool) -> Report | None:
        had_workers = checked = time.monotonic()
        while True:
            if self._reports.qsize():
                replies, report = pickle.loads(self._reports.get())  # of our own task
                self._replies = self._distributed.Queue(replies, client=self._client)
                return report  # type: ignore[no-any-return]
            if self._task.status in ("error", "cancelled", "lost"):
                error = self._task.exception(timeout=1) if self._task.status == "error" else None
                raise EOFError(f"its task is {self._task.status}" if error is None else repr(error))
            if not wait:
                return None
            time.sleep(_LOOK)  # the scheduler logs a 'get' that ran out of time as an error
            if time.monotonic() - checked > _CHECK:
                checked = time.monotonic()
                had_workers = checked if n_workers(self._client) else had_workers
                if checked - had_workers > _PATIENCE:
                    raise EOFError(f"the cluster has been without workers for {_PATIENCE:g} seconds")

    def send(self, reply: Reply) -> None:
        """See :class:`~sobolev_novelty.search.islands.islands.Link`."""
        with _reaching(self._client, OSError):
            self._replies.put(pickle.dumps(reply))

    def close(self) -> None:
        """See :class:`~sobolev_novelty.search.islands.islands.Link`; a task that runs ends at its next exchange."""
        with contextlib.suppress(Exception, asyncio.CancelledError):  # the cluster may be gone
            if self._replies is not None:
                self._replies.put(pickle.dumps(Reply(must_end=True)))
            self._task.cancel()


def _task(spec: Spec, name: str) -> None:
    """An island on a worker."""
    distributed = require("distributed", extra="dask")
    distributed.secede()
    # Every life has a queue of its own: what is sent to a dead worker that was waiting for it is lost.
    own = f"{name}-replies-{uuid.uuid4().hex}"
    reports, replies = distributed.Queue(f"{name}-reports"), distributed.Queue(own)
    serve(spec, lambda report: reports.put(pickle.dumps((own, report))), lambda: pickle.loads(replies.get()))
