"""``sobolev next``: the rows to measure next, for an equation or a saved model and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sobolev_novelty.core.output import check_output, write_or_rescue, write_whole
from sobolev_novelty.design.next_rows import next_rows
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.tables.files import Table, read_table
from sobolev_novelty.tables.format import TableFormat
from sobolev_novelty.ui.match import MatchedEquation, match_equation

if TYPE_CHECKING:
    from sobolev_novelty.design.table import NextRows


@dataclass(frozen=True, slots=True, eq=False)
class NextMeasurements:
    """The rows to measure next, with what they will buy.

    ``out``, ``problem``: where the rows are, and why they are not where they were wanted.
    """

    rows: NextRows
    notes: tuple[str, ...]
    out: str | None = None
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        steps = self.rows.steps
        return {
            "columns": [str(name) for name in self.rows.columns],
            "rows": self.rows.to_numpy().tolist(),
            "words": self.rows.words.splitlines(),
            "steps": [] if steps is None else steps.to_dict("records"),
            "notes": list(self.notes),
            "out": self.out,
        }

    def __str__(self) -> str:
        table = [] if not len(self.rows) else [self.rows.to_string(index=self.rows.index[0] != 0)]
        written = [] if self.out is None else [f"{len(self.rows)} rows written to {self.out}."]
        return "\n".join([*table, self.rows.words, *written, *(f"Note: {note}" for note in self.notes)])


def next_measurements(
    equation: str | Path,
    data: str | Path | IO[bytes] | Table,
    *,
    rivals: Sequence[str] = (),
    target: str | None = None,
    features: Sequence[str] | None = None,
    pool: str | Path | None = None,
    written: TableFormat | None = None,
    out: Path | None = None,
    **options: Any,
) -> NextMeasurements:
    """The rows to measure next.

    ``equation``: a formula, or the file of a saved model.
    ``rivals``: other formulas that fit the rows of the table.
    ``target``: column that is not an input; with it constants are refitted and the noise is told.
    ``pool``: a table of rows to choose from.
    ``**options``: those of :func:`sobolev_novelty.next_rows`.
    """
    if out is not None:
        check_output(out, (".csv",))
    table = data if isinstance(data, Table) else read_table(data, written)
    models, matched = _matched(equation, rivals, table, target, features)
    if pool is not None:
        options["pool"] = _pool(read_table(pool, written), matched.sample.names)
    found = measurements_of(models, matched, **options)
    if out is None:
        return found
    text = found.rows.to_csv(index=False)
    place, problem = write_or_rescue(out, lambda path: write_whole(path, text))
    return replace(found, out=None if place is None else str(place), problem=problem)


def _matched(
    equation: str | Path, rivals: Sequence[str], table: Table, target: str | None, features: Sequence[str] | None
) -> tuple[Any, MatchedEquation]:
    """The equations, and the leading one matched with the table."""
    model = SymbolicRegressor.load(equation) if isinstance(equation, Path) else None
    leading = str(equation) if model is None else str(model.expression_)
    matched = match_equation(leading, table, target=target, features=features)
    others = [parse(text, names=matched.sample.names) for text in rivals]
    models = model if model is not None and not others else [matched.expression, *others]
    return models, matched


def measurements_of(models: Any, matched: MatchedEquation, **options: Any) -> NextMeasurements:
    """The rows to measure next on a table that an equation is matched with."""
    return NextMeasurements(next_rows(models, matched.sample, matched.y, **options), matched.notes)


def _pool(table: Table, names: Sequence[str]) -> Any:
    import pandas as pd

    return pd.DataFrame({name: table.numbers(name) for name in names})


def settings(given: Sequence[str], argument: str, separator: str) -> dict[str, list[float]]:
    """Settings of inputs as they are written on a command line.

    >>> settings(["T=20:80", "p=1.5:2"], "bounds", ":")
    {'T': [20.0, 80.0], 'p': [1.5, 2.0]}
    """
    found: dict[str, list[float]] = {}
    for text in given:
        name, equals, values = text.rpartition("=")
        try:
            found[name.strip()] = [float(value) for value in (values.split(separator) if separator else [values])]
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            more, example = (f"{separator}NUMBER", f"{separator}80") if separator else ("", "")
            raise ParameterError(f"'{argument}' must be COLUMN=NUMBER{more}, such as T=20{example}. Got {text!r}.")
    return found


def held(given: Sequence[str]) -> Mapping[str, Any]:
    """Inputs that cannot be set, with their values; None where it is the median of the rows at hand.

    >>> held(["humidity", "T=21.5"])
    {'humidity': None, 'T': 21.5}
    """
    return {
        name: values[0] if values else None
        for text in given
        for name, values in (settings([text], "fixed", "") if "=" in text else {text: []}).items()
    }
