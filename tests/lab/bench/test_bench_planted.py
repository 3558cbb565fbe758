"""Planted terms: the cases are what they say, the same every time, and the stored result holds the claims."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from places import ROOT
from sobolev_novelty.core.linear.least_squares import fit_columns
from sobolev_novelty.errors import DataError
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.lab.bench.planted.planted import KINDS, OUTSIDE, TINY, cases
from sobolev_novelty.lab.bench.planted.run import area, load_planted, planted_table, run_planted
from sobolev_novelty.lab.bench.planted.scores import METHODS, scores, stability
from sobolev_novelty.lab.bench.problems.tasks import whitebox_task
from sobolev_novelty.ui.cli.main import app

STORED = ROOT / "results" / "planted.json"


def test_each_kind_is_planted_as_defined() -> None:
    found = {case.kind: case for case in cases(whitebox_task("feynman_I_11_19"), 200, 0.1, 0)}
    assert set(found) == set(KINDS)
    for kind, case in found.items():
        columns = derivatives(case.terms, case.sample, 0)[:, 0]
        beside = fit_columns(columns[:-1], columns[-1])
        outside = np.sqrt(beside.rss / beside.tss)
        fit = fit_columns(columns, case.y)
        if kind == "imitation":
            assert OUTSIDE[0] <= outside <= OUTSIDE[1]
        elif kind == "tiny":
            assert outside**2 >= 0.1 and fit.t[-1] < TINY + 4.0
        elif kind == "noise":
            assert fit.t[-1] > 2.0  # the best of four hundred
        assert fit.t[:-1].min() > 2.0


def test_the_same_seed_plants_the_same_terms() -> None:
    task = whitebox_task("strogatz_lv1")
    first, again, other = ([str(c.terms[-1]) for c in cases(task, 200, 0.01, seed)] for seed in (0, 0, 1))
    assert first == again != other


def test_a_run_has_a_score_of_every_method_for_every_term() -> None:
    content = json.loads(json.dumps(run_planted([whitebox_task("feynman_I_12_1"), whitebox_task("feynman_I_11_19")])))
    assert Counter(case["kind"] for case in content["cases"]) == {"imitation": 8, "tiny": 8, "noise": 8, "origin": 8}
    assert len({case["law"] for case in content["cases"]}) == 2
    table = planted_table(content, n_resamples=20)
    assert table["method"].tolist() == list(METHODS)
    assert table.set_index("method").loc["verdict", "overall"] > 0.95


def test_the_lasso_takes_up_a_strong_term_before_an_idle_one() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(2, 200))
    taken = stability(columns, 3.0 * columns[0] + rng.normal(size=200), rng)
    assert taken[0] > taken[1] + 0.2


def test_the_area_counts_pairs_and_halves_ties() -> None:
    rng = np.random.default_rng(1)
    score, planted = rng.integers(0, 5, 40).astype(float), rng.random(40) < 0.4
    pairs = [(a > b) + 0.5 * (a == b) for a in score[~planted] for b in score[planted]]
    np.testing.assert_allclose(area(score, planted), np.mean(pairs))
    np.testing.assert_allclose(area(score, planted, np.full(40, 3)), np.mean(pairs))


def test_every_score_is_finite_or_told() -> None:
    for case in cases(whitebox_task("feynman_test_9"), 200, 0.1, 0):
        found = scores(case)
        assert all(len(values) == len(case.terms) for values in found.values())
        assert np.isfinite(found["verdict"]).all()


def test_the_stored_result_holds_the_claims() -> None:
    if not STORED.exists():
        pytest.skip("results/ is not part of this copy")
    content = load_planted(STORED)
    assert len({case["law"] for case in content["cases"]}) == 193
    table = planted_table(content, n_resamples=200).set_index("method")
    assert table.loc["verdict", "overall"] >= 0.98
    for kind in (*KINDS, "overall"):
        # First, or tied: no rival is ahead by more than what resampling the laws explains.
        assert table.loc["verdict", kind] >= table[kind].max() - 0.002


@pytest.mark.slow
def test_the_command_makes_the_table_from_the_stored_cases(tmp_path: Path) -> None:
    content = run_planted([whitebox_task("feynman_I_12_1"), whitebox_task("feynman_I_11_19")])
    path = tmp_path / "planted.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    result = CliRunner().invoke(app, ["bench", "planted", "--store", str(path)])
    assert result.exit_code == 0 and "| verdict |" in result.stdout
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="does not hold planted terms"):
        load_planted(path)
