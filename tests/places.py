"""Where things stand for the tests, whose own folders may move: the repository, and ``tests``."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent


def source_of(name: str) -> str:
    """The text of the test file of this name, in whichever folder it stands; empty where there is none."""
    return "".join(path.read_text(encoding="utf-8") for path in TESTS.rglob(name))
