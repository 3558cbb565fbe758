"""What a row of stored evidence holds, declared once; the table, its inserts and all checks follow from it.

A column is one line of a declaration. Columns are only ever added, so the number of columns is the version of a schema:
a file with fewer is older and opens, a file with columns this package does not know is newer and is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sobolev_novelty.errors import ParameterError

Role = Literal["key", "result", "origin", "claim"]
_SQL_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    kind: type[str] | type[int] | type[float]  # ``str``, ``int`` or ``float``
    meaning: str  # what it holds, in words
    #: {"result", "key", "origin", "claim"}: what was found, what identifies the row, which sources made it where and
    #: when, or who is working on it.
    role: Role = "result"

    @property
    def sql(self) -> str:
        """Its definition in SQL."""
        return f'"{self.name}" {_SQL_TYPES[self.kind]}' + (" NOT NULL" if self.role == "key" else "")

    def accepts(self, value: object) -> bool:
        """Whether this column may hold a value."""
        return value is None or isinstance(value, str if self.kind is str else (int, float))


#: Columns of every store, whatever its rows are about.
COMMON = (
    Column("status", str, "how the run ended; 'claimed' while it is under way"),
    Column("version", str, "version of the package", "origin"),
    Column("commit", str, "git commit of the package's own checkout; empty for an installed package", "origin"),
    Column("engine", str, "fingerprint of the sources that made the row", "origin"),
    Column("machine", str, "processor and number of cores", "origin"),
    Column("created", str, "when the result was stored (UTC)", "origin"),
    Column("host", str, "an opaque label of the machine that claimed the row", "claim"),
    Column("pid", int, "number of the process that claimed the row", "claim"),
    Column("process_started", float, "when that process started, in clock ticks", "claim"),
    Column("heartbeat", float, "when that process was last known to be alive", "claim"),
)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a store.

    >>> schema = Schema("sobolev bench run", (Column("task", str, "its name", "key"), Column("r2", float, "R²")))
    >>> schema.version, schema.names("key", "result")
    (12, ('task', 'r2', 'status'))
    """

    made_by: str  # the command that makes such stores
    own: tuple[Column, ...]  # key columns and results; the columns of :data:`COMMON` are added

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns."""
        return (*self.own, *COMMON)

    @property
    def version(self) -> int:
        """Number of columns: it grows with each one."""
        return len(self.columns)

    def names(self, *roles: Role) -> tuple[str, ...]:
        """Names of the columns with one of these roles."""
        return tuple(column.name for column in self.columns if column.role in roles)

    @property
    def create(self) -> str:
        """The statement that makes the table."""
        columns = ", ".join(column.sql for column in self.columns)
        return (
            f"CREATE TABLE IF NOT EXISTS runs ({columns}, PRIMARY KEY ({', '.join(self.names('key'))})) WITHOUT ROWID"
        )

    @property
    def is_key(self) -> str:
        """The condition that picks one row."""
        return " AND ".join(f'"{name}" = ?' for name in self.names("key"))

    def selection(self, present: Collection[str]) -> str:
        """All columns, with NULL for those an older file does not have."""
        return ", ".join(f'"{c.name}"' if c.name in present else f'NULL AS "{c.name}"' for c in self.columns)

    def check(self, result: Mapping[str, Any]) -> None:
        """Refuse a result with columns that are not declared, or with a value of the wrong type."""
        columns = {column.name: column for column in self.columns if column.role in ("result", "origin")}
        unknown = set(result) - set(columns)
        if unknown:
            raise ParameterError(f"'result' has unknown columns: {', '.join(sorted(unknown))}.")
        for name, value in result.items():
            if not columns[name].accepts(value):
                raise ParameterError(
                    f"'result' has {value!r} in column '{name}', which holds {columns[name].kind.__name__}."
                )
