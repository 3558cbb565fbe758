"""The store: one SQLite row per (task, method, seed, noise), claimed before it is run and filled when it is done.

A claim is an atomic insert, so two runners never run the same job. A claim is *stale*, and free to take, when the
process that made it is gone from this machine, or when its heartbeat has stopped. A row with a result is never touched
again. The file is in WAL mode: ``kill -9`` at any moment leaves it whole.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev_novelty.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

#: A claim whose heartbeat is older than this many seconds is free to take.
STALE_AFTER = 120.0
CLAIMED = "claimed"

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS runs (
    task TEXT NOT NULL, method TEXT NOT NULL, seed INTEGER NOT NULL, noise REAL NOT NULL,
    status TEXT NOT NULL,
    expression TEXT, r2_train REAL, r2_test REAL, complexity INTEGER, novelties TEXT, novelty_status TEXT,
    exact_numeric INTEGER, exact_symbolic INTEGER, exact_note TEXT,
    evaluations INTEGER, sn_calls INTEGER, wall_time REAL, traceback TEXT, extra TEXT,
    version TEXT, "commit" TEXT, machine TEXT, created TEXT,
    host TEXT, pid INTEGER, process_started REAL, heartbeat REAL,
    PRIMARY KEY (task, method, seed, noise)
) WITHOUT ROWID""",
)

#: Columns a result may fill.
RESULT_COLUMNS = (
    "status", "expression", "r2_train", "r2_test", "complexity", "novelties", "novelty_status", "exact_numeric",
    "exact_symbolic", "exact_note", "evaluations", "sn_calls", "wall_time", "traceback", "extra",
)  # fmt: skip
#: Columns that say where and when, not what: two runs of a deterministic method differ in these only.
CIRCUMSTANCES = ("wall_time", "created", "host", "pid", "process_started", "heartbeat", "machine", "commit", "version")


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """What identifies a row."""

    task: str
    method: str
    seed: int
    noise: float = 0.0


@dataclass(frozen=True, slots=True)
class Identity:
    """The process that claims: its machine, number and start time (numbers are reused)."""

    host: str = field(default_factory=platform.node)
    pid: int = field(default_factory=os.getpid)
    started: float = field(default_factory=lambda: process_start(os.getpid()) or 0.0)

    def is_gone(self, host: str) -> bool:
        """Whether this process certainly no longer runs, seen from ``host``."""
        return self.host == host and process_start(self.pid) != self.started


def process_start(pid: int) -> float | None:
    """When the process started, in the machine's clock ticks; ``None`` if there is no such process, 0 if unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return 0.0
    # A zombie has ended; only its parent has not noticed.
    return None if fields[0] in "ZX" else float(fields[19])


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file for good. SQLite does not wait for others here: runners that start together must try again."""
    deadline = time.monotonic() + 60.0
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


class Store:
    """A file of results.

    Parameters
    ----------
    path : path
    read_only : bool
        Refuse to create or change the file; for tables and figures.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()) / "runs.sqlite")
    >>> job = Job("feynman_I_12_1", "linear", 0)
    >>> store.claim(job), store.claim(job)
    (True, False)
    >>> store.finish(job, {"status": "done", "r2_test": 0.9})
    True
    >>> store.frame()[["task", "r2_test"]].values.tolist()
    [['feynman_I_12_1', 0.9]]
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.identity = Identity()
        self.read_only = read_only
        if read_only:
            if not self.path.is_file():
                raise DataError(
                    f"There is no store at '{self.path}'. Make one with: sobolev bench run <experiment>.toml"
                )
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            raise DataError(f"'{self.path}' is not a store of 'sobolev bench run': {error}.") from error

    def _open(self) -> None:
        """Make the tables where they are missing, all or nothing: somebody else's file is left as it was."""
        with closing(sqlite3.connect(self._address(), uri=True, timeout=60.0, isolation_level=None)) as connection:
            if not self.read_only:
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    connection.execute(statement)
            connection.execute(f"SELECT {', '.join(RESULT_COLUMNS)} FROM runs, settings LIMIT 0")
            if not self.read_only:
                connection.execute("COMMIT")
                _use_write_ahead_log(connection)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One short connection per call: nothing is shared between threads or inherited by children.
        with closing(sqlite3.connect(self._address(), uri=True, timeout=60.0, isolation_level=None)) as connection:
            if self.read_only:
                connection.execute("PRAGMA query_only=ON")
            else:
                connection.execute("PRAGMA synchronous=FULL")
            yield connection

    def _address(self) -> str:
        # SQLite reads a WAL file through files it makes beside it; where it cannot make them, nobody can be writing.
        is_fixed = self.read_only and not os.access(self.path.parent, os.W_OK)
        return self.path.resolve().as_uri() + ("?immutable=1" if is_fixed else "")

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Remember what the rows were made with; refuse other settings under the same name."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for name, value in settings.items():
                text = json.dumps(value, sort_keys=True)
                row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
                if row is not None and row[0] != text:
                    connection.execute("ROLLBACK")
                    raise ParameterError(
                        f"The store '{self.path}' was made with {name} = {row[0]}. Got {text}. Name another store."
                    )
                connection.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, text))
            connection.execute("COMMIT")

    def settings(self) -> dict[str, Any]:
        """What the rows were made with."""
        with self._connection() as connection:
            return {name: json.loads(value) for name, value in connection.execute("SELECT name, value FROM settings")}

    def claim(self, job: Job) -> bool:
        """Take a job if it is free or its claim is stale. ``False``: it is finished, or another runner has it."""
        key = (job.task, job.method, job.seed, job.noise)
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute(
                "SELECT status, host, pid, process_started, heartbeat FROM runs"
                " WHERE task = ? AND method = ? AND seed = ? AND noise = ?",
                key,
            ).fetchone()
            if row is not None and not self._is_free(*row):
                connection.execute("ROLLBACK")
                return False
            me = self.identity
            connection.execute(
                "INSERT OR REPLACE INTO runs (task, method, seed, noise, status, host, pid, process_started, heartbeat)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, CLAIMED, me.host, me.pid, me.started, time.time()),
            )
            connection.execute("COMMIT")
        return True

    def _is_free(self, status: str, host: str, pid: int, started: float, heartbeat: float) -> bool:
        if status != CLAIMED:
            return False
        return Identity(host, pid, started).is_gone(self.identity.host) or time.time() - heartbeat > STALE_AFTER

    def heartbeat(self) -> None:
        """Tell other runners that this one is alive."""
        me = self.identity
        with self._connection() as connection:
            connection.execute(
                "UPDATE runs SET heartbeat = ? WHERE status = ? AND host = ? AND pid = ? AND process_started = ?",
                (time.time(), CLAIMED, me.host, me.pid, me.started),
            )

    def finish(self, job: Job, result: Mapping[str, Any]) -> bool:
        """Fill the row of a job this process has claimed.

        Returns
        -------
        bool
            ``False`` if the claim was lost in the meantime (taken over as stale): the other runner's row stands.
        """
        unknown = set(result) - {*RESULT_COLUMNS, "version", "commit", "machine"}
        if unknown:
            raise ParameterError(f"'result' has unknown columns: {', '.join(sorted(unknown))}.")
        values = {**result, "created": datetime.now(UTC).isoformat(timespec="seconds")}
        assignments = ", ".join(f'"{column}" = ?' for column in values)
        me = self.identity
        with self._connection() as connection:
            changed = connection.execute(
                f"UPDATE runs SET {assignments} WHERE task = ? AND method = ? AND seed = ? AND noise = ?"
                " AND status = ? AND host = ? AND pid = ? AND process_started = ?",
                (*values.values(), job.task, job.method, job.seed, job.noise, CLAIMED, me.host, me.pid, me.started),
            ).rowcount
        return changed == 1

    def release(self, jobs: Iterable[Job]) -> None:
        """Give up claims of this process, so that others need not wait for them to go stale."""
        me = self.identity
        with self._connection() as connection:
            connection.executemany(
                "DELETE FROM runs WHERE task = ? AND method = ? AND seed = ? AND noise = ?"
                " AND status = ? AND host = ? AND pid = ? AND process_started = ?",
                [(j.task, j.method, j.seed, j.noise, CLAIMED, me.host, me.pid, me.started) for j in jobs],
            )

    def finished(self) -> set[Job]:
        """Jobs with a result, whatever it is."""
        with self._connection() as connection:
            rows = connection.execute("SELECT task, method, seed, noise FROM runs WHERE status != ?", (CLAIMED,))
            return {Job(*row) for row in rows}

    def frame(self, *, with_claims: bool = False) -> pd.DataFrame:
        """All rows, sorted by key; ``novelties`` stays JSON text."""
        import pandas as pd

        with self._connection() as connection:
            frame = pd.read_sql_query("SELECT * FROM runs ORDER BY method, task, seed, noise", connection)
        return frame if with_claims else frame[frame["status"] != CLAIMED].reset_index(drop=True)
