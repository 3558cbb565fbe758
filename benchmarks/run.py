"""Run all benchmarks: ``python -m benchmarks.run [--repeats 7] [--only evaluation]``.

Writes ``results/benchmarks/kernels.json``; ``docs/speed.md`` and its figure are made from that file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import evaluation, fits, novelty, page, scaling
from sobolev_novelty import kernels

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "results" / "benchmarks" / "kernels.json"


def machine() -> dict[str, Any]:
    model = ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        pass
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    versions = {}
    for package in ("numpy", "scipy", "sympy", "gplearn", "pyoperon", "statsmodels"):
        from importlib.metadata import PackageNotFoundError, version

        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "missing"
    backend = kernels.backend()
    return {
        "processor": model,
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "kernel": f"{backend.name}, {backend.instruction_set}, vector maths: own and {backend.vector_maths}",
        "commit": commit,
        "versions": versions,
        "load": [round(x, 2) for x in os.getloadavg()],
        "date": time.strftime("%Y-%m-%d"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", choices=["evaluation", "novelty", "fits", "scaling"])
    options = parser.parse_args()
    wanted = [options.only] if options.only else ["evaluation", "novelty", "fits", "scaling"]
    stored: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    with threadpool_limits(1):
        for part in wanted:
            start = time.perf_counter()
            stored[part] = run(part, options.repeats)
            stored[part]["seconds"] = round(time.perf_counter() - start, 1)
            for measure in stored[part].get("measures", []):
                asked = f"must {measure['must']}, aim {measure['aim']}"
                print(f"{measure['value']:10.2f} {measure['unit']:3s} ({asked})  {measure['name']}")
    stored["machine"] = machine()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    page.write(stored, ROOT / "docs")


def run(part: str, repeats: int) -> dict[str, Any]:
    if part == "scaling":
        return {"curves": scaling.curves(repeats)}
    if part == "fits":
        return {"measures": [m.as_dict() for m in fits.measures(repeats)]}
    found, numbers = (evaluation if part == "evaluation" else novelty).measures(repeats)
    return {"measures": [m.as_dict() for m in found], "numbers": numbers}


if __name__ == "__main__":
    main()
