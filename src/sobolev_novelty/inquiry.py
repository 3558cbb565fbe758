"""An equation and a table, matched: what the command line hands to the library.

Nothing is left out silently: columns that take no part are named in ``notes``, which end up in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.data import FloatArray, Sample
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.evaluate import evaluate
from sobolev_novelty.expression import Expression
from sobolev_novelty.file_chunks import FileChunks
from sobolev_novelty.files import Table, read_table
from sobolev_novelty.guidance import Pruned, Verdict, accepts, prune
from sobolev_novelty.parsing import parse
from sobolev_novelty.projection import TAU_ID
from sobolev_novelty.report import NoveltyReport, Progress, novelty
from sobolev_novelty.scoring import nmse
from sobolev_novelty.streaming.accumulator import NoveltyAccumulator


@dataclass(frozen=True, slots=True, eq=False)
class Inquiry:
    """An expression, the inputs it is judged on, and the target where one was named.

    Parameters
    ----------
    expression : Expression
        In the names of ``sample``.
    sample : Sample
    y : ndarray of shape (n_samples,), optional
    notes : tuple of str
        Which columns take no part, and why.
    """

    expression: Expression
    sample: Sample
    y: FloatArray | None
    notes: tuple[str, ...]

    def report(
        self, *, order: int, coordinates: str, tau: float | None, n_bootstrap: int, random_state: int,
        progress: Progress | None,
    ) -> NoveltyReport:  # fmt: skip
        """The novelty of every term; the notes of the table come first."""
        found = novelty(
            self.expression, self.sample, order=order, coordinates=coordinates, tau=_threshold(tau),
            n_bootstrap=n_bootstrap, random_state=random_state, progress=progress,
        )  # fmt: skip
        return replace(found, notes=self.notes + found.notes)

    def prune(self, *, order: int, tau: float | None) -> Slimmed:
        """The equation without the terms whose deletion costs nothing."""
        assert self.y is not None
        result = prune(self.expression, self.sample, self.y, order=order, tau=_threshold(tau))
        rows = np.isfinite(evaluate(self.expression, self.sample))
        sample, y = self.sample.rows(rows), self.y[rows]
        if not rows.any():
            raise DataError("The equation is not finite in any row of the data. Check its domain and the columns.")
        r2 = [1.0 - nmse(y, evaluate(e, sample)) for e in (self.expression, result.expression)]
        dropped = int((~rows).sum())
        note = (f"{dropped} of {len(rows)} rows took no part: the equation is not finite there.",) if dropped else ()
        return Slimmed(self.expression, result, r2[0], r2[1], int(rows.sum()), self.notes + note)

    def accepts(self, *, order: int, tau: float | None) -> Verdict:
        """The corpus filter's verdict."""
        return accepts(self.expression, self.sample, order=order, tau=_threshold(tau))


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
            "r2_before": _finite(self.r2_before),
            "r2_after": _finite(self.r2_after),
            "score": _finite(self.result.score),
            "n_used": self.n_used,
            "deleted": [
                {
                    "term": step.term,
                    "novelty": _finite(step.novelty),
                    "score_before": _finite(step.score_before),
                    "score_after": _finite(step.score_after),
                }
                for step in self.result.steps
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        after = self.result.expression
        lines = [
            f"before  {self.before}",
            f"        R² {self.r2_before:.6g}, {self.before.complexity} nodes",
        ]
        lines += [f"deleted {step.term}  (novelty {step.novelty:.3g})" for step in self.result.steps]
        if not self.result.steps:
            lines.append("Nothing was deleted: every term is needed.")
        if after != self.before:
            lines += [f"after   {after}", f"        R² {self.r2_after:.6g}, {after.complexity} nodes"]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def read_inquiry(
    equation: str,
    path: str | Path,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    variables: str = "auto",
    dialect: str = "plain",
    separator: str | None = None,
    has_header: bool = True,
) -> Inquiry:
    """Read a table and match an equation with its columns.

    Parameters
    ----------
    equation : str
    path : str or Path
        See :func:`sobolev_novelty.files.read_table`.
    target : str, optional
        Column that is not an input.
    features : sequence of str, optional
        Columns that are inputs, in the order that ``x0, x1, …`` count them; by default all but the target.
    variables, dialect : str
        See :func:`sobolev_novelty.parsing.parse`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.csv"
    >>> _ = path.write_text("mass,name,y\\n" + "".join(f"{i},a,{2 * i}\\n" for i in range(40)))
    >>> inquiry = read_inquiry("2*mass", path, target="y")
    >>> inquiry.sample.names, inquiry.notes[0]
    (('mass',), "Column 'name' is not numeric and the equation does not use it: it is left out.")
    """
    table = read_table(path, separator=separator, has_header=has_header)
    columns = _input_columns(table, target, features)
    expression = parse(equation, names=columns, variables=variables, dialect=dialect)
    used = set(expression.variables)
    kept = [name for name in columns if name in used or features is not None or table.is_numeric(name)]
    notes = _column_notes(table, columns, kept, used)
    y = None if target is None else table.target(target)
    return Inquiry(expression, _sample(table, kept), y, notes)


def streamed_report(
    equation: str,
    chunks: FileChunks,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    variables: str = "auto",
    dialect: str = "plain",
    order: int = 1,
    coordinates: str = "standardized",
    tau: float | None = None,
    on_share: Callable[[float], None] = lambda share: None,
) -> NoveltyReport:
    """The report of ``read_inquiry(…).report(…)`` with the memory of one chunk of the file.

    Parameters
    ----------
    chunks : FileChunks
    on_share : callable, optional
        Told how much of the file has been read, from 0 to 1.

    The other parameters are those of :func:`read_inquiry` and :meth:`Inquiry.report`.
    """
    first = chunks.first()
    columns = _input_columns(first, target, features)
    expression = parse(equation, names=columns, variables=variables, dialect=dialect)
    used = set(expression.variables)
    # A column that takes part without being used weighs in the slopes, so it must be known before the first row counts.
    unused = [] if features is not None else [name for name in columns if name not in used]
    text = _columns_with_text(chunks, unused, on_share)
    kept = [name for name in columns if name not in text]
    notes = _column_notes(first, columns, kept, used)
    found = NoveltyAccumulator(expression, kept, order=order, coordinates=coordinates, tau=_threshold(tau))
    for table, share in chunks.tables(kept if target is None else [*kept, target]):
        if target is not None:
            table.target(target)
        found.update(_sample(table, kept))
        on_share(share)
    report = found.report()
    return replace(report, notes=notes + report.notes)


def _columns_with_text(chunks: FileChunks, names: Sequence[str], on_share: Callable[[float], None]) -> set[str]:
    """Those of these columns that are not numeric in some row of the file."""
    found: set[str] = set()
    if names:
        for table, share in chunks.tables(names):
            found |= {name for name in names if name not in found and not table.is_numeric(name)}
            on_share(share)
            if len(found) == len(names):
                break
    return found


def _sample(table: Table, names: Sequence[str]) -> Sample:
    return Sample(np.ascontiguousarray(np.stack([table.numbers(name) for name in names])), tuple(names))


def _column_notes(table: Table, columns: Sequence[str], kept: Sequence[str], used: set[str]) -> tuple[str, ...]:
    """What is said of columns that take no part in the equation."""
    if not kept:
        raise DataError(f"'{table.source}' has no numeric column to use as input. Columns: {', '.join(columns)}.")
    notes = [
        f"Column '{name}' is not numeric and the equation does not use it: it is left out."
        for name in columns
        if name not in kept
    ]
    unused = [name for name in kept if name not in used]
    if unused and used:
        notes.append(
            f"The equation does not use {', '.join(unused[:8])}{' …' if len(unused) > 8 else ''}. Every input counts "
            "in the weight of the slopes: leave out what is none (--target, --features)."
        )
    return tuple(notes)


def _input_columns(table: Table, target: str | None, features: Sequence[str] | None) -> list[str]:
    if target is not None:
        table.check_columns([target], "--target")
    if features is None:
        columns = [name for name in table.columns if name != target]
    else:
        table.check_columns(features, "--features")
        columns = list(dict.fromkeys(features))
        if target in columns:
            raise ParameterError(f"'{target}' is both --target and one of --features. Take it out of one.")
    if not columns:
        raise DataError(f"'{table.source}' has no input column besides the target. Give at least one input.")
    return columns


def _threshold(tau: float | None) -> float:
    return TAU_ID if tau is None else tau


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
