"""What a notebook or a prompt shows: four digits, the chosen row, words instead of fields."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from sobolev_novelty.core.expression import short_text
from sobolev_novelty.report.render.equation_table import EquationTable

X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
FRAME = pd.DataFrame(X, columns=["mass", "a <b>"])
Y = 2.3456789 * np.sin(X[:, 0]) + 0.1 * X[:, 1]


@pytest.fixture(scope="module")
def fitted() -> sn.SymbolicRegressor:
    return sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=200), random_state=0).fit(FRAME, Y)


def test_the_table_of_equations_shows_four_digits_and_holds_all(fitted: sn.SymbolicRegressor) -> None:
    table = EquationTable({"loss": [0.123456789], "expression": [sn.parse("2.3456789*x0")], "chosen": [np.True_]})
    assert repr(table).splitlines()[1].split() == ["0", "0.1235", "2.346*x0", "▶"]
    assert table["loss"].iloc[0] == 0.123456789
    assert "<td" in table._repr_html_() and "2.346*x0" in table._repr_html_()
    assert isinstance(fitted.equations_, EquationTable) and isinstance(fitted.equations_.head(1), EquationTable)
    assert isinstance(sn.rank(fitted, FRAME), EquationTable)
    copied = pickle.loads(pickle.dumps(fitted)).equations_
    pd.testing.assert_frame_equal(copied, fitted.equations_)
    assert repr(EquationTable())


def test_a_notebook_shows_the_fitted_model_and_marks_the_chosen_row(fitted: sn.SymbolicRegressor) -> None:
    bundle = fitted._repr_mimebundle_()
    assert bundle["text/plain"] == repr(fitted)
    assert bundle["text/html"].count("font-weight:bold") == 1
    assert "<b>" not in bundle["text/html"]
    assert bundle["text/html"].index("<math>") < bundle["text/html"].index("<table>")  # the chosen equation is first
    assert fitted.plot()._repr_png_().startswith(b"\x89PNG")
    assert fitted.stop_reason_ in bundle["text/html"]
    assert fitted._repr_html_() == bundle["text/html"]
    assert "sk-" in sn.SymbolicRegressor()._repr_mimebundle_()["text/html"]


def test_results_say_in_words_what_they_are() -> None:
    slim = sn.prune("sin(x0) + 1e-9*x0", X[:, :1], np.sin(X[:, 0]))
    assert repr(slim).splitlines()[0] == "sin(x0)"
    assert "deleted x0 (novelty 0.1" in repr(slim)
    assert "nothing was deleted" in repr(sn.prune("sin(x0)", X[:, :1], np.sin(X[:, 0])))
    assert repr(sn.accepts("x0 + sin(x0)", X[:, :1])).startswith("rejected: Term 'x0' has novelty 0.1")
    assert repr(sn.accepts("x0", X[:, :1])).startswith("accepted: ")
    explained = sn.novelty("x0 + sin(x0)", X[:, :1]).explain(0)
    assert repr(explained) == str(explained) and "≈" in repr(explained)


def test_a_callback_sees_the_users_names_and_may_end_the_search() -> None:
    seen: list[object] = []

    def watch(progress) -> bool:
        seen.append(progress)
        return len(seen) == 2

    noisy = Y + 0.1 * np.random.default_rng(1).normal(size=100)
    model = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=5000), random_state=0)
    model.fit(FRAME, noisy, callback=watch)
    assert len(seen) == 2 and model.stop_reason_ == "A callback ended the search."
    names = {name for c in seen[-1].front for name in c.expression.variables}
    assert names and names <= {"mass", "a <b>"}
    assert seen[-1].best is not None and seen[-1].n_evaluations <= model.n_evaluations_
    with pytest.raises(sn.ParameterError, match="'callback' must be a function, or None. Got 3."):
        model.fit(FRAME, Y, callback=3)


def test_several_targets_are_refused_with_the_way_out_and_the_way_out_works() -> None:
    from sklearn.multioutput import MultiOutputRegressor

    targets = np.column_stack([X[:, 0] ** 2, 3.0 * X[:, 1]])
    model = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=100), random_state=0)
    with pytest.raises(sn.ParameterError, match="'y' must have one column. Got 2. .*MultiOutputRegressor"):
        model.fit(X, targets)
    several = MultiOutputRegressor(model).fit(X, targets)
    reports = sn.novelty(several, X)
    assert list(reports) == ["y0", "y1"]
    assert [str(report.expression) for report in reports.values()] == [str(e.expression_) for e in several.estimators_]


def test_progress_in_a_notebook_needs_no_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[str] = []
    handle = SimpleNamespace(update=updates.append)
    shown = SimpleNamespace(HTML=str, display=lambda content, display_id: handle)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    model = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=200), random_state=0).fit(FRAME, Y)
    assert len(updates) >= 2 and updates[-1] == ""
    assert "of 200 evaluations" in updates[0] and "mass" in updates[0] and "<b>" not in updates[0]
    updates.clear()
    model.fit(FRAME, Y, verbose=False)
    assert updates == []


def test_a_report_and_lists_of_results_are_one_line_each() -> None:
    report = sn.novelty("x0 + sin(x0) + x1", X)
    assert repr(report) == "NoveltyReport(ν of x0: 0.108, sin(x0): 0.108, x1: 0.995, 100 of 100 rows)"
    many = sn.novelties(["+".join(f"sin({k}*x0)" for k in range(1, 30)), "x0 - x0"], X)
    for text in (repr({"a": report, "b": report}), repr([report] * 3), repr(many)):
        assert len(text) < 400 and "array(" not in text and "\n" not in text
    assert "25 more" in repr(many) and "no terms" in repr(many)


def test_a_fitted_model_prints_its_equation(fitted: sn.SymbolicRegressor) -> None:
    shown = str(fitted)
    assert shown.splitlines()[0] == short_text(fitted.expression_)
    assert "Budget(" not in shown and "Budget(" in repr(fitted)
    unfitted = sn.SymbolicRegressor(select="score")
    assert str(unfitted) == repr(unfitted)


def test_words_and_their_heads_stand_on_the_left() -> None:
    long = sn.parse("2.5*sin(x0)*cos(x1) + 1")
    lines = repr(EquationTable({"loss": [0.5, 1.0], "expression": [sn.parse("x0"), long]})).splitlines()
    assert len({lines[0].index("expression"), lines[1].index("x0"), lines[2].index("2.5*")}) == 1
    html = EquationTable({"expression": [long]})._repr_html_()
    assert html.count("text-align:left") == 2  # the head and the cell
