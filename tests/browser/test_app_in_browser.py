"""``sobolev app`` in a browser, as its users meet it."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser_checks import faults_of

from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.ui.app.fit_process import Fit, FitRequest
from sobolev_novelty.ui.app.server import AppServer

BLOATED = "2.1*sin(a) + 0.3*a + cos(3*a)"
HOSTILE = ["<img src=x onerror=alert(1)>", "`</script><script>alert(2)</script>`"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, 200), rng.normal(size=200)
    y = 2.4 * np.sin(a) + np.cos(3 * a) + rng.normal(0.0, 0.05, 200)
    pd.DataFrame({"a": a, "b": b, "name": "text", "y": y}).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def drop(page: Any, selector: str, path: Path) -> None:
    """Drop a file on an element, as a mouse would."""
    content = base64.b64encode(path.read_bytes()).decode()
    transfer = page.evaluate_handle(
        """([content, name]) => {
          const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
          const transfer = new DataTransfer();
          transfer.items.add(new File([bytes], name));
          return transfer;
        }""",
        [content, path.name],
    )
    page.dispatch_event(selector, "dragover", {"dataTransfer": transfer})
    page.dispatch_event(selector, "drop", {"dataTransfer": transfer})


def open_app(page: Any, app: AppServer) -> None:
    page.goto(app.gate.address)
    page.wait_for_selector("#example:visible")


def report_text(page: Any) -> str:
    page.wait_for_selector("#report-card:visible")
    return str(page.frame_locator("#report-frame").locator("h1").inner_text())


def saved(page: Any, selector: str) -> str:
    with page.expect_download() as download:
        page.click(selector)
    return Path(download.value.path()).read_text(encoding="utf-8")


def test_a_dropped_table_and_a_typed_equation_give_a_verdict(page: Any, app: AppServer, table: Path) -> None:
    open_app(page, app)
    assert "token" not in page.url
    assert faults_of(page) == []
    drop(page, "#table-card", table)
    page.wait_for_selector("#table-facts:has-text('200 rows, 4 columns')")
    assert page.input_value("#target") == "y"
    page.fill("#equation", BLOATED)
    page.press("#equation", "Control+Enter")
    assert report_text(page) == "1 of 3 terms is distinct, needed and determined"
    frame = page.frame_locator("#report-frame")
    assert frame.locator("figure").count() == 3  # parity, residuals, effects
    assert "Column 'name' is not numeric" in frame.locator("body").inner_text()
    assert faults_of(page) == []
    # As high as its report: only the page scrolls.
    inner = frame.locator("body").evaluate("body => body.scrollHeight")
    assert page.locator("#report-frame").bounding_box()["height"] >= inner


def test_pruning_shows_what_is_left_and_goes_on_with_it(page: Any, app: AppServer, table: Path) -> None:
    open_app(page, app)
    drop(page, "main", table)  # beside the cards: taken by its name
    page.wait_for_selector("#columns:visible")
    page.fill("#equation", f"y = {BLOATED}")
    page.click("#prune")
    page.wait_for_selector("#pruned-card:visible")
    assert "Deleted: a." in page.inner_text("#pruned")
    assert faults_of(page, widths=(400, 1400)) == []
    page.click("#take-pruned")
    page.wait_for_selector("#pruned-card", state="hidden")
    assert "0.3*a" not in page.input_value("#equation")
    assert report_text(page).startswith("Both terms are distinct")


def test_a_new_table_never_shows_the_old_report(page: Any, app: AppServer, table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    x = np.linspace(1.0, 2.0, 300)
    pd.DataFrame({"u": x, "y": 3.0 * x**2}).to_csv(other, index=False)
    open_app(page, app)
    for path, n_rows, equation in ((table, 200, "sin(a)"), (other, 300, "u**2"), (table, 200, "sin(a)")):
        drop(page, "#table-card", path)
        page.wait_for_selector(f"#table-facts:has-text('{n_rows} rows')")
        assert page.is_hidden("#report-card")
        page.fill("#equation", equation)
        page.click("#report")
        page.wait_for_selector("#report-card:visible")
        page.frame_locator("#report-frame").locator(f"body:has-text('{n_rows} rows')").wait_for()


def test_a_report_that_takes_long_can_be_cancelled(page: Any, app: AppServer, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1.0, 2.0, (2_000, 6)).round(4), columns=list("abcdef"))
    frame.assign(y=frame["a"] * frame["b"]).to_csv(tmp_path / "data.csv", index=False)
    open_app(page, app)
    assert page.is_hidden("#cancel")
    drop(page, "#table-card", tmp_path / "data.csv")
    page.wait_for_selector("#columns:visible")
    page.fill("#equation", " + ".join(f"0.{k}*sin({k}.5*{name})" for k, name in enumerate("abcdef" * 10, start=1)))
    page.click("#report")
    page.click("#cancel")
    page.wait_for_selector("#equation-error:has-text('Cancelled')")
    assert page.is_hidden("#cancel") and page.is_hidden("#report-card") and page.is_enabled("#report")


def test_a_fit_is_seen_live_stopped_and_taken_away(page: Any, app: AppServer, table: Path) -> None:
    open_app(page, app)
    page.set_input_files("#table-file", table)
    page.wait_for_selector("#columns:visible")
    page.fill("#seconds", "300")
    page.click("#fit")
    page.wait_for_selector("#front-table tbody tr:nth-child(2)", timeout=60_000)
    assert "Searching for y" in page.inner_text("#pace")
    assert page.is_disabled("#fit")
    assert faults_of(page, widths=(400, 1400)) == []
    page.click("#stop")
    page.wait_for_selector("#pace:has-text('You stopped the search')", timeout=60_000)
    assert page.is_hidden("#stop") and page.is_enabled("#fit")
    assert "distinct" in report_text(page)
    assert faults_of(page, widths=(400, 1400)) == []

    model = json.loads(saved(page, "#fit-downloads >> text=Model"))
    assert model["format"] == "sobolev-novelty model" and model["feature_names"] == ["a", "b"]
    rows = list(csv.DictReader(saved(page, "#fit-downloads >> text=Front as CSV").splitlines()))
    assert len(rows) == page.locator("#front-table tbody tr").count() == len(model["equations"])
    assert saved(page, "#save").startswith("<!doctype html>")
    page.select_option("#save-as", "equation-excel.txt")
    assert saved(page, "#save").startswith("=")
    page.select_option("#save-as", "equation.tex")
    assert "\\" in saved(page, "#save")

    # Another equation of the front.
    page.click("#front-table tbody tr:nth-child(2) button")
    page.wait_for_selector("#front-table tbody tr:nth-child(2).best")
    assert json.loads(saved(page, "#fit-downloads >> text=Model"))["chosen_index"] == 1


def test_a_page_that_is_opened_again_has_everything_that_was_finished(page: Any, app: AppServer, table: Path) -> None:
    open_app(page, app)
    page.click("#example")
    first = report_text(page)
    other = page.context.browser.new_context()  # as after a crash of the browser
    again = other.new_page()
    again.goto(app.gate.address)
    again.wait_for_selector("#report-card:visible")
    assert again.frame_locator("#report-frame").locator("h1").inner_text() == first
    assert again.input_value("#equation") == page.input_value("#equation")
    other.close()


def test_errors_are_said_where_they_belong(page: Any, app: AppServer, table: Path, tmp_path: Path) -> None:
    open_app(page, app)
    page.click("#report")
    assert "There is no table yet" in page.inner_text("#equation-error:visible")
    page.click("#fit")
    assert "There is no table yet" in page.inner_text("#fit-error:visible")
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("\n".join(f"{k},{k * k}" for k in range(1, 50)))
    drop(page, "#table-card", numbers)
    assert "First line is data" in page.inner_text("#table-error:visible")
    page.click("#format summary")
    page.check("#no-header")
    page.click("#read-again")
    page.wait_for_selector("#table-facts:has-text('49 rows, 2 columns')")
    page.fill("#equation", "x0 + ?")
    page.click("#report")
    assert "'?' is not part of a formula" in page.inner_text("#equation-error:visible")
    assert faults_of(page, widths=(400, 1400)) == []
    large = tmp_path / "large.csv"
    large.write_bytes(b"a,b\n" + b"1,2\n" * 300_000)
    drop(page, "#table-card", large)
    assert "the app takes 1 MB at most" in page.inner_text("#table-error:visible")
    page.click("#fit")
    assert "Target is missing" in page.inner_text("#fit-error:visible")


def test_hostile_names_are_shown_and_do_nothing(page: Any, app: AppServer, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, (80, 2))
    path = tmp_path / "<b>table.csv"
    pd.DataFrame({HOSTILE[0]: X[:, 0], HOSTILE[1]: X[:, 1], "y": X[:, 0] + X[:, 1]}).to_csv(path, index=False)
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    open_app(page, app)
    drop(page, "#table-card", path)
    page.wait_for_selector("#table-facts:has-text('<b>table.csv')")
    assert page.locator("#inputs label").first.text_content().strip() == HOSTILE[0]
    page.fill("#equation", "x0 + 2*x1")
    page.click("#report")
    assert "distinct" in report_text(page)
    table = app.workspace.table
    assert table is not None
    front = [{"complexity": 1, "r2": 1 - 2.5e-7, "equation": HOSTILE[0], "is_best": True, "min_novelty": None}]
    app.workspace.fit = Fit(FitRequest(table, "y"), "done", HOSTILE[0], front=front, notes=HOSTILE)
    page.reload()
    assert page.text_content("#front-table code") == HOSTILE[0]
    assert "1 − 2.5 × 10⁻⁷" in page.inner_text("#front-table")
    assert HOSTILE[1] in page.inner_text("#fit-notes")
    page.fill("#equation", "<img src=x onerror=alert(3)>")
    page.click("#report")
    page.wait_for_selector("#equation-error:visible")
    assert page.locator("main img, main script").count() == 0
    assert page.frame_locator("#report-frame").locator("img, script").count() == 0
    assert dialogs == []


def test_a_model_file_brings_its_equations(page: Any, app: AppServer, table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    model = SymbolicRegressor(budget=1.0, random_state=0).fit(frame[["a", "b"]], frame["y"])
    model.save(tmp_path / "model.json")
    fame = tmp_path / "hall_of_fame.csv"
    fame.write_text('Complexity,Loss,Equation\n1,2.0,"a"\n4,0.01,"sin(a) * 2.4"\n')
    open_app(page, app)
    drop(page, "#table-card", table)
    page.wait_for_selector("#columns:visible")
    drop(page, "#equation-card", tmp_path / "model.json")
    page.wait_for_selector("#model-hint:has-text('model.json')")
    assert page.input_value("#equation") == str(model.expression_)
    drop(page, "#equation-card", fame)
    page.wait_for_selector("#model-hint:has-text('hall_of_fame.csv')")
    assert page.input_value("#equation") == "sin(a) * 2.4"
    page.select_option("#choice", "a")
    page.click("#report")
    assert "distinct" in report_text(page)


def test_everything_can_be_reached_with_the_keyboard(page: Any, app: AppServer) -> None:
    open_app(page, app)
    page.click("#example")
    report_text(page)
    page.reload()  # the focus is at the beginning again
    report_text(page)
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.id"))
    wanted = ["table-file", "preview", "target", "equation", "report", "prune", "model-file", "seconds", "fit"]
    assert [name for name in reached if name in wanted][: len(wanted)] == wanted
    assert {"save-as", "save"} <= set(reached)
