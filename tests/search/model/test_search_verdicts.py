"""What a fitted model says of its terms, and of how many rows."""

from __future__ import annotations

import numpy as np
import pytest

from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor


@pytest.mark.parametrize(("n", "n_different"), [(5000, 5000), (5000, 2500), (120_000, 120_000), (200, 200)])
def test_a_report_after_a_fit_says_of_how_many_rows_it_is(n: int, n_different: int) -> None:
    rng = np.random.default_rng(0)
    X = np.resize(rng.uniform(1.0, 3.0, (n_different, 2)), (n, 2))
    y = 2.0 * X[:, 0] / X[:, 1]
    model = SymbolicRegressor(budget=Budget(max_evaluations=300), random_state=0).fit(X, y)
    report = model.novelty_report()
    seen = f"{min(n_different, 2000):,}"
    expected = "All 200 rows were used." if n == 200 else f"{seen} of {n:,} rows were used: those of the search"
    assert expected in " ".join(str(report).split())
    assert ("All 200" if n == 200 else f"{seen} of {n:,}") in report.to_html()
    assert report.to_dict()["n_known"] == n and report.n_samples == min(n_different, 2000)
    assert f"All {n:,} rows were used." in " ".join(str(model.novelty_report(X, y)).split())
