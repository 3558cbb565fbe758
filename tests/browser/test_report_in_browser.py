"""The report page, as a file opened in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from browser_checks import faults_of

import sobolev_novelty as sn
from sobolev_novelty.report.reporting import novelty_of_arrays

HOSTILE = "<img src=x onerror=alert(1)>"


def opened(page: Any, html: str, folder: Path) -> Any:
    path = folder / "report.html"
    path.write_text(html, encoding="utf-8")
    page.goto(path.as_uri())
    return page


def test_a_report_with_a_target_is_readable_at_every_width_and_in_the_dark(page: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"mass": rng.uniform(0.5, 2.0, 300), "speed": rng.uniform(-1.0, 1.0, 300)})
    y = 2.0 * X["mass"] + np.sin(X["speed"]) + rng.normal(0.0, 0.05, 300)
    report = sn.novelty("2.1*mass + 0.9*sin(speed) + 0.1*speed + 0.02*speed**3/(1 + mass**2)", X, y)
    opened(page, report.to_html(), tmp_path)
    assert "terms" in page.inner_text("h1")
    assert page.locator("figure svg").count() == 3
    assert faults_of(page) == []
    page.click("summary")
    assert "VIF" in page.inner_text("details")
    assert faults_of(page, widths=(400, 1400)) == []


def test_a_report_without_a_target_and_with_many_long_terms_does_not_scroll_sideways(page: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 80))
    values[1] = values[0] + 1e-3 * values[1]
    labels = [HOSTILE, *(f"a_very_long_label_of_a_term_that_somebody_made_number_{k}" for k in range(11))]
    opened(page, novelty_of_arrays(values, labels=labels).to_html(), tmp_path)
    assert HOSTILE in page.inner_text("table.terms")
    assert page.locator("img").count() == 0
    assert faults_of(page) == []


def test_the_demonstration_is_readable(page: Any, tmp_path: Path) -> None:
    from sobolev_novelty.ui import demo as demonstration

    opened(page, demonstration.page(list(demonstration.cases())), tmp_path)
    assert faults_of(page, widths=(400, 1400)) == []
