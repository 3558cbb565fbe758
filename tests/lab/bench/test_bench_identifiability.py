"""The many-term suite: laws with the condition that was asked for, and which terms of them were found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.judging.judge import assess_exactness
from sobolev_novelty.lab.bench.judging.terms import is_law, term_scores
from sobolev_novelty.lab.bench.problems.identifiability import (
    CONDITIONS,
    IDENTIFIABILITY,
    N_LAWS,
    WELL_CONDITIONED,
    Cell,
    cells,
    condition_of,
    drawn_law,
    drawn_rows,
)
from sobolev_novelty.lab.bench.problems.suites import suite_tasks, task_data, task_fingerprint
from sobolev_novelty.lab.bench.running.store import Job, Store
from sobolev_novelty.lab.bench.showing.identifiability import many_term_table
from sobolev_novelty.ui.cli.main import app

SUITE = IDENTIFIABILITY[0]
#: One law of each condition and setting, products of sums and single inputs among them.
FEW = [
    next(cell for cell in cells(SUITE) if cell.condition == condition and kind in (cell.setting, cell.shape))
    for condition in CONDITIONS
    for kind in ("box", "trajectory", "product")
]
X = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 2))


@pytest.mark.parametrize("suite", IDENTIFIABILITY)
def test_every_level_of_the_design_is_drawn_equally_often(suite: str) -> None:
    found = cells(suite)
    assert len({cell.name for cell in found}) == len(found) == N_LAWS
    for factor in ("n_terms", "condition", "noise", "n_rows", "setting"):
        assert len(set(Counter(getattr(cell, factor) for cell in found).values())) == 1
    assert sum(cell.shape == "product" for cell in found) > 20
    assert [cell.name for cell in cells(IDENTIFIABILITY[0])] != [cell.name for cell in cells(IDENTIFIABILITY[1])]


@pytest.mark.parametrize("cell", FEW, ids=lambda cell: cell.name)
def test_a_law_has_the_terms_inputs_and_condition_that_were_asked_for(cell: Cell) -> None:
    law = drawn_law(SUITE, cell)
    terms = sn.additive_terms(law.expression)
    assert len(terms) == cell.n_terms and set(law.expression.variables) == set(law.variables)
    rows = law.rows(20_000, np.random.default_rng(9))
    condition = condition_of(np.column_stack([evaluate(term.expression, rows) for term in terms]))
    if cell.condition == 1:
        assert condition < 1.2 * WELL_CONDITIONED
    else:
        assert 0.7 < condition / cell.condition < 1.4  # other rows than those on which the dial was set
    sizes = [abs(term.coefficient) * np.sqrt(np.mean(evaluate(term.expression, rows) ** 2)) for term in terms]
    assert min(sizes) > 0.05 * max(sizes)


def test_the_same_seed_gives_the_same_law_and_rows_and_another_seed_other_ones() -> None:
    cell = FEW[0]
    drawn_law.cache_clear()
    first = drawn_law(SUITE, cell)
    drawn_law.cache_clear()
    assert drawn_law(SUITE, cell) == first != drawn_law(IDENTIFIABILITY[1], cell)
    once, again, other = (drawn_rows(SUITE, cell, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(once.y, again.y)
    assert not np.array_equal(once.X, other.X)
    assert task_fingerprint(cell.name, SUITE) == task_fingerprint(cell.name, SUITE)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_noise_is_a_share_of_the_spread_and_test_rows_have_none(noise: float) -> None:
    cell = replace(next(c for c in cells(SUITE) if c.n_rows == 1000 and c.setting == "box"), noise=noise)
    law, rows = drawn_law(SUITE, cell), drawn_rows(SUITE, cell, 0)
    left = rows.y - law.values(rows.X)
    np.testing.assert_allclose(np.std(left), noise * np.std(law.values(rows.X_test)), rtol=0.1, atol=1e-15)
    far = np.abs(rows.X_far - law.centre) / law.half
    assert 1.9 < far.max() <= 2.0 and (np.abs(rows.X - law.centre) <= np.array(law.half) + 1e-12).all()


def test_rows_of_a_trajectory_follow_each_other() -> None:
    law = drawn_law(SUITE, next(cell for cell in cells(SUITE) if cell.setting == "trajectory"))
    rows = law.rows(500, np.random.default_rng(0))
    steps = np.abs(np.diff(rows, axis=0)).max(axis=0) / np.array(law.half)
    assert (steps < 0.2).all()
    np.testing.assert_array_equal(rows, law.rows(500, np.random.default_rng(1)))


def test_the_suite_is_one_like_others_and_the_truth_itself_is_found() -> None:
    name = suite_tasks(SUITE)[3]
    part = task_data(name, 0, suite=SUITE)
    assert part.truth is not None and part.X_far is not None
    verdict = assess_exactness(part.truth, part)
    assert verdict["exact_numeric"] == 1 and '"precision": 1.0, "recall": 1.0' in verdict["terms"]
    with pytest.raises(ParameterError, match="'noise' must be 0"):
        task_data(name, 0, suite=SUITE, noise=0.1)
    with pytest.raises(ParameterError, match="has no law 'law999'"):
        task_data("law999", 0, suite=SUITE)
    with pytest.raises(ParameterError, match="'suite' must be one of"):
        cells("other")


def test_a_term_within_the_span_of_the_true_ones_counts_in_class_only() -> None:
    near = 0.1 * X
    scores = term_scores(sn.parse("sin(x0) + x1"), sn.parse("x0 + x1"), near, 40.0 * near)
    assert (scores.precision, scores.recall) == (0.5, 0.5)
    assert (scores.precision_in_class, scores.recall_in_class) == (1.0, 1.0)


def test_coefficients_are_compared_as_multiples_of_the_true_terms() -> None:
    scores = term_scores(sn.parse("3.3*x0 + (2*x1)**2"), sn.parse("3*x0 + 4*x1**2"), X, 2.0 * X)
    assert (scores.precision, scores.recall) == (1.0, 1.0)
    np.testing.assert_allclose(scores.coefficient_error, 0.05)  # the median of 10 % and 0
    assert scores.far_error is not None and 0.0 < scores.far_error < 0.2


@pytest.mark.parametrize("found", ["0", "0*x0", "log(x0 - 9)", "exp(exp(exp(9*x0)))", "1e-12*x0"])
def test_what_is_nothing_finds_nothing(found: str) -> None:
    scores = term_scores(sn.parse(found), sn.parse("x0 + cos(3*x1)"), X, 2.0 * X)
    assert (scores.recall, scores.precision, scores.coefficient_error) == (0.0, 0.0, None)


def test_each_found_term_answers_for_one_true_term() -> None:
    truth = sn.parse("sin(2*x0) + sin(2.0001*x0)")
    scores = term_scores(sn.parse("2*sin(2*x0)"), truth, X, 2.0 * X)
    assert (scores.precision, scores.recall, scores.recall_in_class) == (1.0, 0.5, 1.0)
    assert is_law(sn.parse("2*sin(2*x0)"), truth, X) == (False, "It has 1 of 2 terms.")


def test_the_table_has_a_row_for_each_method_or_level_and_counts_runs_without_an_equation(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.sqlite")
    store.check_settings({"suite": SUITE, "contrasts": [["a", "b"]]})
    good = (
        '{"precision": 1.0, "recall": 0.5, "precision_in_class": 1.0, "recall_in_class": 1.0, '
        '"coefficient_error": 0.02, "far_error": null}'
    )
    for k, name in enumerate(suite_tasks(SUITE)[:12]):
        for method in ("a", "b"):
            job = Job(name, method, 0)
            store.claim(job)
            found = {"exact_numeric": 1, "terms": good, "complexity": 5, "r2_test": 0.9, "novelties": "[1.0]"}
            store.finish(job, {"status": "done", **(found if method == "b" or k else {})})
    table = many_term_table(store.frame(), SUITE).frame.set_index("method")
    assert table.loc["b", "law %"] == 100.0 and table.loc["b", "recall %"] == 50.0
    np.testing.assert_allclose(table.loc["a", "law %"], 100.0 * 11 / 12)
    assert table.loc["b", "error outside"] == np.inf and table.loc["b", "coefficients off %"] == pytest.approx(2.0)
    split = many_term_table(store.frame(), SUITE, by="condition").frame
    assert split["laws"].sum() == 24 and set(split["condition"]) <= set(CONDITIONS)
    with pytest.raises(ParameterError, match="'by' must be one of condition"):
        many_term_table(store.frame(), SUITE, by="colour")
    with pytest.raises(DataError, match="holds the suite 'whitebox'"):
        many_term_table(store.frame(), "whitebox")
    shown = CliRunner().invoke(app, ["bench", "identifiability", str(store.path), "--by", "noise"])
    assert shown.exit_code == 0 and "Many-term laws" in shown.stdout
    contrasts = CliRunner().invoke(app, ["bench", "table", str(store.path), "--kind", "contrasts"])
    assert "| recall |" in contrasts.stdout
