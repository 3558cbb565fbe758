"""What pages quote from stored runs, made again: python tools/pages.py [--check] [PAGE …]

A page holds blocks between two marks,

    <!-- made by: sobolev bench table results/igsr.sqlite -->
    …
    <!-- end -->

and this script puts the command's output into them (``sobolev …``, ``python -m benchmarks.…`` or ``python tools/…``,
run in the root of the project). With ``--check`` it changes nothing and exits with 1 if a block differs from what its
command prints.
Lines that say that the engine has changed since depend on the present sources and are left out of blocks.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- made by: (?P<command>[^>]+?) -->\n)(?P<text>.*?)(<!-- end -->)", re.DOTALL)
_OF_THE_DAY = re.compile(r"^.* rows were made by an engine that has changed since.*\n?", re.MULTILINE)


def output_of(command: str) -> str:
    """What a command prints, without what depends on today's sources."""
    words = shlex.split(command)
    if words[0] == "sobolev":
        words = [sys.executable, "-m", "sobolev_novelty", *words[1:]]
    elif (words[:2] == ["python", "-m"] and words[2].startswith("benchmarks.")) or (
        words[0] == "python" and words[1].startswith("tools/")
    ):
        words[0] = sys.executable
    else:
        raise SystemExit(
            f"A block is made by 'sobolev …', 'python -m benchmarks.…' or 'python tools/…'. Got {command!r}."
        )
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{command!r} failed: {done.stderr.strip() or done.stdout.strip()}")
    return "\n" + _OF_THE_DAY.sub("", done.stdout).strip() + "\n\n"


def refreshed(text: str) -> str:
    """A page with all its blocks made again."""
    return BLOCK.sub(lambda block: f"{block[1]}{output_of(block['command'])}{block[4]}", text)


def pages() -> list[Path]:
    """Pages with at least one block."""
    candidates = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [path for path in candidates if BLOCK.search(path.read_text(encoding="utf-8"))]


def main(arguments: list[str]) -> int:
    is_check = "--check" in arguments
    named = [Path(name) for name in arguments if name != "--check"]
    stale = []
    for path in named or pages():
        old = path.read_text(encoding="utf-8")
        new = refreshed(old)
        if new != old:
            stale.append(path)
            if not is_check:
                path.write_text(new, encoding="utf-8")
    for path in stale:
        print(f"{path.name}: {'differs from its stores' if is_check else 'made again'}")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
