r"""What least squares says of each term of a sum: errors, costs of leaving terms out, collinearity.

Notation
--------
``Z``      values of the terms over the rows used, weighted, the constant taken out: centred columns, shape (n, m)
``z_i``    their lengths;  ``U`` the columns scaled to length 1;  ``G = UᵀU``, ``A = G⁻¹``
``y``      the target, weighted and centred likewise;  ``b`` coefficients of the columns of ``U``
``RSS``    squared residual of all terms;  ``sigma2`` noise variance, RSS / (n − m − 1) unless it is given

Leaving out the terms S and refitting the others costs

.. math:: \mathrm{RSS}_{-S} - \mathrm{RSS} = b_S^\top [A_{SS}]^{-1} b_S ,

so every drop-one and every pairwise cost follows from one factorisation. A column in the span of the others costs
nothing and has an infinite error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.linear.projection import unit_columns
from sobolev_novelty.core.sample import FloatArray

#: Singular values below this share of the largest are a relation between the terms.
RELATION = 1e-10
#: A residual below this share of the target's spread is rounding.
EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class TermFit:
    """A least-squares fit of terms beside a free intercept, and what follows from it.

    ``rss``, ``tss``: squared residual, and squared length of the target.
    """

    n_rows: int  # rows with a positive weight
    lengths: FloatArray  # shape (m,): z_i; 0 for a term that is constant on the rows
    inverse: FloatArray  # shape (m, m): A, by pseudo-inverse where terms depend on each other
    is_dependent: npt.NDArray[np.bool_]  # bool, shape (m,): terms in the span of the others, and constant ones
    b: FloatArray  # shape (m,)
    rss: float
    tss: float
    known_variance: float | None = None  # the noise variance where measurement errors are known

    @property
    def coefficients(self) -> FloatArray:
        """Refitted coefficients of the terms themselves."""
        return np.where(self.lengths > 0.0, self.b / np.where(self.lengths > 0.0, self.lengths, 1.0), 0.0)

    @property
    def n_free(self) -> int:
        """Degrees of freedom that the residual has, at least 1."""
        return max(self.n_rows - 1 - int((~self.is_dependent).sum()), 1)

    @property
    def variance(self) -> float:
        """The noise variance: as known, or estimated from the residual; never below rounding."""
        if self.known_variance is not None:
            return self.known_variance
        return self.residual_floor / self.n_free

    @property
    def residual_floor(self) -> float:
        """RSS, or what rounding leaves of the target where the fit is exact."""
        return max(self.rss, EXACT**2 * self.tss)

    @property
    def standard_errors(self) -> FloatArray:
        """Of the refitted coefficients; infinite for a dependent term."""
        error = np.sqrt(self.variance * np.maximum(np.diag(self.inverse), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.is_dependent, np.inf, error / self.lengths)

    @cached_property
    def t(self) -> FloatArray:
        """|coefficient| in standard errors; 0 for a dependent term."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.b) / np.sqrt(self.variance * np.diag(self.inverse))
        return np.where(self.is_dependent, 0.0, t)

    @property
    def drop_one(self) -> FloatArray:
        """RSS of the others, refitted, less RSS."""
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = self.b**2 / np.diag(self.inverse)
        return np.where(self.is_dependent, 0.0, cost)

    def drop_pairs(self, i: int, partners: npt.NDArray[np.intp]) -> FloatArray:
        """RSS without term ``i`` and one of its partners, the others refitted, less RSS: of each partner."""
        S = np.stack([np.full_like(partners, i), partners], axis=1)
        blocks = self.inverse[S[:, :, None], S[:, None, :]]
        b, alone = self.b[S], self.drop_one
        cost = np.einsum("ki,kij,kj->k", b, np.linalg.pinv(blocks, rcond=RELATION), b)
        return np.asarray(np.maximum(np.maximum(cost, alone[i]), alone[partners]))

    @property
    def variance_inflation(self) -> FloatArray:
        """VIF of each term, 1/(1 − R²) of its regression on the others; infinite for a dependent one."""
        return np.where(self.is_dependent, np.inf, np.maximum(np.diag(self.inverse), 1.0))


def least_squares(columns: FloatArray, target: FloatArray, rcond: float | None = None) -> FloatArray:
    """Coefficients of a target on a few columns, shape (n_columns, n_rows), each scaled to unit length.

    >>> least_squares(np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]]), np.array([5.0, 7.0, 11.0])).round(9).tolist()
    [2.0, 3.0]
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    lengths[lengths == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq((columns / lengths[:, None]).T, target, rcond=rcond)[0] / lengths)


def fit_columns(
    columns: FloatArray,
    y: FloatArray,
    weights: FloatArray | None = None,
    variance: float | None = None,
    *,
    is_centred: bool = False,
) -> TermFit:
    """Fit a target by terms and a free intercept.

    ``columns``: shape (m, n), values of the terms at the rows used.
    ``weights``: shape (n,), row weights; 1/σ_k² where errors are known, and then ``variance`` is 1.
    ``is_centred``: the columns are those of a factor of the centred ones: the constant is out of them already.

    >>> x = np.linspace(0.0, 1.0, 50)
    >>> found = fit_columns(np.array([x, x**2]), 3.0 * x + 1.0)
    >>> float(found.coefficients[0].round(6)), bool(found.drop_one[1] < 1e-20)
    (3.0, True)
    """
    n = columns.shape[1]
    w = np.ones(n) if weights is None else weights
    root = np.sqrt(w)[:, None]
    mean, level = (np.zeros(len(columns)), 0.0) if is_centred else (columns @ w / w.sum(), (y @ w) / w.sum())
    Z = (columns - mean[:, None]).T * root
    target = (y - level) * root[:, 0]
    size = np.abs(columns).max(axis=1, initial=0.0)
    U, lengths = unit_columns(Z)
    is_constant = lengths <= 1e-13 * size * np.sqrt(w.sum())
    U[:, is_constant], lengths[is_constant] = 0.0, 0.0
    Q, R = np.linalg.qr(U)
    left, s, right = np.linalg.svd(R)
    kept = np.flatnonzero(s > RELATION * max(s.max(initial=0.0), 1e-300))
    relations = np.delete(right, kept, axis=0)  # with more terms than rows, also those that have no singular value
    is_dependent = is_constant | (np.abs(relations) > 1e-6).any(axis=0)
    half = right[kept] / s[kept, None]
    b = half.T @ (left[:, kept].T @ (Q.T @ target))
    residual = target - U @ b
    return TermFit(
        int((w > 0.0).sum()), lengths, half.T @ half, is_dependent, b, float(residual @ residual),
        float(target @ target), variance,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Collinearity:
    """Condition indices of the terms and the intercept, with variance proportions (Belsley, Kuh and Welsch 1980)."""

    #: shape (m + 1,): largest singular value of the columns, scaled to length 1 and not centred, over each; ascending.
    #: Above 30 a relation between terms is harmful where two of its proportions are above one half.
    indices: FloatArray
    #: shape (m + 1, m + 1): row k: the share of each coefficient's variance, intercept first, that belongs to index k.
    #: Columns add up to 1.
    proportions: FloatArray
    inflation: FloatArray  # shape (m,): VIF of each term

    def by_term(self) -> dict[str, FloatArray]:
        """VIF, and the index and share that most of the variance of each term belongs to; ``nan`` for a constant."""
        share = np.nan_to_num(self.proportions[:, 1:])
        is_live = np.isfinite(self.proportions[0, 1:])
        numbers = {
            "VIF": self.inflation,
            "condition_index": self.indices[share.argmax(axis=0)],
            "proportion": share.max(axis=0),
        }
        return {name: np.where(is_live, values, np.nan) for name, values in numbers.items()}


def collinearity(columns: FloatArray) -> Collinearity:
    """Condition indices and variance proportions of terms beside an intercept.

    ``columns``: shape (m, n).

    >>> x = np.linspace(0.0, 1.0, 50)
    >>> collinearity(np.array([x, x + 1e-3 * x**2])).indices.round(1).tolist()[0]
    1.0
    """
    live = [k for k in range(len(columns)) if np.ptp(columns[k]) > 0.0]
    U = unit_columns(np.vstack([np.ones(columns.shape[1]), columns[live]]).T)[0]
    _, s, right = np.linalg.svd(np.linalg.qr(U, mode="r"))
    s = np.pad(s, (0, len(right) - len(s)))  # with more terms than rows
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.square(right / np.maximum(s, 1e-150)[:, None])  # its square is a float
        share = share / share.sum(axis=0)
        indices = s[0] / s
    m = len(columns) + 1
    proportions = np.full((len(s), m), np.nan)  # a term that is constant is part of the intercept
    proportions[:, [0, *(k + 1 for k in live)]] = share
    return Collinearity(indices, proportions, fit_columns(columns, columns.sum(axis=0)).variance_inflation)
