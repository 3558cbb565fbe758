"""Tables that scikit-learn's own reader would take for numbers, or refuse in words of its own."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sobolev_novelty as sn

RNG = np.random.default_rng(0)
X = RNG.uniform(1.0, 2.0, (60, 2))
Y = 2.0 * X[:, 0] + X[:, 1]
TEXT = pd.DataFrame({"a": X[:, 0], "b": ["1"] * 60})
DATES = pd.DataFrame({"a": X[:, 0], "b": pd.date_range("2020", periods=60)})


class LazyFrame:
    """As polars has it: it says its columns, and holds no rows before collect()."""

    columns = ("a", "b")

    def collect(self) -> pd.DataFrame:
        return pd.DataFrame(X, columns=["a", "b"])


def fitted() -> sn.SymbolicRegressor:
    return sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=60), random_state=0).fit(X, Y)


MODEL = fitted()
#: Everything that reads a table of inputs.
READERS: dict[str, Callable[[Any], Any]] = {
    "novelty": lambda rows: sn.novelty("x0 + x1", rows, names=["x0", "x1"]),
    "evaluate": lambda rows: sn.evaluate("1 + 0", rows),
    "prune": lambda rows: sn.prune("1 + 0", rows, Y),
    "intervals": lambda rows: sn.intervals("2 + 0", rows, Y),
    "fit": lambda rows: sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=20)).fit(rows, Y),
    "predict": MODEL.predict,
    "score": lambda rows: MODEL.score(rows, Y),
    "novelty_report": MODEL.novelty_report,
    "model.intervals": lambda rows: MODEL.intervals(rows, Y),
}
REFUSED = {
    "text": (TEXT, "Column 'b' is not numeric"),
    "text that reads as numbers": (np.array([["1", "2"]] * 60), "'X' cannot be read as numbers: it holds text"),
    "dates": (DATES, "Column 'b' is not numeric"),
    "an array of dates": (np.full((60, 2), np.datetime64("2020-01-01")), "'X' holds dates. Give real numbers."),
    "durations": (np.full((60, 2), np.timedelta64(3, "s")), "'X' holds durations"),
    "dates of Python": ([[datetime.date(2020, 1, 1), 1.0]] * 60, "'X' cannot be read as numbers"),
    "a dictionary": ({"a": X[:, 0], "b": X[:, 1]}, r"Got a dict: give pandas.DataFrame\(X\)"),
    "a lazy frame": (LazyFrame(), r"Got a LazyFrame: give X.collect\(\), for it holds no rows yet"),
    "a sparse matrix": (sparse.csr_matrix(X), r"give X.toarray\(\), for it is sparse"),
    "complex numbers": (X * 1j, "'X' holds complex numbers"),
    "None": (None, r"'X' is missing \(None\)"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_table_of_numbers_is_refused_in_one_line_with_the_remedy(reader: str, what: str) -> None:
    table, message = REFUSED[what]
    if table is None and reader in ("novelty_report", "model.intervals"):
        return  # the rows of the search
    with pytest.raises(sn.DataError, match=message) as caught:
        READERS[reader](table)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reader", ["fit", "predict", "score"])
@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_a_missing_value_is_named_by_row_and_column_and_no_other_library_is_advised(reader: str, hole: float) -> None:
    rows = X.copy()
    rows[7, 1] = hole
    with pytest.raises(sn.DataError, match=r"'X' has 1 entries .* the first in row 7, column 'x1'\. Drop") as caught:
        READERS[reader](rows)
    assert "scikit" not in str(caught.value) and "HistGradient" not in str(caught.value)


def masked(values: np.ndarray, place: Any) -> np.ma.MaskedArray:
    """The values with one hidden behind the mask, where a wild number lies."""
    wild = values.copy()
    wild[place] = 1e9
    mask = np.zeros(values.shape, dtype=bool)
    mask[place] = True
    return np.ma.masked_array(wild, mask=mask)


@pytest.mark.parametrize("reader", ["fit", "predict", "score"])
def test_a_number_behind_a_mask_is_missing(reader: str) -> None:
    with pytest.raises(sn.DataError, match=r"'X' has 1 entries .* the first in row 3, column 'x0'"):
        READERS[reader](masked(X, (3, 0)))
    with pytest.raises(sn.DataError, match=r"'X' has 1 entries"):
        READERS[reader]([masked(row, 0) if k == 3 else row for k, row in enumerate(X)])


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_a_target_or_weight_behind_a_mask_is_missing_everywhere(name: str) -> None:
    hidden = masked(Y, 5)
    given = {"y": Y, "sample_weight": np.ones(60)} | {name: hidden}
    search = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=20))
    readers: list[Callable[[], Any]] = [
        lambda: search.fit(X, **given),
        lambda: MODEL.score(X, **given),
        lambda: sn.novelty("x0 + x1", X, **given),
        lambda: sn.intervals("x0 + x1", X, **given),
    ]
    if name == "y":
        readers += [lambda: sn.prune("x0 + x1", X, hidden), lambda: sn.rank("x0", X, hidden)]
    for read in readers:
        with pytest.raises(sn.DataError, match=rf"'{name}' has 1 non-finite value\(s\), the first in row 5"):
            read()


def test_a_mask_that_hides_nothing_changes_nothing() -> None:
    whole = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    np.testing.assert_array_equal(MODEL.predict(whole), MODEL.predict(X))


def test_names_and_nullable_columns_come_through() -> None:
    frame = pd.DataFrame(X, columns=["mass", "speed"]).convert_dtypes()
    model = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=200), random_state=0).fit(frame, Y)
    assert list(model.feature_names_in_) == ["mass", "speed"]
    np.testing.assert_allclose(model.predict(frame), model.predict(pd.DataFrame(X, columns=["mass", "speed"])))


@pytest.mark.parametrize("y", [["a"] * 60, np.full(60, np.datetime64("2020-01-01")), ["1"] * 60, {"y": Y}, None])
def test_a_target_that_is_no_number_is_refused(y: Any) -> None:
    search = sn.SymbolicRegressor(budget=sn.Budget(max_evaluations=20))
    for read in (lambda: search.fit(X, y), lambda: MODEL.score(X, y)):
        with pytest.raises(sn.DataError, match="^'y' "):
            read()
