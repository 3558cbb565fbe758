"""Files as instruments and spreadsheets write them: read as a person would, and what is left out is said."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables.file_chunks import FileChunks
from sobolev_novelty.tables.files import Table, read_table
from sobolev_novelty.tables.format import TableFormat

T, U = [0.0, 1.0, 2.5], [1.5, -2.0, 30.25]


def table(text: str, **written: object) -> Table:
    return read_table(io.BytesIO(text.encode()), TableFormat(**written))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "t,U\n0,1.5\n1,-2\n2.5,30.25\n",
        "# lab 3\n# 2024-05-01\nt,U\n0,1.5\n1,-2\n2.5,30.25\n",
        "% lab 3\n%\nt,U\n0,1.5\n% lamp changed\n1,-2\n2.5,30.25\n",
        "; lab 3; run 4\nt,U\n0,1.5\n1,-2\n2.5,30.25\n",
        "! Touchstone\nt U\n0 1.5\n1 -2\n2.5 30.25\n",
        "# measured in lab 3\n# t U\n0 1.5\n1 -2\n2.5 30.25\n",
        "# t,U\n# s,V\n0,1.5\n1,-2\n2.5,30.25\n",
        "Instrument: scope\nSerial 12, channel 2, x\n\nt,U\n0,1.5\n1,-2\n2.5,30.25\n",
        "t;U\ns;V\n0;1,5\n1;-2\n2,5;30,25\n",
        "t\tU\n[s]\t[V]\n0\t1.5\n1\t-2\n2.5\t30.25\n",
        "Run 7\nt,U\n(s),(V)\n0,1.5\n# pause\n1,-2\n2.5,30.25\n",
        "# t [s]\n#t  U\n0  1.5\n1  -2\n2.5  30.25\n",
    ],
)
def test_comments_headings_and_units_are_not_rows(text: str) -> None:
    found = table(text)
    if found.columns == ("s", "V"):  # of two comments that could be names the last one is taken
        found.frame.columns = ["t", "U"]
    assert found.columns == ("t", "U")
    np.testing.assert_array_equal(found.numbers("t"), T)
    np.testing.assert_array_equal(found.numbers("U"), U)


def test_what_is_left_out_is_said() -> None:
    found = table("Run 7\n# lamp 2\nt;U\ns;V\n0;1,5\n1;<0,1\n")
    assert found.notes == (
        "Numbers are read with a decimal comma: 1,5 is one and a half.",
        "1 line is a comment: # …",
        "The line below the names holds units and is not a row: t in s, U in V.",
        "The first line is not part of the table and left out: 'Run 7'.",
        "1 entry of 'U' is a limit, such as <0,1: it counts as missing.",
    )
    assert dict(found.units) == {"t": "s", "U": "V"}


def test_rows_that_begin_with_a_mark_are_rows() -> None:
    found = table("id,x\n#1,2\n#2,3\n#3,5\n")
    assert found.columns == ("id", "x") and len(found) == 3
    found = table("x,y\n#DIV/0!,2\n1,3\n2,#VALUE!\n")
    np.testing.assert_array_equal(found.numbers("x"), [np.nan, 1.0, 2.0])
    np.testing.assert_array_equal(found.numbers("y"), [2.0, 3.0, np.nan])
    assert len(table(";a;b\n0;1;2\n1;3;4\n")) == 2


def test_a_mistake_in_the_first_row_is_not_a_unit() -> None:
    with pytest.raises(DataError, match="Column 'b' of 'standard input' is not numeric: 'x' in data row 1"):
        table("a,b\n1,x\n2,3\n4,5\n").numbers("b")
    with pytest.raises(DataError, match="'bad' in data row 1"):
        table("name,b\nA,bad\nB,3\nC,5\n").numbers("b")


@pytest.mark.parametrize(
    ("entries", "values"),
    [
        (["1,234.5", "12"], [1234.5, 12.0]),
        (["1,234,567", "2,500"], [1234567.0, 2500.0]),
        (["1'234.5", "7"], [1234.5, 7.0]),
        (["1 234", "-12 345.5"], [1234.0, -12345.5]),
        (["<0.1", "≥ 3e2", "5"], [np.nan, np.nan, 5.0]),
        (["n.d.", "---", "4"], [np.nan, np.nan, 4.0]),
    ],
)
def test_entries_that_a_person_reads_as_numbers(entries: list[str], values: list[float]) -> None:
    text = "k;x\n" + "".join(f"{k}.5;{entry}\n" for k, entry in enumerate(entries))
    np.testing.assert_array_equal(table(text).numbers("x"), values)


def test_a_dot_sets_thousands_apart_beside_a_decimal_comma() -> None:
    np.testing.assert_array_equal(table("a;b\n1.234,5;1\n2,5;2\n").numbers("a"), [1234.5, 2.5])


def test_text_with_limits_stays_text() -> None:
    with pytest.raises(DataError, match="Column 'a' of 'standard input' is not numeric"):
        table("a,b\n<1,2\nhigh,3\n").numbers("a")


def test_the_format_can_be_said() -> None:
    text = "a b c\nd e f\nt x y\n1 2 3\n"
    assert table(text, skip_rows=2, separator="space").columns == ("t", "x", "y")
    assert table("t,U\n#1,2\n#3,4\n5,6\n", comment="#").numbers("t").tolist() == [5.0]
    assert table("t,U\n#1,2\n3,4\n5,6\n", comment="").first_text("t") == "'#1' in data row 1"
    with pytest.raises(ParameterError, match="'comment' must be one character"):
        TableFormat(comment="//")
    with pytest.raises(ParameterError, match="'skip_rows' must be 0 or more. Got -1"):
        TableFormat(skip_rows=-1)
    with pytest.raises(ParameterError, match="'skip_rows' leaves no line of 2. Got 9"):
        table("a,b\n1,2\n", skip_rows=9)


def test_a_name_that_was_meant_is_said() -> None:
    with pytest.raises(DataError, match="has no column 'lenght'. Did you mean 'length'"):
        table("length,mass\n1,2\n").check_columns(["lenght"], "target")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_comments_are_found_in_any_encoding_and_in_chunks(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "größe.csv"
    rows = "".join(f"{k},{2 * k}\n" + ("# pause\n" if k % 100 == 7 else "") for k in range(1000))
    path.write_bytes(f"# Größe\nh,m\n{rows}".encode(encoding))
    whole = read_table(path)
    np.testing.assert_array_equal(whole.numbers("h"), np.arange(1000.0))
    parts = list(FileChunks(path, 300).tables())
    np.testing.assert_array_equal(np.concatenate([part.numbers("m") for part in parts]), 2.0 * np.arange(1000.0))


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_of_a_workbook_is_a_table(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Run 7"], ["t", "U"], ["s", "V"], [0, 1.5], [1, -2], [2.5, 30.25]]
    path = workbook(tmp_path / "lab.xlsx", Notes=[], Data=rows, More=[["a", "b"], [1, 2]])
    found = read_table(path)
    np.testing.assert_array_equal(found.numbers("U"), U)
    assert found.notes[0] == "Sheet 'Data' is read; others: Notes, More."
    assert dict(found.units) == {"t": "s", "U": "V"}
    assert read_table(io.BytesIO(path.read_bytes())).columns == ("t", "U")
    assert read_table(path, TableFormat(sheet="More")).columns == ("a", "b")
    with pytest.raises(ParameterError, match="has no sheet 'Dta'. Did you mean 'Data'"):
        read_table(path, TableFormat(sheet="Dta"))


def test_numbers_of_a_workbook_keep_all_digits(tmp_path: Path) -> None:
    values = [0.1, 1e-300, 12345678901234.5, 7.0]
    path = workbook(tmp_path / "digits.xlsx", A=[["x", "y"], *[[value, 1] for value in values]])
    np.testing.assert_array_equal(read_table(path).numbers("x"), values)


def test_a_damaged_workbook_is_refused_by_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "lab.xlsx", A=[["x", "y"], [1, 2]])
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"lab.xlsx' cannot be read as a workbook"):
        read_table(path)
    with pytest.raises(DataError, match="has no rows of data"):
        read_table(workbook(tmp_path / "empty.xlsx", A=[]))
