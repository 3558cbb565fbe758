"""Files of formulas -> files of those that are kept: constant memory, all cores, order kept."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sobolev_novelty.core.geometry import MIN_ROWS
from sobolev_novelty.core.output import check_output
from sobolev_novelty.core.progress import OnProgress, Step, silent
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.pretraining.corpus_filter.inputs import Inputs
from sobolev_novelty.lab.pretraining.corpus_filter.judging import OUTCOMES, FormulaJudge, Judgement
from sobolev_novelty.tables.formula_files import Record, form_of, opened, read_records, written_whole

_WORDS = {
    "low_novelty": "a term repeats the others", "too_few_rows": f"finite on fewer than {MIN_ROWS} rows",
    "no_terms": "zero", "unreadable": "not readable",
}  # fmt: skip
#: Formulas that are judged together.
CHUNK = 1000
#: Formulas that cannot be read are named in the summary up to this number.
MAX_NAMED = 10


@dataclass(frozen=True, slots=True)
class FilterSummary:
    """How many formulas were read and what became of them."""

    counts: dict[str, int]  # by ``OUTCOMES``
    #: tuple of (int, str): line and reason of the first ones that could not be read.
    unreadable: tuple[tuple[int, str], ...] = ()

    @property
    def n_read(self) -> int:
        """Formulas in the file."""
        return sum(self.counts.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        named = [{"line": line, "reason": reason} for line, reason in self.unreadable]
        return {"read": self.n_read, "kept": self.counts["accepted"], "counts": self.counts, "unreadable": named}

    def __str__(self) -> str:
        kept, n = self.counts["accepted"], self.n_read
        share = f" ({kept / n:.1%})" if n else ""
        lines = [f"{n} formula(s) read, {kept} kept{share}, {n - kept} rejected"]
        lines += [f"  {self.counts[name]:>9} {words}" for name, words in _WORDS.items() if self.counts[name]]
        lines += [f"  line {line}: {reason}" for line, reason in self.unreadable]
        more = self.counts["unreadable"] - len(self.unreadable)
        return "\n".join(lines + ([f"  … and {more} more that cannot be read"] if more > 0 else []))


def filter_formulas(
    source: Path,
    out: Path | None,
    judge: FormulaJudge,
    *,
    reasons: Path | None = None,
    form: str = "auto",
    field: str = "formula",
    n_jobs: int = 1,
    on_progress: OnProgress = silent,
) -> FilterSummary:
    """Write the formulas of a file that ``accepts`` accepts, as they stand and in their order.

    Parameters
    ----------
    source, out : Path
        ``-`` for standard input and output; without ``out`` formulas are only counted. A file is written whole or not
        at all.
    reasons : Path, optional
        JSON lines: for every formula whether it was accepted, why, its terms and their novelties.
    form : {"auto", "text", "json", "jsonl"}
        By default what the name of ``source`` ends in.
    field : str
        The key of the formula where entries are JSON objects.
    n_jobs : int
        Processes, -1 for one per core. The result does not depend on it.
    """
    form = form_of(source, form)
    _check_targets(out, reasons)
    counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
    unreadable: list[tuple[int, str]] = []
    with opened(source) as stream, written_whole(out) as kept, written_whole(reasons) as told:
        chunks = _chunks(read_records(stream, form, field))
        is_first = True
        for chunk, result in _in_order(chunks, judge, told is not None, n_jobs):
            counts.update(result.outcomes)
            for place, reason in result.problems[: MAX_NAMED - len(unreadable)]:
                unreadable.append((chunk[place].number, reason))
            if kept is not None:
                raws = [r.raw for r, outcome in zip(chunk, result.outcomes, strict=True) if outcome == "accepted"]
                kept.write(_joined(raws, form, is_first))
                is_first = is_first and not raws
            if told is not None:
                told.write(result.lines)
            on_progress(Step(counts.total(), None, f"{counts['accepted']} of {counts.total()} kept"))
        if kept is not None and form == "json":
            kept.write(b"[]\n" if is_first else b"\n]\n")
    return FilterSummary({name: counts[name] for name in OUTCOMES}, tuple(unreadable))


def _check_targets(out: Path | None, reasons: Path | None) -> None:
    for path, argument in ((out, "out"), (reasons, "reasons")):
        if path is not None and str(path) != "-":
            check_output(path, argument=argument)
    if out is not None and out == reasons:
        raise ParameterError(f"'reasons' must be another file than 'out'. Got '{out}' for both.")


def _joined(raws: Sequence[bytes], form: str, is_first: bool) -> bytes:
    """Entries as a piece of the output: lines, or the next entries of a list."""
    if form != "json":
        return b"".join(raw + b"\n" for raw in raws)
    return b"".join((b"[\n" if is_first and k == 0 else b",\n") + raw for k, raw in enumerate(raws))


@dataclass(frozen=True, slots=True)
class _ChunkResult:
    outcomes: list[str]
    problems: list[tuple[int, str]]  # places of the unreadable ones in the chunk
    lines: bytes


def _chunks(records: Iterator[Record]) -> Iterator[list[Record]]:
    while chunk := list(islice(records, CHUNK)):
        yield chunk


def _judge_chunk(judge: FormulaJudge, chunk: Sequence[Record], with_reasons: bool) -> _ChunkResult:
    if with_reasons:
        judgements = _with_problems(chunk, judge.judgements([record.formula for record in chunk]))
        outcomes = [judgement.outcome for judgement in judgements]
        told = zip(chunk, judgements, strict=True)
        rows = ({"line": r.number, "formula": r.formula.decode(errors="replace")} | j.to_dict() for r, j in told)
        lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()
        return _ChunkResult(outcomes, _problems(dict(enumerate(judgements))), lines)
    outcomes = judge.outcomes([record.formula for record in chunk])
    bad = [k for k, outcome in enumerate(outcomes) if outcome == "unreadable"][:MAX_NAMED]
    again = _with_problems([chunk[k] for k in bad], judge.judgements([chunk[k].formula for k in bad]))
    return _ChunkResult(outcomes, _problems(dict(zip(bad, again, strict=True))), b"")


def _with_problems(chunk: Sequence[Record], judgements: Sequence[Judgement]) -> list[Judgement]:
    """An entry that has no formula says why in its own words."""
    both = zip(chunk, judgements, strict=True)
    return [j if not r.problem else Judgement.unreadable(DataError(r.problem)) for r, j in both]


def _problems(judgements: dict[int, Judgement]) -> list[tuple[int, str]]:
    unreadable = ((k, j.verdict.reason) for k, j in judgements.items() if j.outcome == "unreadable")
    return list(islice(unreadable, MAX_NAMED))


#: The judge of a worker process.
_of_this_process: list[FormulaJudge] = []


def _start_worker(inputs: Inputs, tau: float, order: int, dialect: str) -> None:
    _of_this_process.append(FormulaJudge(inputs, tau, order, dialect))


def _work(chunk: Sequence[Record], with_reasons: bool) -> _ChunkResult:
    return _judge_chunk(_of_this_process[0], chunk, with_reasons)


def _in_order(
    chunks: Iterator[list[Record]], judge: FormulaJudge, with_reasons: bool, n_jobs: int
) -> Iterator[tuple[list[Record], _ChunkResult]]:
    """Chunks with their results, in order; a few chunks are under way at a time."""
    n_jobs = n_jobs if n_jobs > 0 else os.cpu_count() or 1
    first = list(islice(chunks, 2))
    ahead: Iterable[list[Record]] = chain(first, chunks)
    if n_jobs == 1 or len(first) < 2:  # a pool for one chunk is not worth its start
        for chunk in ahead:
            yield chunk, _judge_chunk(judge, chunk, with_reasons)
        return
    settings = (judge.inputs, judge.tau, judge.order, judge.dialect)
    pool = ProcessPoolExecutor(
        n_jobs, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=settings
    )
    waiting: deque[tuple[list[Record], Future[_ChunkResult]]] = deque()
    try:
        for chunk in ahead:
            waiting.append((chunk, pool.submit(_work, chunk, with_reasons)))
            if len(waiting) > 2 * n_jobs + 2:
                oldest, future = waiting.popleft()
                yield oldest, future.result()
        while waiting:
            oldest, future = waiting.popleft()
            yield oldest, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
