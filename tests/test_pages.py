"""Pages agree with the stores they quote."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("pages", ROOT / "tools" / "pages.py")
assert _spec is not None and _spec.loader is not None
pages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pages)

BLOCKS = [
    pytest.param(block["command"], block["text"], id=f"{path.name}: {block['command']}")
    for path in pages.pages()
    for block in pages.BLOCK.finditer(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("command", "text"), BLOCKS)
def test_a_block_is_what_its_command_prints(command: str, text: str) -> None:
    assert pages.output_of(command) == text


def test_a_block_is_replaced_and_the_rest_of_the_page_is_not() -> None:
    page = "before\n<!-- made by: sobolev --version -->\nold\n<!-- end -->\nafter\n"
    new = pages.refreshed(page)
    assert new.startswith("before\n<!-- made by: sobolev --version -->\n") and new.endswith("<!-- end -->\nafter\n")
    assert "old" not in new and pages.refreshed(new) == new


def test_a_block_of_another_command_is_refused() -> None:
    with pytest.raises(SystemExit, match="is made by"):
        pages.output_of("rm -rf results")
