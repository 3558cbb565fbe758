"""Tables from files, and the errors that name file, column and row."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sobolev_novelty.errors import DataError
from sobolev_novelty.tables.files import TableFile, read_table
from sobolev_novelty.tables.format import TableFormat
from sobolev_novelty.ui.cli.main import app

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
        ("t.csv", "a,b\n", "has no rows of data. Give a row"),
        ("t.csv", "1,2\n3,4\n", "holds numbers, not names.*'has_header'"),
        ("t.csv", "a,a\n1,2\n", "more than one column named 'a'. Rename them"),
        ("t.csv", "a,b\n1,2\n3,4\n5,6,7\n", "is not a table separated by ',': .*line 4.*Correct that line"),
        ("t.csv", "a,b\n1,2,3\n2,3\n", "more entries than its header"),
        ("t.json", "{}", "does not say what kind of file it is. Use .csv"),
        ("t", "a\n1\n", "does not say what kind of file it is"),
        ("t.parquet", "no parquet", "cannot be read as parquet"),
        ("t.csv.gz", "not compressed", "cannot be read"),
        ("t.csv.xz", "not compressed", "cannot be read"),
        ("t.csv.zip", "not compressed", "cannot be read"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused_with_a_remedy(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_table(path)
    assert name in str(caught.value)


def test_binary_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00a,b\n")
    with pytest.raises(DataError, match=r"cannot be read as text.*UTF-8, or give its 'encoding'"):
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


def test_a_column_that_is_not_numeric_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,when\n1,2,2020-01-01\n2,,2020-01-02\nx,3,2020-01-03\n")
    table = read_table(path)
    with pytest.raises(DataError, match=re.escape("Column 'a' of 't.csv' is not numeric: 'x' in data row 3.")):
        table.numbers("a")
    np.testing.assert_array_equal(table.numbers("b"), [2.0, np.nan, 3.0])
    assert table.first_text("when") == "'2020-01-01' in data row 1"
    assert table.first_text("b") is None


def test_dates_of_a_parquet_file_are_not_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "flag": [True, False]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.first_text("when") == "'2020-01-01 00:00:00' in data row 1"
    assert table.first_text("flag") is None
    np.testing.assert_array_equal(table.numbers("flag"), [1.0, 0.0])


def test_a_decimal_comma_that_was_not_guessed_has_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,5;2.5\n")
    with pytest.raises(DataError, match=r"'1,5' in data row 1.*For a decimal comma give 'decimal'") as caught:
        read_table(path).numbers("a")
    assert caught.value.arguments == ("decimal",)
    np.testing.assert_array_equal(read_table(path, TableFormat(decimal=",")).numbers("a"), [1.5])


def test_streams_are_read_by_their_first_bytes(tmp_path: Path) -> None:
    text = FRAME.to_csv(index=False).encode()
    FRAME.to_parquet(tmp_path / "t.parquet")
    packed = [text, gzip.compress(text), bz2.compress(text), lzma.compress(text), (tmp_path / "t.parquet").read_bytes()]
    for content in packed:
        table = read_table(io.BytesIO(content))
        assert table.source == "standard input"
        np.testing.assert_array_equal(table.numbers("a"), FRAME["a"])


def test_an_archive_of_two_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "b\n1\n")
    with pytest.raises(DataError, match="holds 2 files. Give an archive of one table"):
        read_table(tmp_path / "t.csv.zip")


def test_errors_carry_the_arguments_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match="holds numbers, not names") as caught:
        read_table(tmp_path / "t.csv")
    assert caught.value.arguments == ("has_header",)
    assert "--" not in str(caught.value)


def test_only_the_command_line_speaks_of_its_options() -> None:
    """A user of the library never reads '--target'."""
    names = (
        "tables.files",
        "tables.file_chunks",
        "tables.format",
        "tables.columns",
        "ui.match",
        "ui.doctor",
        "core.sample",
    )
    for name in (*names, "core.output"):
        module = importlib.import_module(f"sobolev_novelty.{name}")
        assert not re.search(r"--[a-z]", Path(module.__file__ or "").read_text(encoding="utf-8")), name


def test_bytes_with_a_name_are_read_like_the_file(tmp_path: Path) -> None:
    content = gzip.compress(b"a;b\n1,5;2\n3,5;4\n")
    (tmp_path / "t.csv.gz").write_bytes(content)
    from_memory = read_table(TableFile.named("t.csv.gz", content, TableFormat()))
    from_disk = read_table(tmp_path / "t.csv.gz")
    assert from_memory.frame.equals(from_disk.frame) and from_memory.source == from_disk.source == "t.csv.gz"
    with pytest.raises(DataError, match="'t.doc' does not say what kind of file it is"):
        TableFile.named("t.doc", content, TableFormat())


LONG = "a" * 2_000_000


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "cell + 1", "data.csv"],
        ["report", LONG, "data.csv"],
        ["report", f"{LONG}(b)", "data.csv"],
        ["report", "b", "data.csv", "--target", LONG],
        ["report", "b", "data.csv", "--target", "cell"],
        ["fit", "data.csv", "--target", "cell"],
        ["report", f'"{LONG}"', f"{LONG[:100_000]}"],
        ["export", f"{LONG}=b"],
        ["report", "b", "header.csv"],
    ],
)
def test_no_error_repeats_megabytes(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k},{LONG if k == 7 else k},{k}\n" for k in range(40))
    Path("data.csv").write_text(f"b,cell,{LONG[:100_000]}\n{rows}")
    Path("header.csv").write_text(f"b,{LONG}\n1,2\n")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (1, 2), result.exception
    assert len(result.stderr) < 3000 and result.stderr.strip().endswith((".", ".)"))
    if "cell" in arguments:
        assert "'aaaaaaa" in result.stderr and "data row 8" in result.stderr and "Correct the entry" in result.stderr
