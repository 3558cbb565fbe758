"""The corpus filter on files of formulas (Appendix D.4): streaming, on all cores, by the rule of ``accepts``.

Each formula is judged on its own variables: a sample with as many columns as it has variables. The compiled corpus unit
decides what it can read; the rest, and every formula of which the reasons are wanted, goes through the library.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.batch import TermNovelties, check_tau, novelties_of
from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.errors import DataError, KernelError, ParameterError, ParseError, SobolevError
from sobolev_novelty.expression import Expression, numbered_index
from sobolev_novelty.formula_files import Record, form_of, opened, read_records, written_whole
from sobolev_novelty.geometry import MIN_ROWS, Geometry, Status
from sobolev_novelty.guidance import MAX_FILTER_POINTS, Verdict, verdict_on
from sobolev_novelty.output import check_output
from sobolev_novelty.parsing import parse
from sobolev_novelty.progress import OnProgress, Step, silent
from sobolev_novelty.projection import TAU_ID
from sobolev_novelty.terms import additive_terms
from sobolev_novelty.transformer.corpus.text import LOWEST_TAU, VERDICTS, TextJudge, is_reserved

#: What becomes of a formula; the names are those of the corpus unit and of ``Status``.
OUTCOMES = ("accepted", "low_novelty", "too_few_rows", "no_terms", "unreadable")
_WORDS = {
    "low_novelty": "a term repeats the others", "too_few_rows": f"finite on fewer than {MIN_ROWS} rows",
    "no_terms": "zero", "unreadable": "not readable",
}  # fmt: skip
CHUNK = 1000
#: Formulas that cannot be read are named in the summary up to this number.
MAX_NAMED = 10


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where formulas are judged.

    Parameters
    ----------
    n_rows, seed : int
    bounds : tuple of float, optional
        Uniform between these; standard normal without.
    table : Sample, optional
        Rows of a table. A formula then reads the columns that it names.
    """

    n_rows: int = MAX_FILTER_POINTS
    seed: int = 0
    bounds: tuple[float, float] | None = None
    table: Sample | None = None

    @classmethod
    def of(cls, text: str, *, n_rows: int = MAX_FILTER_POINTS, seed: int = 0) -> Inputs:
        """``normal``, ``uniform:LOW,HIGH`` or the path of a table.

        Examples
        --------
        >>> Inputs.of("uniform:1,5").bounds
        (1.0, 5.0)
        """
        if not MIN_ROWS <= n_rows <= MAX_FILTER_POINTS:
            raise ParameterError(f"'n_rows' must be {MIN_ROWS} to {MAX_FILTER_POINTS}. Got {n_rows}.")
        if text == "normal":
            return cls(n_rows, seed)
        kind, _, numbers = text.partition(":")
        if kind == "uniform":
            try:
                low, high = (float(number) for number in numbers.split(","))
            except ValueError:
                low = high = float("nan")
            if not low < high or not np.isfinite(high - low):
                raise ParameterError(f"'inputs' must be like uniform:1,5, the lower bound first. Got {text!r}.")
            return cls(n_rows, seed, (low, high))
        return cls(n_rows, seed, table=_drawn_rows(Path(text), n_rows, seed))

    def column(self, number: int) -> FloatArray:
        """Values of variable ``number`` of every formula."""
        rng = np.random.default_rng([self.seed, number])
        return rng.normal(size=self.n_rows) if self.bounds is None else rng.uniform(*self.bounds, size=self.n_rows)

    def sample(self, variables: tuple[str, ...]) -> Sample:
        """The sample of a formula with these variables, in this order; one column where there is none."""
        if self.table is not None:
            places = [self.table.names.index(name) for name in variables] or [0]
            return Sample(
                np.ascontiguousarray(self.table.X[places]), tuple(self.table.names[place] for place in places)
            )
        names = variables or ("x0",)
        return Sample(np.array([self.column(k) for k in range(len(names))]), names)


def _drawn_rows(path: Path, n_rows: int, seed: int) -> Sample:
    """Rows of a table without gaps: all, or this many of them drawn at random, in their order."""
    from sobolev_novelty.files import read_table

    if not path.is_file():
        raise ParameterError(f"'inputs' must be normal, uniform:LOW,HIGH or the path of a table. Got '{path}'.")
    numbers = read_table(path).frame.select_dtypes("number")
    X = numbers.to_numpy(dtype=np.float64).T
    whole = np.flatnonzero(np.isfinite(X).all(axis=0))
    if len(X) == 0 or len(whole) < MIN_ROWS:
        raise DataError(f"'{path}' has {len(whole)} rows of numbers without gaps. At least {MIN_ROWS} are needed.")
    if len(whole) > n_rows:
        whole = np.sort(np.random.default_rng(seed).choice(whole, n_rows, replace=False))
    return Sample(np.ascontiguousarray(X[:, whole]), tuple(str(name) for name in numbers.columns))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the library says of one formula."""

    verdict: Verdict
    outcome: str
    found: TermNovelties | None = None

    @classmethod
    def unreadable(cls, error: SobolevError) -> Judgement:
        """Of a text that is not a formula."""
        is_placed = isinstance(error, ParseError) and error.text
        reason = f"{error.reason} (Character {error.position + 1}.)" if is_placed else str(error)  # type: ignore[attr-defined]
        return cls(Verdict(False, " ".join(reason.split()), float("nan")), "unreadable")

    @classmethod
    def of(cls, found: TermNovelties, tau: float) -> Judgement:
        """Of novelties that are known."""
        verdict = verdict_on(found, tau)
        rejected = "low_novelty" if found.status is Status.OK else found.status.value
        return cls(verdict, "accepted" if verdict else rejected, found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        terms = self.found.terms if self.found is not None else ()
        is_known = self.found is not None and self.found.status is Status.OK
        return {
            "accepted": self.verdict.accepted,
            "outcome": self.outcome,
            "reason": self.verdict.reason,
            "min_novelty": self.verdict.min_novelty if is_known else None,
            "terms": [str(term.expression) for term in terms],
            "coefficients": [term.coefficient for term in terms],
            "novelties": self.found.nu.tolist() if self.found is not None and is_known else None,
        }


@dataclass(slots=True, eq=False)
class FormulaJudge:
    """Judges formulas as text.

    Parameters
    ----------
    inputs : Inputs
    tau : float
    order : {0, 1, 2}
    dialect : {"plain", "gplearn"}
        As in :func:`sobolev_novelty.parsing.parse`.

    Examples
    --------
    >>> judge = FormulaJudge(Inputs.of("uniform:-1,1"))
    >>> judge.outcomes(["x0 + sin(x0)", "x0 + cos(3*x0)", "x0 +"])
    ['low_novelty', 'accepted', 'unreadable']
    >>> judge.judgements(["x0 + sin(x0)"])[0].verdict.reason
    "Term 'x0' has novelty 0.124, not above 0.316."
    """

    inputs: Inputs = field(default_factory=Inputs)
    tau: float = TAU_ID
    order: int = 1
    dialect: str = "plain"
    _fast: TextJudge | None = field(init=False, default=None)
    _samples: Any = field(init=False)

    def __post_init__(self) -> None:
        check_tau(self.tau)
        self._samples = lru_cache(maxsize=1024)(self.inputs.sample)
        table = self.inputs.table
        names = table.names if table is not None else ()
        if self.order != 1 or self.tau < LOWEST_TAU or any(map(is_reserved, names)):
            return
        X = table.X if table is not None else np.array([self.inputs.column(k) for k in range(10)])
        self._fast = TextJudge(X, names, self.tau, self.dialect)

    def outcomes(self, formulas: Sequence[str | bytes]) -> list[str]:
        """One of ``OUTCOMES`` for each formula."""
        texts = [formula.encode() if isinstance(formula, str) else formula for formula in formulas]
        if self._fast is None:
            return [judgement.outcome for judgement in self.judgements(texts)]
        try:
            found = [VERDICTS[code] if code >= 0 else "" for code in self._fast(texts)[0].tolist()]
        except KernelError:  # not compiled
            self._fast = None
            return self.outcomes(texts)
        open_ones = [k for k, outcome in enumerate(found) if not outcome]
        for k, judgement in zip(open_ones, self.judgements([texts[k] for k in open_ones]), strict=True):
            found[k] = judgement.outcome
        return found

    def judgements(self, formulas: Sequence[str | bytes]) -> list[Judgement]:
        """Verdict, reason, terms and novelties of each formula; those with the same variables in one call."""
        out: list[Judgement | None] = [None] * len(formulas)
        groups: dict[tuple[str, ...], list[tuple[int, Expression]]] = {}
        for k, formula in enumerate(formulas):
            try:
                expression = self._read(formula)
            except SobolevError as error:
                out[k] = Judgement.unreadable(error)
            else:
                groups.setdefault(self._ordered(expression.variables), []).append((k, expression))
        for variables, members in groups.items():
            together = self._judged([expression for _, expression in members], self._samples(variables))
            for (k, _), judgement in zip(members, together, strict=True):
                out[k] = judgement
        return [judgement for judgement in out if judgement is not None]

    def _read(self, formula: str | bytes) -> Expression:
        text = formula if isinstance(formula, str) else formula.decode("utf-8", errors="replace")
        names = self.inputs.table.names if self.inputs.table is not None else None
        return parse(text, names=names, dialect=self.dialect)

    def _ordered(self, variables: tuple[str, ...]) -> tuple[str, ...]:
        """Columns in the table's order; without a table numbered variables by number, then names."""
        if self.inputs.table is not None:
            return tuple(sorted(variables, key=self.inputs.table.names.index))
        return tuple(sorted(variables, key=_place))

    def _judged(self, expressions: Sequence[Expression], sample: Sample) -> list[Judgement]:
        try:
            terms = [additive_terms(expression).terms for expression in expressions]
            return [Judgement.of(found, self.tau) for found in novelties_of(terms, sample, Geometry(self.order))]
        except SobolevError as error:  # one formula that the kernels refuse must not take the others along
            if len(expressions) == 1:
                return [Judgement.unreadable(error)]
            return [judgement for one in expressions for judgement in self._judged([one], sample)]


def _place(name: str) -> tuple[bool, int, str]:
    number = numbered_index(name) if name.startswith("x") and not name.startswith("x_") else None
    return (number is None, number or 0, name)


@dataclass(frozen=True, slots=True)
class FilterSummary:
    """How many formulas were read and what became of them.

    Parameters
    ----------
    counts : dict of str to int
        By ``OUTCOMES``.
    unreadable : tuple of (int, str)
        Line and reason of the first ones that could not be read.
    """

    counts: dict[str, int]
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


_worker_judge: FormulaJudge | None = None


def _start_worker(inputs: Inputs, tau: float, order: int, dialect: str) -> None:
    global _worker_judge
    _worker_judge = FormulaJudge(inputs, tau, order, dialect)


def _work(chunk: Sequence[Record], with_reasons: bool) -> _ChunkResult:
    assert _worker_judge is not None
    return _judge_chunk(_worker_judge, chunk, with_reasons)


def _in_order(
    chunks: Iterator[list[Record]], judge: FormulaJudge, with_reasons: bool, n_jobs: int
) -> Iterator[tuple[list[Record], _ChunkResult]]:
    """Chunks with their results, in order; a few chunks are under way at a time."""
    n_jobs = n_jobs if n_jobs > 0 else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
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
