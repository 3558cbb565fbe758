"""Results of runs: one JSON object a line, written as soon as a run ends, so that a study can be resumed."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sobolev_novelty.errors import DataError


@dataclass(frozen=True, slots=True)
class RunStore:
    """Rows of one study, keyed by what identifies a run.

    Parameters
    ----------
    path : Path
        A ``.jsonl`` file; it need not exist.
    """

    path: Path

    def rows(self) -> list[dict[str, Any]]:
        """All stored rows, oldest first."""
        return list(self._read())

    def find(self, key: str) -> dict[str, Any] | None:
        """The newest row with this key."""
        found = [row for row in self._read() if row["key"] == key]
        return found[-1] if found else None

    def add(self, key: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Append a row with the key and where it was made."""
        full = {"key": key, **_plain(row), "made": provenance()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(full, allow_nan=False) + "\n")
        return full

    def _read(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            return
        for number, line in enumerate(self.path.read_text().splitlines(), start=1):
            try:
                row = json.loads(line)
                row["key"]
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise DataError(
                    f"Line {number} of '{self.path}' is no stored run: {error}. Delete the line."
                ) from error
            yield row


def _plain(value: Any) -> Any:
    """JSON values: tuples become lists, nan and infinities None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def provenance() -> dict[str, Any]:
    """Commit, version, machine and time of a run."""
    try:
        installed = version("sobolev-novelty")
    except PackageNotFoundError:
        installed = "source tree"
    done = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "version": installed,
        "commit": done.stdout.strip() or None,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
