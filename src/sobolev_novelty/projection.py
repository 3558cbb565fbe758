r"""Signatures -> residuals of all terms, from one factorisation (Eq. 2).

Notation
--------
``Psi``  signatures, (p, m);  ``l_i`` their lengths;  ``U`` the normalised columns u_i;  ``G = UᵀU``
``R``    an upper triangular (or any) matrix with RᵀR = ΨᵀΨ: it has the geometry of Ψ in m rows instead of p
``nu``   the novelties, ν_i² = 1/(G⁻¹)_ii = 1 − ‖P₋ᵢu_i‖²

Only ``R`` is needed. R factors of row blocks combine (:func:`combine`), so chunks, files and clusters share this code.
A dependent term has a component in the null space of U and gets exactly 0; the others are read from the pseudo-inverse.
Squaring loses half of the digits, so a Gram matrix is used only where every ν is above :data:`GRAM_IS_ENOUGH`; below it
a QR factorisation of Ψ itself decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty.data import FloatArray

#: The theory-calibrated threshold τ_id = 1/√10 (Corollary A.7): a term qualifies when ν > TAU_ID, strictly.
TAU_ID = float(1.0 / np.sqrt(10.0))
#: Above this novelty the Gram matrix gives ν to better than 1e-12; below it, QR.
GRAM_IS_ENOUGH = 0.03
#: Singular values below this share of the largest span the null space.
RANK_TOLERANCE = 1e-12
#: A term is dependent when its component in the null space is longer than this many times RANK_TOLERANCE · s_max /
#: s_min, where s_min is the smallest singular value outside the null space: shorter components are what rounding
#: leaves.
NULL_COMPONENT = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """What one factorisation says about all terms.

    Parameters
    ----------
    nu : ndarray of shape (m,)
        Novelty of each term; 0 for dependent and for null terms.
    lengths : ndarray of shape (m,)
        ‖Ψ(φ_i)‖.
    is_null : bool ndarray of shape (m,)
        Terms whose signature is zero on the sample.
    R : ndarray of shape (k, m)
        Normalised factor: its Gram matrix is G. Null terms have a zero column.
    rank : int
    """

    nu: FloatArray
    lengths: FloatArray
    is_null: npt.NDArray[np.bool_]
    R: FloatArray
    rank: int

    @property
    def gram(self) -> FloatArray:
        """G, the inner products of the normalised signatures."""
        return np.asarray(self.R.T @ self.R)

    def reconstruction(self, i: int) -> FloatArray:
        """Weights with which the other normalised signatures best rebuild term ``i`` (its own weight is 0).

        Where several combinations do equally well, the shortest one is given.
        """
        m = len(self.nu)
        others = np.array([j for j in range(m) if j != i and not self.is_null[j]], dtype=np.intp)
        weights = np.zeros(m)
        if len(others) and not self.is_null[i]:
            weights[others] = np.linalg.lstsq(self.R[:, others], self.R[:, i], rcond=RANK_TOLERANCE)[0]
        return weights


def factor(Psi: FloatArray) -> FloatArray:
    """R with RᵀR = ΨᵀΨ, by Householder QR; at most m rows. Leading axes are a stack of matrices."""
    return np.asarray(np.linalg.qr(Psi, mode="r"))


def combine(first: FloatArray, second: FloatArray) -> FloatArray:
    """The factor of two row blocks from the factors of each (TSQR)."""
    return factor(np.concatenate([first, second], axis=-2))


def residuals(Psi: FloatArray) -> Residuals:
    """Novelty of every column of Ψ (Eq. 2), from one factorisation.

    Examples
    --------
    >>> import numpy as np
    >>> residuals(np.array([[1.0, 1.0], [0.0, 1.0]])).nu.round(4)
    array([0.7071, 0.7071])
    """
    Psi = np.asarray(Psi, dtype=np.float64)
    fast = _residuals_by_gram(Psi)
    if fast is not None:
        return fast
    unit, lengths = unit_columns(Psi)
    found = residuals_of_factor(factor(unit))
    return Residuals(found.nu, lengths, found.is_null, found.R, found.rank)


def _residuals_by_gram(Psi: FloatArray) -> Residuals | None:
    """The fast path: None where it would not be accurate."""
    with np.errstate(all="ignore"):
        gram = Psi.T @ Psi
        squares = np.diag(gram)
        if gram.size == 0 or not np.isfinite(gram).all() or not (squares > 1e-200).all():
            return None
        lengths = np.sqrt(squares)
        gram = gram / np.outer(lengths, lengths)
        np.fill_diagonal(gram, 1.0)
        try:
            lower = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            return None
        inverse = np.linalg.solve(lower, np.eye(len(lower)))
        nu = 1.0 / np.sqrt(np.einsum("ij,ij->j", inverse, inverse))
    if not (nu > GRAM_IS_ENOUGH).all():
        return None
    return Residuals(np.minimum(nu, 1.0), lengths, np.zeros(len(nu), dtype=bool), np.asarray(lower.T), len(nu))


def residuals_of_factor(R: FloatArray) -> Residuals:
    """Novelty of every term from a factor R of the signatures."""
    unit, lengths = unit_columns(R)
    is_null = lengths == 0.0
    live = np.flatnonzero(~is_null)
    nu = np.zeros(R.shape[1])
    rank = 0
    if len(live) == 1:
        nu[live], rank = 1.0, 1  # a term alone, whatever rounding says of its unit length
    elif len(live):
        _, s, Vt = np.linalg.svd(unit[:, live], full_matrices=True)
        s = np.concatenate([s, np.zeros(len(live) - len(s))])
        in_range = s > RANK_TOLERANCE * s[0]
        rank = int(in_range.sum())
        null_component = np.sqrt(np.sum(Vt[~in_range] ** 2, axis=0))
        is_dependent = null_component > NULL_COMPONENT * RANK_TOLERANCE * s[0] / s[rank - 1]
        inverse_diagonal = np.sum((Vt[in_range] / s[in_range, None]) ** 2, axis=0)
        nu[live] = np.where(is_dependent, 0.0, np.minimum(1.0, 1.0 / np.sqrt(inverse_diagonal)))
    return Residuals(nu, lengths, is_null, unit, rank)


def conditional_residuals(reference: FloatArray, candidates: FloatArray) -> FloatArray:
    """Novelty of each candidate column against the span of the reference columns, one at a time.

    Parameters
    ----------
    reference : ndarray of shape (p, k)
        Signatures already there; k may be 0.
    candidates : ndarray of shape (p, c)

    Returns
    -------
    ndarray of shape (c,)
        ‖(I − P)ψ‖ / ‖ψ‖, 1 against an empty reference; 0 for a zero column.

    Examples
    --------
    >>> import numpy as np
    >>> conditional_residuals(np.array([[1.0], [0.0]]), np.array([[3.0, 0.0], [4.0, 2.0]]))
    array([0.8, 1. ])
    """
    unit, lengths = unit_columns(candidates)
    basis = orthonormal_basis(reference)
    if basis.shape[1] == 0:
        return np.asarray(lengths > 0.0, dtype=np.float64)
    # Projecting twice removes what rounding leaves of the first time.
    for _ in range(2):
        unit = unit - basis @ (basis.T @ unit)
    residual = np.minimum(np.linalg.norm(unit, axis=0), 1.0)
    return np.asarray(np.where(residual > RANK_TOLERANCE, residual, 0.0))


def unit_columns(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns scaled to length 1, and their lengths; a zero column stays zero.

    Squares of 1e200 or 1e-200 leave the range of floats, so the largest entry is divided out first.
    """
    peak = np.abs(columns).max(axis=0, initial=0.0)
    scaled = columns / np.where(peak == 0.0, 1.0, peak)
    norm = np.linalg.norm(scaled, axis=0)
    with np.errstate(over="ignore"):
        return scaled / np.where(norm == 0.0, 1.0, norm), norm * peak


def orthonormal_basis(columns: FloatArray) -> FloatArray:
    """Orthonormal columns that span the given ones."""
    unit, lengths = unit_columns(columns)
    live = unit[:, lengths > 0.0]
    if live.shape[1] == 0:
        return np.zeros((columns.shape[0], 0))
    U, s, _ = np.linalg.svd(live, full_matrices=False)
    return np.asarray(U[:, s > RANK_TOLERANCE * s[0]])
