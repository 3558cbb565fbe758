r"""The accuracy–complexity score that every engine and every verb shares.

.. math:: R_{\mathrm{base}}(s) = \frac{\eta^{C(s)}}{1 + \sqrt{E(s)}}, \qquad
          E = \frac{\mathrm{NMSE}}{(1 - C/n)^2}, \qquad
          \mathrm{NMSE} = \frac{\sum_k w_k (y_k-s(x_k))^2}{\sum_k w_k (y_k-\bar y)^2}

1 is a perfect fit by an empty expression; each node costs a factor η. The paper names an accuracy–complexity score
without giving it; this is the one of tree-search symbolic regression with the square root taken of the normalised
error, so that it does not depend on units, and with the error to expect on new rows in place of the error seen.

Notation
--------
``C``  nodes of the expression;  ``n``  distinct rows;  ``w``  their joint weights;  ``E``  error to expect on new rows
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray

#: Price of one node. At 0.999 ten nodes must lower 1 + √NMSE by one per cent.
PARSIMONY = 0.999
#: Nodes for each row beyond which the expected error grows no further.
MAX_PARAMETER_SHARE = 0.9
#: Rows for each value of a column that takes a few values only, and how often one row may come.
ROWS_PER_LEVEL, MAX_TIMES = 10, 1e7
#: An error below this share of the target's variance is an exact fit: the equation is found, only rounding is left.
EXACT_NMSE = 1e-20


def nmse(y: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
    """Squared error relative to the target's variance; ``inf`` where a prediction is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> nmse(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))
    0.0
    """
    w = np.ones_like(y) if weights is None else weights
    centre = float(np.average(y, weights=w))
    with np.errstate(over="ignore"):
        total = float(np.sum(w * (y - centre) ** 2))
        error = float(np.sum(w * (y - prediction) ** 2))
    if not np.isfinite(error):
        return float("inf")
    return error / total if total > 0.0 else (0.0 if error == 0.0 else float("inf"))


def merged_rows(
    X: FloatArray, y: FloatArray, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Distinct rows in lexicographic order with their joint weights, scaled to mean 1; ``None`` for equal weights.

    A row of weight two and a row given twice are one row here, with the same joint weight; a row of weight 0 is left
    out. Errors are taken with the joint weights, and the number of rows is that of the distinct ones: see
    :func:`expected_error`.

    Where every input and the target take a few values only (grades, codes, counts), rows repeat by themselves: a
    thousand answers to a questionnaire are a thousand rows, in however many boxes. There each row comes as often as it
    was given, and a table given twice still counts once.

    ``X``: shape (n_samples, n_features).

    >>> X, y, weights = merged_rows(np.array([[2.0], [1.0], [2.0]]), np.array([5.0, 4.0, 5.0]))
    >>> X.tolist(), y.tolist(), (weights * 3 / 2).tolist()
    ([[1.0], [2.0]], [4.0, 5.0], [1.0, 2.0])
    """
    w = np.ones(len(y)) if weights is None else weights
    kept = w > 0.0
    table = np.column_stack([X[kept], y[kept]]) + 0.0  # -0.0 and 0.0 are one value
    order = np.argsort(table[:, 0], kind="stable")
    if len(table) and (np.diff(table[order, 0]) == 0.0).any():  # sorting one column is much faster than sorting rows
        order = np.lexsort(table.T[::-1])
    table, w = table[order], w[kept][order]
    starts = np.flatnonzero(np.r_[True, (np.diff(table, axis=0) != 0.0).any(axis=1)]) if len(table) else np.arange(0)
    joint = np.add.reduceat(w, starts) if len(starts) else w
    distinct = table[starts]
    times = _times_given(distinct, joint)
    if times is not None:
        distinct = np.repeat(distinct, times, axis=0)
        return distinct[:, :-1], distinct[:, -1], None
    joint = joint / joint.mean()
    return distinct[:, :-1], distinct[:, -1], None if np.ptp(joint) < 1e-12 else joint


def _times_given(distinct: FloatArray, joint: FloatArray) -> npt.NDArray[np.int64] | None:
    """How often each row of a table of levels comes, without a factor common to all; None for any other table."""
    if len(joint) == 0 or not 1.0 <= joint.max() < MAX_TIMES or (joint != np.rint(joint)).any():
        return None
    times = np.rint(joint).astype(np.int64)
    times //= np.gcd.reduce(times)
    n = int(times.sum())
    if n == len(times) or any(len(np.unique(column)) * ROWS_PER_LEVEL > n for column in distinct.T):
        return None
    return times


def n_distinct_rows(X: FloatArray, y: FloatArray) -> int:
    """How many rows of a table count: those that differ, all of a table of levels; missing values are equal.

    >>> n_distinct_rows(np.array([[2.0], [np.nan], [2.0], [np.nan]]), np.array([5.0, 4.0, 5.0, 4.0]))
    2
    """
    # A measured target hardly repeats, and sorting one column is much faster than sorting rows.
    return len(y) if len(np.unique(y)) == len(y) else len(merged_rows(np.nan_to_num(X), y)[1])


def expected_error(error: float, complexity: int, n_rows: float) -> float:
    """NMSE to expect on new rows: ``error / (1 - C/n)²``, generalised cross-validation with nodes as parameters.

    A search chooses nodes as a fit chooses constants; on few rows that alone lowers the error. With a thousand rows and
    twenty nodes the factor is 1.04. It is bounded where there are fewer rows than nodes.

    n counts distinct rows of positive weight, whatever their weights. A copy brings nothing to fit, so a table given
    twice counts once. And weights are how well a row is known: divided by its standard error every
    residual is one of n equally good ones, however unequal the weights are, so each row is one degree of freedom.

    >>> expected_error(0.0, 30, 40), expected_error(0.25, 20, 40)
    (0.0, 1.0)
    """
    return error / (1.0 - min(complexity / n_rows, MAX_PARAMETER_SHARE)) ** 2


def base_score(error: float, complexity: int, n_rows: float, *, parsimony: float = PARSIMONY) -> float:
    """R_base of a candidate with this NMSE and node count, fitted to this many distinct rows.

    It is 0 where the error is not finite. The one score of the search, of the choice from its front, and of
    :func:`sobolev_novelty.metric.guidance.prune`. ``n_rows=math.inf`` takes the error as it is.

    Examples
    --------
    >>> base_score(0.0, 0, 40), round(base_score(1.0, 10, 1000), 4), round(base_score(1.0, 10, 20), 4)
    (1.0, 0.4925, 0.33)
    """
    expected = expected_error(error, complexity, n_rows)
    return float(parsimony**complexity / (1.0 + np.sqrt(expected))) if np.isfinite(expected) else 0.0


def choice_rank(error: float, score: float) -> tuple[bool, float]:
    """What decides between candidates, the largest first: whether the fit is exact, then the score.

    R_base alone would trade the last digits of a found law for a node. Of exact fits the simplest ranks highest.

    >>> choice_rank(1e-9, 0.99) < choice_rank(1e-25, 0.97)
    True
    """
    return error < EXACT_NMSE, score
