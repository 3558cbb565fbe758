"""Suites of tasks, and SRBench's protocol for turning a task into a training and a test part.

``whitebox`` is generated from the project's own table. ``blackbox`` are the 122 data sets of SRBench (2021): a local
copy under ``$SOBOLEV_DATA/pmlb`` is used where there is one, otherwise the ``pmlb`` package downloads and keeps them.
``fastsrb`` and ``lsr_synth`` are read from ``$SOBOLEV_DATA/anchors``
(:mod:`~sobolev_novelty.lab.bench.problems.anchors`). ``everyday`` and ``everyday_held`` draw their tables with noise of
their own (:mod:`~sobolev_novelty.lab.bench.problems.everyday`), as do ``identifiability`` and ``identifiability_held``,
laws of many terms (:mod:`~sobolev_novelty.lab.bench.problems.identifiability`). A path that ends in ``.toml`` is a file
with formulas of your own (:func:`~sobolev_novelty.lab.bench.problems.tasks.formula_tasks`).

The protocol: 75 % of the rows for training, 25 % for testing, split by the seed as scikit-learn does it; at most
``max_train_rows`` training rows; noise, if any, on the training target only, normal with standard deviation
``noise * sqrt(mean(y_train**2))`` (SRBench scales by the root mean square, not by the standard deviation).
"""

from __future__ import annotations

import csv
import hashlib
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, ParameterError, require
from sobolev_novelty.lab.bench.problems.anchors import ANCHORS, AnchorTask, anchor_tasks
from sobolev_novelty.lab.bench.problems.everyday import EVERYDAY, drawn_table, everyday_task, everyday_tasks
from sobolev_novelty.lab.bench.problems.identifiability import (
    IDENTIFIABILITY,
    cell_named,
    cells,
    drawn_law,
    drawn_rows,
)
from sobolev_novelty.lab.bench.problems.tasks import Task, formula_tasks, whitebox_task, whitebox_tasks

IndexArray = npt.NDArray[np.intp]

#: Black-box sets whose test rows come from another range, and how many rows they have.
SHIFTED, SHIFTED_ROWS = "shifted", (200, 5000)
SUITES = ("whitebox", "blackbox", SHIFTED, *ANCHORS, *EVERYDAY, *IDENTIFIABILITY)
#: Suites whose tables have noise of their own.
WITH_NOISE = (*EVERYDAY, *IDENTIFIABILITY)
#: SRBench trains on at most this many rows.
MAX_TRAIN_ROWS = 10_000
TRAIN_SHARE = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class TaskData:
    """One task, one seed: what a method may see, and what it is judged by.

    ``X_train``, ``X_test``: shape (n_samples, n_features).
    ``y_train``, ``y_test``: shape (n_samples,).
    """

    name: str
    variables: tuple[str, ...]  # names of the columns
    X_train: FloatArray
    y_train: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    #: In the names ``x0, x1, …``. Only the judge reads it: ground truth never reaches a search.
    truth: Expression | None = None
    #: Inputs beyond the range of the others, where the judge compares found and true terms; of suites that have it.
    X_far: FloatArray | None = None

    def with_dummies(self, n: int, seed: int) -> TaskData:
        """The task with further inputs that have nothing to do with the target: shuffled copies of its own.

        They look like inputs of this task, so that a method has only the target to tell them by.
        """
        rng = np.random.default_rng([seed, n, zlib.crc32(self.name.encode())])
        sources = rng.integers(0, len(self.variables), n)
        X = [np.column_stack([X, *(rng.permutation(X[:, k]) for k in sources)]) for X in (self.X_train, self.X_test)]
        variables = (*self.variables, *(f"dummy_{k}" for k in range(n)))
        return replace(self, variables=variables, X_train=X[0], X_test=X[1])


def suite_tasks(suite: str) -> tuple[str, ...]:
    """Names of a suite's tasks."""
    if suite == "whitebox":
        return tuple(task.name for task in whitebox_tasks())
    if suite == "blackbox":
        return tuple(_blackbox_table())
    if suite == SHIFTED:
        return tuple(name for name, (n, _) in _blackbox_table().items() if SHIFTED_ROWS[0] <= n <= SHIFTED_ROWS[1])
    if suite in EVERYDAY:
        return tuple(task.name for task in everyday_tasks(suite))
    if suite in IDENTIFIABILITY:
        return tuple(cell.name for cell in cells(suite))
    if suite in ANCHORS or suite.endswith(".toml"):
        return tuple(task.name for task in _suite_with_formulas(suite))
    raise ParameterError(f"'suite' must be one of {', '.join(SUITES)}, or a .toml file of formulas. Got '{suite}'.")


@cache
def _blackbox_table() -> dict[str, tuple[int, int]]:
    text = resources.files("sobolev_novelty.lab.bench.problems").joinpath("blackbox.csv").read_text(encoding="utf-8")
    return {row["name"]: (int(row["n_samples"]), int(row["n_features"])) for row in csv.DictReader(text.splitlines())}


def data_folder() -> Path:
    """Folder of the PMLB files: ``$SOBOLEV_DATA/pmlb``, or a folder in the user's cache."""
    named = os.environ.get("SOBOLEV_DATA")
    if named:
        return Path(named) / "pmlb"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sobolev-novelty" / "pmlb"


def missing_tasks(names: Sequence[str], *, download: bool = False) -> tuple[str, ...]:
    """Tasks whose data are not on this machine, after trying to download them if asked to."""
    absent = [name for name in names if name in _blackbox_table() and not _local_file(name).is_file()]
    if not download:
        return tuple(absent)
    still_absent = []
    for name in absent:
        try:
            _download(name)
        except DataError:
            still_absent.append(name)
    return tuple(still_absent)


def _local_file(name: str) -> Path:
    return data_folder() / name / f"{name}.tsv.gz"


def _download(name: str) -> None:
    pmlb = require("pmlb", extra="bench")
    folder = data_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pmlb.fetch_data(name, local_cache_dir=str(folder))
    except (OSError, ValueError) as error:
        raise DataError(
            f"The data set '{name}' is not in {folder} and could not be downloaded ({error}). "
            "Set SOBOLEV_DATA to a folder that has pmlb/<name>/<name>.tsv.gz."
        ) from error


def load(
    name: str, *, max_train_rows: int = MAX_TRAIN_ROWS, suite: str | None = None
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """All rows of a task: inputs, targets, column names.

    A white-box task generates as many rows as give ``max_train_rows`` for training (SRBench draws from 100,000), from
    a stream that depends on its name only: the seed of a run chooses the split, not the data.
    """
    task = _formula(name, suite)
    if task is None:
        return _load_blackbox(name)
    n_samples = int(np.ceil(max_train_rows / TRAIN_SHARE))
    X, y = task.sample(n_samples, np.random.default_rng(zlib.crc32(name.encode())))
    return X, y, task.variables


def _suite_with_formulas(suite: str) -> tuple[Task | AnchorTask, ...]:
    return anchor_tasks(suite) if suite in ANCHORS else formula_tasks(suite)


def _formula(name: str, suite: str | None) -> Task | AnchorTask | None:
    """The task with its formula; ``None`` for a table of measurements."""
    if suite is not None and (suite in ANCHORS or suite.endswith(".toml")):
        found = [task for task in _suite_with_formulas(suite) if task.name == name]
        if not found:
            raise ParameterError(f"'{suite}' has no formula '{name}'.")
        return found[0]
    return None if name in _blackbox_table() else whitebox_task(name)


def task_fingerprint(name: str, suite: str | None = None) -> str:
    """Twelve characters that change when the task is another: its formula and ranges, or the bytes of its file."""
    task: object
    if suite in IDENTIFIABILITY:
        task = drawn_law(suite, cell_named(suite, name))
    else:
        task = everyday_task(suite, name) if suite in EVERYDAY else _formula(name, suite)
    content = _local_file(name).read_bytes() if task is None else repr(task).encode()
    return hashlib.sha256(content).hexdigest()[:12]


def _load_blackbox(name: str) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    path = _local_file(name)
    if not path.is_file():
        _download(name)
    import pandas as pd

    frame = pd.read_csv(path, sep="\t", compression="gzip").dropna()
    columns = [column for column in frame.columns if column != "target"]
    X = frame[columns].to_numpy(dtype=np.float64)
    return X, frame["target"].to_numpy(dtype=np.float64), tuple(columns)


def split(n_samples: int, seed: int) -> tuple[IndexArray, IndexArray]:
    """Training and test rows as scikit-learn's ``train_test_split`` draws them with ``random_state=seed``.

    Written out because every task is a process of its own, and importing scikit-learn costs it more than a fast fit.
    """
    order = np.random.RandomState(seed).permutation(n_samples)  # the legacy stream is the protocol
    n_test = int(np.ceil((1 - TRAIN_SHARE) * n_samples))
    n_train = int(np.floor(TRAIN_SHARE * n_samples))
    return order[n_test : n_test + n_train], order[:n_test]


def shifted_split(X: FloatArray, y: FloatArray) -> tuple[IndexArray, IndexArray]:
    """Training and test rows of another range: sorted by the column most correlated with the target, the last fifth.

    >>> train, test = shifted_split(np.arange(10.0)[::-1, None], np.arange(10.0))
    >>> test.tolist()
    [1, 0]
    """
    with np.errstate(all="ignore"):
        correlations = [abs(float(np.corrcoef(column, y)[0, 1])) for column in X.T]
    column = X[:, int(np.argmax(np.nan_to_num(correlations)))]
    order = np.argsort(column, kind="stable")
    n_test = len(y) // 5
    return order[:-n_test], order[-n_test:]


def task_data(
    name: str, seed: int, *, max_train_rows: int = MAX_TRAIN_ROWS, noise: float = 0.0, suite: str | None = None
) -> TaskData:
    """Split a task by SRBench's protocol.

    ``name``: a task of the white-box or black-box suite, or of the one that ``suite`` names.
    ``seed``: decides the split, the training rows kept and the noise.
    ``noise``: standard deviation of the noise on ``y_train``, as a share of its root mean square.
    ``suite``: only needed for anchors and files of formulas.
    """
    if max_train_rows < 1:
        raise ParameterError(f"'max_train_rows' must be at least 1. Got {max_train_rows}.")
    if not (np.isfinite(noise) and noise >= 0):
        raise ParameterError(f"'noise' must be zero or positive. Got {noise}.")
    if suite in EVERYDAY:
        return _everyday_data(suite, name, seed, noise)
    if suite in IDENTIFIABILITY:
        return _many_term_data(suite, name, seed, noise)
    X, y, variables = load(name, max_train_rows=max_train_rows, suite=suite)
    train, test = shifted_split(X, y) if suite == SHIFTED else split(len(y), seed)
    X_train, X_test, y_train, y_test = X[train], X[test], y[train], y[test]
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if len(y_train) > max_train_rows:
        kept = np.sort(rng.choice(len(y_train), size=max_train_rows, replace=False))
        X_train, y_train = X_train[kept], y_train[kept]
    if noise > 0:
        y_train = y_train + rng.normal(0.0, noise * np.sqrt(np.mean(np.square(y_train))), size=len(y_train))
    task = _formula(name, suite)
    truth = None if task is None else task.positional_expression
    return TaskData(name, variables, X_train, y_train, X_test, y_test, truth)


def _refuse_noise(suite: str, noise: float) -> None:
    if noise != 0.0:
        raise ParameterError(f"'noise' must be 0: tables of '{suite}' have noise of their own. Got {noise}.")


def _many_term_data(suite: str, name: str, seed: int, noise: float) -> TaskData:
    _refuse_noise(suite, noise)
    cell = cell_named(suite, name)
    law, rows = drawn_law(suite, cell), drawn_rows(suite, cell, seed)
    y_test = law.values(rows.X_test)
    return TaskData(name, law.variables, rows.X, rows.y, rows.X_test, y_test, law.positional_expression, rows.X_far)


def _everyday_data(suite: str, name: str, seed: int, noise: float) -> TaskData:
    _refuse_noise(suite, noise)
    task = everyday_task(suite, name)
    table = drawn_table(task, seed)
    truth = task.law.expression.rename({name: f"x{k}" for k, name in enumerate(table.columns)})
    return TaskData(name, table.columns, table.X, table.y, table.X_test, table.y_test, truth)


def r_squared(y: FloatArray, prediction: FloatArray) -> float | None:
    """Coefficient of determination; ``None`` where a prediction is not finite, and 1 or 0 for a constant target."""
    with np.errstate(all="ignore"):
        residual = float(np.sum(np.square(y - prediction)))
        total = float(np.sum(np.square(y - np.mean(y))))
    if not np.isfinite(residual):
        return None
    if total == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return 1.0 - residual / total
