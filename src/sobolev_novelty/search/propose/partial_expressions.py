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

from sobolev_novelty.algebra.outer import OUTERS
from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import Writer, product, scaled, weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose.pursuit import Pursuit
from sobolev_novelty.search.propose.structure.power_laws import fit_power_law
from sobolev_novelty.search.propose.subproblem import inside, slope
from sobolev_novelty.search.propose.term_library import Library, values_on

#: Rows a hole's target may miss (the outer function cannot be undone there).
MAX_MISSING = 0.05
#: Exponents of a power law that are sure: nearer than this to a multiple of one half, and not larger than this.
EXPONENT_TOLERANCE, MAX_EXPONENT = 0.12, 6.0


#: An outer function that is undone, or a product that is divided out.
Step = str | Product


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial expression: the steps around the hole, from outside, and the terms already in the innermost sum."""

    steps: tuple[Step, ...] = ()
    terms: tuple[Expression, ...] = ()

    def inside(self, step: Step) -> Partial:
        """One step further in."""
        return Partial((*self.steps, step), self.terms)

    def plus(self, term: Expression) -> Partial:
        """One term more in the innermost sum."""
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
        columns = self.library.values(terms) * self.w
        sizes = np.abs(columns).max(axis=1)
        if not ((sizes > 0.0) & (sizes < np.inf)).all():
            return None
        b = least_squares(columns, self.t * self.w, rcond=1e-12)
        return b if np.isfinite(b).all() else None

    def pursuit(self, terms: Sequence[Expression] = ()) -> Pursuit:
        """Matching pursuit among the library's terms, beside the given ones."""
        pursuit = Pursuit.start(self.t * self.w, len(self.library), self.inner)
        for column in self.library.values(terms) if terms else ():
            pursuit.add(column * self.w)
        return pursuit

    def column(self, index: int) -> FloatArray:
        """Weighted values of a term of the library."""
        return np.asarray(self.library.exact[index] * self.w)


def open_hole(steps: Sequence[Step], y: FloatArray, library: Library, writer: Writer) -> Hole | None:
    """The hole behind these steps; None where the target cannot be undone on enough rows."""
    t, w, factor = y.copy(), np.ones_like(y), y
    with np.errstate(all="ignore"):
        for step in steps:
            if isinstance(step, Product):
                expression = writer.product(step)
                if expression is None:
                    return None
                factor = values_on(library.sample, [expression])[0]
            t = inside(step, t, factor)
            w = w * slope(step, t, factor)
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


def power_laws(hole: Hole) -> tuple[Product, Product]:
    """|t| as a product of powers of the inputs that are never near zero.

    Returns
    -------
    all_powers, sure : Product
        All exponents rounded to multiples of one half; and those that lie near one.
    """
    sample = hole.library.sample
    usable = [k for k, row in enumerate(sample.X) if np.min(np.abs(row)) > 1e-9 * np.max(np.abs(row))]
    rows = (hole.w > 0.0) & (np.abs(hole.t) > 1e-12 * np.max(np.abs(hole.t)))
    if not usable or rows.sum() < len(usable) + 2:
        return Product(), Product()
    exponents, _, _ = fit_power_law(sample.X[usable][:, rows], hole.t[rows])
    # Multiples of one half alone: other fractions cost an exponential each, and few holes are bare power laws.
    rounded = np.round(2.0 * exponents) / 2.0
    is_sure = (np.abs(exponents - rounded) < EXPONENT_TOLERANCE) & (np.abs(rounded) <= MAX_EXPONENT)
    names = [Expression.of(sample.names[k]) for k in usable]
    found = [(x, k, keep) for x, k, keep in zip(names, rounded.tolist(), is_sure.tolist(), strict=True) if k]
    return Product(tuple((x, k) for x, k, _ in found)), Product(tuple((x, k) for x, k, keep in found if keep))


def write_form(
    partial: Partial, coefficients: Sequence[float], products: dict[Expression, Product], writer: Writer
) -> Expression | None:
    """The complete expression: terms with coefficients, inside the steps. None where the operators cannot write it.

    Where nothing may be multiplied, the coefficients are left out: the loop fits those of the outermost sum anyway.
    """
    whole = writer.written(_whole(partial, coefficients, products))
    if whole is None and not writer.has("mul"):
        return writer.written(_whole(partial, [1.0] * len(coefficients), products))
    return whole


def _whole(partial: Partial, coefficients: Sequence[float], products: dict[Expression, Product]) -> Expression:
    known = products.get(partial.terms[0]) if len(partial.terms) == 1 and partial.steps else None
    if known is None:
        whole = weighted_sum(zip(map(float, coefficients), partial.terms, strict=True))
        factor, body = 1.0, Product(((whole, 1.0),))
    else:
        factor, body = float(coefficients[0]), known
    for step in reversed(partial.steps):
        if isinstance(step, Product):
            body = body.times(step)
        else:
            inner = scaled(factor, product(body.factors))
            factor, body = 1.0, Product(((OUTERS[step].write(inner), 1.0),))
    return scaled(factor, product(body.factors))
