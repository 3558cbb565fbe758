"""Dask arrays and DataFrames: threads, and a real cluster of processes that loses a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sobolev_novelty as sn
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.report import reporting as report
from streaming_cases import assert_same, rows_with_holes

da = pytest.importorskip("dask.array", reason="dask is not installed: pip install '.[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed: pip install '.[dask]'")

EQUATION = "2.1*sin(x0) + 0.3*x0 + log(x1)*x2 - x2**2"


@pytest.mark.parametrize("chunks", [(50, 3), (37, 1), (400, 2), (1, 3)])
@pytest.mark.parametrize("seed", [1, 6])
def test_an_array_gives_the_report_of_its_rows(chunks: tuple[int, int], seed: int) -> None:
    X = rows_with_holes(seed)
    assert_same(sn.novelty(EQUATION, da.from_array(X, chunks=chunks)), report.novelty(EQUATION, X))


def test_options_reach_the_blocks() -> None:
    X = np.abs(rows_with_holes(1)) + 0.1
    options: dict[str, Any] = {
        "names": ["a", "b", "c"], "order": 2, "weights": (1.0, 0.5), "coordinates": "raw", "intercept": "free",
        "tau": 0.5,
    }  # fmt: skip
    found = sn.novelty("a*b + c", da.from_array(X, chunks=(90, 3)), **options)
    assert_same(found, report.novelty("a*b + c", X, **options))


def test_one_dimension_is_one_input() -> None:
    x = np.linspace(0, 1, 100)
    assert_same(sn.novelty("x0 + cos(x0)", da.from_array(x, chunks=30)), report.novelty("x0 + cos(x0)", x))


def test_unknown_chunk_sizes_and_empty_blocks() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    lazy = da.from_array(X, chunks=(60, 1))
    kept = lazy[lazy[:, 0] + np.repeat([0.0, -99.0, 0.0, 0.0, 0.0], 60) > -1.0]
    assert np.isnan(kept.shape[0])
    expected = X[(X[:, 0] > -1.0) & (np.arange(300) // 60 != 1)]
    assert_same(sn.novelty("x0*x1 + x1", kept), report.novelty("x0*x1 + x1", expected))


def test_a_frame_gives_the_report_of_its_rows() -> None:
    frame = pd.DataFrame(rows_with_holes(2), columns=["mass", "speed", "height"])
    lazy = dd.from_pandas(frame, npartitions=7)
    equation = "mass*speed**2 + 9.81*mass*height + height"
    assert_same(sn.novelty(equation, lazy), report.novelty(equation, frame))
    filtered = lazy[lazy["speed"] > lazy["speed"].mean()]  # partitions of unknown length
    expected = frame[frame["speed"] > frame["speed"].mean()]
    assert_same(sn.novelty(equation, filtered), report.novelty(equation, expected))


def test_what_dask_cannot_have_is_refused() -> None:
    X = da.zeros((100, 2), chunks=(50, 2))
    with pytest.raises(ParameterError, match=r"'n_bootstrap' must be 0 for a Dask collection.*Got 20"):
        sn.novelty("x0", X, n_bootstrap=20)
    with pytest.raises(DataError, match="two dimensions"):
        sn.novelty("x0", da.zeros((10, 2, 2)))
    with pytest.raises(DataError, match="no rows yet"):
        sn.novelty("x0", da.zeros((0, 2)))
    with pytest.raises(DataError, match="not numeric"):
        sn.novelty("a", dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["text"]}), npartitions=1))


# --- a cluster of processes -------------------------------------------------------------------------------------------


@contextmanager
def _process(*arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "dask", *arguments], stdout=out, stderr=out, cwd=log.parent)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(is_done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end, "the cluster did not get this far in time"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_answer(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: '.[dask]'")
    X = rows_with_holes(2, n=4000)
    whole = report.novelty(EQUATION, X)
    marks = tmp_path / "marks"
    marks.mkdir()
    address = tmp_path / "scheduler.json"
    worker = ("worker", "--scheduler-file", str(address), "--no-nanny", "--no-dashboard", "--nthreads", "1")

    def slow(block: Any, block_info: Any = None) -> Any:
        """A block that takes a while; leaves a mark with the number of the process that made it."""
        time.sleep(0.15)
        place = block_info[0]["chunk-location"][0] if block_info else 0
        (marks / f"{os.getpid()}-{place}").touch()
        return block

    lazy = da.from_array(X, chunks=(100, 3)).map_blocks(slow, dtype=float)
    with (
        _process(
            "scheduler", "--port", "0", "--scheduler-file", str(address), "--no-dashboard", log=tmp_path / "s.log"
        ),
        _process(*worker, log=tmp_path / "a.log") as victim,
        _process(*worker, log=tmp_path / "b.log") as survivor,
    ):
        _wait(lambda: address.exists() and bool(address.read_text().strip()))
        assert json.loads(address.read_text())["address"].startswith("tcp://")
        with distributed.Client(scheduler_file=str(address), timeout=30) as client:
            client.wait_for_workers(2, timeout=60)
            done: dict[str, int] = {}

            def made_by(process: subprocess.Popen[bytes]) -> int:
                return len(list(marks.glob(f"{process.pid}-*")))

            def kill() -> None:
                _wait(lambda: made_by(victim) >= 5)
                os.kill(victim.pid, signal.SIGKILL)
                done.update(victim=made_by(victim), survivor=made_by(survivor))

            killer = threading.Thread(target=kill)
            killer.start()
            found = sn.novelty(EQUATION, lazy)
            killer.join()
            undisturbed = sn.novelty(EQUATION, da.from_array(X, chunks=(100, 3)))
            assert victim.wait(10) == -signal.SIGKILL
            # It happened mid-run: the victim had finished blocks, and some were not begun.
            assert done["victim"] >= 5 and done["victim"] + done["survivor"] < 40
            assert len(client.scheduler_info()["workers"]) == 1
            assert {int(mark.name.split("-")[1]) for mark in marks.iterdir()} == set(range(40))
    assert_same(found, whole)
    np.testing.assert_array_equal(found.nu, undisturbed.nu)
    np.testing.assert_array_equal(found.lengths, undisturbed.lengths)
