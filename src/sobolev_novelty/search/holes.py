r"""Partial expressions with one hole, what the hole must equal, and which terms of a library come near to it.

A partial expression is :math:`g_1(M_2\cdot g_3(\dots(b_1 T_1 + b_2 T_2 + \square)))`: outer functions :math:`g` that
can be undone, products :math:`M` that can be divided out, and the terms of the innermost sum. Undoing the outside gives
the hole a target of its own.

Notation
--------
``t``  target of the hole on the library's rows;  ``w``  |dy/dt|: weighted by it, an error in the hole counts as it does
in ``y``
``U``  values of the library's terms, shape (n_terms, n_rows); their weighted inner products are taken without weighting
``U`` itself
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.grammar import OUTERS, Product, Writer
from sobolev_novelty.search.library import Library, values_on

Step = str | Product
#: Rows a hole's target may miss (the outer function cannot be undone there).
MAX_MISSING = 0.05
#: Exponents nearer than this to a multiple of one half are taken for it.
EXPONENT_TOLERANCE = 0.12


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial expression: the steps around the hole, from outside, and the terms already in the innermost sum."""

    steps: tuple[Step, ...] = ()
    terms: tuple[Expression, ...] = ()

    def inside(self, step: Step) -> Partial:
        return Partial((*self.steps, step), self.terms)

    def plus(self, term: Expression) -> Partial:
        return Partial(self.steps, (*self.terms, term))


@dataclass(slots=True, eq=False)
class Hole:
    """The target of a hole and the library as seen from it.

    Parameters
    ----------
    t, w : ndarray of shape (n_rows,)
        Both 0 where the target could not be undone.
    """

    t: FloatArray
    w: FloatArray
    library: Library
    version: int = -1
    lengths: FloatArray = field(init=False)

    def inner(self, column: FloatArray) -> FloatArray:
        """Inner products of a (weighted) column with the library's weighted terms of unit length."""
        return np.asarray(self.library.U @ (self.w * column).astype(np.float32) / self.unit())

    def unit(self) -> FloatArray:
        """Weighted lengths of the library's terms, remade when the library has learned."""
        if self.version != self.library.version:
            lengths = np.sqrt(self.library.squares @ (self.w**2).astype(np.float32))
            self.lengths = np.where(lengths > 1e-20, lengths, 1.0)
            self.version = self.library.version
        return self.lengths

    def coefficients(self, terms: Sequence[Expression]) -> FloatArray | None:
        """Least squares of the target on the terms, weighted."""
        A = (self.library.values(terms) * self.w).T
        if not np.isfinite(A).all():
            return None
        scale = np.abs(A).max(axis=0)
        if (scale == 0.0).any():
            return None
        b: FloatArray = np.linalg.lstsq(A / scale, self.t * self.w, rcond=1e-12)[0] / scale
        return b if np.isfinite(b).all() else None


def open_hole(steps: Sequence[Step], y: FloatArray, library: Library, writer: Writer) -> Hole | None:
    """The hole behind these steps; None where the target cannot be undone on enough rows."""
    t, w = y.copy(), np.ones_like(y)
    with np.errstate(all="ignore"):
        for step in steps:
            if isinstance(step, Product):
                expression = writer.product(step)
                if expression is None:
                    return None
                factor = values_on(library.sample, [expression])[0]
                t, w = t / factor, w * factor
            else:
                outer = OUTERS[step]
                t = outer.undo(t)
                w = w * outer.slope(t)
        w = np.abs(w)
        valid = np.isfinite(t) & np.isfinite(w) & (np.abs(t) < 1e50)
        if valid.mean() < 1.0 - MAX_MISSING:
            return None
        typical = np.median(w[valid])
        if not 1e-50 < typical < 1e50:
            return None
        w = np.where(valid, np.clip(w / typical, 0.0, 100.0), 0.0)
        t = np.where(valid, t, 0.0)
    return Hole(t, w, library) if np.ptp(t[valid]) > 0.0 and (t * w).any() else None


@dataclass(slots=True)
class Pursuit:
    """Orthogonal matching pursuit in a hole, one term at a time.

    The caller picks. The target is scaled to unit length.
    """

    hole: Hole
    residual: FloatArray
    basis: list[FloatArray]
    rest: FloatArray  # squared length of each library column outside the basis

    @classmethod
    def start(cls, hole: Hole, terms: Sequence[Expression] = ()) -> Pursuit:
        target = hole.t * hole.w
        target = target / np.max(np.abs(target))  # squares of what follows neither overflow nor vanish
        target = target / np.linalg.norm(target)
        self = cls(hole, target, [], np.ones(len(hole.library), dtype=np.float32))
        for column in hole.library.values(terms) if terms else ():
            self.add(column * hole.w)
        return self

    def gains(self) -> FloatArray:
        """Share of the target's squared length that each library term would explain in addition."""
        with np.errstate(all="ignore"):
            gains = self.hole.inner(self.residual) ** 2 / np.maximum(self.rest, 1e-12)
        gains[self.rest < 1e-5] = 0.0  # in the span of what is there
        return np.asarray(np.nan_to_num(gains, posinf=0.0))

    def best(self, n: int) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Places and gains of the ``n`` terms that would explain most, best first; only those that explain anything."""
        gains = self.gains()
        top = np.argpartition(-gains, min(n, len(gains)) - 1)[:n]
        top = top[np.lexsort((top, -gains[top]))]
        top = top[gains[top] > 0.0]
        return top, gains[top]

    def add(self, column: FloatArray) -> None:
        """Take a (weighted) column into the basis."""
        direction = column.astype(np.float64)
        for _ in range(2):  # twice is enough for orthogonality to rounding
            for q in self.basis:
                direction = direction - (q @ direction) * q
        length = float(np.linalg.norm(direction))
        if not 1e-12 * float(np.linalg.norm(column)) < length < np.inf:
            return
        q = direction / length
        self.basis.append(q)
        self.residual = self.residual - (q @ self.residual) * q
        self.rest = self.rest - self.hole.inner(q) ** 2

    def add_term(self, index: int) -> None:
        library = self.hole.library
        self.add(library.values([library.expressions[index]])[0] * self.hole.w)

    @property
    def unexplained(self) -> float:
        """Share of the target's squared length that is left."""
        return float(self.residual @ self.residual)


def power_law(hole: Hole) -> tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]:
    """Exponents of |t| as a product of powers, by least squares of logarithms over inputs that keep one sign.

    Returns
    -------
    all_powers, sure : tuples of (name, exponent)
        All exponents rounded to halves; and those that lie near a multiple of one half.
    """
    sample = hole.library.sample
    usable = [k for k, row in enumerate(sample.X) if np.min(np.abs(row)) > 1e-9 * np.max(np.abs(row))]
    rows = (hole.w > 0.0) & (np.abs(hole.t) > 1e-12 * np.max(np.abs(hole.t)))
    if not usable or rows.sum() < len(usable) + 2:
        return (), ()
    L = np.log(np.abs(sample.X[usable][:, rows])).T
    design = np.column_stack([L, np.ones(len(L))])
    p = np.linalg.lstsq(design, np.log(np.abs(hole.t[rows])), rcond=None)[0][:-1]
    rounded = np.round(2.0 * p) / 2.0
    near = np.abs(p - rounded) < EXPONENT_TOLERANCE
    every = tuple((sample.names[k], float(r)) for k, r in zip(usable, rounded, strict=True) if r != 0.0)
    sure = tuple(
        (sample.names[k], float(r)) for k, r, n in zip(usable, rounded, near, strict=True) if n and 0.5 <= abs(r) <= 6.0
    )
    return tuple(sorted(every)), tuple(sorted(sure))


def write_form(
    partial: Partial, coefficients: Sequence[float], products: dict[Expression, Product], writer: Writer
) -> Expression | None:
    """The complete expression: terms with coefficients, inside the steps. None where the operators cannot write it."""
    whole: Expression | None = None
    merged: Product | None = None
    factor = 1.0
    if len(partial.terms) == 1 and partial.terms[0] in products:
        merged, factor = products[partial.terms[0]], float(coefficients[0])
    else:
        whole = _sum(partial.terms, coefficients)
    for step in reversed(partial.steps):
        if isinstance(step, Product):
            merged = (Product((), (whole,)) if merged is None and whole is not None else merged or Product()).times(
                step
            )
            continue
        if merged is not None:
            whole = _with_factor(writer.product(merged), factor)
            merged, factor = None, 1.0
        if whole is None:
            return None
        whole = OUTERS[step].write(writer, whole)
    return _with_factor(writer.product(merged), factor) if merged is not None else whole


def _with_factor(expression: Expression | None, factor: float) -> Expression | None:
    if expression is None or factor == 1.0:
        return expression
    return Expression.of(factor) if expression.tokens == (1.0,) else Expression.of("mul", factor, expression)


def _sum(terms: Sequence[Expression], coefficients: Sequence[float]) -> Expression | None:
    total: Expression | None = None
    for term, coefficient in zip(terms, coefficients, strict=True):
        part = _with_factor(term, float(coefficient))
        assert part is not None
        total = part if total is None else Expression.of("add", total, part)
    return total
