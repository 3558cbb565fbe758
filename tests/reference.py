"""Independent references: m separate least-squares solves, and signatures from SymPy's derivatives, term by term."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import sympy

from sobolev_novelty.core.sample import FloatArray

#: Smooth terms in two inputs that stay finite on [-2, 2]².
TERMS = (
    "1", "x0", "x1", "x0*x1", "x0**2", "x1**3", "sin(x0)", "sin(2*x1)", "cos(x0)", "exp(x0/2)", "tanh(x0 + x1)",
    "x0/(3 + x1)", "sin(x0)*x1", "log(4 + x0)", "sqrt(5 + x0 - x1)", "exp(-x1**2)", "arctan(x0*x1)", "1/(3 + x0)",
)  # fmt: skip


def reference_novelty(Psi: FloatArray) -> FloatArray:
    """Eq. 2 as it stands: for each column one least-squares solve against all the others."""
    nu = np.zeros(Psi.shape[1])
    for i in range(Psi.shape[1]):
        length = np.linalg.norm(Psi[:, i])
        if length == 0.0:
            continue
        target = Psi[:, i] / length
        others = np.delete(Psi, i, axis=1)
        norms = np.linalg.norm(others, axis=0)
        others = others[:, norms > 0.0] / norms[norms > 0.0]
        if others.shape[1]:
            target = target - others @ np.linalg.lstsq(others, target, rcond=1e-12)[0]
        nu[i] = np.linalg.norm(target)
    return nu


@cache
def _numeric(term: str, wrt: tuple[str, ...]) -> object:
    x0, x1 = sympy.symbols("x0 x1", real=True)
    expression = sympy.sympify(term.replace("arctan", "atan"), locals={"x0": x0, "x1": x1})
    for name in wrt:
        expression = sympy.diff(expression, {"x0": x0, "x1": x1}[name])
    return sympy.lambdify((x0, x1), expression, "numpy")


def reference_signature(
    term: str,
    X: FloatArray,
    *,
    order: int = 1,
    weights: Sequence[float] = (1.0, 1.0, 1.0),
    coordinates: str = "standardized",
    sigma: float = 1.0,
) -> FloatArray:
    """Eq. 1 of one term of two inputs, block by block, with every entry of the Hessian written out."""
    n, d = X.shape
    assert d == 2
    names = ("x0", "x1")
    scale = X.std(axis=0) if coordinates == "standardized" else np.ones(d)

    def column(*wrt: int) -> FloatArray:
        values = _numeric(term, tuple(names[j] for j in wrt))(X[:, 0], X[:, 1])  # type: ignore[operator]
        return np.broadcast_to(np.asarray(values, dtype=float), (n,)) * np.prod(scale[list(wrt)])

    blocks = [np.sqrt(weights[0] / n) * column()]
    if order >= 1:
        blocks += [np.sqrt(weights[1] / (n * d)) * column(j) for j in range(d)]
    if order >= 2:
        blocks += [np.sqrt(weights[2] / (n * d**2)) * column(j, k) for j in range(d) for k in range(d)]
    return np.concatenate(blocks) / sigma


def reference_matrix(terms: Sequence[str], X: FloatArray, **options: object) -> FloatArray:
    return np.stack([reference_signature(term, X, **options) for term in terms], axis=1)  # type: ignore[arg-type]


def inputs(seed: int, n_samples: int = 64) -> FloatArray:
    return np.random.default_rng(seed).uniform(-2.0, 2.0, size=(n_samples, 2))
