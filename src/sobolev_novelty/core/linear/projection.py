r"""Signatures -> residuals of all terms, from one factorisation (Eq. 2). The only place that says what novelty is.

Notation
--------
``Psi``  signatures, (p, m);  ``l_i`` their lengths;  ``U`` the normalised columns u_i;  ``G = UᵀU``
``R``    an upper triangular (or any) matrix with RᵀR = ΨᵀΨ: it has the geometry of Ψ in m rows instead of p
``w``    weights with which the other columns rebuild one
``nu``   the novelties, ν_i² = 1/(G⁻¹)_ii = 1 − ‖P₋ᵢu_i‖²

Only ``R`` is needed. R factors of row blocks combine (:func:`combine`), so chunks, files and clusters share this code.
Squaring loses half of the digits, so a Gram matrix is used only where every ν is above :data:`GRAM_IS_ENOUGH`; below it
a QR factorisation of Ψ itself decides.

**Rounding.** Terms that all but repeat each other are told apart by large weights, which make much of the last digits.
So weights have a price λ:

.. math:: J_i(\lambda) = \min_w \|u_i - \sum w_j u_j\|^2 + \lambda^2\|w\|^2
          = 1/[(G + \lambda^2 I)^{-1}]_{ii} - \lambda^2, \qquad
          \nu_i^2 = \min_\lambda\, (1 + \eta^2/\lambda^2)\, J_i(\lambda)

with λ among :data:`PRICES`. The lowest one follows near repetitions; the higher ones leave digits to the terms beside a
redundant one, whose rounding η = :data:`SPACING` would pass for a direction where weights are cheap: the factor takes
what such a direction could gain. Where the signatures are far from dependent all of this changes no digit. Further,

- columns that agree to :data:`SAME` are one column, the first of them, and have ν = 0;
- ν_i = 0 where the term is rebuilt: √J_i(:data:`ROUNDING`) ≤ :data:`SPAN_TOLERANCE`;
- ν_i = 0 where it lies, up to rounding, in the plane of two others that all but coincide, however large the weights:
  what is left of it is at most :data:`RELATION` · (1 + Σ|w|). So ``b`` is 0 beside ``a`` and ``a + 1e-10*b``.

A term appended to a list never raises a novelty: in each minimum it may be given the weight 0, and it takes no plane
away. (Put before a column that it repeats to :data:`SAME` it stands for that one, and moves the others by this times
their weights.) A relation between four or more terms that needs weights above SPAN_TOLERANCE / ROUNDING = 1000 is not
called exact: its terms have ν = :data:`PRECISION` · ‖w‖. Where weights are large the factorisation is repeated in
extended precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray

#: The theory-calibrated threshold τ_id = 1/√10 (Corollary A.7): a term qualifies when ν > TAU_ID, strictly.
TAU_ID = float(1.0 / np.sqrt(10.0))
#: Above this novelty the Gram matrix gives ν to better than 1e-12; below it, QR.
GRAM_IS_ENOUGH = 0.03
#: The lowest price of a weight: a signature is known to about this share of its length.
PRECISION = 3e-13
#: λ, all prices at which novelty is worked out.
PRICES = (PRECISION, 1e-11, 1e-9)
#: η, the rounding of a unit column.
SPACING = 1e-16
#: Unit columns nearer than this are the same.
SAME = 1e-13
#: The price of a weight where it is asked whether a term is rebuilt: what evaluating terms leaves of a relation.
ROUNDING = 1e-15
#: What a unit column leaves outside a span, at most, where it counts as inside.
SPAN_TOLERANCE = 1e-12
#: Two unit columns nearer than this span a plane that is known from their difference.
NEAR = 1e-2
#: What is left beside such a plane, for each unit of weight, of a column that lies in it.
RELATION = 5e-15
#: Weights above this ask for extended precision.
LARGE_WEIGHT = 1e5

Extended = npt.NDArray[np.longdouble]


@dataclass(frozen=True, eq=False)
class Residuals:
    """What one factorisation says about all terms."""

    nu: FloatArray  # shape (m,): novelty of each term; 0 for dependent and for null terms
    lengths: FloatArray  # shape (m,): ‖Ψ(φ_i)‖
    is_null: npt.NDArray[np.bool_]  # bool, shape (m,): terms whose signature is zero on the sample
    R: FloatArray  # shape (k, m): normalised factor: its Gram matrix is G. Null terms have a zero column.

    @cached_property
    def rank(self) -> int:
        """Dimension of the span of the signatures."""
        return int(np.linalg.matrix_rank(self.R, tol=SPAN_TOLERANCE)) if self.R.size else 0

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
            weights[others] = np.linalg.lstsq(self.R[:, others], self.R[:, i], rcond=SPAN_TOLERANCE)[0]
        return weights


def factor(Psi: FloatArray) -> FloatArray:
    """R with RᵀR = ΨᵀΨ, by Householder QR; at most m rows. Leading axes are a stack of matrices."""
    return np.asarray(np.linalg.qr(Psi, mode="r"))


def combine(first: FloatArray, second: FloatArray) -> FloatArray:
    """The factor of two row blocks from the factors of each (TSQR)."""
    return factor(np.concatenate([first, second], axis=-2))


def residuals(Psi: FloatArray) -> Residuals:
    """Novelty of every column of Ψ (Eq. 2), from one factorisation.

    >>> import numpy as np
    >>> residuals(np.array([[1.0, 1.0], [0.0, 1.0]])).nu.round(4)
    array([0.7071, 0.7071])
    """
    Psi = np.asarray(Psi, dtype=np.float64)
    fast = _residuals_by_gram(Psi)
    if fast is not None:
        return fast
    unit, lengths = unit_columns(Psi)
    R = factor(unit)
    nu, is_sure = _novelties(R)
    if not is_sure and Psi.size:
        wide = Psi.astype(np.longdouble) / np.where(lengths == 0.0, 1.0, np.linalg.norm(unit, axis=0) * lengths)
        nu, _ = _novelties(_triangle(wide, min(unit.shape)))
    return Residuals(nu, lengths, lengths == 0.0, unit_columns(R)[0])


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
    return Residuals(np.minimum(nu, 1.0), lengths, np.zeros(len(nu), dtype=bool), np.asarray(lower.T))


def residuals_of_factor(R: FloatArray) -> Residuals:
    """Novelty of every term from a factor R of the signatures."""
    unit, lengths = unit_columns(R)
    return Residuals(_novelties(unit)[0], lengths, lengths == 0.0, unit)


def _novelties(R: FloatArray | Extended) -> tuple[FloatArray, bool]:
    """ν of every column of R, which have unit length or none; and whether rounding of R leaves them their digits."""
    nu = np.zeros(R.shape[1])
    live = np.flatnonzero(R.any(axis=0))
    if len(live) < 2:
        nu[live] = 1.0  # a term alone, whatever rounding says of its unit length
        return nu, True
    U = R[:, live] / np.sqrt(np.einsum("ij,ij->j", R[:, live], R[:, live]))
    kept, is_zero = _representatives(U)
    is_zero |= _in_planes(U)
    nu[live[kept]], weights = _priced(U[:, kept])
    nu[live[is_zero]] = 0.0
    return nu, bool((is_zero[kept] | (weights <= LARGE_WEIGHT)).all())


def _priced(U: FloatArray | Extended) -> tuple[FloatArray, FloatArray]:
    """ν of unit columns none of which repeats another, and ‖w‖, 0 where ν is."""
    k, m = U.shape
    prices = np.array([ROUNDING, *PRICES], dtype=np.longdouble)[:, None]
    stack = np.zeros((len(prices), k + m, m), dtype=U.dtype)
    stack[:, :k], stack[:, k:] = U, prices[:, None] * np.eye(m)
    if U.dtype == np.float64:
        inverse = np.linalg.inv(np.linalg.qr(stack, mode="r"))
    else:
        inverse = _triangular_inverse(_triangle(stack, m))
    A = inverse @ np.swapaxes(inverse, 1, 2)  # (G + λ²)⁻¹
    diagonal = np.einsum("lii->li", A)
    square = np.maximum(1.0 / diagonal - prices**2, 0.0)
    dearer = (1.0 + (SPACING / prices[1:]) ** 2) * square[1:]
    best = (np.argmin(dearer, axis=0) + 1, np.arange(m))
    weights = np.sqrt(np.maximum((A[best] ** 2).sum(axis=1) / diagonal[best] ** 2 - 1.0, 0.0))
    is_zero = square[0] <= SPAN_TOLERANCE**2
    nu = np.where(is_zero, 0.0, np.sqrt(np.minimum(dearer.min(axis=0), 1.0)))
    return nu.astype(np.float64), np.where(is_zero, 0.0, weights).astype(np.float64)


def _in_planes(U: FloatArray | Extended) -> npt.NDArray[np.bool_]:
    """Which columns lie, up to rounding, in the plane of two others that all but coincide."""
    found = np.zeros(U.shape[1], dtype=bool)
    cosines = U.T @ U
    for j, k in np.argwhere(np.triu(np.abs(cosines) > 1.0 - NEAR**2 / 2.0, 1)):
        across = U[:, k] - cosines[j, k] * U[:, j]
        distance = np.sqrt(across @ across)
        if distance <= SAME:
            continue
        across /= distance
        rest = U - np.outer(U[:, j], cosines[j])
        aside = across @ rest
        rest -= np.outer(across, aside)
        weights = np.abs(aside) / distance + np.abs(cosines[j] - cosines[j, k] * aside / distance)
        is_inside = np.sqrt(np.einsum("ij,ij->j", rest, rest)) <= RELATION * (1.0 + weights)
        is_inside[[j, k]] = False
        found |= is_inside
    return found


def _representatives(U: Extended) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Places of the columns that repeat no earlier one, and which columns repeat or are repeated."""
    m = U.shape[1]
    is_near = np.abs(np.asarray(U.T @ U, dtype=np.float64)) > 1.0 - 1e-9
    first: list[int] = []
    is_repeated = np.zeros(m, dtype=bool)
    for j in range(m):
        # The distance of unit columns, up to the sign; the cosine alone has lost it to rounding.
        same = [i for i in first if is_near[i, j] and _distance(U[:, i], U[:, j]) <= SAME]
        is_repeated[[*same, *([j] if same else [])]] = True
        first += [] if same else [j]
    return np.array(first, dtype=np.intp), is_repeated


def _distance(u: Extended, v: Extended) -> float:
    difference = u - v if u @ v > 0.0 else u + v
    return float(np.sqrt(difference @ difference))


def _triangle(A: FloatArray | Extended, n: int) -> Extended:
    """The triangular factor of a tall matrix by Householder reflections in extended precision, its first ``n`` rows.

    Leading axes are a stack of matrices.
    """
    columns = np.array(np.swapaxes(A, -1, -2), dtype=np.longdouble, order="C")
    for j in range(min(n, columns.shape[-2])):
        rest = columns[..., j:, j:]
        v = rest[..., 0, :].copy()
        norm = np.sqrt((v * v).sum(axis=-1))
        v[..., 0] += np.copysign(norm, v[..., 0])
        half = norm * np.abs(v[..., 0])  # of the square of v
        share = (rest @ v[..., None])[..., 0] / np.where(half > 0.0, half, 1.0)[..., None]
        rest -= share[..., None] * v[..., None, :]
    return np.asarray(np.triu(np.swapaxes(columns, -1, -2)[..., :n, :]))


def _triangular_inverse(T: Extended) -> Extended:
    """T⁻¹ of an upper triangular T with no zero on its diagonal, row by row from the last; of each T of a stack."""
    inverse = np.zeros_like(T)
    for i in range(T.shape[-1] - 1, -1, -1):
        inverse[..., i, :] = -(T[..., i, None, i + 1 :] @ inverse[..., i + 1 :, :])[..., 0, :]
        inverse[..., i, i] += 1.0
        inverse[..., i, :] /= T[..., i, i, None]
    return inverse


def conditional_residuals(reference: FloatArray, candidates: FloatArray) -> FloatArray:
    """Novelty of each candidate column against the span of the reference columns, one at a time.

    ``reference``: shape (p, k), signatures already there; k may be 0.
    ``candidates``: shape (p, c).

    Returns shape (c,): ‖(I − P)ψ‖ / ‖ψ‖, 1 against an empty reference; 0 for a zero column.

    >>> import numpy as np
    >>> conditional_residuals(np.array([[1.0], [0.0]]), np.array([[3.0, 0.0], [4.0, 2.0]]))
    array([0.8, 1. ])
    """
    unit, length = unit_columns(candidates)
    basis = unit_columns(reference)[0]
    k = basis.shape[1]
    # The price of a weight is a row of its own, as in the novelty of all terms.
    Q, _ = np.linalg.qr(np.vstack([basis, PRECISION * np.eye(k)]))
    left = np.vstack([unit, np.zeros((k, unit.shape[1]))])
    for _ in range(2):  # projecting twice removes what rounding leaves of the first time
        left -= Q @ (Q.T @ left)
    residual = np.linalg.norm(left, axis=0) if k else (length > 0.0).astype(np.float64)
    return np.asarray(np.where(residual > SPAN_TOLERANCE, np.minimum(residual, 1.0), 0.0))


def unit_columns(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns scaled to length 1, and their lengths; a zero column stays zero.

    Squares of 1e200 or 1e-200 leave the range of floats, so the largest entry is divided out first.
    """
    peak = np.abs(columns).max(axis=0, initial=0.0)
    scaled = columns / np.where(peak == 0.0, 1.0, peak)
    norm = np.linalg.norm(scaled, axis=0)
    with np.errstate(over="ignore"):
        return scaled / np.where(norm == 0.0, 1.0, norm), norm * peak
