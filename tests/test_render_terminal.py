"""The report as text, LaTeX and figure."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from sobolev_novelty.errors import MissingExtraError
from sobolev_novelty.render import latex, terminal
from sobolev_novelty.render.figure import report_figure
from sobolev_novelty.report import NoveltyReport, novelty, novelty_of_arrays

X = np.linspace(-1.0, 1.0, 200)[:, None]
BLOATED = "2.1*sin(x0) + 0.3*x0 - 0.05*x0**3 + cos(3*x0) + sqrt(x0 + 0.9)"
HOSTILE = [
    "<script>alert(1)</script>",
    "`a` & $b$ _{c} \\end{tabular} %",
    "\x1b[31mred [bold]x[/bold]\u202e",
    "数学 ∂φ",
]


def _hostile() -> NoveltyReport:
    rng = np.random.default_rng(0)
    return novelty_of_arrays(rng.normal(size=(4, 50)), labels=HOSTILE)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_text_fits_the_width_and_has_no_colour_codes(width: int) -> None:
    text = terminal.report_text(novelty(BLOATED, X, n_bootstrap=20, random_state=0).to_dict(), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text


def test_text_says_verdict_rows_threshold_and_geometry() -> None:
    text = terminal.report_text(novelty(BLOATED, X).to_dict(), 200)
    for part in (
        "2 of 5 terms are distinct",
        "190 of 200 rows",
        "a term's value is not finite",
        "1/√10",
        "order 1",
        "┃",
    ):
        assert part in text


def test_notes_are_printed() -> None:
    data = np.column_stack([X[:, 0], np.ones(len(X))])
    assert "Note: Column 'x1' is constant" in str(novelty("x0 + x1", data))


def test_labels_cannot_colour_the_terminal() -> None:
    text = str(_hostile())
    assert "\x1b" not in text and "[bold]x[/bold]" in text


def test_a_terminal_gets_colours() -> None:
    console = Console(force_terminal=True, color_system="standard", width=100, record=True, file=open_null())
    console.print(terminal.report_table(novelty(BLOATED, X).to_dict()))
    assert "\x1b[" in console.export_text(styles=True)


def open_null() -> object:
    import io

    return io.StringIO()


@pytest.mark.parametrize("equation", ["x0 - x0", "log(x0 - 0.99)", "x0"])
def test_reports_without_numbers_are_rendered_everywhere(equation: str, tmp_path: Path) -> None:
    report = novelty(equation, X)
    assert str(report)
    assert report.latex_table().startswith(r"\begin{tabular}")
    assert report.to_html().startswith("<!doctype html>")
    assert report._repr_html_()
    report.plot().savefig(tmp_path / "figure.png")


def test_latex_sets_terms_as_formulas() -> None:
    table = novelty("x0**2 + cos(3*x0)", X).latex_table()
    assert r"$x_{0}^{2}$ & $1$ &" in table
    assert table.count(r"\\") == 3
    assert table.rstrip().endswith(r"\end{tabular}")


def test_latex_has_the_interval_where_there_is_one() -> None:
    assert r"95\,\% interval" in novelty("x0 + cos(3*x0)", X, n_bootstrap=5, random_state=0).latex_table()


def test_latex_escapes_labels() -> None:
    table = latex.report_table(_hostile().to_dict())
    assert r"\textbackslash{}end\{tabular\}" in table
    assert table.count(r"\end{tabular}") == 1
    assert r"\textless{}script\textgreater{}" in table


def test_figure_shows_bars_threshold_and_matrix(tmp_path: Path) -> None:
    report = novelty(BLOATED, X, n_bootstrap=20, random_state=0)
    figure = report.plot()
    bars, matrix = figure.axes[:2]
    widths = [patch.get_width() for patch in bars.patches[len(report) :]]
    np.testing.assert_allclose(widths, report.nu)
    assert any("τ = 0.316" in text.get_text() for text in bars.texts)
    assert len(matrix.images) == 1 and matrix.images[0].get_array().shape == (5, 5)
    figure.savefig(tmp_path / "figure.svg")


def test_figure_leaves_pyplot_alone() -> None:
    sys.modules.pop("matplotlib.pyplot", None)
    novelty("x0 + cos(3*x0)", X).plot()
    assert "matplotlib.pyplot" not in sys.modules


def test_figure_takes_forty_terms_and_hostile_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = [f"$term_{i}^{{2}}$" + "x" * 60 for i in range(40)]
    figure = report_figure(novelty_of_arrays(rng.normal(size=(40, 100)), labels=labels).to_dict())
    figure.savefig(tmp_path / "figure.png")
    drawn = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(drawn) == 40 and max(map(len, drawn)) <= 40


def test_a_missing_matplotlib_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sobolev-novelty\[plot\]'"):
        novelty("x0", X).plot()
