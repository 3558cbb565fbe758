"""Debian's Chromium, driven by Playwright: a page that fails the test when it logs an error or asks another host."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from sobolev_novelty.ui.app.server import AppServer
from sobolev_novelty.ui.app.workspace import Workspace


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests."""
    words = "browser tests need Playwright: pip install '.[browser]'"
    playwright = pytest.importorskip("playwright.sync_api", reason=words)
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("browser tests need Chromium: apt-get install chromium")
    # Chromium refuses its sandbox to root.
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=arguments)
        yield found
        found.close()


@pytest.fixture
def app() -> Iterator[AppServer]:
    """A server of its own for each test."""
    server = AppServer(Workspace(limit=2**20))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.close()
    thread.join(5.0)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page; whatever it logs as an error, throws, or asks of another host fails the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, accept_downloads=True)
    context.set_default_timeout(60_000)  # machines of CI are busy
    found = context.new_page()
    faults: list[str] = []
    found.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("requestfailed", lambda request: faults.append(f"failed: {request.url}"))
    context.on("request", lambda request: _note_foreign(request.url, faults))
    yield found
    context.close()
    assert faults == []


def _note_foreign(url: str, faults: list[str]) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("file", "data", "about") and parts.hostname != "127.0.0.1":
        faults.append(f"asked elsewhere: {url}")
