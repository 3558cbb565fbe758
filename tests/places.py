"""Where things stand for the tests, whose own folders may move: the repository, and ``tests``."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent


def source_of(name: str) -> str:
    """The text of the test file of this name, in whichever folder it stands; empty where there is none."""
    return "".join(path.read_text(encoding="utf-8") for path in TESTS.rglob(name))


def added(title: str) -> dict[str, str]:
    """File -> the lines that the worked diff under this title of CONTRIBUTING adds to it."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split(f"\n### {title}", 1)[1].split("\n### ", 1)[0]
    (block,) = re.findall(r"```diff\n(.*?)```", section, re.DOTALL)
    parts = re.split(r"^--- .*\n\+\+\+ b/(.*)\n", block, flags=re.MULTILINE)[1:]
    return {
        path: "".join(f"{line[1:]}\n" for line in body.splitlines() if line.startswith("+"))
        for path, body in zip(parts[::2], parts[1::2], strict=True)
    }
