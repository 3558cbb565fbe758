"""Who is working on a row, and whether that process is still alive."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

#: A claim whose heartbeat is older than this many seconds is free to take.
STALE_AFTER = 120.0
#: Status of a row that somebody is working on.
CLAIMED = "claimed"


def _host_label() -> str:
    """Tells machines apart without naming them: stores are shared."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Identity:
    """The process that claims: its machine, number and start time (numbers are reused)."""

    host: str = field(default_factory=_host_label)
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
