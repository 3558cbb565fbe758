"""Bad input to the library: an error or a status that names the column or row and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.ui.cli.main import app

X = np.linspace(-1.0, 1.0, 100)[:, None]


def test_no_rows() -> None:
    with pytest.raises(sn.DataError, match=r"'X' has no rows\. Give at least 32 samples"):
        sn.novelty("x0", np.empty((0, 1)))


def test_no_columns() -> None:
    with pytest.raises(sn.DataError, match=r"'X' has no columns\. Give at least one input"):
        sn.novelty("1", np.empty((50, 0)))


@pytest.mark.parametrize("n_rows", [1, 31])
def test_fewer_than_32_finite_rows_is_a_status_with_a_reason(n_rows: int) -> None:
    report = sn.novelty("x0 + cos(x0)", X[:n_rows])
    assert report.status is sn.Status.TOO_FEW_ROWS
    assert np.isnan(report.nu).all() and not report.qualified.any()
    assert "32" in report.sentence and report.sentence[:20] in str(report)


def test_rows_lost_to_missing_inputs_are_counted_apart_from_those_outside_the_domain() -> None:
    holes = X.copy()
    holes[:5] = np.nan
    report = sn.novelty("sqrt(x0 + 0.8)", holes)
    assert report.dropped["an input is missing or not finite"] == 5
    assert report.n_used + sum(report.dropped.values()) == report.n_samples


def test_a_term_that_is_finite_in_too_few_rows_is_named() -> None:
    report = sn.novelty("x0 + log(x0 - 0.9)", X)
    assert any("Term 1 is finite in only 5 of 100 rows; give more rows" in note for note in report.notes)


def test_a_constant_column_is_named() -> None:
    report = sn.novelty("a + k", pd.DataFrame({"a": X[:, 0], "k": 1.0}))
    assert any("Column 'k' is constant" in note for note in report.notes)


def test_a_non_numeric_column_is_named() -> None:
    with pytest.raises(sn.DataError, match=r"Column 'name' is not numeric \(for example 'x'\)\. Drop it or encode it"):
        sn.novelty("a", pd.DataFrame({"a": X[:, 0], "name": "x"}))


def test_text_in_an_array() -> None:
    with pytest.raises(sn.DataError, match=r"'X' cannot be read as numbers"):
        sn.novelty("x0", [["a"], ["b"]])


def test_a_variable_that_no_column_has_is_named() -> None:
    with pytest.raises(sn.ParseError, match=r"(?s)speed.*\^"):
        sn.novelty("mass*speed", pd.DataFrame({"mass": X[:, 0]}))


def test_names_that_do_not_match_the_columns() -> None:
    with pytest.raises(sn.DataError, match=r"'names' must have one name per column of 'X', 1 in all\. Got 2\."):
        sn.novelty("a", X, names=["a", "b"])
    with pytest.raises(sn.DataError, match=r"more than once: a\. Rename them"):
        sn.novelty("a", np.c_[X, X], names=["a", "a"])


def test_zero_terms_is_a_status() -> None:
    report = sn.novelty("x0 - x0", X)
    assert report.status is sn.Status.NO_TERMS and len(report) == 0
    assert "has no terms left" in " ".join(str(report).split())
    assert report.to_dict()["n_qualified"] == 0


def test_an_empty_list_of_terms() -> None:
    with pytest.raises(sn.ParameterError, match=r"'equation' is an empty list"):
        sn.novelty([], X)


def test_targets_that_are_not_finite_name_the_row() -> None:
    y = X[:, 0].copy()
    y[7] = np.nan
    with pytest.raises(sn.DataError, match=r"'y' has 1 non-finite value\(s\), the first in row 7\. Drop or impute"):
        sn.prune("x0 + sin(x0)", X, y)


def test_targets_of_another_length() -> None:
    with pytest.raises(sn.DataError, match=r"'y' must have one value per row of 'X', shape \(100,\)"):
        sn.prune("x0", X, X[:50, 0])


def test_prune_judges_only_rows_where_the_equation_is_finite() -> None:
    y = np.sqrt(np.abs(X[:, 0])) + X[:, 0]
    slim = sn.prune("sqrt(x0) + x0", X, y)
    assert slim.steps == () and slim.score > 0.9


def test_verbs_on_an_equation_without_terms() -> None:
    assert sn.feedback("x0 - x0", X) == ""
    assert not sn.accepts("x0 - x0", X)
    assert str(sn.prune("x0 - x0", X, X[:, 0])) == "x0 - x0"


@pytest.mark.parametrize(
    "content", [b'suite = "caf\xe9"\n', b"suite = [" + b"[" * 5000, b"\xff\xfe\x00", b"suite = ", b"\0"]
)
def test_experiments_that_are_not_toml_in_utf8_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_bytes(content)
    arguments = [
        ["bench", "run", str(path)],
        ["bench", "planted", "--store", str(tmp_path / "p.json"), "--formulas", str(path)],
        ["bench", "pretrained", str(path), "--out", str(tmp_path / "o.json")],
        ["turbulence", "figure", "--experiment", str(path)],
        ["turbulence", "solve", str(path)],
    ]
    for command in arguments:
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 1 and result.stderr.startswith("sobolev: "), (command, result.exception)


TWO = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda texts: sn.novelty(texts, TWO),
        lambda texts: sn.novelties(texts, TWO),
        lambda texts: sn.novelties([texts], TWO),
        lambda texts: sn.conditional_novelty(texts[1:], texts[:1], TWO),
        lambda texts: sn.rank(texts, TWO),
        lambda texts: sn.rerank(texts, TWO, [0.5, 0.5]),
        lambda texts: sn.TermArchive().update(texts, TWO),
        lambda texts: sn.novelty_of_chunks(texts, [TWO]),
        lambda texts: sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=9), guesses=texts).fit(TWO, TWO[:, 0]),
    ],
)
def test_in_one_call_a_number_is_the_same_column_in_every_text(call: Callable[[list[str]], object]) -> None:
    with pytest.raises(sn.ParseError, match=r"(?s)'x0' is the name of a column, but counted from 1.*x0; cos\(x2\)"):
        call(["x0", "cos(x2)"])
    call(["x0", "cos(x1)"])


def test_texts_read_together_mean_the_same_columns() -> None:
    counted_from_1 = sn.novelty(["x1", "cos(x2)"], TWO, names=["a", "b"])
    np.testing.assert_array_equal(counted_from_1.nu, sn.novelty(["a", "cos(b)"], TWO, names=["a", "b"]).nu)
    with pytest.raises(sn.ParseError, match="'x2' is out of range: numbering starts at 0 and there are 2 names"):
        sn.novelty(["x0", "cos(x2)"], TWO, names=["a", "b"])


def test_an_entry_of_a_list_that_is_no_equation_is_refused() -> None:
    with pytest.raises(sn.ParameterError, match="An equation must be text"):
        sn.novelty(["x0", True], TWO)
    with pytest.raises(sn.ExpressionError, match=r"A constant must be finite. Got 1000"):
        sn.novelty(["x0", 10**400], TWO)
