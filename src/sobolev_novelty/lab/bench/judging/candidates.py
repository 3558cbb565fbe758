"""Expressions that methods found: published models, SRBench result files, our own stores.

A candidate is text with all that is needed to parse it. Parsing comes later, so that failures are counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev_novelty.errors import DataError, require
from sobolev_novelty.lab.bench.running.store import Store

if TYPE_CHECKING:
    import pandas as pd

#: File of the published models of each suite, below ``srbench_results``.
PUBLISHED = {"ground_truth": "ground_truth_models.parquet", "black_box": "black_box_models.parquet"}

#: How the files describe a way of writing variables -> the parser's convention.
CONVENTION_OF_STYLE = {
    "x{i}, i from 0": "x0",
    "x_{i}, i from 0": "x0",
    "x[:,i], i from 0 (numpy)": "x0",
    "x{i}, i from 1": "x1",
    "X{i}, i from 1": "x1",
    "names": "names",
}


@dataclass(frozen=True, slots=True)
class FoundExpression:
    """One expression a method found."""

    method: str
    task: str
    text: str | None  # as published; ``None`` where the method gave none
    r2_test: float | None  # as reported
    variables: str = "auto"  # how the text writes variables: a convention of the parser
    is_standardized: bool = False  # whether text and target live in standardized coordinates
    noise: float = 0.0
    seed: int | None = None


def published_candidates(root: Path, suite: str) -> Iterator[FoundExpression]:
    """The published models below ``root`` (``$SOBOLEV_DATA``), of ``"ground_truth"`` or ``"black_box"`` tasks."""
    path = root / "srbench_results" / PUBLISHED[suite]
    if not path.is_file():
        raise DataError(f"There are no published models at '{path}'. Set SOBOLEV_DATA to a folder that has them.")
    for row in _frame(path).to_dict("records"):
        reported = _number(row.get("r2_test"))
        yield FoundExpression(
            str(row["algorithm"]),
            str(row["dataset"]),
            _text(row["symbolic_model"]),
            reported if reported is not None else _number(row.get("r2_check_clean")),
            CONVENTION_OF_STYLE[row["var_style"]],
            str(row["space"]).startswith("standardised"),
            _number(row.get("target_noise")) or 0.0,
            _seed(row.get("random_state")),
        )


def srbench_candidates(path: str | Path) -> Iterator[FoundExpression]:
    """Rows of an SRBench result: feather, parquet, CSV, one JSON file, or a folder of them.

    Needs the fields ``dataset``, ``algorithm`` and ``symbolic_model``; uses ``r2_test``, ``target_noise``,
    ``random_state`` where they are given.
    """
    path = Path(path)
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"The folder '{path}' has no JSON files.")
    for file in files:
        for row in _rows(file):
            missing = {"dataset", "algorithm", "symbolic_model"} - set(row)
            if missing:
                raise DataError(
                    f"'{file}' lacks the field(s) {', '.join(sorted(missing))}: it is not an SRBench result."
                )
            yield FoundExpression(
                str(row["algorithm"]),
                str(row["dataset"]),
                _text(row["symbolic_model"]),
                _number(row.get("r2_test")),
                noise=_number(row.get("target_noise")) or 0.0,
                seed=_seed(row.get("random_state")),
            )


def store_candidates(store: Store) -> Iterator[FoundExpression]:
    """Rows of one of our stores; failures have no text."""
    for row in store.frame().to_dict("records"):
        yield FoundExpression(
            str(row["method"]),
            str(row["task"]),
            _text(row["expression"]),
            _number(row["r2_test"]),
            "x0",
            noise=float(row["noise"]),
            seed=int(row["seed"]),
        )


def _rows(file: Path) -> Iterator[Mapping[Any, Any]]:
    if file.suffix == ".json":
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"'{file}' cannot be read as JSON: {error}.") from error
        rows = content if isinstance(content, list) else [content]
        if not all(isinstance(row, dict) for row in rows):
            raise DataError(f"'{file}' holds no objects with fields: it is not an SRBench result.")
        yield from rows
    else:
        yield from _frame(file).to_dict("records")


def _frame(file: Path) -> pd.DataFrame:
    import pandas as pd

    name = file.name.removesuffix(".gz")
    try:
        if name.endswith((".csv", ".tsv")):
            return pd.read_csv(file, sep="\t" if name.endswith(".tsv") else ",")
        require("pyarrow", extra="parquet")
        if name.endswith((".feather", ".parquet")):
            return pd.read_feather(file) if name.endswith(".feather") else pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise DataError(f"'{file}' cannot be read: {error}.") from error
    raise DataError(f"'{file}' must end in .feather, .parquet, .csv, .tsv or .json.")


def _is_missing(value: Any) -> bool:
    return value is None or str(value) in ("nan", "<NA>", "None")


def _number(value: Any) -> float | None:
    if _is_missing(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"An SRBench result has {value!r} where a number is expected.") from error


def _seed(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
