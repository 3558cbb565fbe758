"""The blocks of docs/dynamics.md run, and print what the page shows."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test_docs_any_model import NEEDS, run

PAGE = (Path(__file__).parents[1] / "docs" / "dynamics.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


def assert_shows(printed: str, page: str) -> None:
    """The same words, and numbers that a reader would call the same."""
    assert NUMBER.sub("#", " ".join(printed.split())) == NUMBER.sub("#", " ".join(page.split()))
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, page)]
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=0.05, atol=0.02)


@pytest.mark.parametrize("with_pysindy", [False, True])
def test_the_page_shows_what_its_blocks_print(with_pysindy: bool, tmp_path: Path) -> None:
    if with_pysindy and find_spec("pysindy") is None:
        pytest.skip("PySINDy is not installed")
    head = BLOCKS[0][0].partition("\nsearch = ")[0] + "\n"
    blocks = [block for block in BLOCKS if bool(NEEDS.match(block[0])) == with_pysindy]
    code = "print('-----')\n".join([head if with_pysindy else "", *(code for code, _ in blocks)])
    outputs = run(code, tmp_path).split("-----\n")[1:]
    assert len(outputs) == len(blocks) > 1
    for printed, (_, page) in zip(outputs, blocks, strict=True):
        assert_shows(printed, page)


def test_the_table_of_odebench_is_the_stored_one(tmp_path: Path) -> None:
    if find_spec("pysindy") is None:
        pytest.skip("PySINDy is not installed")
    root = Path(__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from benchmarks.odebench import table; print(table())"
    assert run(code, tmp_path).strip() in PAGE
