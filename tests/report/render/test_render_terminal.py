"""The report as text, LaTeX and figure."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.errors import MissingExtraError, ParameterError
from sobolev_novelty.report.render import latex, terminal
from sobolev_novelty.report.render.figures.figure import report_figure
from sobolev_novelty.report.render.figures.fit_figure import axis_label
from sobolev_novelty.report.reporting import NoveltyReport, novelty, novelty_of_arrays

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
    np.testing.assert_allclose(widths, [verdict.novelty for verdict in report.verdicts])  # what the words say
    diamonds = [line.get_xdata()[0] for line in bars.lines if line.get_marker() == "D"]
    np.testing.assert_allclose(diamonds, report.nu)  # as the paper has it
    assert any("τ = 0.316" in text.get_text() for text in bars.texts)
    assert len(matrix.images) == 1 and matrix.images[0].get_array().shape == (5, 5)
    figure.savefig(tmp_path / "figure.svg")


def _with_target() -> NoveltyReport:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(0.5, 2.0, (300, 3)), columns=["Density", "Abdomen", "Weight"])
    target = 3.0 / rows["Density"] + 0.2 * rows["Abdomen"] * rows["Weight"] + rng.normal(0.0, 0.1, 300)
    return novelty("3/Density + 0.2*Abdomen*Weight - 0.0000017*Weight**2", rows, target)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_terms_are_not_folded_for_the_sake_of_the_bar(width: int) -> None:
    text = terminal.report_text(_with_target().to_dict(), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("Abdomen*Weight" in line and "✓ yes" in line for line in lines) == 1


def test_text_has_no_powers_of_ten_in_percentages_and_says_r2() -> None:
    text = terminal.report_text(_with_target().to_dict(), 120)
    assert not re.search(r"e\+?\d+\s*%", text)
    assert "R² 0." in text and "cross-validated" in text


def test_coefficients_have_the_digits_of_their_interval() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.5, 2.0, (300, 1))
    report = novelty("3.123456789*x0", rows, 3.123456789 * rows[:, 0] + rng.normal(0.0, 0.1, 300))
    low, high = report.verdicts[0].interval or (0.0, 0.0)
    written = number_text(3.123456789, 0.5 * (high - low))
    assert written in ("3.12", "3.123", "3.1235")
    assert str(report).startswith(f"{written}*x0\n")
    assert f"${written}$" in report.latex_table()
    assert f">{written}<" in report.to_html()


def test_figure_with_a_target_has_parity_residuals_and_effects(tmp_path: Path) -> None:
    figure = _with_target().plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert any(title.startswith("R²") for title in titles) and any("effect" in title for title in titles)
    figure.savefig(tmp_path / "figure.png")


def test_figure_draws_on_the_users_axes(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    own = Figure()
    left, right = own.subplots(1, 2)
    assert _with_target().plot(ax=right) is own
    assert len(own.axes) == 2 and not left.patches and len(right.patches) == 6
    assert Figure.savefig(own, tmp_path / "figure.png") is None
    with pytest.raises(ParameterError, match="'ax' must be the axes of a matplotlib figure. Got int."):
        novelty("x0", X).plot(ax=3)  # type: ignore[arg-type]


def test_notebooks_show_a_figure_without_magic() -> None:
    assert novelty("x0", X).plot()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_labels_of_a_figure_are_typeset_and_foreign_text_is_not() -> None:
    assert axis_label("Weight**2/rho") == (r"$\frac{\mathrm{Weight}^{2}}{\rho}$", True)
    assert axis_label("$x^{$") == ("$x^{$", False)


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
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plot\]'"):
        novelty("x0", X).plot()
