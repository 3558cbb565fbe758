"""Whether the smallest novelty says that an equation is the law."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from sobolev_novelty.errors import DataError
from sobolev_novelty.lab.bench.judging.telling import area, telling_table

FRAME = pd.DataFrame(
    {
        "noise": [0.0, 0.0, 0.0, 0.1, 0.1],
        "novelties": ["[0.9, 0.8]", "[0.1, 0.9]", "[1.0]", "[0.5, 0.5]", None],
        "exact_numeric": [1, 0, 1, 0, None],
        "complexity": [5, 9, 1, 7, None],
        "r2_train": [1.0, 0.9, 1.0, None, None],
    }
)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=12))
def test_the_area_is_the_share_of_pairs_in_order(drawn: list[tuple[int, bool]]) -> None:
    values, is_law = np.array([v for v, _ in drawn], dtype=float), np.array([law for _, law in drawn])
    pairs = [float(a > b) + 0.5 * float(a == b) for a in values[is_law] for b in values[~is_law]]
    found = area(values, is_law)
    assert found is None if not pairs else found == pytest.approx(np.mean(pairs))


def test_only_equations_of_several_terms_are_compared_and_each_noise_by_itself() -> None:
    table = telling_table(FRAME, "whitebox").frame.set_index("noise")
    assert table["equations"].to_dict() == {0.0: 2, 0.1: 1}
    assert table.loc[0.0, "smallest ν"] == table.loc[0.0, "fewer nodes"] == 1.0
    assert table.loc[0.0, "fewer terms"] == 0.5 and np.isnan(table.loc[0.1, "smallest ν"])
    with pytest.raises(DataError, match="no equation of several terms"):
        telling_table(FRAME[2:3], "whitebox")
