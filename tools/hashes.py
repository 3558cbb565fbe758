"""Write hashes.txt: the base dependencies at the versions of constraints.txt, each with the SHA-256 of its wheel.

Run after a change of constraints.txt, on Linux with the Python that the file names::

    python tools/hashes.py

Nothing is installed: pip says what it would install, and from which file. The check, which CI runs, is::

    pip download --require-hashes --no-deps --only-binary :all: -r hashes.txt -d FOLDER

The hashes are not in constraints.txt: with one hash there pip asks for hashes of everything, the local folder and the
build of torch for CPUs included.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "hashes.txt"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        options = ["--only-binary", ":all:", "--report", str(report), "-c", str(ROOT / "constraints.txt")]
        subprocess.run([*pip, *options, *project["dependencies"]], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    lines = [
        f"# Wheels of the base dependencies for CPython {platform.python_version_tuple()[0]}."
        f"{platform.python_version_tuple()[1]} on {platform.system()} {platform.machine()}. "
        "Made by: python tools/hashes.py",
    ]
    for package in sorted(found, key=lambda item: item["metadata"]["name"].lower()):
        data = package["metadata"]
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{data['name']}=={data['version']} --hash=sha256:{digest}")
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
