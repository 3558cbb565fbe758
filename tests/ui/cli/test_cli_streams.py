"""Standard input and output as shells leave them: closed, a pipe under a name, a signal from the keyboard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.tables.file_chunks import FileChunks
from sobolev_novelty.tables.files import read_table
from sobolev_novelty.ui.cli.main import app

pytestmark = pytest.mark.skipif(os.name != "posix", reason="as on POSIX")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 2))
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] * X[:, 1]}).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def run(folder: Path, *arguments: str, closed: Sequence[int] = ()) -> tuple[int, str, str]:
    """The command with some of its standard streams closed."""

    def close() -> None:
        for number in closed:
            os.close(number)

    command = [sys.executable, "-m", "sobolev_novelty", *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, preexec_fn=close, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


ONE_CLOSED = [pytest.param((k,), marks=pytest.mark.slow) for k in range(3)]


@pytest.mark.parametrize("closed", [*ONE_CLOSED, (0, 1, 2)], ids=str)
def test_a_closed_stream_is_an_empty_one(closed: tuple[int, ...], data: Path) -> None:
    code, printed, told = run(data.parent, "report", "a*b", "data.csv", "--out", "r.json", closed=closed)
    assert code == 0 and told == "" and ("a*b" in printed) == (1 not in closed)
    # What is printed does not go into a file that has got the number of a closed stream.
    assert json.loads((data.parent / "r.json").read_text())["status"] == "ok"
    assert run(data.parent, "export", "sin(x0)", "--to", "c", closed=closed)[0] == 0
    code, _, told = run(data.parent, "report", "a*(", "data.csv", closed=closed)
    assert code == 1 and "Traceback" not in told and told.startswith("sobolev: ") == (2 not in closed)


def test_standard_input_that_is_closed_is_an_empty_table(data: Path) -> None:
    code, _, told = run(data.parent, "report", "a*b", "-", closed=[0])
    assert code == 1 and told.startswith("sobolev: 'standard input' is empty. Give a table")


def named_pipe(path: Path, content: bytes) -> Path:
    """A path that can be read once, as ``<(cat data.csv)`` of a shell is."""
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
    return path


def test_a_pipe_with_a_name_is_read_like_standard_input(data: Path, tmp_path: Path) -> None:
    expected = read_table(data).frame
    pd.testing.assert_frame_equal(read_table(named_pipe(tmp_path / "63", data.read_bytes())).frame, expected)
    pipe = named_pipe(tmp_path / "64", data.read_bytes())
    result = CliRunner().invoke(app, ["report", "a*b", str(pipe), "--json"])
    assert result.exit_code == 0 and json.loads(result.stdout)["n_samples"] == 60


def test_a_pipe_cannot_be_read_in_parts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParameterError, match="'chunk_rows': '.*pipe' is a pipe, which can be read only once."):
        FileChunks(tmp_path / "pipe", 10).first()


STOPS = [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]


@pytest.mark.parametrize("number", STOPS, ids=["SIGINT", "SIGTERM"])
def test_a_fit_that_is_stopped_keeps_the_best_and_says_so_in_its_code(number: signal.Signals, data: Path) -> None:
    # Tests in the background of a shell ignore the signal, and so would a process that they start.
    start = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    start += "runpy.run_module('sobolev_novelty', run_name='__main__', alter_sys=True)"
    rng = np.random.default_rng(0)
    frame = pd.read_csv(data)
    frame.assign(y=np.sin(3.0 * frame["a"]) * frame["b"] + rng.normal(0.0, 0.1, len(frame))).to_csv(data, index=False)
    arguments = ["fit", "data.csv", "--target", "y", "--budget", "300", "--out", "m.json", "--checkpoint", "c.json"]
    process = subprocess.Popen(
        [sys.executable, "-c", start, *arguments, "--json"], cwd=data.parent, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + 120.0
        while not (data.parent / "c.json").exists():  # the search has begun
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(number)
        printed, told = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + number and "Traceback" not in told
    assert json.loads(printed)["stop_reason"] == "Interrupted; the best so far was kept."
    assert SymbolicRegressor.load(data.parent / "m.json").equations_.shape[0] >= 1


def test_a_fit_that_is_stopped_before_it_has_anything_says_so(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(*arguments: object, **options: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10.0)

    monkeypatch.setattr("sobolev_novelty.ui.fit.fit_table", reading)
    before = signal.getsignal(signal.SIGTERM)
    result = CliRunner().invoke(app, ["fit", str(data), "--target", "y"])
    assert result.exit_code == 143 and result.stderr == "sobolev: Stopped before there was a result.\n"
    assert signal.getsignal(signal.SIGTERM) == before
