"""The runner: claims jobs, runs each in a process of its own, here or on a Dask cluster, and stores what comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sobolev_novelty.core.progress import silent
from sobolev_novelty.errors import DataError, ParameterError, require
from sobolev_novelty.lab.bench.problems.suites import missing_tasks
from sobolev_novelty.lab.bench.running.experiment import Experiment
from sobolev_novelty.lab.bench.running.isolation import KIND, run_isolated
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.bench.running.worker import ENVIRONMENT
from sobolev_novelty.lab.evidence.origin import circumstances, without_folders
from sobolev_novelty.lab.evidence.scratch import remove_abandoned_folders

#: Seconds between two heartbeats.
_HEARTBEAT = 5.0
#: How often Dask may move a task from a lost worker to another.
_DASK_RETRIES = 5
#: After this many jobs in a row that the machine could not run, no more are handed out.
_IN_VAIN = 3
#: What 'retry' may name.
RETRIED = ("failed", "crashed", "timeout", "memory", "changed")


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """Where a sweep stands.

    ``total``, ``done``, ``failed``: jobs of the experiment, those with a result in the store, and those of them without
    an expression.
    """

    total: int
    done: int
    failed: int
    #: tuple of (Job, float): jobs in progress and the seconds since they were handed out.
    running: tuple[tuple[Job, float], ...] = ()
    seconds_left: float | None = None  # estimate from the jobs finished by this runner

    @property
    def note(self) -> str:
        """What more there is to say of the jobs that are done."""
        return f"{self.failed} without a model" if self.failed else ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What one call of ``run`` did."""

    ran: int  # jobs this runner finished
    skipped: int  # jobs that had a result already
    held: int  # jobs another living runner holds
    missing: tuple[str, ...]  # tasks whose data are not there; not run, not stored
    statuses: dict[str, int]  # how many of the jobs of this runner ended in which status
    seconds: float
    #: Why jobs could not be run on this machine, and how many; they are not stored.
    not_run: dict[str, int] = field(default_factory=dict)


def run(
    experiment: Experiment,
    store: Store,
    *,
    n_jobs: int = 1,
    dask: str | None = None,
    retry: Sequence[str] = (),
    on_progress: Callable[[SweepProgress], None] = silent,
) -> Summary:
    """Run what the store does not have yet.

    Parameters
    ----------
    experiment : Experiment
    store : Store
    n_jobs : int
        Jobs at a time on this machine; not used with ``dask``.
    dask : str, optional
        Address of a Dask scheduler. Each of its workers runs as many jobs at a time as it has threads.
    retry : sequence of str
        Statuses of stored rows that are run again: ``failed``, ``crashed``, ``timeout``, ``memory``; and ``changed``,
        rows of tasks whose formula or data are not what they were.
    on_progress : callable
        Called with a :class:`SweepProgress` about twice a second.
    """
    if n_jobs < 1:
        raise ParameterError(f"'n_jobs' must be at least 1. Got {n_jobs}.")
    unknown = set(retry) - set(RETRIED)
    if unknown:
        raise ParameterError(f"'retry' must be of {', '.join(RETRIED)}. Got {', '.join(sorted(unknown))}.")
    experiment.check_methods()
    store.check_settings(experiment.settings())
    remove_abandoned_folders(KIND)
    missing = set(missing_tasks(experiment.tasks, download=True))
    fingerprints = experiment.fingerprints(missing)
    _forget(store, experiment, fingerprints, set(retry))
    finished = store.finished()
    jobs = [job for job in experiment.jobs() if job.task not in missing]
    todo = [job for job in jobs if job not in finished]
    begin = time.monotonic()
    with _executor(n_jobs, dask) as (executor, capacity):
        n_before = len(jobs) - len(todo)
        sweep = _Sweep(experiment, store, executor, capacity, len(jobs), n_before, fingerprints, on_progress)
        try:
            sweep.run(todo)
        finally:
            store.release(sweep.in_flight.values())
    ran, seconds = sum(sweep.statuses.values()), time.monotonic() - begin
    return Summary(ran, n_before, sweep.held, tuple(sorted(missing)), sweep.statuses, seconds, sweep.not_run)


def _forget(store: Store, experiment: Experiment, fingerprints: Mapping[str, str], retry: set[str]) -> None:
    """Remove the rows that are to be made again; refuse to keep rows of tasks that have changed."""
    mine = {(job.task, job.method, job.seed, job.noise) for job in experiment.jobs()}
    rows = [row for row in store.results() if (row["task"], row["method"], row["seed"], row["noise"]) in mine]
    changed = [row for row in rows if row["data"] and row["data"] != fingerprints.get(row["task"], row["data"])]
    if changed and "changed" not in retry:
        tasks = sorted({row["task"] for row in changed})
        raise DataError(
            f"{len(changed)} stored rows are of tasks whose formula or data have changed since: {', '.join(tasks[:5])}"
            f"{' …' if len(tasks) > 5 else ''}. Run them again ('retry' with 'changed'), or name another store.",
            arguments=["retry"],
        )
    again = changed + [row for row in rows if row["status"] in retry]
    store.remove([(row["task"], row["method"], row["seed"], row["noise"]) for row in again])


@dataclass(slots=True)
class _Sweep:
    """The state of one call of ``run``."""

    experiment: Experiment
    store: Store
    executor: Executor
    capacity: Callable[[], int]
    total: int
    done_before: int
    fingerprints: Mapping[str, str]
    on_progress: Callable[[SweepProgress], None]
    in_flight: dict[Future[dict[str, Any]], Job] = field(default_factory=dict)
    started: dict[Job, float] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    not_run: dict[str, int] = field(default_factory=dict)
    n_in_vain: int = 0
    held: int = 0
    begin: float = field(default_factory=time.monotonic)

    def run(self, todo: list[Job]) -> None:
        rest = iter(todo)
        last_heartbeat = self.begin
        exhausted = False
        while self.in_flight or not exhausted:
            exhausted |= self.n_in_vain >= _IN_VAIN
            while not exhausted and len(self.in_flight) < self.capacity():
                exhausted = not self._submit_next(rest)
            done, _ = wait(self.in_flight, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                self._store(self.in_flight.pop(future), future)
            if time.monotonic() - last_heartbeat > _HEARTBEAT:
                self.store.heartbeat()
                last_heartbeat = time.monotonic()
            self._report()

    def _submit_next(self, rest: Iterator[Job]) -> bool:
        """Claim and hand out one more job; ``False`` when there is none left."""
        for job in rest:
            if self.store.claim(job):
                self.in_flight[self.executor.submit(run_isolated, self.experiment.request(job))] = job
                self.started[job] = time.monotonic()
                return True
            self.held += job not in self.store.finished()
        return False

    def _store(self, job: Job, future: Future[dict[str, Any]]) -> None:
        self.started.pop(job)
        try:
            result = future.result()
            self.store.schema.check(result)
        except Exception as error:  # the cluster lost the task too often, or the method reports what cannot be stored
            told = without_folders(f"{type(error).__name__}: {error}")
            result = {"status": "crashed", "traceback": told, **circumstances()}
        if result["status"] == ENVIRONMENT:
            self.store.release([job])
            reason = result["traceback"]
            self.not_run[reason] = self.not_run.get(reason, 0) + 1
            self.n_in_vain += 1
            return
        self.n_in_vain = 0
        result["data"] = self.fingerprints.get(job.task)
        if self.store.finish(job, result):
            self.statuses[result["status"]] = self.statuses.get(result["status"], 0) + 1

    def _report(self) -> None:
        now = time.monotonic()
        ran = sum(self.statuses.values())
        left = self.total - self.done_before - ran - self.held - sum(self.not_run.values())
        rate = ran / (now - self.begin) if ran else None
        running = tuple((job, now - at) for job, at in self.started.items())
        seconds_left = None if rate is None else left / rate
        n_failed = ran - self.statuses.get("done", 0)
        self.on_progress(SweepProgress(self.total, self.done_before + ran, n_failed, running, seconds_left))


@contextmanager
def _executor(n_jobs: int, dask: str | None) -> Iterator[tuple[Executor, Callable[[], int]]]:
    if dask is None:
        with ThreadPoolExecutor(n_jobs, thread_name_prefix="bench") as pool:
            yield pool, lambda: n_jobs
        return
    distributed = require("distributed", extra="dask")
    try:
        connected = distributed.Client(dask, timeout="30s")
    except (OSError, ValueError) as error:
        raise DataError(f"No Dask scheduler answers at '{dask}': {error}. Start one with: dask scheduler") from error
    with connected as client:
        yield (
            client.get_executor(pure=False, retries=_DASK_RETRIES),
            # One more than there are threads, so that none waits for this process; workers may come and go.
            lambda: 1 + sum(client.nthreads().values()),
        )
