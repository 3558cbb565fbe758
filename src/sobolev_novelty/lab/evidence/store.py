"""A file of results: one SQLite row per run, claimed before it is run or added when it is done.

A claim is an atomic insert, so two runners never run the same job. A claim is *stale*, and free to take, when the
process that made it is gone from this machine, or when its heartbeat has stopped. A row with a result is never touched
again. The file is in WAL mode: ``kill -9`` at any moment leaves it whole.

A file made before a column was declared opens all the same: for reading the file is left as it is and the column reads
as NULL, for writing the column is added.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev_novelty.errors import DataError, ParameterError, shortened
from sobolev_novelty.lab.evidence.claims import CLAIMED, STALE_AFTER, Identity
from sobolev_novelty.lab.evidence.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

#: What identifies a row: the values of the key columns, in their order.
Key = tuple[Any, ...]

_SETTINGS = "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
#: What the machine can do to a store that is whole: a full disk, a missing folder, somebody else's lock.
_CIRCUMSTANCES = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR")
_IS_MINE = "status = ? AND host = ? AND pid = ? AND process_started = ?"


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


class EvidenceStore(ABC):
    """A file of results; what its rows hold is said by :attr:`schema`.

    ``read_only``: refuse to create or change the file; for tables and figures.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.identity = Identity()
        self.read_only = read_only
        if not read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        elif not self.path.is_file():
            raise DataError(
                f"There is no store at '{self.path}'. Make one with: {self.schema.made_by} <experiment>.toml"
            )
        try:
            self._selection = self._open()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", None) in _CIRCUMSTANCES:
                raise self._unusable(error) from error
            raise self._foreign(str(error)) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._foreign(str(error)) from error

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """What the rows hold."""

    def _unusable(self, error: sqlite3.DatabaseError) -> DataError:
        remedy = "Check the disk, the path and its permissions, and go on: rows that are stored stay."
        if getattr(error, "sqlite_errorname", None) not in _CIRCUMSTANCES:
            remedy = "Take a copy of the file, or name another store."
        return DataError(f"The store '{self.path}' cannot be used: {error}. {remedy}")

    def _damaged(self, reason: str) -> DataError:
        return DataError(
            f"The store '{self.path}' is damaged: {reason}. Take a copy of the file, or name another store."
        )

    def _check_row(self, row: Mapping[str, Any]) -> None:
        """Refuse what no version of this package wrote: SQLite lets any column hold anything."""
        for column in self.schema.columns:
            is_missing = row[column.name] is None and column.role == "key"
            if is_missing or not column.accepts(row[column.name]):
                raise self._damaged(f"column '{column.name}' holds {shortened(row[column.name], 40)}")

    def _foreign(self, reason: str) -> DataError:
        return DataError(f"'{self.path}' is not a store of '{self.schema.made_by}': {reason}.")

    def _open(self) -> str:
        """Make or widen the tables, all or nothing: a file that is refused is left as it was.

        Returns the columns to read.
        """
        with closing(sqlite3.connect(self._address(), uri=True, timeout=60.0, isolation_level=None)) as connection:
            if not self.read_only:
                connection.execute("BEGIN IMMEDIATE")
            self._check_tables(connection)
            if not self.read_only:
                connection.execute(_SETTINGS)
                connection.execute(self.schema.create)
            present = {row[1] for row in connection.execute("PRAGMA table_info(runs)")}
            connection.execute("SELECT name, value FROM settings LIMIT 0")
            self._check_columns(present, connection.execute("PRAGMA user_version").fetchone()[0])
            if not self.read_only:
                for column in self.schema.columns:
                    if column.name not in present:
                        connection.execute(f"ALTER TABLE runs ADD COLUMN {column.sql}")
                        present.add(column.name)
                connection.execute(f"PRAGMA user_version={self.schema.version}")
                connection.execute("COMMIT")
                _use_write_ahead_log(connection)
            return self.schema.selection(present)

    def _check_tables(self, connection: sqlite3.Connection) -> None:
        """Refuse what runs when it is read or written: a view may never end, a trigger may do anything."""
        for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
            is_virtual = kind == "table" and str(sql or "").lstrip().upper().startswith("CREATE VIRTUAL")
            if kind in ("view", "trigger") or is_virtual:
                raise self._foreign(f"it has the {'virtual table' if is_virtual else kind} {shortened(name, 40)}")

    def _check_columns(self, present: set[str], version: int) -> None:
        missing = [name for name in (*self.schema.names("key"), "status") if name not in present]
        if missing:
            raise self._foreign(f"it has no column {', '.join(missing)}")
        unknown = present - {column.name for column in self.schema.columns}
        if unknown or version > self.schema.version:
            raise DataError(
                f"'{self.path}' was written by a newer version of sobolev-novelty (schema {version}, this one knows "
                f"{self.schema.version}{''.join(f', no column {name}' for name in sorted(unknown))}). "
                "Update sobolev-novelty to use this store, or name another one."
            )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One short connection per call: nothing is shared between threads or inherited by children.
        try:
            with closing(sqlite3.connect(self._address(), uri=True, timeout=60.0, isolation_level=None)) as connection:
                connection.execute("PRAGMA query_only=ON" if self.read_only else "PRAGMA synchronous=FULL")
                # Damaged files hold text that is none; it shows as such.
                connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
                yield connection
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        except UnicodeDecodeError as error:  # names and messages of SQLite come from the file, too
            raise self._damaged("it holds names that are not text") from error

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
            stored = dict(connection.execute("SELECT name, value FROM settings"))
        try:
            return {str(name): json.loads(value) for name, value in stored.items()}
        except (TypeError, ValueError, RecursionError) as error:
            raise self._damaged(f"its settings are not JSON ({shortened(error)})") from error

    def claim(self, key: Key) -> bool:
        """Take a job if it is free or its claim is stale. ``False``: it is finished, or another runner has it."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute(
                f"SELECT status, host, pid, process_started, heartbeat FROM runs WHERE {self.schema.is_key}", tuple(key)
            ).fetchone()
            if row is not None and not self._is_free(*row):
                connection.execute("ROLLBACK")
                return False
            values = (*key, *self._mine(), time.time())
            names = ", ".join((*self.schema.names("key"), "status", "host", "pid", "process_started", "heartbeat"))
            places = ", ".join("?" * len(values))
            connection.execute(f"INSERT OR REPLACE INTO runs ({names}) VALUES ({places})", values)
            connection.execute("COMMIT")
        return True

    def _mine(self) -> tuple[str, str, int, float]:
        """How a claim of this process is recognised."""
        return CLAIMED, self.identity.host, self.identity.pid, self.identity.started

    def _is_free(self, status: str, host: str, pid: int, started: float, heartbeat: float) -> bool:
        if status != CLAIMED:
            return False
        if not (isinstance(pid, int) and isinstance(heartbeat, int | float)):
            return True  # a damaged claim is nobody's
        return Identity(host, pid, started).is_gone(self.identity.host) or time.time() - heartbeat > STALE_AFTER

    def heartbeat(self) -> None:
        """Tell other runners that this one is alive."""
        with self._connection() as connection:
            connection.execute(f"UPDATE runs SET heartbeat = ? WHERE {_IS_MINE}", (time.time(), *self._mine()))

    def finish(self, key: Key, result: Mapping[str, Any]) -> bool:
        """Fill the row of a job this process has claimed.

        Returns ``False`` if the claim was lost in the meantime (taken over as stale): the other runner's row is kept.
        """
        values = self._stamped(result)
        assignments = ", ".join(f'"{column}" = ?' for column in values)
        with self._connection() as connection:
            changed = connection.execute(
                f"UPDATE runs SET {assignments} WHERE {self.schema.is_key} AND {_IS_MINE}",
                (*values.values(), *key, *self._mine()),
            ).rowcount
        return changed == 1

    def _stamped(self, result: Mapping[str, Any]) -> dict[str, Any]:
        self.schema.check(result)
        return {**result, "created": datetime.now(UTC).isoformat(timespec="seconds")}

    def insert(self, key: Key, result: Mapping[str, Any]) -> bool:
        """Store a finished row in one step. ``False``: there is already a row with this key, which is kept."""
        values = {**dict(zip(self.schema.names("key"), key, strict=True)), **self._stamped(result)}
        names, places = ", ".join(f'"{name}"' for name in values), ", ".join("?" * len(values))
        with self._connection() as connection:
            done = connection.execute(f"INSERT OR IGNORE INTO runs ({names}) VALUES ({places})", tuple(values.values()))
            return done.rowcount == 1

    def release(self, keys: Iterable[Key]) -> None:
        """Give up claims of this process, so that others need not wait for them to go stale."""
        with self._connection() as connection:
            connection.executemany(
                f"DELETE FROM runs WHERE {self.schema.is_key} AND {_IS_MINE}", [(*key, *self._mine()) for key in keys]
            )

    def remove(self, keys: Iterable[Key]) -> None:
        """Delete finished rows, so that they can be made again."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                f"DELETE FROM runs WHERE {self.schema.is_key} AND status != ?", [(*key, CLAIMED) for key in keys]
            )
            connection.execute("COMMIT")

    def finished(self) -> set[Key]:
        """Keys of the rows with a result, whatever it is."""
        keys = ", ".join(self.schema.names("key"))
        with self._connection() as connection:
            return set(connection.execute(f"SELECT {keys} FROM runs WHERE status != ?", (CLAIMED,)))

    def results(self, condition: str = "TRUE", values: Key = ()) -> list[dict[str, Any]]:
        """Finished rows that fulfil a condition in SQL, oldest first."""
        with self._connection() as connection:
            connection.row_factory = sqlite3.Row
            rows = connection.execute(
                f"SELECT {self._selection} FROM runs WHERE status != ? AND {condition}"
                f" ORDER BY created, {', '.join(self.schema.names('key'))}",
                (CLAIMED, *values),
            )
            found = [dict(row) for row in rows]
        for row in found:
            self._check_row(row)
        return found

    def frame(self, *, with_claims: bool = False) -> pd.DataFrame:
        """All rows, sorted by key; JSON columns stay text."""
        import pandas as pd

        with self._connection() as connection:
            found = connection.execute(
                f"SELECT {self._selection} FROM runs ORDER BY {', '.join(self.schema.names('key'))}"
            )
            names, rows = [column[0] for column in found.description], found.fetchall()
        for row in rows:
            self._check_row(dict(zip(names, row, strict=True)))
        frame = pd.DataFrame.from_records(rows, columns=names, coerce_float=True)
        return frame if with_claims else frame[frame["status"] != CLAIMED].reset_index(drop=True)
