"""The blocks of docs/any-model.md and docs/export.md run; those of a package that is not here skip."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PEERS = re.findall(r"```python\n(.*?)```", (DOCS / "any-model.md").read_text(encoding="utf-8"), re.DOTALL)
NEEDS = re.compile(r"# needs: (\w+)\n")


def run(code: str, folder: Path) -> str:
    """In a process of its own: other packages change warnings, threads and even the processor's rounding."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=folder, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("block", [b for b in PEERS[1:] if NEEDS.match(b)], ids=lambda b: NEEDS.match(b)[1])
def test_a_peers_block_runs(block: str, tmp_path: Path) -> None:
    package = NEEDS.match(block)[1]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    assert run(PEERS[0] + block, tmp_path)


def test_the_other_blocks_run(tmp_path: Path) -> None:
    printed = run("".join(b for b in PEERS if not NEEDS.match(b)), tmp_path)
    assert "Derivatives: of kinetic, term 1 by complex steps, of term 2 by central differences." in printed
    assert "deleted x0" in printed


def test_the_page_names_every_adapter() -> None:
    from sobolev_novelty.peers import ADAPTERS

    page = (DOCS / "any-model.md").read_text(encoding="utf-8").lower().replace("-", "_")
    assert [library for library in ADAPTERS if library.lower() not in page.replace("scikit_learn", "sklearn")] == []


def test_the_exports_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "export.md").read_text(encoding="utf-8"), re.DOTALL)
    printed = run("".join(blocks), tmp_path)
    assert "double drag(const double* x)" in printed and "=((2.123*SIN(A2))-(POWER(B2,2.0)/9.81))" in printed
