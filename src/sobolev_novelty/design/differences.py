r"""How far equations would differ after more rows, their constants refitted: the criterion of :func:`next_rows`.

Notation
--------
``i``        an equation taken for the law;  ``j``  a rival that is refitted to it
``f_i``      values of an equation, in standard deviations of the noise
``J_i``      its slopes along the constants, each in units of :data:`PRIOR` times its own size; shape (p_i, n)
``L_i``      what the rows at hand leave open of the constants: ``L_i L_iᵀ = (J_i J_iᵀ + 1)⁻¹``
``Y_ij``     what the refit has to follow: ``f_i − f_j``, and the slopes ``L_iᵀ J_i`` along which the law is open
``A_j``      ``J_j J_jᵀ + 1``;  ``c_ij = A_j⁻¹ J_j Y_ijᵀ``, the refit: a Gauss–Newton step

.. math:: \Lambda_{ij} = \min_c \|Y_{ij} - c^\top J_j\|^2 + \|c\|^2

is twice the log-likelihood ratio to be expected between ``i`` and ``j`` if ``i`` is the law, after the constants of
``j`` have taken up what they can, averaged over what is open of ``i``. For ``j`` the equation ``i`` without one of its
terms it is the cost of deleting that term, ``(b ν ‖φ‖ / σ)²`` with the novelty of order 0: what the other terms cannot
rebuild. A further row ``x`` adds

.. math:: \|Y_{ij}(x) - c_{ij}^\top J_j(x)\|^2 / (1 + J_j(x)^\top A_j^{-1} J_j(x)) .

The ratio has the mean Λ/2 and the variance Λ, so the wrong one of two equations fits better with the probability
:math:`\Phi(-\sqrt\Lambda/2)`. Its mean over all pairs is the *risk*, which the rows are chosen to make small. √Λ of the
difference alone, as the two are now, is the number of standard deviations by which they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.report.intervals.constants import Parametrised
from sobolev_novelty.report.intervals.profiles import Model

#: Before any row, a constant is taken to be known to this many times its own size.
PRIOR = 3.0
#: No constant is taken to be known better than to this share of what is thought of it before any row.
PRECISION = 1e-8
#: Larger numbers, in standard deviations of the noise, are no prediction of anything: fits gone astray have them.
LARGEST = 1e30
#: Candidates on which it is seen whether one equation contains another, and what rounding may leave.
N_COMPARED, SPANNED = 256, 1e-8
#: A pair whose Λ is larger by this than that of the least different pair adds e⁻³⁰ of its risk at most.
NEGLIGIBLE = 240.0


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """An equation as its constants move it, in standard deviations of the noise."""

    values: FloatArray  # shape (n,)
    slopes: FloatArray  # shape (p, n): along each constant, in units of what is thought of it before any row

    @classmethod
    def of(cls, whole: Parametrised, sample: Sample, sigma: float) -> Curve:
        """An equation on some rows."""
        theta = whole.theta
        with np.errstate(all="ignore"):
            model = Model(whole.parts, theta, sample.X, sample.names, None)
            values, slopes = (found[0] for found in model.evaluate(theta[None]))
            unit = PRIOR * np.where(theta == 0.0, 1.0, np.abs(theta))
            return cls(np.asarray(values / sigma), np.asarray(slopes * (unit / sigma)[:, None]))

    @property
    def is_usable(self) -> npt.NDArray[np.bool_]:
        """At which rows every number is finite and of a size that can be worked with."""
        largest = np.maximum(np.abs(self.values), np.abs(self.slopes).max(axis=0, initial=0.0))
        return np.asarray(largest < LARGEST)  # not where it is nan

    def rows(self, keep: npt.NDArray[np.bool_]) -> Curve:
        """The equation on some of the rows."""
        return Curve(self.values[keep], self.slopes[:, keep])


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Something with one number per row, at the rows at hand and at the candidates."""

    at_hand: FloatArray
    candidates: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Rival:
    """An equation j that is refitted to several laws i: the pairs (i, j), and what is left at the candidates."""

    laws: tuple[int, ...]  # the equations i
    #: shape (p, n): H_jᵀ J_j at the candidates, with A_j⁻¹ = H_j H_jᵀ: each column has the length of the row's
    #: leverage. The square root keeps what rounding would lose of the inverse.
    whitened: FloatArray
    leverage: FloatArray  # shape (n,): J_jᵀ A_j⁻¹ J_j at each candidate
    rest: FloatArray  # shape (q, n): what the refits leave of Y_ij at the candidates, law after law
    starts: npt.NDArray[np.intp]  # shape (n_laws,): where the rows of each law begin in ``rest``
    lengths: FloatArray  # shape (n_laws,): Λ_ij
    curves: FloatArray  # shape (n_laws,): the part of it that is the difference of the two as they are now

    @classmethod
    def of(cls, slopes: Places, targets: Sequence[tuple[int, Places]]) -> Rival:
        """A rival by its slopes, and what it has to follow of each law."""
        half = half_inverse(slopes.at_hand)
        at_hand = np.vstack([part.at_hand for _, part in targets])
        c = half @ ((half.T @ slopes.at_hand) @ at_hand.T)
        starts = np.cumsum([0, *(len(part.at_hand) for _, part in targets[:-1])])
        left = np.square(at_hand - c.T @ slopes.at_hand).sum(axis=1) + np.square(c).sum(axis=0)
        rest = np.vstack([part.candidates for _, part in targets]) - c.T @ slopes.candidates
        whitened = half.T @ slopes.candidates
        leverage = np.einsum("pn,pn->n", whitened, whitened)
        laws = tuple(i for i, _ in targets)
        return cls(laws, whitened, leverage, rest, starts, np.add.reduceat(left, starts), left[starts])

    def gains(self) -> FloatArray:
        """What each candidate would add to Λ, shape (n_laws, n)."""
        ends = [*self.starts[1:].tolist(), len(self.rest)]
        parts = [self.rest[first:end] for first, end in zip(self.starts.tolist(), ends, strict=True)]
        return np.stack([np.einsum("qn,qn->n", part, part) for part in parts]) / (1.0 + self.leverage)

    def after(self, k: int) -> Rival:
        """The same with candidate ``k`` among the rows at hand (Potter's update of the square root)."""
        v, missed = self.whitened[:, k], self.rest[:, k]
        size = 1.0 + float(v @ v)
        along = v @ self.whitened
        whitened = self.whitened - v[:, None] * (along / (size + np.sqrt(size)))
        return replace(
            self,
            whitened=whitened,
            leverage=np.einsum("pn,pn->n", whitened, whitened),
            rest=self.rest - missed[:, None] * (along / size),
            lengths=self.lengths + np.add.reduceat(np.square(missed), self.starts) / size,
            curves=self.curves + np.square(missed[self.starts]) / size,
        )


def half_inverse(slopes: FloatArray) -> FloatArray:
    """L of (J Jᵀ + 1)⁻¹ = L Lᵀ, without squares of J."""
    size = np.hypot(np.linalg.norm(slopes, axis=1), 1.0)
    prior = np.diag(np.maximum(1.0, PRECISION * size))
    R = np.linalg.qr(np.vstack([slopes.T, prior]) / size, mode="r")
    return np.asarray(np.linalg.inv(R) / size[:, None])


def followed(difference: Places, slopes: Places) -> Places:
    """Y_ij: a difference, and the slopes along which the law is open."""
    half = half_inverse(slopes.at_hand)
    return Places(
        np.vstack([difference.at_hand, half.T @ slopes.at_hand]),
        np.vstack([difference.candidates, half.T @ slopes.candidates]),
    )


def contained(curves: Sequence[Curve]) -> npt.NDArray[np.bool_]:
    """Whether equation i is contained in j: its constants, as they are now or moved, follow it everywhere.

    No row tells ``i`` from ``j`` if ``i`` is the law. Shape (n, n).
    """
    some = slice(None, None, max(len(curves[0].values) // N_COMPARED, 1))
    found = np.eye(len(curves), dtype=bool)
    for j, own in enumerate(curves):
        D = np.stack([one.values[some] - own.values[some] for one in curves], axis=1)
        J = own.slopes[:, some].T
        rest = D - J @ np.linalg.lstsq(J, D, rcond=None)[0]
        size = np.abs(D).max(axis=0) + np.abs(own.values[some]).max()
        found[:, j] |= np.abs(rest).max(axis=0) <= SPANNED * size
    return found


def pairs_of_equations(
    at_hand: Sequence[Curve], candidates: Sequence[Curve], is_contained: npt.NDArray[np.bool_]
) -> list[Rival]:
    """Every equation as a rival of all others that it does not contain."""
    slopes = [Places(a.slopes, b.slopes) for a, b in zip(at_hand, candidates, strict=True)]
    values = [Places(a.values, b.values) for a, b in zip(at_hand, candidates, strict=True)]
    opened = [followed(v, s) for v, s in zip(values, slopes, strict=True)]
    found = []
    for j, own in enumerate(values):
        targets = []
        for i in np.flatnonzero(~is_contained[:, j]).tolist():
            left, right = opened[i].at_hand.copy(), opened[i].candidates.copy()
            left[0] -= own.at_hand
            right[0] -= own.candidates
            targets.append((i, Places(left, right)))
        found += [Rival.of(slopes[j], targets)] if targets else []
    return found


def without_each_term(whole: Parametrised, at_hand: Curve, candidates: Curve) -> list[Rival]:
    """A sum of terms as the law, and as rivals the same without each of its terms, whose constants go with it."""
    slopes = Places(at_hand.slopes, candidates.slopes)
    found = []
    for t, part in enumerate(whole.parts):
        others = {j for other in whole.parts if other is not part for j in other.parameters}
        kept = [j for j in range(len(whole.theta)) if j in others or j not in part.parameters]
        size = np.sign(whole.theta[t]) / PRIOR  # the slope along a coefficient is the term itself, in its units
        term = Places(size * at_hand.slopes[t], size * candidates.slopes[t])
        reduced = Places(at_hand.slopes[kept], candidates.slopes[kept])
        found.append(Rival.of(reduced, [(0, followed(term, slopes))]))
    return found


def risk_of(rivals: Sequence[Rival]) -> float:
    """Mean probability over all pairs that the wrong equation would fit better."""
    from scipy.special import ndtr  # not with the module: reports must load fast

    return float(np.mean(ndtr(-0.5 * np.sqrt(np.concatenate([rival.lengths for rival in rivals])))))


def risks_after(rivals: Sequence[Rival], gains: Sequence[FloatArray]) -> tuple[float, FloatArray]:
    """The sum over pairs of Φ(−√Λ/2), now and after each candidate, times a factor that keeps it from underflow."""
    least = min(float(rival.lengths.min()) for rival in rivals)
    now = sum(float(_scaled(rival.lengths, least).sum()) for rival in rivals)
    after = [
        _scaled(rival.lengths[:, None] + gain, least).sum(axis=0) for rival, gain in zip(rivals, gains, strict=True)
    ]
    return now, np.sum(after, axis=0)


def _scaled(lengths: FloatArray, least: float) -> FloatArray:
    """Φ(−√Λ/2) = ½ erfcx(√(Λ/8)) exp(−Λ/8), times 2 exp(least/8)."""
    from scipy.special import erfcx  # not with the module: reports must load fast

    return np.asarray(erfcx(np.sqrt(lengths / 8.0)) * np.exp((least - lengths) / 8.0))
