"""``sobolev fit`` and ``sobolev predict``.

The regressor over files. Functions take plain arguments; ``cli.py`` mounts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.files import read_table

if TYPE_CHECKING:
    import pandas as pd

    from sobolev_novelty.search.regressor import SymbolicRegressor


@dataclass(frozen=True, slots=True)
class FitSummary:
    """What ``sobolev fit`` tells: the chosen equation, its numbers, and the front.

    Parameters
    ----------
    equation : str
    r2 : float
        On the training rows.
    front : tuple of dict
        complexity, loss, score, min_novelty, mean_novelty, expression (text).
    """

    equation: str
    complexity: int
    r2: float
    n_rows: int
    n_evaluations: int
    n_novelty_calls: int
    stop_reason: str
    out: str | None
    front: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "front"} | {
            "front": list(self.front)
        }

    def __str__(self) -> str:
        lines = [f"{row['complexity']:>4}  {row['loss']:<10.4g} {row['expression']}" for row in self.front]
        pace = f"R² {self.r2:.6f} on {self.n_rows} rows; {self.n_evaluations} evaluations. {self.stop_reason}"
        return "\n".join([self.equation, pace, "", "size  loss       equation", *lines])


def fit_command(
    data: Path,
    *,
    target: str,
    engine: str = "genetic",
    novelty: bool = True,
    time: float | None = 60.0,
    max_evaluations: int | None = None,
    max_complexity: int | None = None,
    operators: str | None = None,
    drop: str | None = None,
    weights: str | None = None,
    out: Path | None = None,
    checkpoint: Path | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    verbose: bool | None = None,
) -> FitSummary:
    """Fit an equation to a table.

    Parameters
    ----------
    data : Path
        A CSV, TSV (``.tsv``, ``.tsv.gz``) or parquet file with a header.
    target : str
        Column to be explained; all other columns are inputs.
    time : float, optional
        Seconds.
    operators, drop : str, optional
        Names, separated by commas: operators to use; columns to leave out.
    weights : str, optional
        Column of row weights.
    out : Path, optional
        Where the model goes, as JSON.
    """
    from sobolev_novelty.search.loop import Budget
    from sobolev_novelty.search.regressor import SymbolicRegressor

    frame = read_table(data).frame
    left_out = [target, *_names(drop), *([weights] if weights else [])]
    for name in left_out:
        if name not in frame.columns:
            raise ParameterError(
                f"'{data}' has no column '{name}'. Its columns are: {', '.join(map(str, frame.columns))}."
            )
    X = frame.drop(columns=left_out)
    if X.shape[1] == 0:
        raise DataError(f"'{data}' has no column besides {', '.join(left_out)}.")
    model = SymbolicRegressor(
        engine,
        novelty=novelty,
        budget=Budget(max_evaluations=max_evaluations, seconds=time),
        operators=_names(operators) or None,
        max_complexity=max_complexity,
        n_jobs=n_jobs,
        random_state=seed,
        verbose=verbose,
    )
    model.fit(X, frame[target], None if weights is None else frame[weights], checkpoint=checkpoint)
    if out is not None:
        model.save(out)
    return _summary(model, X, frame[target], out)


def predict_command(model: Path, data: Path, *, out: Path | None = None, index: int | None = None) -> pd.DataFrame:
    """Predictions of a saved model for the rows of a table, also written to ``out`` as CSV.

    Parameters
    ----------
    model : Path
        What ``fit --out`` wrote.
    index : int, optional
        Row of the front; by default the chosen equation.
    """
    import pandas as pd

    from sobolev_novelty.search.regressor import SymbolicRegressor

    loaded = SymbolicRegressor.load(model)
    frame = read_table(data).frame
    names = [str(name) for name in getattr(loaded, "feature_names_in_", frame.columns[: loaded.n_features_in_])]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise DataError(f"'{data}' lacks columns the model was fitted on: {', '.join(missing)}.")
    X = frame[names] if hasattr(loaded, "feature_names_in_") else frame[names].to_numpy()
    result = pd.DataFrame({"prediction": loaded.predict(X, index=index)})
    if out is not None:
        result.to_csv(out, index=False)
    return result


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def _summary(model: SymbolicRegressor, X: pd.DataFrame, y: pd.Series[Any], out: Path | None) -> FitSummary:
    rows = model.equations_.assign(expression=model.equations_["expression"].astype(str)).to_dict("records")
    front = tuple({str(k): None if v != v else v for k, v in row.items()} for row in rows)  # noqa: PLR0124 (nan)
    return FitSummary(
        equation=str(model.expression_),
        complexity=model.expression_.complexity,
        r2=float(model.score(X, y)),
        n_rows=len(X),
        n_evaluations=model.n_evaluations_,
        n_novelty_calls=model.n_novelty_calls_,
        stop_reason=model.stop_reason_,
        out=None if out is None else str(out),
        front=front,
    )
