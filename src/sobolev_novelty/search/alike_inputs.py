"""Inputs that the rows cannot tell apart.

Notation
--------
``V = Σ (x_{k+1} - x_k)² / 2 Σ (x_k - x̄)²``  von Neumann's ratio of one input in the order of another: about 1 for
inputs that have nothing to do with each other, near 0 where one is a smooth function of the other
"""

from __future__ import annotations

import numpy as np

from sobolev_novelty.data import FloatArray
from sobolev_novelty.search.choose.rows import Rows

#: Below this ratio an input is a function of another.
FUNCTION = 0.005
#: Inputs whose neighbourhoods have this share of their variance along one direction lie on a curve.
ON_A_CURVE = 0.98
N_NEIGHBOURS, N_LOOKED_AT = 8, 200


def alike_inputs(rows: Rows) -> tuple[str, ...]:
    """A sentence for each set of inputs that these rows cannot tell apart.

    Examples
    --------
    >>> t = np.linspace(0.0, 1.0, 60)
    >>> alike_inputs(Rows(np.c_[t, t**2], t, None, ("x0", "x1")))
    ('On these rows x1 is a function of x0: they cannot be told apart.',)
    """
    varying = [k for k in range(rows.X.shape[1]) if np.ptp(rows.X[:, k]) > 0.0]
    pairs = [(i, j) for n, i in enumerate(varying) for j in varying[n + 1 :] if _is_function(rows.X, i, j)]
    sentences = [
        f"On these rows {rows.names[j]} is a function of {rows.names[i]}: they cannot be told apart." for i, j in pairs
    ]
    if not pairs and len(varying) > 1 and _is_curve(rows.X[:, varying]):
        names = ", ".join(rows.names[k] for k in varying)
        sentences.append(f"The inputs {names} lie on a curve: off it, equations that fit equally well differ.")
    return tuple(sentences)


def _is_function(X: FloatArray, i: int, j: int) -> bool:
    """Whether each of two inputs is a smooth function of the other."""
    return max(_ratio(X[:, i], X[:, j]), _ratio(X[:, j], X[:, i])) < FUNCTION


def _ratio(by: FloatArray, x: FloatArray) -> float:
    ordered = x[np.lexsort((x, by))]
    return float(np.sum(np.diff(ordered) ** 2) / (2.0 * np.sum((x - x.mean()) ** 2)))


def _is_curve(X: FloatArray) -> bool:
    if len(X) < 4 * N_NEIGHBOURS:
        return False
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    shares = []
    for place in np.unique(np.linspace(0, len(Z) - 1, N_LOOKED_AT).astype(np.intp)).tolist():
        near = Z[np.argsort(np.sum((Z - Z[place]) ** 2, axis=1), kind="stable")[:N_NEIGHBOURS]]
        s = np.linalg.svd(near - near.mean(axis=0), compute_uv=False) ** 2
        shares.append(float(s[0] / s.sum()) if s.sum() > 0.0 else 1.0)
    return bool(np.median(shares) > ON_A_CURVE)
