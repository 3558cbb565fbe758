"""Old import paths answer, with a warning."""

from __future__ import annotations

import importlib
import sys

import pytest

from sobolev_novelty.moved import MOVED, new_path


@pytest.mark.parametrize("old", sorted(MOVED))
def test_old_paths_lead_to_modules(old: str) -> None:
    if old.startswith("transformer"):
        pytest.importorskip("torch")
    new = importlib.import_module(f"sobolev_novelty.{new_path(old)}")
    sys.modules.pop(f"sobolev_novelty.{old}", None)
    with pytest.warns(DeprecationWarning, match="is now 'sobolev_novelty"):
        assert importlib.import_module(f"sobolev_novelty.{old}") is new


def test_folders_hand_on_what_their_old_module_had() -> None:
    with pytest.warns(DeprecationWarning, match="is now 'sobolev_novelty.report.reporting.novelty'"):
        from sobolev_novelty.report import novelty
    assert novelty.__module__ == "sobolev_novelty.report.reporting"
    with pytest.warns(DeprecationWarning, match="Budget"):
        from sobolev_novelty.search.loop import Budget  # noqa: F401
    with pytest.raises(ImportError):
        from sobolev_novelty.report import nothing  # noqa: F401


@pytest.mark.filterwarnings("ignore:.*is now 'sobolev_novelty:DeprecationWarning")
def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="sobolev_novelty.search.nothing"):
        importlib.import_module("sobolev_novelty.search.nothing")
    with pytest.raises(ModuleNotFoundError, match="sobolev_novelty.bench.nothing"):
        importlib.import_module("sobolev_novelty.bench.nothing")
