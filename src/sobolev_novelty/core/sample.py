"""Samples: the observed inputs as the kernels read them, checked once at the door.

Notation
--------
``X``  user's table, (N, d) array or DataFrame
``Sample.X``  the same as (d, N) float64, one contiguous row per feature
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sobolev_novelty.errors import DataError, DataTypeError, SobolevError, shortened

FloatArray = npt.NDArray[np.float64]

#: Samples up to this size are copied; only such are kept with a report.
MAX_KEPT_BYTES = 1 << 24
#: Numbers that are worked on together, so that a copy of them takes little memory.
_MAX_TOGETHER = 1 << 18
#: Kinds of dtype that NumPy would turn into floats without a word.
_NOT_REAL = {"c": "complex numbers (Complex data not supported)", "M": "dates", "m": "durations"}


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Observed inputs."""

    X: FloatArray  # shape (n_features, n_samples)
    names: tuple[str, ...]  # one name per feature: the DataFrame's columns, or ``x0, x1, …``
    _scales: list[FloatArray] = field(default_factory=list, init=False, repr=False)  # worked out when first asked for
    memo: dict[object, object] = field(default_factory=dict, init=False, repr=False)  # what others worked out of it

    @property
    def n_features(self) -> int:
        """Number of input columns, d."""
        return int(self.X.shape[0])

    @property
    def n_samples(self) -> int:
        """Number of rows, N."""
        return int(self.X.shape[1])

    def scales(self) -> FloatArray:
        """Standard deviation of each feature over its finite entries; exactly 0 for a constant column."""
        if not self._scales:
            self._scales.append(standard_deviations(self.X))
        return self._scales[0]

    def places(self, names: Collection[str]) -> list[int]:
        """Where the features with these names are, from the first to the last."""
        return [j for j, name in enumerate(self.names) if name in names]

    def features(self, names: Collection[str]) -> Sample:
        """The sample restricted to the features with these names; itself where these are all."""
        keep = self.places(names)
        if len(keep) == self.n_features:
            return self
        found = Sample(self.X[keep], tuple(self.names[j] for j in keep))
        found._scales.extend(scales[keep] for scales in self._scales)
        return found

    def rows(self, keep: npt.NDArray[Any]) -> Sample:
        """The sample restricted to some rows (a mask or indices); itself where a mask keeps all."""
        if keep.dtype == bool and keep.all():
            return self
        return Sample(np.ascontiguousarray(self.X[:, keep]), self.names)


def as_sample(X: Any, names: Sequence[str] | None = None) -> Sample:
    """Check a table of inputs and give it the kernels' layout.

    ``X``: shape (n_samples, n_features), DataFrame, Series, or Sample, a one-dimensional array is one feature.
    ``names``: feature names; by default the DataFrame's columns, or ``x0, x1, …``.

    >>> as_sample([[1.0, 2.0], [3.0, 4.0]]).names
    ('x0', 'x1')
    """
    if isinstance(X, Sample):
        return X
    refuse_dask(X, "X")
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        names = tuple(str(column) for column in X.columns) if names is None else names
        values = _numeric_columns(X) if hasattr(X, "iloc") else numeric_array(X.to_numpy())
    else:
        values = numeric_array(X)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2:
        raise DataError(f"'X' must have two dimensions, samples × features. Got {values.ndim}: shape {values.shape}.")
    if values.shape[0] == 0:
        raise DataError("'X' has no rows. Give at least 32 samples.")
    if values.shape[1] == 0:
        raise DataError("'X' has no columns. Give at least one input.")
    resolved = tuple(f"x{k}" for k in range(values.shape[1])) if names is None else tuple(str(name) for name in names)
    if len(resolved) != values.shape[1]:
        raise DataError(f"'names' must have one name per column of 'X', {values.shape[1]} in all. Got {len(resolved)}.")
    if len(set(resolved)) != len(resolved):
        twice = repeated(resolved)
        raise DataError(f"Column names must differ. Got these more than once: {', '.join(twice)}. Rename them.")
    # A report may keep a small sample, so that must not be the user's own memory.
    own = np.array(values.T, order="C") if values.nbytes <= MAX_KEPT_BYTES else np.ascontiguousarray(values.T)
    return Sample(own, resolved)


def abridged(notes: Sequence[str], more: str, at_most: int = 8) -> tuple[str, ...]:
    """Notes of which only the first are given where there are many, with the number of the others.

    >>> abridged(["a is odd.", "b is odd.", "c is odd."], "columns are odd.", 2)
    ('a is odd.', '2 more columns are odd.')
    """
    if len(notes) <= at_most:
        return tuple(notes)
    return (*notes[: at_most - 1], f"{len(notes) - at_most + 1} more {more}")


def repeated(names: Sequence[str]) -> list[str]:
    """Names that occur more than once.

    >>> repeated(["a", "b", "a"])
    ['a']
    """
    return sorted(name for name, count in Counter(names).items() if count > 1)


def as_target(y: Any, n_samples: int, name: str = "y") -> FloatArray:
    """Check a target: one finite number per sample.

    >>> as_target([1, 2, 3], 3)
    array([1., 2., 3.])
    """
    refuse_dask(y, name)
    values = numeric_array(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n_samples,):
        raise DataError(f"'{name}' must have one value per row of 'X', shape ({n_samples},). Got shape {values.shape}.")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(
            f"'{name}' has {len(bad)} non-finite value(s), the first in row {bad[0]}. Drop or impute these rows."
        )
    return np.ascontiguousarray(values)


def is_dask(X: Any) -> bool:
    """Whether this is a Dask collection; does not import Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def refuse_dask(X: Any, name: str) -> None:
    """Refuse what would be loaded into memory without a word."""
    if is_dask(X):
        raise DataError(
            f"'{name}' is a Dask collection, which this function does not read in parts. Give a part that fits in "
            f"memory, {name}.compute(). Only novelty() reads Dask."
        )


def standard_deviations(X: FloatArray) -> FloatArray:
    """Standard deviation of each row of ``X`` over its finite entries; exactly 0 for a constant row.

    >>> standard_deviations(np.array([[1.0, 3.0, np.nan], [0.1, 0.1, 0.1]]))
    array([1., 0.])
    """
    n = max(X.shape[1], 1)
    variance = np.empty(len(X))
    n_together = max(_MAX_TOGETHER // n, 1)
    with np.errstate(all="ignore"):
        for first in range(0, len(X), n_together):
            part = X[first : first + n_together]
            centred = part - (part.sum(axis=1) / n)[:, None]
            variance[first : first + n_together] = np.einsum("ij,ij->i", centred, centred) / n
    # Missing entries, squares beyond the range of floats and (nearly) constant rows need a closer look.
    with np.errstate(all="ignore"):
        level = np.square(X[:, :1]).sum(axis=1)
        is_plain = (variance > 1e-24 * level) & (variance > 1e-200) & (variance < 1e200)
    spread = np.sqrt(np.where(is_plain, variance, 0.0))
    for j in np.flatnonzero(~is_plain):
        spread[j] = _spread(X[j])
    return spread


def _spread(row: FloatArray) -> float:
    finite = row[np.isfinite(row)]
    if len(finite) == 0 or finite.min() == finite.max():
        return 0.0
    # Squares of 1e200 or 1e-200 leave the range of floats.
    peak = float(np.abs(finite).max())
    return float((finite / peak).std() * peak)


def plain_table(X: Any) -> Any:
    """Inputs as scikit-learn's own reader can be given them: finite numbers, a DataFrame where columns have names.

    That reader takes what is masked for data, dates for numbers of nanoseconds and text for numbers, and its advice on
    missing values is another library.

    >>> plain_table([[1, 2]])
    array([[1., 2.]])
    """
    refuse_dask(X, "X")
    has_names = hasattr(X, "columns") and hasattr(X, "to_numpy")
    values = _numeric_columns(X) if has_names and hasattr(X, "iloc") else numeric_array(X)
    if values.ndim == 0:
        raise DataError(f"'X' must have two dimensions, samples × features. Got one {type(X).__name__}.")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad) and values.ndim <= 2:
        row, *columns = bad[0].tolist()
        names = [str(name) for name in X.columns] if has_names else [f"x{k}" for k in range(values.shape[-1])]
        where = f", column '{names[columns[0]]}'" if columns else ""
        raise DataError(
            f"'X' has {len(bad)} entries that are missing or infinite (NaN or inf), the first in row {row}{where}. "
            "Drop these rows or fill them in."
        )
    if not has_names:
        return values
    import pandas as pd

    return pd.DataFrame(values, columns=list(X.columns))


def _numeric_columns(frame: Any) -> FloatArray:
    if frame.size <= MAX_KEPT_BYTES // 8:
        whole = frame.to_numpy()  # column by column takes longer than a novelty
        if whole.dtype.kind in "fiu":
            return np.asarray(whole, dtype=np.float64)
    columns = []
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        try:
            if getattr(column.dtype, "kind", "O") in _NOT_REAL or _first_text(column) is not None:
                raise TypeError(f"{column.dtype} is not a real number")
            columns.append(np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64))
        except Exception:  # entries may be anything
            example = next((value for value in column if not isinstance(value, int | float | np.number)), None)
            raise DataError(
                f"Column '{name}' is not numeric (for example {shortened(example, 40)}). Drop it or encode it as "
                "numbers."
            ) from None
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def numeric_array(X: Any, name: str = "X") -> FloatArray:
    """An array of floats; what is masked is missing."""
    _refuse_what_is_no_array(X, name)
    try:
        if isinstance(X, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in X):
            X = np.ma.array(X)
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        values = np.asarray(X)
        if values.dtype.kind in _NOT_REAL:
            raise DataError(f"'{name}' holds {_NOT_REAL[values.dtype.kind]}. Give real numbers.")
        text = _first_text(values)
        if text is not None:
            raise DataError(
                f"'{name}' cannot be read as numbers: it holds text (for example {shortened(text, 40)}). Give a "
                "numeric array or DataFrame."
            )
        return np.asarray(values, dtype=np.float64)
    except SobolevError:
        raise
    except Exception as error:  # whatever an object of somebody else's raises when it is asked for numbers
        kind = DataTypeError if isinstance(error, TypeError) else DataError
        why = " ".join(f"{error}".split())[:160].rstrip(".")
        raise kind(f"'{name}' cannot be read as numbers: {why}. Give a numeric array or DataFrame.") from error


def _refuse_what_is_no_array(X: Any, name: str) -> None:
    """Refuse by name what NumPy would wrap as one object."""
    remedy = None
    if X is None:
        raise DataError(f"'{name}' is missing (None). Give a numeric array or DataFrame.")
    if hasattr(X, "toarray") and hasattr(X, "tocsr"):
        remedy = f"{name}.toarray(), for it is sparse"
    elif isinstance(X, Mapping):
        remedy = f"pandas.DataFrame({name})"
    elif hasattr(X, "collect") and not hasattr(X, "__array__"):
        remedy = f"{name}.collect(), for it holds no rows yet"
    if remedy is not None:
        raise DataError(f"'{name}' must be a numeric array or DataFrame. Got a {type(X).__name__}: give {remedy}.")


def _first_text(values: Any) -> Any:
    """The first text among the entries of an array or a column; None where there is none."""
    if values.dtype.kind in "USO" if isinstance(values, np.ndarray) else values.dtype in ("object", "string", "str"):
        entries = values.ravel() if isinstance(values, np.ndarray) else values
        found = next((value for value in entries if isinstance(value, str | bytes)), None)
        return found if found is None or isinstance(found, bytes) else str(found)  # not np.str_('a')
    return None
