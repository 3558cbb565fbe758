"""``sobolev fit`` and ``sobolev predict``: the regressor over tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from sobolev_novelty.core.digits import json_number, json_value
from sobolev_novelty.core.output import check_output, whole_file, write_or_rescue
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.core.score import nmse
from sobolev_novelty.errors import DataError, ExtrapolationWarning, ParameterError, require
from sobolev_novelty.report.render.formulas import short_formula
from sobolev_novelty.report.render.sentences import number
from sobolev_novelty.tables.columns import input_columns, rows_note, unusable_columns, usable_columns
from sobolev_novelty.tables.files import Table, read_table
from sobolev_novelty.tables.format import TableFormat

if TYPE_CHECKING:
    import pandas as pd

    from sobolev_novelty.search.loop.loop import Callback
    from sobolev_novelty.search.model.regressor import SymbolicRegressor

#: A search on fewer complete rows is refused.
MIN_ROWS = 2


@dataclass(frozen=True, slots=True)
class FitSummary:
    """What ``sobolev fit`` tells: the chosen equation, its numbers, and the front.

    ``reason``, ``noise``: why this equation was chosen, and what the noise is.
    """

    equation: str
    complexity: int
    r2: float | None  # on the training rows; None where it is not finite
    n_rows: int
    n_evaluations: int
    n_novelty_calls: int
    stop_reason: str
    #: complexity, loss, score, min_novelty, mean_novelty, expression (text), chosen, r2 (on the training rows).
    front: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]  # which columns and rows were not used, and why
    #: What the engine counted: the calls of a language model, for example.
    counts: dict[str, Any] = field(default_factory=dict)
    out: str | None = None  # where the model is
    problem: str = ""  # why the model is not where it was wanted; empty where it is
    reason: str = ""
    noise: str = ""
    #: What the rows say of each term: distinct, needed, determined, with the interval of its coefficient.
    verdicts: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{'▶' if row['chosen'] else ' '}{row['complexity']:>4}  {number(row['loss']):<10} "
            f"{short_formula(row['expression'])}"
            for row in self.front
        ]
        r2 = "R² is not finite" if self.r2 is None else f"R² {self.r2:.6f}"
        pace = f"{r2} on {self.n_rows} rows; {self.n_evaluations} evaluations. {self.stop_reason}"
        notes = [f"Note: {note}" for note in self.notes]
        counts = [", ".join(f"{name}: {value}" for name, value in self.counts.items())] if self.counts else []
        head = " size  loss       equation"
        words = [
            f"  {short_formula(row['term'])}: distinct {row['distinct']}, needed {row['needed']}, determined "
            f"{row['determined']}{_interval(row)}"
            for row in self.verdicts
        ]
        why = [line for line in (self.reason, self.noise) if line]
        return "\n".join([short_formula(self.equation), pace, *why, *words, *counts, "", head, *lines, *notes])


def _interval(row: Mapping[str, Any]) -> str:
    """The coefficient of a term and its 95 % interval, where it has one."""
    ends = [row[name] for name in ("low", "high")]
    if any(end is None for end in ends):
        return ""
    return f", {number(row['coefficient'])} ({number(ends[0])} … {number(ends[1])})"


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """One prediction per row of a table.

    ``notes``, ``out``, ``problem``: see :class:`FitSummary`.
    """

    values: FloatArray  # shape (n_rows,): ``nan`` where an input is missing or the equation is not defined
    notes: tuple[str, ...]
    out: str | None = None
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        values = [json_number(value) for value in self.values.tolist()]
        return {"predictions": values, "notes": list(self.notes), "out": self.out, "problem": self.problem}

    def __str__(self) -> str:
        if self.out is not None:
            return f"{len(self.values)} predictions written to {self.out}."
        return "\n".join(repr(value) for value in self.values.tolist())


def fit_table(
    model: SymbolicRegressor,
    data: str | Path | IO[bytes] | Table,
    *,
    target: str,
    written: TableFormat | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    sigma: str | None = None,
    out: Path | None = None,
    checkpoint: Path | None = None,
    callback: Callback | None = None,
    verbose: bool | None = None,
) -> FitSummary:
    """Fit a model to a table.

    Columns that are not numeric and rows in which a value is missing are left out, and the notes say so. The paths are
    checked before the search; a model that cannot be written all the same is kept in the temporary folder.

    ``data``, ``written``: see :func:`sobolev_novelty.tables.files.read_table`; or a table that was read before.
    ``target``: column to predict.
    ``features``: columns that are inputs; by default all numeric columns but the target, the weights and ``drop``.
    ``drop``: columns to leave out.
    ``weights``: column of row weights.
    ``sigma``: column of the standard deviations of the target's noise.
    ``out``, ``checkpoint``: where the model goes, and from where a run that was killed is continued; JSON.
    ``callback``, ``verbose``: see :meth:`SymbolicRegressor.fit`.
    """
    if out is not None:
        check_output(out, (".json",))
    if checkpoint is not None:
        check_output(checkpoint, argument="checkpoint")
    table = data if isinstance(data, Table) else read_table(data, written)
    given = {"sample_weight": [] if weights is None else [weights], "sigma": [] if sigma is None else [sigma]}
    others = {"target": [target], "drop": drop, **given}
    frame, notes = _training_rows(table, input_columns(table, features=features, others=others), features, others)
    y = frame.pop(target)
    sample_weight = None if weights is None else frame.pop(weights)
    known = None if sigma is None else frame.pop(sigma).to_numpy()
    model.fit(frame, y, sample_weight, sigma=known, checkpoint=checkpoint, callback=callback, verbose=verbose)
    where, problem = (None, "") if out is None else write_or_rescue(out, model.save)
    return replace(_summary(model, frame, y.to_numpy(), notes), out=where, problem=problem)


def _training_rows(
    table: Table, columns: Sequence[str], features: Sequence[str] | None, others: Mapping[str, Sequence[str]]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Inputs, target and weights in the rows where all of them are finite."""
    import pandas as pd

    kept, notes = usable_columns(table, columns, unusable_columns([table], columns if features is None else []))
    names = [*kept, *others["target"], *others["sample_weight"], *others["sigma"]]
    frame = pd.DataFrame({name: table.numbers(name) for name in names})
    finite = pd.DataFrame(np.isfinite(frame.to_numpy()), columns=names)
    complete = finite.all(axis="columns")
    gaps = (~finite).sum().sort_values(ascending=False, kind="stable")
    with_gaps = [str(name) for name in gaps.index[gaps > 0]]
    if complete.sum() < MIN_ROWS:
        remedy = f"Fill the gaps in {', '.join(with_gaps[:5])}, or leave out such a column." if with_gaps else ""
        raise DataError(
            f"A fit needs at least {MIN_ROWS} complete rows. '{table.source}' has {complete.sum()}. {remedy}".strip()
        )
    notes = table.notes + notes + rows_note(int((~complete).sum()), len(frame), with_gaps)
    return frame[complete].reset_index(drop=True), notes


def predict_table(
    model: SymbolicRegressor,
    data: str | Path | IO[bytes],
    *,
    written: TableFormat | None = None,
    index: int | None = None,
    out: Path | None = None,
) -> Predictions:
    """Predictions of a model, one per row of a table; rows in which an input is missing give ``nan``.

    ``data``, ``written``: see :func:`sobolev_novelty.tables.files.read_table`. Only columns that the equation uses are
    needed.
    ``index``: row of the front; by default the chosen equation.
    ``out``: table to write, with one column ``prediction``.
    """
    import pandas as pd

    if out is not None:
        check_output(out, tuple(_WRITERS))
        if out.suffix.lower() == ".parquet":
            require("pyarrow", extra="parquet")
    table = read_table(data, written)
    inputs = _model_inputs(model, table, index)
    complete = np.isfinite(inputs.to_numpy()).all(axis=1)
    values = np.full(len(table), np.nan)
    extrapolating: tuple[str, ...] = ()
    if complete.any():
        X = inputs[complete]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ExtrapolationWarning)
            values[complete] = model.predict(X if hasattr(model, "feature_names_in_") else X.to_numpy(), index=index)
        extrapolating = tuple(str(warning.message) for warning in caught)
    reasons = {
        "an input is missing or not finite there": int((~complete).sum()),
        "the equation is not finite there": int((complete & ~np.isfinite(values)).sum()),
    }
    notes = tuple(
        f"{n} of {len(table)} rows {'has' if n == 1 else 'have'} no prediction: {why}."
        for why, n in reasons.items()
        if n
    )
    predictions = Predictions(values, table.notes + notes + extrapolating)
    if out is None:
        return predictions
    frame, suffix = pd.DataFrame({"prediction": values}), out.suffix.lower()
    where, problem = write_or_rescue(out, lambda path: _write_table(frame, path, suffix))
    return replace(predictions, out=where, problem=problem)


_WRITERS: dict[str, Callable[[pd.DataFrame, IO[bytes]], object]] = {
    ".csv": lambda frame, file: frame.to_csv(file, index=False, mode="wb"),
    ".tsv": lambda frame, file: frame.to_csv(file, index=False, sep="\t", mode="wb"),
    ".parquet": lambda frame, file: frame.to_parquet(file),
}


def _write_table(frame: pd.DataFrame, path: Path, suffix: str) -> None:
    with whole_file(path) as file:
        _WRITERS[suffix](frame, file)


def _model_inputs(model: SymbolicRegressor, table: Table, index: int | None) -> pd.DataFrame:
    """The columns the model was fitted on; those that its equation does not use are 0."""
    import pandas as pd

    named = getattr(model, "feature_names_in_", None)
    names = [f"x{k}" for k in range(model.n_features_in_)] if named is None else [str(name) for name in named]
    n_equations = len(model.equations_)
    if index is not None and not -n_equations <= index < n_equations:
        raise ParameterError(f"'index' must be a row of the front, 0 to {n_equations - 1}. Got {index}.")
    expression = model.expression_ if index is None else model.equations_["expression"].iloc[index]
    # A model that was fitted on an array knows columns by their place.
    columns = dict(zip(names, table.columns if named is None else names))
    missing = [name for name in names if name in expression.variables and columns.get(name) not in table.columns]
    if missing:
        raise DataError(
            f"'{table.source}' lacks columns that the equation uses: {', '.join(missing)}. Its columns: "
            f"{', '.join(table.columns)}."
        )
    used = {name: table.numbers(columns[name]) for name in names if name in expression.variables}
    zeros = np.zeros(len(table))
    return pd.DataFrame({name: used.get(name, zeros) for name in names})


def _summary(model: SymbolicRegressor, X: pd.DataFrame, y: FloatArray, notes: tuple[str, ...]) -> FitSummary:
    rows = model.equations_.assign(expression=model.equations_["expression"].astype(str)).to_dict("records")
    for k, row in enumerate(rows):
        row["r2"] = 1.0 - nmse(y, model.predict(X, index=k))
    r2 = 1.0 - nmse(y, model.predict(X))
    return FitSummary(
        equation=str(model.expression_),
        complexity=model.expression_.complexity,
        r2=json_number(r2),
        n_rows=len(X),
        n_evaluations=model.n_evaluations_,
        n_novelty_calls=model.n_novelty_calls_,
        stop_reason=model.stop_reason_,
        front=tuple({str(name): json_value(value) for name, value in row.items()} for row in rows),
        notes=notes,
        counts=model.counts_,
        reason=model.reason_,
        noise=model.noise_,
        verdicts=tuple(
            {str(name): json_value(value) for name, value in row.items()} for row in model.verdicts_.to_dict("records")
        ),
    )
