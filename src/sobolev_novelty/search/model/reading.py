"""Tables as an estimator takes them: our reader first, then scikit-learn's bookkeeping of columns and names."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from sobolev_novelty.core.sample import FloatArray, as_target, plain_table
from sobolev_novelty.errors import DataError, DataTypeError


def validated(estimator: Any, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """Rows and target of a fit; the estimator remembers the number and the names of the columns."""
    if y is None:
        raise DataError("'y' is missing (y should be a 1d array): give one number per row of 'X'.")
    table = plain_table(X)
    as_target(y, len(table))
    rows, target = _by_sklearn(estimator, table, y, y_numeric=True, ensure_min_samples=2)
    return rows, np.asarray(target, dtype=np.float64)


def validated_rows(estimator: Any, X: Any) -> FloatArray:
    """Rows of a fitted estimator's own columns."""
    rows: FloatArray = _by_sklearn(estimator, plain_table(X), reset=False)
    return rows


def _by_sklearn(estimator: Any, *data: Any, **options: Any) -> Any:
    try:
        return validate_data(estimator, *data, dtype=np.float64, **options)
    except (TypeError, ValueError) as error:
        raise (DataTypeError if isinstance(error, TypeError) else DataError)(str(error)) from error


__all__ = ["validated", "validated_rows"]
