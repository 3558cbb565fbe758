r"""Inputs that these rows cannot tell apart: one is a function of the other, or all lie on a curve.

Notation
--------
``V = Σ (x_{k+1} - x_k)² / 2 Σ (x_k - x̄)²``  von Neumann's ratio of one input in the order of another: about 1 for
inputs that have nothing to do with each other, near 0 where one is a smooth function of the other. Rows in which the
other input is the same have no order: there the square is the mean over all orders.

A graded input, of few levels that repeat, is a direction of its own. All rows near a row have the same level, so that
the other inputs seem to lie on a curve beside it, though every level occurs with every value of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sobolev_novelty.core.sample import FloatArray

#: Below this ratio an input is a function of another.
FUNCTION = 0.005
#: Inputs whose neighbourhoods have this share of their variance along one direction lie on a curve.
ON_A_CURVE = 0.98
N_NEIGHBOURS, N_LOOKED_AT = 8, 200
#: An input is graded with at most so many levels (the hours of a day), each in so many rows on average.
MAX_LEVELS, ROWS_OF_A_LEVEL = 24, 3


def alike_inputs(X: FloatArray, names: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each set of inputs that these rows cannot tell apart.

    ``X``: shape (n_samples, n_features).

    >>> t = np.linspace(0.0, 1.0, 60)
    >>> alike_inputs(np.c_[t, t**2], ("x0", "x1"))
    ('On these rows x1 is a function of x0: they cannot be told apart.',)
    >>> alike_inputs(np.c_[t, np.arange(60) % 3], ("x0", "level"))
    ()
    """
    varying = [k for k in range(X.shape[1]) if np.ptp(X[:, k]) > 0.0]
    pairs = [(i, j) for n, i in enumerate(varying) for j in varying[n + 1 :] if _is_function(X, i, j)]
    if pairs:
        return tuple(
            f"On these rows {names[j]} is a function of {names[i]}: they cannot be told apart." for i, j in pairs
        )
    smooth = [k for k in varying if not _is_graded(X[:, k])]
    if len(smooth) < 2 or not _is_curve(X[:, smooth]):
        return ()
    listed = ", ".join(names[k] for k in smooth)
    return (f"The inputs {listed} lie on a curve: off it, equations that fit equally well differ.",)


def _is_function(X: FloatArray, i: int, j: int) -> bool:
    """Whether each of two inputs is a smooth function of the other."""
    return max(_ratio(X[:, i], X[:, j]), _ratio(X[:, j], X[:, i])) < FUNCTION


def _ratio(by: FloatArray, x: FloatArray) -> float:
    group = np.unique(by, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(group)
    centred = x - x.mean()
    means = np.bincount(group, weights=centred) / sizes
    within = np.bincount(group, weights=(centred - means[group]) ** 2)
    variances = within / sizes
    between = np.diff(means) ** 2 + variances[1:] + variances[:-1]
    return float((2.0 * within.sum() + between.sum()) / (2.0 * np.sum(centred**2)))


def _is_graded(x: FloatArray) -> bool:
    return len(np.unique(x)) <= min(MAX_LEVELS, len(x) / ROWS_OF_A_LEVEL)


def _is_curve(X: FloatArray) -> bool:
    """Whether the neighbours of most rows lie along one direction, by ranks: units and decades do not matter."""
    Z = np.column_stack([np.unique(column, return_inverse=True)[1].reshape(-1) for column in X.T]).astype(np.float64)
    Z = np.unique(Z, axis=0)
    if len(Z) < 4 * N_NEIGHBOURS:
        return False
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    shares = []
    for place in np.unique(np.linspace(0, len(Z) - 1, N_LOOKED_AT).astype(np.intp)).tolist():
        near = Z[np.argsort(np.sum((Z - Z[place]) ** 2, axis=1), kind="stable")[:N_NEIGHBOURS]]
        s = np.linalg.svd(near - near.mean(axis=0), compute_uv=False) ** 2
        shares.append(float(s[0] / s.sum()) if s.sum() > 0.0 else 1.0)
    return bool(np.median(shares) > ON_A_CURVE)
