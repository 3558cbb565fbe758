"""Fixtures that every test may use."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from places import ROOT

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
#: The fixed profile draws the same examples every time; SOBOLEV_HYPOTHESIS=random draws new ones.
settings.register_profile("fixed", deadline=None, derandomize=True, suppress_health_check=SLOW_IS_FINE)
settings.register_profile("random", settings.get_profile("fixed"), derandomize=False, database=None)
PROFILE = os.environ.get("SOBOLEV_HYPOTHESIS", "fixed")
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw a seed before Hypothesis reads its option, so that the header names one whatever happens later."""
    if PROFILE == "random" and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> list[str]:
    if PROFILE != "random":
        return []
    seed = config.getoption("--hypothesis-seed")
    return [f"Random properties. Repeat this run with: SOBOLEV_HYPOTHESIS=random pytest --hypothesis-seed={seed}"]


def find_shared_data() -> Path | None:
    """The local copy of the data: ``SOBOLEV_DATA``, else ``shared/data`` beside a parent of the repository."""
    named = os.environ.get("SOBOLEV_DATA")
    if named:
        return Path(named) if Path(named).is_dir() else None
    candidates = (parent / "shared" / "data" for parent in (ROOT, *ROOT.parents))
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
