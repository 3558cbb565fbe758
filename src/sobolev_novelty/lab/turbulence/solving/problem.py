r"""The closure regression reduced to triangular factors: one QR, after which every fit is a small problem.

Notation
--------
A : ndarray of shape (4 · n_samples, n_terms)
    Values of all candidate terms in the components of the error.
b : ndarray of shape (4 · n_samples,)
    The target. :math:`[A\;b] = Q\,[R\;z]` keeps all inner products, so A is replaced by R and b by z.
Psi : ndarray of shape (3 · n_samples, n_terms_of_channel)
    Signatures of one channel (Eq. 1 with tensor-valued terms, Appendix D.5.2), replaced by their own triangular factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from sobolev_novelty.core.geometry import MIN_ROWS
from sobolev_novelty.core.linear.projection import conditional_residuals, factor
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.lab.turbulence.selecting.closures import Closure
from sobolev_novelty.lab.turbulence.selecting.data import RegressionData
from sobolev_novelty.lab.turbulence.selecting.tensors import (
    COMPONENTS,
    N_CHANNELS,
    TensorTerm,
    channel_arrays,
    design_matrix,
    dictionary,
    stacked_target,
    term_arrays,
)
from sobolev_novelty.metric.signatures import signatures_of_arrays
from sobolev_novelty.report.reporting import NoveltyReport, novelty_of_arrays

IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients of a set of terms and what they leave."""

    coefficients: FloatArray  # shape (n_terms,)
    mse: float  # mean squared error over samples and the four components
    condition: float  # ratio of the extreme singular values of the terms' value matrix


@dataclass(frozen=True, slots=True)
class ClosureProblem:
    """Triangular factors of a closure regression. Build with :func:`closure_problem`."""

    terms: tuple[TensorTerm, ...]  # the candidates
    R: FloatArray  # shape (n_factor_rows, n_terms): factor of the value matrix
    z: FloatArray  # shape (n_factor_rows,): the target in the same coordinates
    #: Per channel the factor of the signatures, columns in the order of the channel's terms.
    signatures: tuple[FloatArray, ...]
    position: IntArray  # shape (n_terms,): column of each term inside its channel's factor
    n_rows: int  # rows of the value matrix: 4 · n_samples
    variance: float  # variance of the target over these rows

    def indices(self, terms: Sequence[TensorTerm]) -> list[int]:
        """Positions of terms in the dictionary."""
        place = {term: index for index, term in enumerate(self.terms)}
        missing = [str(term) for term in terms if term not in place]
        if missing:
            raise ParameterError(f"{', '.join(missing)} not in the dictionary. Raise 'max_degree'.")
        return [place[term] for term in terms]

    def fit(self, chosen: Sequence[int]) -> Fit:
        """Refit all coefficients of the chosen terms jointly."""
        if not len(chosen):
            return Fit(np.zeros(0), float(self.z @ self.z) / self.n_rows, 1.0)
        columns = self.R[:, list(chosen)]
        coefficients, _, _, singular = scipy.linalg.lstsq(columns, self.z, lapack_driver="gelsd", check_finite=False)
        residual = self.z - columns @ coefficients
        condition = float(singular[0] / singular[-1]) if singular[-1] > 0 else np.inf
        return Fit(coefficients, float(residual @ residual) / self.n_rows, condition)

    def closure(self, chosen: Sequence[int], name: str) -> Closure:
        """The refitted closure of the chosen terms."""
        return Closure(
            tuple(self.terms[i] for i in chosen), tuple(float(c) for c in self.fit(chosen).coefficients), name
        )

    def channel_signatures(self, channel: int, chosen: Sequence[int]) -> FloatArray:
        """Signatures of the chosen terms of one channel, as columns."""
        columns = [int(self.position[i]) for i in chosen if self.terms[i].channel == channel]
        return self.signatures[channel][:, columns]

    def conditional_novelty(self, candidates: Sequence[int], chosen: Sequence[int]) -> FloatArray:
        """Conditional novelty of candidates against the chosen terms of their own channels (Appendix D.5.2).

        Candidates may come from different channels; a candidate whose channel is still empty has novelty 1.
        """
        nu = np.ones(len(candidates))
        channels = np.array([self.terms[i].channel for i in candidates])
        for channel in np.unique(channels):
            mine = np.flatnonzero(channels == channel)
            columns = self.signatures[channel][:, self.position[[candidates[int(m)] for m in mine]]]
            nu[mine] = conditional_residuals(self.channel_signatures(int(channel), chosen), columns)
        return nu


def closure_problem(
    data: RegressionData,
    terms: Sequence[TensorTerm] | None = None,
    *,
    samples: npt.NDArray[np.generic] | None = None,
) -> ClosureProblem:
    """Factor the regression once.

    Parameters
    ----------
    data : RegressionData
    terms : sequence of TensorTerm, optional
        The candidates; all monomials of degree 12 without it.
    samples : ndarray, optional
        Indices or mask of the samples to use, for cross-validation.
    """
    chosen = slice(None) if samples is None else samples
    x, T = data.inputs[chosen], data.tensors[chosen]
    if len(x) < MIN_ROWS:
        raise DataError(f"The regression needs at least {MIN_ROWS} samples. Got {len(x)}.")
    candidates = tuple(dictionary() if terms is None else terms)
    b = stacked_target(data.target[chosen])
    A = design_matrix(candidates, x, T)
    triangle = factor(np.column_stack([A, b]))
    channels = np.array([term.channel for term in candidates])
    position = np.zeros(len(candidates), dtype=np.intp)
    signatures = []
    for channel in range(N_CHANNELS):
        mine = np.flatnonzero(channels == channel)
        position[mine] = np.arange(len(mine))
        signatures.append(_signature_factor([candidates[i] for i in mine], x, T))
    assert len(b) == len(COMPONENTS) * len(x)
    return ClosureProblem(
        candidates, triangle[:, :-1], triangle[:, -1], tuple(signatures), position, len(b), float(b.var())
    )


def _signature_factor(terms: Sequence[TensorTerm], x: FloatArray, T: FloatArray) -> FloatArray:
    """Factor of one channel's signatures; derivatives are along the inputs x themselves (Appendix D.5.2)."""
    if not terms:
        return np.zeros((0, 0))
    values, derivatives = channel_arrays(terms, x, T)
    return factor(signatures_of_arrays(values, derivatives).Psi)


def closure_report(closure: Closure, data: RegressionData) -> NoveltyReport:
    """Sobolev Novelty of every term of a closure against all its other terms, as tensors."""
    values, derivatives = term_arrays(closure.terms, data.inputs, data.tensors)
    return novelty_of_arrays(
        values, derivatives, coefficients=closure.coefficients, labels=[str(term) for term in closure.terms]
    )
