"""The page that names a test for every finding names tests that exist."""

from __future__ import annotations

import re

from places import ROOT


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "trust.md").read_text())
    assert len(named) > 40
    missing = [f"{path}::{name}" for path, name in named if f"\ndef {name}(" not in (ROOT / path).read_text()]
    assert not missing, missing
