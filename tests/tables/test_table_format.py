"""How a text table is written: what is guessed, what may be given, what is refused."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, strategies as st

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables.files import read_table
from sobolev_novelty.tables.format import HEAD, TableFormat, layout_of

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(
    st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=5),
    st.sampled_from(["\t", ";", "|", ","]),
    st.sampled_from([".", ","]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_what_pandas_writes_is_read_back(
    rows: list[list[float]], separator: str, decimal: str, encoding: str, end: str
) -> None:
    # Between commas "1,234" may be a thousand; the guess leaves it alone.
    assume(separator != "," or decimal == ".")
    frame = pd.DataFrame(rows, columns=["größe", "b c"])
    text = frame.to_csv(index=False, sep=separator, decimal=decimal, lineterminator=end)
    table = read_table(io.BytesIO(text.encode(encoding)))
    assert table.columns == ("größe", "b c")
    for name in table.columns:
        np.testing.assert_array_equal(table.numbers(name), frame[name])


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_a_data_error(content: bytes) -> None:
    try:
        table = read_table(io.BytesIO(content))
    except DataError:
        return
    assert len(table) > 0 and len(set(table.columns)) == len(table.columns)


@pytest.mark.parametrize(
    ("head", "separator", "decimal", "names"),
    [
        (b"a;b\n1,5;2\n", ";", ",", ("a", "b")),
        (b"a,b\n1,5\n", ",", ".", ("a", "b")),
        (b'a,b\n"1,5",2\n', ",", ",", ("a", "b")),
        (b'a,b\n"1,500",2\n', ",", ".", ("a", "b")),
        (b"a;b\n1,5;2.5\n", ";", ".", ("a", "b")),
        (b"a b\n1 2\n", r"\s+", ".", ("a", "b")),
        (b"# a b\n1 2\n", r"\s+", ".", ("a", "b")),
        (b"#a,b\n1,2\n", ",", ".", ("a", "b")),
        (b"my value\n1\n2\n", ",", ".", ("my value",)),
        (b"a,,c\n1,2,3\n", ",", ".", ("a", "unnamed1", "c")),
        (b"a,b\n1,2\n1,2,3\n", ",", ".", ("a", "b")),
        (b"time; value\n1; 2\n", ";", ".", ("time", "value")),
        (b"nan,inf\n1,2\n", ",", ".", ("nan", "inf")),
    ],
)
def test_the_guess(head: bytes, separator: str, decimal: str, names: tuple[str, ...]) -> None:
    layout = layout_of(head, TableFormat(), "t.txt")
    assert (layout.separator, layout.decimal, layout.names) == (separator, decimal, names)


def test_a_blank_line_is_a_missing_entry_where_there_is_one_column() -> None:
    np.testing.assert_array_equal(read_table(io.BytesIO(b"\na\n1\n\n2\n")).numbers("a"), [1.0, np.nan, 2.0])
    np.testing.assert_array_equal(read_table(io.BytesIO(b"a,b\n1,2\n\n3,4\n")).numbers("a"), [1.0, 3.0])


def test_blanks_belong_to_the_entries_of_a_csv_file() -> None:
    assert layout_of(b"date time\n2024-01-01 12:00\n", TableFormat(), "t.csv", suffix=".csv").names == ("date time",)


def test_a_guess_that_may_be_wrong_is_noted() -> None:
    assert layout_of(b"a;b\n1;2\n", TableFormat(), "t.csv").notes == ()
    notes = layout_of("größe;b\n1,5;2\n".encode("latin-1"), TableFormat(), "t.csv").notes
    assert "read as cp1252" in notes[0] and "decimal comma" in notes[1]
    given = TableFormat(";", ",", "latin-1")
    assert layout_of("größe;b\n1,5;2\n".encode("latin-1"), given, "t.csv").notes == ()


def test_a_line_that_the_head_cuts_off_does_not_count() -> None:
    row = b"1;2\n"
    head = (b"a;b\n" + row * HEAD)[: HEAD - 1] + b","
    assert len(head) == HEAD
    assert layout_of(head, TableFormat(), "t.csv").decimal == "."


def test_bytes_of_another_encoding_far_down_do_not_matter() -> None:
    content = b"a;name\n" + b"1;x\n" * (HEAD // 4) + "2;é\n".encode("latin-1")
    table = read_table(io.BytesIO(content))
    assert table.numbers("a")[-1] == 2.0


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"separator": ""}, "'separator' must be one character, 'tab' or 'space'. Got ''"),
        ({"separator": "ab"}, "'separator' must be one character"),
        ({"decimal": ";"}, "'decimal' must be '.' or ','. Got ';'"),
        ({"encoding": "klingon"}, "'encoding' must be the name of an encoding"),
    ],
)
def test_a_format_that_cannot_be_is_refused(written: dict[str, str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        TableFormat(**written)  # type: ignore[arg-type]


@pytest.mark.parametrize("separator", ["tab", "\\t", "\t"])
def test_a_tab_has_three_spellings(separator: str) -> None:
    assert layout_of(b"a\tb\n", TableFormat(separator), "t.csv").names == ("a", "b")


def test_one_column_that_looks_like_several_asks_for_the_separator() -> None:
    with pytest.raises(DataError, match="has one column, 'a;b'. Say what separates the columns") as caught:
        layout_of(b"a;b\n1;2\n", TableFormat(","), "t.csv")
    assert caught.value.arguments == ("separator",)
