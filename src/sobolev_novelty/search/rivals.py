"""Equations that these rows cannot tell from the chosen one, and inputs that they cannot tell apart.

Notation
--------
``V = Σ (x_{k+1} - x_k)² / 2 Σ (x_k - x̄)²``  von Neumann's ratio of one input in the order of another: about 1 for
inputs that have nothing to do with each other, near 0 where one is a smooth function of the other
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sobolev_novelty import kernels
from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.doubt import doubt
from sobolev_novelty.search.validation import Rows, cross_validated, lead

if TYPE_CHECKING:
    import pandas as pd

#: Standard errors within which held-out errors are equal.
EQUAL = 1.0
#: Equations whose values differ by less than this share of the target's spread are one equation in two spellings.
SAME = 1e-6
#: Below this ratio an input is a function of another.
FUNCTION = 0.005
#: Inputs whose neighbourhoods have this share of their variance along one direction lie on a curve.
ON_A_CURVE = 0.98
N_NEIGHBOURS, N_LOOKED_AT = 8, 200
#: Rivals that are looked for.
MAX_RIVALS = 10


def rivals(
    chosen: Expression,
    others: Sequence[Expression],
    rows: Rows,
    complexity: Callable[[Expression], int] = len,
) -> pd.DataFrame:
    """Equations whose held-out error is that of the chosen one within its noise: the data leave the choice open.

    Returns
    -------
    DataFrame
        complexity, held_out (mean squared error of rows not fitted to), lead (standard errors ahead of the chosen
        equation), difference (root mean square difference of the predictions, in standard deviations of the target)
        and expression; the first row is the chosen equation.
    """
    import pandas as pd

    candidates = [chosen, *dict.fromkeys(e for e in others if e != chosen)]
    found = cross_validated(candidates, rows)
    values = _values(candidates, rows)
    spread = float(np.std(rows.y)) or 1.0
    kept: list[int] = []
    for i in sorted(range(1, len(candidates)), key=lambda i: found.mean[i]):
        ahead = lead(found.squares[i], found.squares[0], rows.weights)
        is_new = all(_distance(values[i], values[j]) > SAME * spread for j in [0, *kept])
        if len(kept) < MAX_RIVALS and ahead >= -EQUAL and is_new and not doubt(candidates[i], rows):
            kept.append(i)
    records = [
        {
            "complexity": complexity(candidates[i]),
            "held_out": float(found.mean[i]),
            "lead": lead(found.squares[i], found.squares[0], rows.weights) if i else 0.0,
            "difference": _distance(values[i], values[0]) / spread,
            "expression": candidates[i],
        }
        for i in [0, *kept]
    ]
    return pd.DataFrame(records)


def _values(expressions: Sequence[Expression], rows: Rows) -> FloatArray:
    programs = kernels.compile_programs(expressions, rows.names)
    with np.errstate(all="ignore"):
        return np.asarray(kernels.derivatives(programs, np.ascontiguousarray(rows.X.T))[:, 0])


def _distance(a: FloatArray, b: FloatArray) -> float:
    with np.errstate(all="ignore"):
        distance = float(np.sqrt(np.mean((a - b) ** 2)))
    return distance if np.isfinite(distance) else np.inf


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
