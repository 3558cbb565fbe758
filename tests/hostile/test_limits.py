"""Costs that stay linear, and what is refused instead of taking all memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sobolev_novelty import novelty
from sobolev_novelty.core.linear.tangent import _distinct_rows, tangent_frame
from sobolev_novelty.core.sample import as_sample
from sobolev_novelty.errors import DataError
from sobolev_novelty.kernels import evaluate as evaluation
from sobolev_novelty.kernels.evaluate import MANY_INPUTS
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.tables.compression import decompressed
from sobolev_novelty.tables.file_chunks import FileChunks
from sobolev_novelty.tables.files import read_table
from sobolev_novelty.tables.format import HEAD, TableFormat
from sobolev_novelty.tables.wide_text import MANY_COLUMNS
from sobolev_novelty.ui.cli.main import app
from sobolev_novelty.ui.match import match_equation

#: Seconds of processor time: the time on the wall depends on who else is busy.
SECONDS = 3.0


def wide(path: Path, n_columns: int, n_rows: int = 33, entry: str = "{:.3f}") -> pd.DataFrame:
    values = np.round(np.random.default_rng(0).normal(size=(n_rows, n_columns)), 3)
    lines = [",".join(f"c{k}" for k in range(n_columns))]
    lines += [",".join(entry.format(value) for value in row) for row in values]
    path.write_text("\n".join(lines) + "\n")
    return pd.DataFrame(values, columns=lines[0].split(","))


def test_forty_thousand_columns_are_read_and_matched_in_a_second(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    wide(path, 40_000)
    assert path.read_text().index("\n") > HEAD / 2
    begin = time.process_time()
    matched = match_equation("c0 + c1*c39999", read_table(path))
    matched.report()
    assert time.process_time() - begin < SECONDS
    assert matched.sample.n_features == 40_000


@pytest.mark.slow
def test_the_report_on_forty_thousand_columns_takes_less_than_100_megabytes(tmp_path: Path) -> None:
    """The table and every word of the report, beyond the imports, which take 100 to 150 MB. Before: 180 MB."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process that has replaced another is read from /proc")
    path = tmp_path / "wide.csv"
    wide(path, 40_000, 40)
    # How much of the libraries counts as resident depends on what the system has in its cache.
    code = (
        "import re, sys, pandas, pyarrow\n"
        "from sobolev_novelty.ui.cli.main import app; from sobolev_novelty import novelty\n"
        "def peak(): return int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) // 1024\n"
        "before = peak()\n"
        "app(['report', 'c0 + c1*c39999', sys.argv[1]], standalone_mode=False)\n"
        "print(peak() - before)"
    )
    pytest.importorskip("pyarrow", reason="pandas imports it where it is installed")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert "Both terms are distinct" in done.stdout
    assert int(done.stdout.split()[-1]) < 100


def test_forty_thousand_discrete_columns_need_no_matrix_of_all_pairs() -> None:
    sample = as_sample(np.random.default_rng(0).integers(0, 3, size=(40, 40_000)))
    begin = time.process_time()
    frame = tangent_frame(sample)
    assert time.process_time() - begin < SECONDS
    assert (frame.dimension, frame.is_lower) == (40_000, False)
    report = novelty("x0 + x1*x39999", sample, coordinates="tangent")
    np.testing.assert_allclose(report.nu, novelty("x0 + x1*x39999", sample).nu, rtol=1e-12)


@pytest.mark.parametrize(
    "options", [{"order": 0}, {"order": 1}, {"order": 2}, {"coordinates": "tangent"}, {"coordinates": "path"}], ids=str
)
@pytest.mark.parametrize("kind", ["smooth", "mixed"])
def test_inputs_that_no_term_uses_count_without_being_stored(
    kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(0.5, 1.5, size=(60, MANY_INPUTS + 20))
    if kind == "mixed":
        X[:, ::3] = np.round(2.0 * X[:, ::3])
    y = X[:, 0] + rng.normal(size=60)
    found = novelty("x0 + 2*x1*x90 + sin(x3) + 1.5", X, y, **options)
    if options == {"order": 1}:
        assert found.source.signatures().n_blocks == 1 + 4  # type: ignore[attr-defined]
    monkeypatch.setattr(evaluation, "MANY_INPUTS", 10**6)
    whole = novelty("x0 + 2*x1*x90 + sin(x3) + 1.5", X, y, **options)
    np.testing.assert_allclose(found.nu, whole.nu, rtol=1e-10)
    np.testing.assert_allclose(found.lengths, whole.lengths, rtol=1e-12)
    np.testing.assert_allclose(found.gram, whole.gram, atol=1e-12)
    np.testing.assert_allclose([v.novelty for v in found.verdicts], [v.novelty for v in whole.verdicts], rtol=1e-10)
    assert [(v.distinct, v.needed, v.determined) for v in found.verdicts] == [
        (v.distinct, v.needed, v.determined) for v in whole.verdicts
    ]


@pytest.mark.parametrize("shape", [(50, 1), (50, 3), (40, 1201), (7, 0), (0, 4)], ids=str)
def test_distinct_rows_are_those_of_numpy_in_the_same_order(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    values = np.array([-np.inf, -2.5, -1e-310, -0.0, 0.0, 1e-310, 1.0, 3e300])
    for table in (
        rng.choice(values, size=shape),
        np.repeat(rng.normal(size=shape), 2, axis=0),
        np.hstack([np.ones((shape[0], 1300)), rng.choice(values, size=shape)]),
    ):
        found, rank = _distinct_rows(table)
        expected, place = np.unique(table, axis=0, return_inverse=True)
        if table.shape[1]:
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(rank, place.reshape(-1))
        np.testing.assert_array_equal(found[rank], table)


def test_a_column_of_text_in_a_wide_table_is_left_out_alone(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    wide(path, MANY_COLUMNS)
    header, *lines = path.read_text().splitlines()
    text = [f"id,{header},when,word"] + [
        f"s{k},{line},2020-01-0{k % 9 + 1},{k if k < 20 else 'x'}" for k, line in enumerate(lines)
    ]
    path.write_text("\n".join(text) + "\n")
    table = read_table(path)
    pd.testing.assert_frame_equal(table.frame, pd.read_csv(path), check_column_type=False)
    assert table.not_numeric() == {"id", "when", "word"}
    assert match_equation("c0 + c1", table).sample.n_features == MANY_COLUMNS


def test_a_wide_table_with_decimal_commas_and_text_is_read_as_a_narrow_one(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    wide(path, MANY_COLUMNS)
    header, *lines = path.read_text().replace(",", ";").replace(".", ",").splitlines()
    path.write_text("\n".join([f"id;{header}"] + [f"s{k};{line}" for k, line in enumerate(lines)]) + "\n")
    expected = pd.read_csv(path, sep=";", decimal=",")
    pd.testing.assert_frame_equal(read_table(path).frame, expected, check_column_type=False)


def test_a_wide_parquet_file_is_read_as_a_narrow_one(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = wide(tmp_path / "wide.csv", MANY_COLUMNS + 1)
    frame.to_parquet(tmp_path / "wide.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "wide.parquet").frame, frame, check_column_type=False)


def test_notes_on_thousands_of_columns_are_a_few(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    frame = wide(path, MANY_COLUMNS)
    frame.iloc[:, 100:] = 1.0
    frame.iloc[:, 50:90] = np.nan
    frame.to_csv(path, index=False)
    notes = match_equation("c0 + c1", read_table(path)).report().notes
    assert len(notes) < 20
    assert any(note.startswith("33 more columns are not numeric or have no entries") for note in notes)
    assert any(note.startswith(f"{MANY_COLUMNS - 107} more columns are constant") for note in notes)


@pytest.mark.slow
def test_the_verdicts_on_forty_thousand_columns_need_no_matrix_of_all_pairs(tmp_path: Path) -> None:
    sample = as_sample(np.random.default_rng(0).normal(size=(40, 40_000)))
    begin = time.process_time()
    frame = tangent_frame(sample)
    assert time.process_time() - begin < SECONDS
    assert frame.dimension == 39  # forty points span no more
    assert frame.directions.strides[0] == 0  # one set of directions, whatever the number of rows


def test_directions_are_the_same_whichever_way_they_are_found() -> None:
    """More columns than rows, and the same rows with a copy of each: the eigenvectors of one matrix."""
    X = np.random.default_rng(1).normal(size=(33, 32))
    X[:, 5] = 2.0 * X[:, 3]
    few, many = tangent_frame(as_sample(np.hstack([X, X[:, :4]]))), tangent_frame(as_sample(X))
    assert few.dimension == many.dimension == 31
    projections = [frame.directions[0].T @ frame.directions[0] for frame in (few, many)]
    np.testing.assert_allclose(projections[1] @ projections[1], projections[1], atol=1e-10)
    np.testing.assert_allclose(projections[0] @ projections[0], projections[0], atol=1e-10)


@pytest.mark.parametrize("entry", ["{:.3f}", " {:.3f} ", "{:.3e}"])
def test_a_wide_table_is_read_as_a_narrow_one(entry: str, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    wide(path, MANY_COLUMNS, entry=entry)
    found = read_table(path).frame
    expected = pd.read_csv(path, skipinitialspace=True)
    expected.columns = found.columns
    pd.testing.assert_frame_equal(found, expected)


def test_missing_and_text_entries_of_a_wide_table_are_found(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    wide(path, MANY_COLUMNS)
    lines = path.read_text().splitlines()
    lines[1] = "," + lines[1].partition(",")[2]
    path.write_text("\n".join(lines))
    assert np.isnan(read_table(path).numbers("c0")[0])
    lines[2] = "heavy," + lines[2].partition(",")[2]
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match="Column 'c0' .* 'heavy' in data row 2"):
        read_table(path).numbers("c0")
    lines[3] += ",5"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match="Expected 1000 fields in line 4, saw 1001"):
        read_table(path)


def test_a_header_longer_than_the_head_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    names = [f"a_rather_long_name_of_a_column_{k:06d}" for k in range(HEAD // 30)]
    path.write_text(",".join(names) + "\n" + "\n".join([",".join(["1.5"] * len(names))] * 2) + "\n")
    assert read_table(path).columns[-1] == names[-1]


@pytest.mark.parametrize(
    "text", [f"max({', '.join(f'x{k % 7}' for k in range(33_000))})", "+".join(["x0"] * 8000)], ids=["max", "sum"]
)
def test_a_long_formula_costs_seconds_and_megabytes_not_gigabytes(text: str) -> None:
    begin = time.process_time()
    tracemalloc.start()
    try:
        report = novelty(text, np.random.default_rng(0).uniform(size=(50, 7)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(report) == 1
    assert time.process_time() - begin < 3.0 * SECONDS  # of which the tracing takes most
    assert peak < 200 << 20


@pytest.mark.parametrize(
    "damage",
    [{"n_features": 10**12}, {"n_features": -1}, {"n_features": "2"}, {"n_features": True}, {"feature_names": ["a"]}],
)
def test_a_model_file_with_an_impossible_number_of_inputs_is_refused_at_once(
    damage: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    X = np.random.default_rng(0).normal(size=(40, 2))
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, X[:, 0]).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    begin = time.process_time()
    with pytest.raises(DataError, match="is not a whole model: .* Take a copy"):
        SymbolicRegressor.load(path)
    assert time.process_time() - begin < 1.0


def compressed(kind: str, content: bytes) -> bytes:
    if kind == "zip":
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", content)
        return target.getvalue()
    if kind == "zst":
        return bytes(pytest.importorskip("zstandard").compress(content))
    return {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](content)


KINDS = ("gz", "bz2", "xz", "zip", "zst")


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_file_that_holds_gigabytes_is_refused_unless_more_is_allowed(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"bomb.csv.{kind}"
    path.write_bytes(compressed(kind, b"a,b\n" + b"1,2\n" * 1_000_000))
    with pytest.raises(DataError, match=r"holds more than 1 MB when it is decompressed.*'max_megabytes'"):
        read_table(path, TableFormat(max_megabytes=1))
    assert len(read_table(path)) == 1_000_000
    chunks = FileChunks(path, 1000, TableFormat(max_megabytes=1))
    assert sum(len(table) for table in chunks.tables()) == 1_000_000


def test_the_limit_is_an_option_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    done = CliRunner().invoke(app, ["report", "a + b", str(path), "--max-megabytes", "1"])
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert "--max-megabytes" in done.stderr


def test_a_parquet_file_of_repetitions_is_refused_before_it_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "bomb.parquet"
    pd.DataFrame({"a": np.zeros(2_000_000)}).to_parquet(path)
    with pytest.raises(DataError, match="holds more than 1 MB"):
        read_table(path, TableFormat(max_megabytes=1))


_READ_AND_MEASURE = """
import resource, sys
from pathlib import Path
from sobolev_novelty.errors import DataError
from sobolev_novelty.tables.file_chunks import FileChunks
from sobolev_novelty.tables.files import read_table
import pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    if sys.argv[2] == "whole":
        table = read_table(Path(sys.argv[1]))
        print(len(table), table.frame.iloc[-1, 1][:3])
    else:
        print(sum(len(table) for table in FileChunks(Path(sys.argv[1])).tables()))
except DataError as error:
    print("refused", str(error)[-60:])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def _bomb(path: Path, kind: str) -> None:
    """A few kilobytes that stand for 400 MB or more."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    options: dict[str, Any] = {"store_schema": False, "compression": "zstd", "write_statistics": False}
    if kind == "lists":
        part = arrow.table({"y": [1.0] * 100, "t": [[1.0] * 10_000] * 100})
    else:
        part = arrow.table({"y": [1.0] * 2500, "t": ["a" * 4000] * 2500})
    if kind == "differences":
        options |= {"use_dictionary": ["y"], "column_encoding": {"t": "DELTA_BYTE_ARRAY"}}
    with parquet.ParquetWriter(path, part.schema, **options) as writer:
        for _ in range(60):
            writer.write_table(part)


@pytest.mark.parametrize("how", ["whole", "chunks"])
@pytest.mark.parametrize("kind", ["texts", "differences", "lists"])
def test_a_small_parquet_file_takes_no_gigabytes(kind: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    _bomb(path, kind)
    assert path.stat().st_size < 500_000
    done = subprocess.run(
        [sys.executable, "-c", _READ_AND_MEASURE, str(path), how], capture_output=True, text=True, check=True
    )
    said, megabytes = done.stdout.splitlines()
    assert int(megabytes) < 300, done.stdout
    if how == "whole":
        assert said == "150000 aaa" if kind == "texts" else said.startswith("refused") and "max_megabytes" in said
    else:
        assert said == ("6000" if kind == "lists" else "150000")


def test_texts_numbers_dates_and_gaps_of_a_parquet_file_are_what_they_were(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {"a": [1.5, None, 2.0], "t": ["x", None, "x"], "c": pd.Categorical(["u", "v", "u"]), "n": [1, 2, 3],
         "d": pd.to_datetime(["2020-01-01"] * 3), "b": [True, False, True], "l": [[1], [2, 3], []]}
    )  # fmt: skip
    frame.to_parquet(tmp_path / "t.parquet")
    for found in (read_table(tmp_path / "t.parquet"), *FileChunks(tmp_path / "t.parquet").tables()):
        assert found.columns == tuple(frame.columns)
        assert found.frame["t"].isna().tolist() == [False, True, False]
        for name in frame.columns[:-1]:
            assert found.frame[name].astype(object).dropna().tolist() == frame[name].astype(object).dropna().tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.9])
def test_a_damaged_archive_is_our_error(kind: str, place: float, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=300)
    content = bytearray(compressed(kind, ("a\n" + "\n".join(map(str, noise))).encode()))
    at = int(place * len(content))
    content[at : at + 8] = bytes(255 - byte for byte in content[at : at + 8])
    path = tmp_path / f"data.csv.{kind}"
    path.write_bytes(content)
    with pytest.raises(DataError):
        read_table(path)


def test_a_bounded_reader_gives_out_what_the_decompressor_does() -> None:
    content = np.random.default_rng(0).bytes(200_000)
    with decompressed(io.BytesIO(gzip.compress(content)), "gzip", "a", 10**6) as handle:
        assert handle.read() == content
