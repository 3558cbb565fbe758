"""Published models of other methods: parquet rows -> expressions, or the reason of a refusal.

The files are SRBench's discovered expressions, as ``SOBOLEV_DATA`` holds them: ``srbench_results/*.parquet`` beside the
data the models were fitted on (``feynman/sample2000`` and ``pmlb``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, ParseError, require
from sobolev_novelty.kernels import compile_programs, derivatives
from sobolev_novelty.lab.bench.judging.candidates import CONVENTION_OF_STYLE, PUBLISHED
from sobolev_novelty.language.parsing import parse


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """One regression task: ``X`` of shape (n_features, n_samples), ``y`` of shape (n_samples,)."""

    name: str
    columns: tuple[str, ...]
    X: FloatArray
    y: FloatArray


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """One row: the expression, or why there is none.

    Parameters
    ----------
    row : int
        Position in the file.
    algorithm, dataset, space : str
        Who found it, on what, and whether in raw or standardised coordinates.
    text : str or None
        The model as published; None where the source has none.
    expression : Expression or None
        None where the text is missing or refused.
    refusal : str
        Why there is no expression, in one sentence; empty where there is one.
    r2_stored : float
        The R² that the file's own check found on noise-free data; ``nan`` where it has none.
    """

    row: int
    algorithm: str
    dataset: str
    space: str
    text: str | None
    expression: Expression | None
    refusal: str
    r2_stored: float


def read_dataset(root: Path, name: str) -> Dataset:
    """Read one task from the local copy of the data.

    Raises
    ------
    DataError
        Where the copy lacks it.
    """
    for folder in (root / "feynman" / "sample2000", root / "pmlb"):
        path = folder / name / f"{name}.tsv.gz"
        if path.exists():
            frame = pd.read_csv(path, sep="\t")
            inputs = frame.drop(columns="target")
            X = np.ascontiguousarray(inputs.to_numpy(dtype=float).T)
            return Dataset(name, tuple(map(str, inputs.columns)), X, frame["target"].to_numpy(dtype=float))
    raise DataError(f"The data set '{name}' is not below {root}.")


def read_published(root: Path, suite: str) -> Iterator[PublishedModel]:
    """Every row of a suite, ``"ground_truth"`` or ``"black_box"``, in the order of the file.

    Variables are checked against the columns of the data set where the local copy has it.
    """
    if suite not in PUBLISHED:
        raise DataError(f"'suite' must be one of {', '.join(PUBLISHED)}. Got {suite!r}.")
    require("pyarrow", extra="parquet")
    frame = pd.read_parquet(root / "srbench_results" / PUBLISHED[suite])

    @cache
    def columns(dataset: str) -> tuple[str, ...] | None:
        try:
            return read_dataset(root, dataset).columns
        except DataError:
            return _feynman_variables(root, dataset)

    for row, record in enumerate(frame.to_dict("records")):
        yield _read_row(row, record, columns(record["dataset"]))


def _feynman_variables(root: Path, dataset: str) -> tuple[str, ...] | None:
    """The variables of an equation without data (PMLB lacks II.11.17), None for any other data set."""
    table = pd.read_csv(root / "feynman" / "feynman_equations.csv")
    found = table.loc[table["aif_id"] == dataset.removeprefix("feynman_").replace("_", "."), "variables"]
    return tuple(str(found.iloc[0]).split()) if len(found) else None


def _read_row(row: int, record: dict[Any, Any], columns: tuple[str, ...] | None) -> PublishedModel:
    text = record["symbolic_model"]
    stored = record.get("r2_check_clean")
    expression: Expression | None = None
    refusal = ""
    if not isinstance(text, str):
        text, refusal = None, "The source gives no model."
    else:
        try:
            expression = parse(text, names=columns, variables=CONVENTION_OF_STYLE[record["var_style"]])
        except ParseError as error:
            refusal = error.reason
    r2 = float("nan") if stored is None or pd.isna(stored) else float(stored)
    algorithm, dataset, space = (str(record[key]) for key in ("algorithm", "dataset", "space"))
    return PublishedModel(row, algorithm, dataset, space, text, expression, refusal, r2)


def r2_on(expression: Expression, data: Dataset) -> float:
    """R² of an expression on the rows where it is finite; ``nan`` where no row is."""
    prediction = derivatives(compile_programs([expression], data.columns), data.X)[0, 0]
    finite = np.isfinite(prediction)
    if not finite.any():
        return float("nan")
    y, residual = data.y[finite], (data.y - prediction)[finite]
    with np.errstate(all="ignore"):
        return float(1.0 - (residual @ residual) / np.square(y - y.mean()).sum())
