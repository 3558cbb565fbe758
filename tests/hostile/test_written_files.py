"""Every file that is written is the old one or the new one: one writer, tried on a disk that is full."""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sobolev_novelty as sn
from sobolev_novelty.core.output import check_output, write_arrays, write_whole
from sobolev_novelty.errors import OutputError, ParameterError
from sobolev_novelty.ui.cli.main import app

resource = pytest.importorskip("resource", reason="the size of files is limited as on POSIX")

SOURCE = Path(sn.__file__).parent
OLD = "old\n" * 3
#: Bytes that a file may have while the disk is full.
FULL = 16


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow beyond some bytes, as with ``ulimit -f``; what is written up to there stays written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a model and the working folder of the commands."""
    path = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(1.0, 2.0, (60, 2)), columns=["a", "b"])
    X.assign(y=X["a"] * X["b"]).to_csv(path / "data.csv", index=False)
    model = sn.SymbolicRegressor("mcts", budget=sn.Budget(max_evaluations=20), random_state=0)
    model.fit(X, X["a"] * X["b"]).save(path / "model.json")
    return path


_REPORT = ["report", "sin(a) + a*b", "data.csv", "--target", "y"]
_FIT = ["fit", "data.csv", "--target", "y", "--max-evaluations", "20", "--engine", "mcts"]
COMMANDS = {
    **{f"report{suffix}": [*_REPORT, "--out"] for suffix in (".html", ".json", ".tex", ".txt", ".png", ".svg", ".pdf")},
    **{f"rows{suffix}": ["predict", "model.json", "data.csv", "--out"] for suffix in (".csv", ".tsv", ".parquet")},
    "equation.py": ["export", "sin(x0) + 2*x1", "--to", "numpy", "--out"],
    "demo.html": ["demo", "--out"],
    "fitted.json": [*_FIT, "--out"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_on_a_full_disk_leaves_the_old_file(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    path = tmp_path / name
    arguments = [*COMMANDS[name], str(path)]
    path.write_text(OLD)
    with full_disk():
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1 and "could not be written" in result.stderr and "Traceback" not in result.stderr
    assert path.read_text() == OLD
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert path.read_bytes()[: len(OLD)] != OLD.encode()


@pytest.mark.parametrize("kind", ["json", "html", "model", "arrays", "bench", "figure"])
def test_a_call_on_a_full_disk_leaves_the_old_file(kind: str, folder: Path, tmp_path: Path) -> None:
    from sobolev_novelty.lab.bench.showing.figures import new_figure, save_figure
    from sobolev_novelty.ui.cli.bench import _deliver

    path = tmp_path / f"file.{'svg' if kind == 'figure' else 'txt'}"
    report = sn.novelty("sin(x0) + x0*x1", np.random.default_rng(0).uniform(1.0, 2.0, (60, 2)))
    writers: dict[str, Callable[[], object]] = {
        "json": lambda: report.to_json(path),
        "html": lambda: report.to_html(path),
        "model": lambda: sn.SymbolicRegressor.load(folder / "model.json").save(path),
        "arrays": lambda: write_arrays(path, {"a": np.zeros(9)}),
        "bench": lambda: _deliver("text " * 10, path),
        "figure": lambda: save_figure(new_figure(2.0, 2.0), path),
    }
    path.write_text(OLD)
    with full_disk(), pytest.raises(OutputError, match="could not be written: File too large. Check the disk"):
        writers[kind]()
    assert path.read_text() == OLD and len(list(tmp_path.iterdir())) == 1
    writers[kind]()
    assert path.read_bytes()[: len(OLD)] != OLD.encode()


#: Logs, to which lines are added: what a full disk cuts is the last line, and their readers leave half a line out.
APPENDED = {"lab/pretraining/train.py", "engines/igsr/talk/transcript.py"}
#: What a process prints on its own.
STREAMED = {"lab/bench/running/starting.py"}


def _writes(call: ast.Call) -> bool:
    """Whether a call puts a file at a path by itself."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("write_text", "write_bytes"):
        return True
    if name == "open":
        given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
        modes = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
        return any(len(mode) <= 3 and set(mode) & set("wxa+") for mode in modes)
    return name in ("savefig", "to_csv", "to_parquet", "savez", "savez_compressed", "save_file")


def test_one_function_writes_all_files() -> None:
    """Figures, tables and arrays may also be written into a file that is open, or into text."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        for call in filter(_writes, calls):
            first = call.args[0] if call.args else None
            into_open_file = isinstance(first, ast.Name) and first.id in ("file", "handle", "buffer")
            as_text = isinstance(call.func, ast.Attribute) and call.func.attr == "to_csv" and first is None
            if not into_open_file and not as_text:
                found[f"{path.relative_to(SOURCE).as_posix()}"] = ast.unparse(call)
    assert set(found) == APPENDED | STREAMED | {"core/output.py"}, found


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link, dangling = tmp_path / "real" / "a.txt", tmp_path / "link.txt", tmp_path / "dangling.txt"
    real.write_text("old")
    link.symlink_to("real/a.txt")
    dangling.symlink_to(tmp_path / "real" / "b.txt")
    for path in (link, dangling):
        check_output(path, (".txt",))
        write_whole(path, "new")
        assert path.is_symlink() and path.read_text() == "new"
    assert sorted(file.name for file in (tmp_path / "real").iterdir()) == ["a.txt", "b.txt"]
    (tmp_path / "lost.txt").symlink_to(tmp_path / "none" / "c.txt")
    with pytest.raises(ParameterError, match="'out': the folder '.*none' does not exist"):
        check_output(tmp_path / "lost.txt")


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for mode in (0o600, 0o664):
        write_whole(path, "old")
        path.chmod(mode)
        write_whole(path, "new")
        assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("length", [230, 255])
def test_a_name_may_be_as_long_as_the_system_allows(length: int, tmp_path: Path) -> None:
    path = tmp_path / ("n" * (length - 4) + ".txt")
    check_output(path)
    write_whole(path, "new")
    assert path.read_text() == "new"
    longer = tmp_path / ("n" * 300 + ".txt")
    with pytest.raises(ParameterError, match="'out': .* cannot be written: File name too long. Give another path."):
        check_output(longer)
    with pytest.raises(OutputError, match="File name too long"):
        write_whole(longer, "new")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    check_output(pipe)
    write_whole(pipe, "42")
    reader.join(10.0)
    assert read == ["42"] and pipe.is_fifo()


@pytest.mark.skipif(sys.platform != "linux", reason="standard output as a path")
def test_standard_output_by_its_path_goes_where_the_shell_says(tmp_path: Path) -> None:
    import subprocess

    with (tmp_path / "out.txt").open("a") as out:
        code = "from pathlib import Path; from sobolev_novelty.core.output import write_whole;"
        code += "print('first', flush=True); write_whole(Path('/proc/self/fd/1'), 'second'); print('third')"
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, timeout=60)
    assert (tmp_path / "out.txt").read_text() == "first\nsecondthird\n"
