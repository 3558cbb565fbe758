"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("project", deadline=None, derandomize=True, suppress_health_check=SLOW_IS_FINE)
settings.load_profile("project")


def find_shared_data() -> Path | None:
    """The local copy of the data: ``SOBOLEV_DATA``, else ``shared/data`` beside a parent of the repository."""
    named = os.environ.get("SOBOLEV_DATA")
    if named:
        return Path(named) if Path(named).is_dir() else None
    root = Path(__file__).resolve().parents[1]
    candidates = (parent / "shared" / "data" for parent in (root, *root.parents))
    return next((path for path in candidates if path.is_dir()), None)


# The package itself, and processes that tests start, look for the data under this name only.
if (_FOUND := find_shared_data()) is not None:
    os.environ["SOBOLEV_DATA"] = str(_FOUND)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    path = find_shared_data()
    if path is None:
        pytest.skip("the benchmark data is not here: set SOBOLEV_DATA to its folder")
    return path
