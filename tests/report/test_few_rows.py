"""Reports on fewer than 32 rows: novelty needs them, everything else does not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.ui.cli.main import app


def dose_table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.linspace(1.0, 5.0, n)
    return x, 3.0 * x + 2.0 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("n", [3, 4, 6, 12, 31])
def test_from_three_rows_on_all_but_novelty_is_given(n: int) -> None:
    x, y = dose_table(n)
    report = sn.novelty("3*x0 + 2", x, y)
    line, constant = report.verdicts
    assert report.status is sn.Status.TOO_FEW_ROWS and np.isnan(report.nu).all()
    assert (line.distinct, line.needed, line.determined) == ("unknown", "yes", "yes")
    assert (constant.distinct, constant.needed) == ("constant", "constant")
    found = sn.intervals("3*x0 + 2", x, y)
    assert [v.interval for v in report.verdicts] == [(item.low, item.high) for item in found]
    assert report.fit_quality is not None and report.fit_quality.r2 > 0.99
    assert report.notes == ()
    assert report.summary.startswith("The only term besides the intercept is needed and determined; ")
    assert f"{n} rows are too few for novelty and the word distinct, which need 32: " in report.summary
    assert "finite in only" not in str(report)
    assert report.to_dict()["n_qualified"] == 0 and "needed and determined" in report.to_html()
    assert len(report.statistics) == 2 and len(report.table) == 2


def test_two_rows_give_nothing_and_say_so() -> None:
    report = sn.novelty("3*x0 + 2", *dose_table(2))
    assert not report.has_words and report.fit_quality is None
    assert report.summary.startswith("No verdict: no novelty could be computed. Fewer than 32 rows")
    assert report.notes == ()


def test_as_many_coefficients_as_rows_are_not_praised() -> None:
    x, y = dose_table(3)
    report = sn.novelty("x0 + x0**2 - 1", x, y)
    assert [v.determined for v in report.verdicts] == ["flat", "flat", None]
    assert {v.needed for v in report.verdicts[:2]} == {"unknown"}
    assert "3 rows leave none to judge the fit by." in report.summary
    assert report.fit_quality is not None and np.isnan(report.fit_quality.refitted_r2)
    curve = sn.novelty("4/(1 + (x0/2)**3.2) + 1", x, y)  # four constants
    assert curve.verdicts[0].determined in ("no", "flat")


@pytest.mark.parametrize("n", [4, 5, 6, 8])
def test_noise_is_rarely_called_determined_however_few_the_rows_are(n: int) -> None:
    rng = np.random.default_rng(n)
    words = [sn.novelty("x0", rng.normal(size=(n, 1)), rng.normal(size=n)).verdicts[0].determined for _ in range(300)]
    assert words.count("yes") <= 25  # 5 % at most, and three standard deviations


def test_a_term_that_is_rarely_finite_is_still_named() -> None:
    report = sn.novelty("x0 + log(x0 - 1.5)", np.linspace(-2.0, 2.0, 40))
    assert report.notes == ("Term 1 is finite in only 5 of 40 rows; give more rows or check its domain.",)
    assert "5 rows are too few for novelty" in report.summary


def test_without_a_target_needed_is_what_can_be_said() -> None:
    x, _ = dose_table(12)
    report = sn.novelty("3*x0 + 0.001*sin(x0) + 2", x)
    assert [v.needed for v in report.verdicts] == ["yes", "no", "constant"]
    assert "what is said of needed needs no more than 3" in report.summary
    assert report.to_dict()["terms"][0]["verdict"]["determined"] is None


def test_the_command_line_takes_twelve_rows(tmp_path: Path) -> None:
    x, y = dose_table(12)
    path = tmp_path / "doses.csv"
    pd.DataFrame({"dose": x, "effect": y}).to_csv(path, index=False)
    result = CliRunner().invoke(app, ["report", "3*dose + 2", str(path), "--target", "effect", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["fit"]["r2"] > 0.99 and found["terms"][0]["verdict"]["determined"] == "yes"
