"""Set by set beside a straight line."""

from __future__ import annotations

import pandas as pd
import pytest

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.judging.against_line import beaten_table, median_table


def stored(scores: dict[tuple[str, str], list[float | None]]) -> pd.DataFrame:
    """Rows by method and set, one for each split."""
    return pd.DataFrame(
        [
            {"task": task, "method": method, "seed": seed, "noise": 0.0, "r2_test": r2, "complexity": 5}
            for (method, task), several in scores.items()
            for seed, r2 in enumerate(several)
        ]
    )


FRAME = stored(
    {
        ("linear", "a"): [0.5, 0.5, 0.5],
        ("linear", "b"): [-0.2, 0.05, 0.9],
        ("genetic", "a"): [0.41, 0.39, None],
        ("genetic", "b"): [-0.25, -0.01, 0.95],
    }
)


def test_runs_that_the_line_beats_are_listed_the_worst_first_and_counted() -> None:
    table = beaten_table(FRAME, "blackbox")
    # 0.41 is less than 0.1 behind; -0.25 is, beside a line that is below zero too.
    assert table.frame[["set", "split"]].values.tolist() == [["a", 2], ["a", 1], ["b", 1]]
    assert "genetic: 3 of 6 runs (50.0 %)." in table.notes
    assert "| genetic | a | 2 | – | 0.500 | 5 |" in table.render()


def test_medians_stand_beside_each_other_and_their_means_below() -> None:
    table = median_table(FRAME, "blackbox")
    assert table.frame["genetic"].tolist() == pytest.approx([0.39, -0.01, 0.19])
    assert table.frame["linear"].tolist() == pytest.approx([0.5, 0.05, 0.275])
    assert table.frame["splits"].tolist()[:2] == [3, 3]
    assert "mean of 2 sets" in table.render()
    assert "genetic 0.292, linear 0.408" in table.notes[1]


def test_a_store_without_the_line_is_refused() -> None:
    with pytest.raises(DataError, match=r"no rows of 'linear'. Add \[methods.linear\]"):
        beaten_table(FRAME[FRAME["method"] == "genetic"], "blackbox")
    with pytest.raises(DataError, match="no finished rows"):
        median_table(FRAME[:0], "blackbox")
