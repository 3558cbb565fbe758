"""The numbered examples run. How long they take is not tested: machines are shared; the limit only ends a hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

FIRST, *OTHERS = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
EXAMPLES = [FIRST, *(pytest.param(path, marks=pytest.mark.slow) for path in OTHERS)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    if path.stem.endswith("transformer"):
        pytest.importorskip("torch", reason="this example needs torch")
    command = [sys.executable, "-W", "error", str(path)]
    run = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout and run.stderr == ""
