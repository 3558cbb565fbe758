"""A report works its derivatives and signatures out once, whatever is asked of it and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty import kernels
from sobolev_novelty.metric import signatures

LAW = "2.1*sin(x0) + 0.3*x1 - 0.05*x0**3"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the kernel is asked for slopes and for novelties, and how often signatures are made."""
    found: Counter[str] = Counter()

    def counted(owner: Any, name: str, says: Callable[..., str]) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            found[says(*arguments)] += 1
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    counted(kernels, "derivatives", lambda programs, X, order=0: "slopes" if order else "values")
    counted(kernels, "novelties", lambda *_: "novelties")
    counted(signatures, "stacked", lambda *_, **__: "signatures")
    return found


def data(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return X, 2.1 * np.sin(X[:, 0]) + 0.3 * X[:, 1] - 0.05 * X[:, 0] ** 3 + 0.01 * rng.normal(size=n)


@pytest.mark.parametrize("options", [{}, {"intercept": "free"}, {"order": 0}, {"order": 2}, {"coordinates": "raw"}])
@pytest.mark.parametrize("has_target", [False, True])
def test_all_of_a_report_needs_one_evaluation(calls: Counter[str], has_target: bool, options: dict[str, Any]) -> None:
    X, y = data()
    report = sn.novelty(LAW, X, y if has_target else None, **options)
    assert calls == {"novelties": 1}  # who asks for novelties only pays for them only
    for _ in range(2):
        assert "sin(x0)" in str(report) and report.to_html() and len(report.table) == len(report.statistics) == 3
    assert (calls["novelties"], calls["slopes"], calls["signatures"]) == (1, 1, 1)


def test_where_inputs_lie_on_a_curve_the_views_are_made_of_the_same_slopes(calls: Counter[str]) -> None:
    t = np.linspace(0.0, 6.0, 300)
    report = sn.novelty(LAW, np.column_stack([np.sin(t), np.cos(t)]), np.sin(t))
    assert "along it" in str(report) and {"values", "tangent", "full"} <= set(report.views)
    assert (calls["novelties"], calls["slopes"], calls["signatures"]) == (1, 1, 3)


def test_the_command_report_evaluates_once_however_much_it_writes(calls: Counter[str], tmp_path: Path) -> None:
    from sobolev_novelty.ui.cli.main import app

    X, y = data()
    table = tmp_path / "d.csv"
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", header="x0,x1,y", comments="")
    outs = [option for name in ("r.html", "r.json", "r.svg", "r.tex") for option in ("--out", str(tmp_path / name))]
    result = CliRunner().invoke(app, ["report", LAW, str(table), "--target", "y", *outs])
    assert result.exit_code == 0, result.output
    assert (calls["novelties"], calls["slopes"], calls["signatures"]) == (1, 1, 1)


def test_what_takes_much_memory_is_not_kept_with_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    kept, not_kept = sn.novelty(LAW, X, y), sn.novelty(LAW, X, y)
    words = kept.verdicts
    assert kept.source.measured.evaluated._rows
    monkeypatch.setattr(signatures, "MAX_KEPT_BYTES", 1000)
    assert not_kept.verdicts == words and not not_kept.source.measured.evaluated._rows
