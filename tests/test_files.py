"""Tables from files, and the errors that name file, column and row."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sobolev_novelty.errors import DataError
from sobolev_novelty.files import read_table

FRAME = pd.DataFrame({"a": [1.0, 2.5, -3.0], "b": [4, 5, 6]})


def _write(path: Path) -> Path:
    if path.suffix == ".parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.bz2", "t.parquet", "T.CSV"])
def test_every_kind_of_file_reads_the_same(name: str, tmp_path: Path) -> None:
    table = read_table(_write(tmp_path / name))
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.numbers("a"), [1.0, 2.5, -3.0])
    np.testing.assert_array_equal(table.numbers("b"), [4.0, 5.0, 6.0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "is empty. Give a table"),
        ("t.csv", "a,b\n", "has no rows. Give at least 32 rows"),
        ("t.csv", "1,2\n3,4\n", "holds numbers, not names.*--no-header"),
        ("t.csv", "a;b\n1;2\n", "has one column, 'a;b'.*--separator"),
        ("t.csv", "a,a\n1,2\n", "more than one column named 'a'. Rename them"),
        ("t.csv", "a,b\n1,2\n3,4\n5,6,7\n", "line 4.*Correct that line"),
        ("t.csv", "a,b\n1,2,3\n2,3\n", "more entries than its header"),
        ("t.json", "{}", "not known by its name. Use .csv"),
        ("t", "a\n1\n", "not known by its name"),
        ("t.parquet", "no parquet", "cannot be read as parquet"),
        ("t.csv.gz", "not compressed", "cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_a_remedy(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_table(path)
    assert name in str(caught.value)


def test_binary_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00a,b\n")
    with pytest.raises(DataError, match=r"cannot be read.*UTF-8"):
        read_table(tmp_path / "t.csv")


def test_a_cut_off_archive_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    (tmp_path / "t.csv.gz").write_bytes(whole[:30])
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "t.csv.gz")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv' does not exist"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)


def test_a_column_that_is_no_number_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,when\n1,2,2020-01-01\n2,,2020-01-02\nx,3,2020-01-03\n")
    table = read_table(path)
    with pytest.raises(DataError, match=re.escape("Column 'a' of 't.csv' is not numeric: 'x' in data row 3.")):
        table.numbers("a")
    np.testing.assert_array_equal(table.numbers("b"), [2.0, np.nan, 3.0])
    assert not table.is_numeric("when")


def test_dates_of_a_parquet_file_are_no_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "flag": [True, False]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert not table.is_numeric("when")
    np.testing.assert_array_equal(table.numbers("flag"), [1.0, 0.0])


def test_a_target_with_holes_names_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,2\n2,\n3,nan\n")
    with pytest.raises(
        DataError, match=r"Target column 'y' of 't\.csv' has 2 empty or non-finite value\(s\), the first in data row 2"
    ):
        read_table(path).target("y")


def test_separator_header_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\ufeff1;2\n3;4\n".lstrip("\ufeff"))
    assert read_table(path, separator=";", has_header=False).columns == ("x0", "x1")
    marked = tmp_path / "m.csv"
    marked.write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert read_table(marked).columns == ("a", "b")
