"""Which sources made a row, on what kind of machine, and whether they have changed since.

The *engine* of a row is every source of the package that can change a number: all but what only shows numbers. Its
fingerprint is the same for a checkout and for the package installed from it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

NAME = "sobolev-novelty"
PACKAGE = Path(__file__).resolve().parents[2]
_SOURCES = (".py", ".c", ".C", ".h", ".toml", ".csv")
#: Modules that show numbers and make none.
_SHOWING = re.compile(
    r"(report/render/.*|ui/cli/.*|ui/(demo|doctor)|__main__|lab/bench/running/progress"
    r"|lab/bench/showing/(page|tables|contrasts|\w*figures|paper)|lab/turbulence/studying/(tables|\w*figures))\.\w+"
)


def circumstances() -> dict[str, str | None]:
    """Version, commit, engine and machine, for every row."""
    return {
        "version": _version(),
        "commit": _commit(),
        "engine": engine_fingerprint(),
        "machine": f"{_processor()}, {os.cpu_count()} CPUs",
    }


def is_engine(path: str) -> bool:
    """Whether a file, named relative to the package, belongs to the engine.

    >>> paths = "search/loop/loop.py", "kernels/native/fit.c", "report/render/page.py", "ui/cli/main.py"
    >>> [is_engine(path) for path in paths]
    [True, True, False, False]
    """
    return PurePosixPath(path).suffix in _SOURCES and not _SHOWING.fullmatch(path)


def engine_fingerprint(package: Path | None = None) -> str:
    """Twelve hexadecimal digits that change with any source of the engine."""
    package = package or PACKAGE
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.*") if path.suffix in _SOURCES}
    digest = hashlib.sha256()
    for name in sorted(filter(is_engine, files)):
        digest.update(name.encode() + b"\0" + files[name].read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _version() -> str:
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "source tree"


def checkout(package: Path | None = None) -> Path | None:
    """The root of the git checkout whose ``src`` is this package; ``None`` for a copy installed anywhere else."""
    package = package or PACKAGE
    root = package.parents[1]
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
        top = Path(_git(root, "rev-parse", "--show-toplevel")).resolve()
    except (OSError, KeyError, tomllib.TOMLDecodeError, subprocess.CalledProcessError):
        return None
    return root if project == NAME and top == root and package.parent.name == "src" else None


def _commit() -> str | None:
    root = checkout()
    if root is None:
        return None
    dirty = _git(root, "status", "--porcelain", "--", str(PACKAGE))
    return _git(root, "rev-parse", "HEAD") + ("+changes" if dirty else "")


def _git(folder: Path, *arguments: str) -> str:
    # 'git status' would lock the index to refresh it, and a run that is killed would leave the lock.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def source_name(commit: str | None, version: str | None) -> str:
    """What made a row, for a person.

    >>> source_name("2bd5b9dbcc94170f6812db45c1ac80ce428e6d64+changes", "0.1.0"), source_name(None, "0.1.0")
    ('commit 2bd5b9dbcc with changes', 'version 0.1.0')
    """
    if not commit:
        return f"version {version or 'unknown'}"
    return f"commit {commit.partition('+')[0][:10]}{' with changes' if '+' in commit else ''}"


#: What a row says of its origin: engine, commit, version.
Origin = tuple[str | None, str | None, str | None]


def engine_notes(origins: Iterable[Origin]) -> list[str]:
    """Sentences about the rows that the present engine did not make, or may not have made; none if it made them all.

    ``origins``: iterable of (engine, commit, version), one per row.
    """
    rows = Counter(origins)
    present = engine_fingerprint()
    counts: dict[bool | None, int] = {}
    names: dict[bool | None, set[str]] = {}
    for (engine, commit, version), count in rows.items():
        is_present = engine == present if engine else _is_unchanged_since(commit or "")
        counts[is_present] = counts.get(is_present, 0) + count
        names.setdefault(is_present, set()).add(source_name(commit, version))
    words = {False: "were made by an engine that has changed since", None: "do not say which engine made them"}
    return [
        f"{counts[state]} of {rows.total()} rows {words[state]} ({', '.join(sorted(names[state]))})."
        for state in words
        if state in counts
    ]


@cache
def _is_unchanged_since(commit: str) -> bool | None:
    """Whether the engine is still that of a commit; ``None`` where git cannot tell."""
    root = checkout()
    if root is None or not re.fullmatch(r"[0-9a-f]{7,40}", commit):
        return None
    try:
        changed = _git(root, "diff", "--name-only", commit, "--", str(PACKAGE))
    except subprocess.CalledProcessError:
        return None
    return not any(is_engine((root / name).relative_to(PACKAGE).as_posix()) for name in changed.splitlines())


def without_folders(text: str) -> str:
    """A message or traceback without the folders of this machine: paths begin at the package or the file."""

    def short(found: re.Match[str]) -> str:
        path = found[0].replace("/src/", "/site-packages/")
        return path.rpartition("/site-packages/")[2] if "/site-packages/" in path else path.rpartition("/")[2]

    return re.sub(r"(?<![\w./])/(?:[\w.+@-]+/)+[\w.+@-]+", short, text)
