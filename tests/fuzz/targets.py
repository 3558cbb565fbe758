"""What is fuzzed. A target is made once, in a folder of its own, and then called with a random source, once per case."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np

from fuzz.mutation import ODD, mutated_bytes, mutated_json, mutated_text

#: One case: takes a random source; what it raises is judged by the driver.
Case = Callable[[Random], object]

CORPUS = Path(__file__).parent / "corpus"
X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 3))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])


def corpus_lines(name: str) -> list[str]:
    """The lines of a file of the corpus."""
    return [line for line in (CORPUS / name).read_text(encoding="utf-8").splitlines() if line.strip()]


def parser(folder: Path) -> Case:
    """Formulas: parsed, printed, decomposed, evaluated and converted."""
    from sobolev_novelty import novelty, parse
    from sobolev_novelty.algebra.terms import additive_terms
    from sobolev_novelty.language.parsing import parse as parse_dialect

    lines = corpus_lines("formulas.txt")

    def case(rng: Random) -> None:
        text = mutated_text(rng.choice(lines), rng)
        if rng.random() < 0.2:
            text += rng.choice("+-*/") + mutated_text(rng.choice(lines), rng)
        dialect = rng.choice(("plain", "plain", "plain", "gplearn", "bingo", "pysr"))
        expression = parse_dialect(text, dialect=dialect)
        assert parse(str(expression)) == expression, text
        expression.to("latex")
        additive_terms(expression)
        if expression.complexity < 60:
            str(novelty(expression, np.random.default_rng(0).uniform(0.5, 2.0, (40, 10))))

    return case


def model(folder: Path) -> Case:
    """Model files: loaded, shown and asked to predict."""
    from sobolev_novelty.search.loop.loop import Budget
    from sobolev_novelty.search.model.regressor import SymbolicRegressor

    path, broken = folder / "model.json", folder / "broken.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=40), random_state=0).fit(X, Y).save(path)
    text = path.read_text()

    def case(rng: Random) -> None:
        broken.write_bytes(mutated_json(text, rng))
        found = SymbolicRegressor.load(broken)
        found.predict(X)
        repr(found), str(found.equations_), found._repr_html_inner()
        str(found.verdicts_)
        found.save(folder / "again.json")

    return case


def checkpoint(folder: Path) -> Case:
    """Checkpoints of a search: opened, and now and then searched from."""
    from sobolev_novelty.search.loop.loop import Budget
    from sobolev_novelty.search.model.checkpoint import Checkpoint
    from sobolev_novelty.search.model.regressor import SymbolicRegressor

    path, broken = folder / "run.json", folder / "broken.json"
    SymbolicRegressor("mcts", budget=Budget(max_evaluations=20), random_state=0).fit(X, Y, checkpoint=path)
    text = path.read_text()

    def case(rng: Random) -> None:
        broken.write_bytes(mutated_json(text, rng))
        if rng.random() < 0.05:
            SymbolicRegressor("mcts", budget=Budget(max_evaluations=30), random_state=0).fit(X, Y, checkpoint=broken)
            return
        found = Checkpoint.open(broken, X, Y)
        found.remaining(Budget(max_evaluations=100, seconds=5.0), 1)

    return case


def store(folder: Path) -> Case:
    """Stores: bytes and values changed, then read, tabulated and written."""
    from sobolev_novelty.lab.bench.running.store import RUNS, Job, Store
    from sobolev_novelty.lab.bench.showing.tables import results_table

    path, broken = folder / "runs.sqlite", folder / "broken.sqlite"
    made = Store(path)
    made.check_settings({"suite": "whitebox", "seconds": 5.0})
    for seed in range(4):
        job = Job("feynman_I_12_1", "linear", seed)
        made.claim(job)
        row = {"status": "done", "expression": "x0 + 2*x1", "r2_test": 0.5, "r2_train": 0.6, "novelties": "[0.5, 1.0]",
               "wall_time": 1.5, "complexity": 5, "extra": '{"a": 1}'}  # fmt: skip
        if seed < 3:
            made.finish(job, row)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    content = path.read_bytes()
    names = [column.name for column in RUNS.columns]

    def case(rng: Random) -> None:
        for leftover in folder.glob("broken.sqlite-*"):
            leftover.unlink()
        if rng.random() < 0.5:
            broken.write_bytes(mutated_bytes(content, rng))
        else:
            broken.write_bytes(content)
            _damage(broken, names, rng)
        read_only = rng.random() < 0.7
        found = Store(broken, read_only=read_only)
        found.results(), found.settings(), found.frame(with_claims=rng.random() < 0.5), found.finished()
        if read_only:
            results_table(found.frame(), "whitebox").render()
        else:
            found.claim(Job("feynman_I_12_1", "linear", rng.randrange(6)))
            found.check_settings({"suite": "whitebox"})

    return case


def _damage(path: Path, names: list[str], rng: Random) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        value = rng.choice([None, -1, 10**17, 1e308, "", "nan", "[1", "{}", "claimed", b"\xff\xfe", "\x1b[31m", 0.5])
        statement = rng.choice(
            [
                f'UPDATE runs SET "{rng.choice(names)}" = ?',
                f'UPDATE OR IGNORE runs SET "{rng.choice(names)}" = ? WHERE seed = 1',
                "UPDATE settings SET value = ?",
            ]
        )
        try:
            connection.execute(statement, (value,))
            if rng.random() < 0.1:
                connection.execute(rng.choice(["DROP TABLE runs", "DROP TABLE settings", "ALTER TABLE runs ADD COLUMN z",
                                               "PRAGMA user_version=999", "ALTER TABLE runs RENAME COLUMN status TO s"]))  # fmt: skip
        except sqlite3.Error:
            pass


def _compressed(content: bytes) -> dict[str, bytes]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.csv", content)
    return {
        ".csv": content, ".tsv": content.replace(b",", b"\t"), ".txt": content.replace(b",", b"  "),
        ".csv.gz": gzip.compress(content), ".csv.bz2": bz2.compress(content), ".csv.xz": lzma.compress(content),
        ".csv.zip": archive.getvalue(),
    }  # fmt: skip


def tables(folder: Path) -> Case:
    """Tables of every kind: read whole and in chunks, and matched with an equation."""
    import pandas as pd

    from sobolev_novelty.tables.file_chunks import FileChunks
    from sobolev_novelty.tables.files import read_table
    from sobolev_novelty.tables.format import TableFormat
    from sobolev_novelty.ui.match import match_equation

    texts = [path.read_bytes() for path in sorted(CORPUS.glob("*.csv"))]
    files = [(suffix, content) for text in texts for suffix, content in _compressed(text).items()]
    try:
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}).to_parquet(folder / "a.parquet")
        files += [(".parquet", (folder / "a.parquet").read_bytes())] * 3
    except ImportError:
        pass

    def case(rng: Random) -> None:
        suffix, content = rng.choice(files)
        path = folder / f"broken{suffix}"
        changed = mutated_bytes(content, rng)
        if suffix.startswith(".csv.") and rng.random() < 0.5:  # a whole archive of a broken table
            changed = _compressed(mutated_bytes(texts[0], rng))[suffix]
        path.write_bytes(changed)
        written = TableFormat(
            separator=rng.choice((None, None, ",", ";", "space")), decimal=rng.choice((None, None, ",")),
            encoding=rng.choice((None, None, None, "latin-1", "utf-16", "utf-7", "idna", "cp037")),
            has_header=rng.random() < 0.9, max_megabytes=16,
        )  # fmt: skip
        if rng.random() < 0.4:
            chunks = FileChunks(path, rng.choice((None, 1, 7)), written)
            chunks.first()
            for part in chunks.tables():
                len(part)
            return
        found = read_table(io.BytesIO(changed) if rng.random() < 0.2 else path, written)
        str(match_equation("x0 + x1", found, variables="x0").report())

    return case


def commands(folder: Path) -> Case:
    """Command lines: options and arguments changed, doubled, left out."""
    from typer.testing import CliRunner

    from sobolev_novelty.ui.cli.main import app

    (folder / "data.csv").write_bytes((CORPUS / "plain.csv").read_bytes())
    lines = [line.split(" | ") for line in corpus_lines("commands.txt")]
    runner = CliRunner()
    with contextlib.chdir(folder):  # what a first command imports is not the time of a case
        runner.invoke(app, ["fit", "data.csv", "--target", "c", "--max-evaluations", "30", "--quiet"])

    def case(rng: Random) -> None:
        words = list(rng.choice(lines))
        kind = rng.randrange(4)
        k = rng.randrange(len(words))
        if kind == 0:
            words[k] = mutated_text(words[k], rng)
        elif kind == 1:
            del words[k]
        elif kind == 2:
            words.insert(k, rng.choice(rng.choice(lines)))
        else:
            words[k] = str(rng.choice(ODD))[:2000]
        words = [word.replace("\0", "") for word in words]  # no shell can pass it
        if words[:1] == ["fit"]:
            words += ["--max-evaluations", "30", "--quiet"]
        with contextlib.chdir(folder):  # changed paths stay relative: nothing is written elsewhere
            done = runner.invoke(app, words, input="a,b\n1,2\n")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1, 2, 3), (done.exit_code, words)
        assert done.exit_code != 1 or done.stderr.strip().count("\n") <= 6, (words, done.stderr)

    return case


def plain_bytes(folder: Path) -> Case:
    """Other JSON that is read back: accumulators, closures, transcripts, files of formulas."""
    from sobolev_novelty.engines.igsr.talk.transcript import Transcript
    from sobolev_novelty.lab.turbulence.selecting.closures import Closure
    from sobolev_novelty.lab.turbulence.selecting.data import load_published
    from sobolev_novelty.report.streaming.accumulator import NoveltyAccumulator
    from sobolev_novelty.tables.formula_files import read_records

    made = NoveltyAccumulator("x0 + x1*x2")
    made.update(X)
    accumulated = made.to_bytes().decode()
    closure = load_published().to_json()
    formulas = json.dumps(corpus_lines("formulas.txt")[:5])
    transcript = (CORPUS / "transcript.jsonl").read_text(encoding="utf-8")
    path = folder / "transcript.jsonl"

    def case(rng: Random) -> None:
        kind = rng.randrange(4)
        if kind == 0:
            found = NoveltyAccumulator.from_bytes(mutated_json(accumulated, rng))
            found.update(X)
            str(found.report())
        elif kind == 1:
            str(Closure.from_json(mutated_json(closure, rng).decode("utf-8", "replace")))
        elif kind == 2:
            content = mutated_json(formulas, rng)
            list(read_records(io.BytesIO(content), rng.choice(("json", "jsonl", "text"))))
        else:
            lines = transcript.splitlines()
            k = rng.randrange(len(lines))
            lines[k] = mutated_json(lines[k], rng).decode("utf-8", "replace")
            path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
            Transcript(path)._lines()

    return case


def kernels(folder: Path) -> Case:
    """Programs of the kernels: any codes, offsets and data; C and NumPy refuse the same and agree where they do not."""
    from sobolev_novelty import kernels as kernel, parse
    from sobolev_novelty.errors import SobolevError
    from sobolev_novelty.kernels import numpy_kernel
    from sobolev_novelty.kernels.program import compile_programs

    lines = [line for line in corpus_lines("formulas.txt") if len(line) < 200]
    names = tuple(f"x{k}" for k in range(10))

    def case(rng: Random) -> None:
        expressions = []
        for _ in range(rng.randrange(1, 4)):
            try:
                expressions.append(parse(mutated_text(rng.choice(lines), rng), names=names))
            except SobolevError:
                continue
        if not expressions:
            return
        spread = 10.0 ** rng.choice((0, 0, 0, 3, 150, -150, 300))
        data = np.random.default_rng(rng.randrange(2**32)).normal(size=(10, rng.choice((1, 33, 70)))) * spread
        data.flat[rng.randrange(data.size)] = rng.choice((np.nan, np.inf, 0.0, 1.0))
        programs = compile_programs(expressions, names)
        order = rng.choice((0, 1, 2))
        with np.errstate(all="ignore"):
            found = kernel.derivatives(programs, data, order)
            expected = numpy_kernel.derivatives(programs, data, order)
        assert found.shape == expected.shape

    return case


TARGETS: dict[str, Callable[[Path], Case]] = {
    "parser": parser, "model": model, "checkpoint": checkpoint, "store": store, "tables": tables, "commands": commands,
    "plain_bytes": plain_bytes, "kernels": kernels,
}  # fmt: skip
