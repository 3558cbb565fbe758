"""What an import loads: nothing heavy, no extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pandas", "sympy", "sklearn", "matplotlib", "torch", "scipy", "dask")


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("import sobolev_novelty", HEAVY),
        ("import sobolev_novelty.ui.cli.main", (*HEAVY, "numpy")),
        ("import sobolev_novelty as sn; sn.novelty('x0 + cos(3*x0)', [[i / 9] for i in range(99)])", HEAVY),
        # A search waits for the processes of its islands.
        (
            "import sobolev_novelty.search.islands.island, sobolev_novelty.engines.genetic\n"
            "import sobolev_novelty.engines.mcts",
            ("pandas", "sympy", "sklearn", "matplotlib", "torch", "dask", "scipy.optimize", "scipy.stats"),
        ),
    ],
)
def test_an_import_loads_nothing_heavy_and_prints_nothing(code: str, refused: tuple[str, ...]) -> None:
    script = f"{code}; import sys; print(*(name for name in {refused!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "" and run.stderr == ""


def test_every_public_name_is_there() -> None:
    import sobolev_novelty as sn

    assert [name for name in sn.__all__ if not hasattr(sn, name)] == []
