"""An equation matched with the columns of a table, and the verbs ``report``, ``prune`` and ``accepts`` on the pair.

Nothing is left out silently: columns and rows that are not used are named in ``notes``, which end up in the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sobolev_novelty.core.digits import json_number, short_numbers
from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.progress import OnProgress, silent
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.core.score import nmse
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.guidance import Pruned, Verdict, accepts, prune
from sobolev_novelty.report.intervals.intervals import Intervals, intervals
from sobolev_novelty.report.reporting import NoveltyReport, novelty
from sobolev_novelty.report.streaming.accumulator import NoveltyAccumulator
from sobolev_novelty.tables.columns import input_columns, rows_note, sample_of, unusable_columns, usable_columns
from sobolev_novelty.tables.file_chunks import FileChunks
from sobolev_novelty.tables.files import Table


@dataclass(frozen=True, slots=True, eq=False)
class MatchedEquation:
    """An expression, the inputs it is judged on, and the target where one was named."""

    expression: Expression  # in the names of ``sample``
    sample: Sample
    y: FloatArray | None  # shape (n_samples,)
    notes: tuple[str, ...]  # which columns and rows are not used, and why

    def report(self, **options: Any) -> NoveltyReport:
        """The novelty of every term, with the options of :func:`sobolev_novelty.novelty`; notes on the table first."""
        found = novelty(self.expression, self.sample, self.y, **options)
        return replace(found, given_notes=self.notes)

    def prune(self, **options: Any) -> Slimmed:
        """The equation without the terms whose deletion costs nothing; options of :func:`sobolev_novelty.prune`."""
        target = self._target()
        result = prune(self.expression, self.sample, target, **options)
        rows = np.isfinite(evaluate(self.expression, self.sample))
        sample, y = self.sample.rows(rows), target[rows]
        if not rows.any():
            raise DataError("The equation is not finite in any row of the data. Check its domain and the columns.")
        r2 = [1.0 - nmse(y, evaluate(e, sample)) for e in (self.expression, result.expression)]
        dropped = int((~rows).sum())
        note = (f"{dropped} of {len(rows)} rows were not used: the equation is not finite there.",) if dropped else ()
        return Slimmed(self.expression, result, r2[0], r2[1], int(rows.sum()), self.notes + note)

    def intervals(self, **options: Any) -> Intervals:
        """Intervals of the equation's constants, with the options of :func:`sobolev_novelty.intervals`."""
        return intervals(self.expression, self.sample, self._target(), **options)

    def _target(self) -> FloatArray:
        if self.y is None:
            raise ParameterError(
                "'target' is missing: name the column that the equation predicts.", arguments=["target"]
            )
        return self.y

    def accepts(self, **options: Any) -> Verdict:
        """The corpus filter's verdict; options of :func:`sobolev_novelty.accepts`."""
        return accepts(self.expression, self.sample, **options)


@dataclass(frozen=True, slots=True)
class Slimmed:
    """What pruning did to an equation, with R² before and after."""

    before: Expression
    result: Pruned
    r2_before: float
    r2_after: float
    n_used: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {
            "before": str(self.before),
            "after": str(self.result.expression),
            "complexity_before": self.before.complexity,
            "complexity_after": self.result.expression.complexity,
            "r2_before": json_number(self.r2_before),
            "r2_after": json_number(self.r2_after),
            "score": json_number(self.result.score),
            "n_used": self.n_used,
            "deleted": [
                {"term": step.term}
                | {name: json_number(getattr(step, name)) for name in ("novelty", "score_before", "score_after")}
                for step in self.result.steps
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        after = self.result.expression
        lines = [
            f"before  {short_text(self.before)}",
            f"        R² {self.r2_before:.6g}, {self.before.complexity} nodes",
        ]
        lines += [f"deleted {short_numbers(step.term)}  (novelty {step.novelty:.3g})" for step in self.result.steps]
        if not self.result.steps:
            lines.append("Nothing was deleted: every term is needed.")
        if after != self.before:
            lines += [f"after   {short_text(after)}", f"        R² {self.r2_after:.6g}, {after.complexity} nodes"]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def match_equation(
    equation: str,
    table: Table,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    variables: str = "auto",
    dialect: str = "plain",
) -> MatchedEquation:
    """Match an equation with the columns of a table.

    Columns that are not numeric and that nobody names are left out; so are rows without a target.

    ``table``: see :func:`sobolev_novelty.tables.files.read_table`.
    ``target``: column that is not an input.
    ``features``: columns that are inputs, in the order in which ``x0, x1, …`` count them; by default all but the
    target.
    ``variables``, ``dialect``: see :func:`sobolev_novelty.language.parsing.parse`.
    """
    columns = _inputs(table, target, features)
    expression = parse(equation, names=columns, variables=variables, dialect=dialect)
    unused = _unused(expression, columns, features)
    kept, notes = usable_columns(table, columns, unusable_columns([table], unused))
    notes = table.notes + notes + _unused_note(expression, kept)
    sample = sample_of(table, kept)
    if target is None:
        return MatchedEquation(expression, sample, None, notes)
    y = table.numbers(target)
    known = np.isfinite(y)
    notes += _target_note(table, target, int(known.sum()), len(y))
    return MatchedEquation(expression, sample.rows(known), y[known], notes)


def streamed_report(
    equation: str,
    chunks: FileChunks,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    variables: str = "auto",
    dialect: str = "plain",
    on_progress: OnProgress = silent,
    **options: Any,
) -> NoveltyReport:
    """The report of ``match_equation(…).report(…)`` with the memory of one chunk of the file.

    ``on_progress``: told how much of the file has been read.
    ``**options``: those of :class:`~sobolev_novelty.report.streaming.accumulator.NoveltyAccumulator`.
    """
    first = chunks.first()
    columns = _inputs(first, target, features)
    expression = parse(equation, names=columns, variables=variables, dialect=dialect)
    # An input that the equation does not use still weighs in the slopes, so it is checked before the first row counts.
    unused = _unused(expression, columns, features)
    unusable = unusable_columns(chunks.tables(unused, on_progress) if unused else (), unused)
    kept, notes = usable_columns(first, columns, unusable)
    notes = first.notes + notes + _unused_note(expression, kept)
    found = NoveltyAccumulator(expression, kept, **options)
    n_rows = 0
    for table in chunks.tables(kept if target is None else [*kept, target], on_progress):
        sample = sample_of(table, kept)
        found.update(sample if target is None else sample.rows(np.isfinite(table.numbers(target))))
        n_rows += len(table)
    if target is not None:
        notes += _target_note(first, target, found.n_samples, n_rows)
    return replace(found.report(), given_notes=notes)


def _inputs(table: Table, target: str | None, features: Sequence[str] | None) -> list[str]:
    return input_columns(table, features=features, others={} if target is None else {"target": [target]})


def _unused(expression: Expression, columns: Sequence[str], features: Sequence[str] | None) -> list[str]:
    """Inputs that nobody named and the equation does not use."""
    used = set(expression.variables)
    return [] if features is not None else [name for name in columns if name not in used]


def _unused_note(expression: Expression, kept: Sequence[str]) -> tuple[str, ...]:
    used = set(expression.variables)
    unused = [name for name in kept if name not in used]
    if not unused or not used:
        return ()
    shown = f"{', '.join(unused[:8])}{' …' if len(unused) > 8 else ''}"
    return (
        f"The equation does not use {shown}. Every input counts in the weight of the slopes: leave out columns that "
        "are not inputs of your model.",
    )


def _target_note(table: Table, target: str, n_known: int, n_rows: int) -> tuple[str, ...]:
    if not n_known:
        raise DataError(f"Target column '{target}' of '{table.source}' has no finite number in any row. Fill it in.")
    return rows_note(n_rows - n_known, n_rows, [target])
