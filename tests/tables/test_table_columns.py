"""Which columns are used, and what is said of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables.columns import input_columns, rows_note, sample_of, unusable_columns, usable_columns
from sobolev_novelty.tables.files import Table

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"], "c": [np.nan, np.nan], "y": [3, 4]})
TABLE = Table(FRAME, "t.csv")


def test_inputs_are_all_columns_that_nobody_names_otherwise() -> None:
    assert input_columns(TABLE, others={"target": ["y"], "drop": ["b", "c"]}) == ["a"]
    assert input_columns(TABLE, features=["c", "a", "c"], others={"target": ["y"]}) == ["c", "a"]


@pytest.mark.parametrize(
    ("features", "others", "error", "arguments", "message"),
    [
        (None, {"target": ["z"]}, DataError, ("target",), "'target': .* has no column 'z'"),
        (["z"], {}, DataError, ("features",), "'features': .* has no column 'z'"),
        (["a"], {"target": ["a"]}, ParameterError, ("target", "features"), "'target' and 'features' both name"),
        (
            None,
            {"target": ["y"], "weights": ["y"]},
            ParameterError,
            ("target", "weights"),
            "'target' and 'weights' both",
        ),
        (None, {"drop": ["a", "b", "c", "y"]}, DataError, (), "has no input column besides a, b, c, y"),
    ],
)
def test_names_that_cannot_be_are_refused(
    features: list[str] | None,
    others: dict[str, list[str]],
    error: type[DataError],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    with pytest.raises(error, match=message) as caught:
        input_columns(TABLE, features=features, others=others)
    assert caught.value.arguments == arguments


def test_columns_are_judged_on_all_parts_of_a_table() -> None:
    parts = [Table(FRAME.head(1), "t.csv"), Table(pd.DataFrame({"a": ["x"], "b": ["v"], "c": [1.0]}), "t.csv", 1)]
    assert unusable_columns([TABLE], ["a", "b", "c"]) == {
        "b": "is not numeric ('u' in data row 1)",
        "c": "has no entries",
    }
    assert unusable_columns(parts, ["a", "c"]) == {"a": "is not numeric ('x' in data row 2)"}


def test_what_remains_and_what_is_said() -> None:
    kept, notes = usable_columns(TABLE, ["a", "b"], {"b": "has no entries"})
    assert kept == ["a"] and notes == ("Column 'b' has no entries: it is left out.",)
    with pytest.raises(
        DataError,
        match="'t.csv' has no numeric column to use as input: 'b' has no entries. Correct",
    ):
        usable_columns(TABLE, ["b"], {"b": "has no entries"})


def test_a_sample_has_the_columns_in_order() -> None:
    np.testing.assert_array_equal(sample_of(TABLE, ["y", "a"]).X, [[3.0, 4.0], [1.0, 2.0]])


def test_rows_are_counted_in_words() -> None:
    assert rows_note(0, 5, ["y"]) == ()
    assert "one of 8 columns (a, b, c, …) is missing" in rows_note(2, 5, list("abcdefgh"))[0]
    assert rows_note(1, 5, ["a", "b", "y"]) == ("1 of 5 rows is left out: a, b or y is missing or not finite there.",)
