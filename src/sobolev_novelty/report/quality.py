r"""How well an equation gives a target: R², cross-validated R², residuals, and how far each term moves the prediction.

Notation
--------
``y``, ``p``  target and prediction of the equation as it is given, at the rows used;  ``w`` weights of the rows
``R²``        :math:`1 - \sum w (y-p)^2 / \sum w (y-\bar y)^2`, of the equation as given and with refitted coefficients
``cv R²``     the same, each row predicted by coefficients and an intercept refitted to the other folds
``effect``    5 % and 95 % quantile of b_i φ_i about its median, in the unit of ``y``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.digits import json_number, json_rows
from sobolev_novelty.core.geometry import MIN_WORD_ROWS
from sobolev_novelty.core.sample import FloatArray

N_FOLDS = 5
#: Rows that a drawing shows, drawn at random.
MAX_POINTS = 300
#: Quantiles of the residuals that are kept.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class FitQuality:
    """How well an equation gives a target.

    Attributes
    ----------
    r2 : float
        Of the equation as it is given.
    refitted_r2, cv_r2 : float
        With coefficients and an intercept refitted to the rows, and to four fifths of them at a time; ``nan`` where
        there are no more rows than coefficients, or too few to leave some out.
    rmse : float
        Root mean square of the residuals of the equation as it is given.
    residual_quantiles : tuple of float
        At 5, 25, 50, 75 and 95 %.
    n_rows : int
        Rows with finite values of all terms.
    effects : ndarray of shape (n_terms, 2)
        How far each term moves the prediction: 5 % and 95 % quantile of its part, less the median.
    spread : tuple of float
        The same quantiles of the target.
    points : ndarray of shape (2, n_points)
        Target and prediction at some rows.
    """

    r2: float
    refitted_r2: float
    cv_r2: float
    rmse: float
    residual_quantiles: tuple[float, ...]
    n_rows: int
    effects: FloatArray
    spread: tuple[float, float]
    points: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """The numbers, without the points."""
        shares = {name: json_number(getattr(self, name)) for name in ("r2", "refitted_r2", "cv_r2", "rmse")}
        return {
            **shares,
            "residual_quantiles": [json_number(value) for value in self.residual_quantiles],
            "n_rows": self.n_rows,
            "effects": json_rows(self.effects),
            "spread": [json_number(value) for value in self.spread],
        }


def quality_of_columns(
    columns: FloatArray, b: FloatArray, y: FloatArray, weights: FloatArray | None = None
) -> FitQuality | None:
    """How well the sum of the terms gives ``y``; None where fewer than three rows are finite.

    ``columns``: shape (m, n_samples), values of the terms; ``b`` their coefficients.

    >>> x = np.linspace(0.0, 1.0, 100)
    >>> found = quality_of_columns(x[None, :], np.array([2.0]), 2.0 * x + 0.1)
    >>> round(found.r2, 3), round(found.cv_r2, 3), round(found.rmse, 3)
    (0.971, 1.0, 0.1)
    """
    used = np.isfinite(columns).all(axis=0)
    if used.sum() < MIN_WORD_ROWS:
        return None
    columns, target = columns[:, used], y[used]
    w = np.ones(len(target)) if weights is None else weights[used]
    if not w.any():
        return None
    order = np.random.default_rng(0).permutation(len(target))  # rows can be sorted: folds and points are drawn
    with np.errstate(all="ignore"):
        parts = b[:, None] * columns
        prediction = parts.sum(axis=0)
        residual = target - prediction
        quantiles = np.quantile(residual, QUANTILES)
        low, middle, high = np.quantile(parts, (0.05, 0.5, 0.95), axis=1)
        ends = np.quantile(target, (0.05, 0.5, 0.95))
        folds = [order[k::N_FOLDS] for k in range(N_FOLDS)]
        n_free = 1 + int((np.ptp(columns, axis=1) > 0.0).sum())
        refitted = _r2(target, _refitted(columns, target, w, [np.arange(0)]), w) if len(target) > n_free else np.nan
        has_folds = len(target) >= 2 * (len(b) + 1) and len(target) >= 2 * N_FOLDS
        return FitQuality(
            r2=_r2(target, prediction, w),
            refitted_r2=refitted,
            cv_r2=_r2(target, _refitted(columns, target, w, folds), w) if has_folds else np.nan,
            rmse=float(np.sqrt((w @ residual**2) / w.sum())),
            residual_quantiles=tuple(quantiles.tolist()),
            n_rows=len(target),
            effects=np.column_stack([low - middle, high - middle]),
            spread=(float(ends[0] - ends[1]), float(ends[2] - ends[1])),
            points=np.array([target, prediction])[:, order[:MAX_POINTS]],
        )


def _r2(y: FloatArray, p: FloatArray, w: FloatArray) -> float:
    spread = w @ (y - (w @ y) / w.sum()) ** 2
    return float(1.0 - (w @ (y - p) ** 2) / spread) if spread > 0.0 else np.nan


def _refitted(columns: FloatArray, y: FloatArray, w: FloatArray, folds: Sequence[Any]) -> FloatArray:
    """Each row as predicted by coefficients and an intercept refitted without its fold; an empty fold: with all rows.

    Columns are centred and scaled, so that terms of very different size do not fall below the rank tolerance.
    """
    centred = columns - (columns @ w / w.sum())[:, None]
    size = np.abs(centred).max(axis=1, initial=0.0)
    A = np.vstack([np.ones(len(y)), centred / np.where(size > 0.0, size, 1.0)[:, None]]).T
    root = np.sqrt(w)
    prediction = np.empty(len(y))
    for fold in folds:
        kept = np.ones(len(y), dtype=bool)
        kept[fold] = False
        b = np.linalg.lstsq(A[kept] * root[kept, None], y[kept] * root[kept], rcond=None)[0]
        held = fold if len(fold) else slice(None)
        prediction[held] = A[held] @ b
    return prediction
