"""What tests of the benchmark share: their methods are found by the jobs, and jobs are forked from one process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from places import TESTS


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """Keep the name of the test out of the environment: a nursery is for one environment, and takes seconds to make."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    return (yield)


@pytest.fixture(autouse=True)
def _children_find_the_test_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(parts))
