"""Fuzz what reads foreign bytes, led by the lines of ours that each input reaches (``pip install atheris``)::

    python tests/fuzz/guided.py parser 1200 folder      # of: parser tables model store; seconds; where inputs are kept

Every error must derive from SobolevError, and no input may take longer than 15 s. An input that fails is kept as
``crash-…`` in the folder.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
MAX_SECONDS = 15

with atheris.instrument_imports(include=["sobolev_novelty"]):
    from fuzz.targets import CORPUS, X, Y, corpus_lines
    from sobolev_novelty import parse
    from sobolev_novelty.errors import SobolevError
    from sobolev_novelty.lab.bench.running.store import Job, Store
    from sobolev_novelty.search.loop.loop import Budget
    from sobolev_novelty.search.model.regressor import SymbolicRegressor
    from sobolev_novelty.tables.files import read_table

#: What reads the bytes of one input, and valid inputs to start from.
Target = tuple[Callable[[bytes], object], list[bytes]]


def parser(folder: Path) -> Target:
    """A formula; what is printed of it is read back."""

    def read(data: bytes) -> None:
        found = parse(data.decode("utf-8", "surrogateescape"))
        assert parse(str(found)) == found
        found.to("latex")

    return read, [line.encode() for line in corpus_lines("formulas.txt")]


def tables(folder: Path) -> Target:
    """A table of text."""
    path = folder / "a.csv"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        read_table(path)

    return read, [file.read_bytes() for file in CORPUS.glob("*.csv")]


def model(folder: Path) -> Target:
    """A stored model, asked to predict and to show itself."""
    path = folder / "model.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=40), random_state=0).fit(X, Y).save(path)
    start = path.read_bytes()

    def read(data: bytes) -> None:
        path.write_bytes(data)
        found = SymbolicRegressor.load(path)
        found.predict(X)
        str(found.equations_), str(found.verdicts_)

    return read, [start]


def store(folder: Path) -> Target:
    """A store of runs."""
    path = folder / "runs.sqlite"
    made = Store(path)
    made.check_settings({"suite": "whitebox"})
    job = Job("feynman_I_12_1", "linear", 0)
    made.claim(job)
    made.finish(job, {"status": "done", "expression": "x0", "r2_test": 0.5, "extra": "{}"})
    del made
    start = path.read_bytes()

    def read(data: bytes) -> None:
        for leftover in folder.glob("runs.sqlite-*"):
            leftover.unlink()
        path.write_bytes(data)
        found = Store(path, read_only=True)
        found.results(), found.settings(), found.frame()

    return read, [start]


TARGETS = {made.__name__: made for made in (parser, tables, model, store)}


def main() -> None:
    """Fuzz one target."""
    name, seconds, kept = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        read, seeds = TARGETS[name](Path(folder))
        for k, seed in enumerate(seeds):
            (kept / f"seed-{k}").write_bytes(seed)

        def one(data: bytes) -> None:
            with suppress(SobolevError), redirect_stdout(io.StringIO()):
                read(data)

        longest = 2 * max(len(seed) for seed in seeds) + 1024
        limits = [f"-max_total_time={seconds}", f"-timeout={MAX_SECONDS}", f"-max_len={longest}"]
        atheris.Setup([sys.argv[0], str(kept), *limits, f"-artifact_prefix={kept}{os.sep}"], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
