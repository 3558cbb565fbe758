r"""Tensor-valued terms φ(x1, x2)·T_k and their values and derivatives at the samples.

Notation
--------
x : ndarray of shape (n_samples, 2)
    Squashed invariants.
T : ndarray of shape (n_samples, 3, 3, 3)
    Tensor bases T_1, T_2, T_3.
phi : ndarray of shape (n_samples, n_terms)
    Coefficient functions; here monomials :math:`x_1^a x_2^b`.

The basis stays fixed under differentiation (Appendix D.5.2), so the derivative of a term along x_j is ∂φ/∂x_j · T_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError

N_CHANNELS = 3
#: Components of the error: 11, 12, 22, 33, each once.
COMPONENTS = ((0, 0), (0, 1), (1, 1), (2, 2))


@dataclass(frozen=True, slots=True, order=True)
class TensorTerm:
    r"""The term x1**power1 · x2**power2 · T_(channel + 1)."""

    channel: int
    power1: int
    power2: int

    def __post_init__(self) -> None:
        if not 0 <= self.channel < N_CHANNELS:
            raise ParameterError(f"'channel' must be 0, 1 or 2. Got {self.channel}.")
        if self.power1 < 0 or self.power2 < 0:
            raise ParameterError(f"Powers must not be negative. Got {self.power1} and {self.power2}.")

    @property
    def degree(self) -> int:
        """Total degree of the monomial."""
        return self.power1 + self.power2

    @property
    def complexity(self) -> int:
        """Nodes of the coefficient function as a tree: a constant is 1, x 1, x**p 3, a product one more."""
        nodes = [3 if power > 1 else 1 for power in (self.power1, self.power2) if power]
        return sum(nodes) + len(nodes) - 1 if nodes else 1

    @property
    def monomial(self) -> str:
        """The coefficient function as Python text."""
        return "*".join(_power_text(*pair) for pair in self._factors()) or "1"

    @property
    def latex(self) -> str:
        """The term in LaTeX."""
        factors = "".join(f"x_{n[1]}" + (f"^{{{p}}}" if p > 1 else "") for n, p in self._factors())
        return (factors + r"\," if factors else "") + rf"\mathbf{{T}}_{self.channel + 1}"

    def _factors(self) -> list[tuple[str, int]]:
        return [(name, power) for name, power in (("x1", self.power1), ("x2", self.power2)) if power]

    def __str__(self) -> str:
        return "*".join([f"T{self.channel + 1}", *(_power_text(*pair) for pair in self._factors())])


def _power_text(name: str, power: int) -> str:
    return name if power == 1 else f"{name}**{power}"


def dictionary(max_degree: int = 12) -> tuple[TensorTerm, ...]:
    """All monomials of total degree at most ``max_degree`` in all channels; 273 terms for degree 12."""
    if max_degree < 0:
        raise ParameterError(f"'max_degree' must not be negative. Got {max_degree}.")
    powers = [(a, degree - a) for degree in range(max_degree + 1) for a in range(degree + 1)]
    return tuple(TensorTerm(channel, a, b) for channel in range(N_CHANNELS) for a, b in powers)


def monomials(terms: Sequence[TensorTerm], x: FloatArray) -> FloatArray:
    """Coefficient functions and their derivatives.

    Returns shape (3, n_samples, n_terms): φ, ∂φ/∂x1, ∂φ/∂x2.
    """
    a = np.array([term.power1 for term in terms])
    b = np.array([term.power2 for term in terms])
    top = int(max(a.max(initial=0), b.max(initial=0)))
    table = x[:, :, None] ** np.arange(top + 1)  # (n_samples, 2, top + 1)
    p1, p2 = table[:, 0, a], table[:, 1, b]
    d1 = a * table[:, 0, np.maximum(a - 1, 0)]
    d2 = b * table[:, 1, np.maximum(b - 1, 0)]
    return np.stack([p1 * p2, d1 * p2, p1 * d2])


def design_matrix(terms: Sequence[TensorTerm], x: FloatArray, T: FloatArray) -> FloatArray:
    """Values of the terms in the four components of the error, shape (4 · n_samples, n_terms)."""
    phi = monomials(terms, x)[0]
    channels = np.array([term.channel for term in terms], dtype=int)
    return np.concatenate([phi * T[:, channels, i, j] for i, j in COMPONENTS])


def stacked_target(target: FloatArray) -> FloatArray:
    """The target in the row order of :func:`design_matrix`."""
    return np.concatenate([target[:, i, j] for i, j in COMPONENTS])


def term_arrays(terms: Sequence[TensorTerm], x: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values and derivatives of full tensor contributions.

    Returns ``values``: shape (n_terms, n_samples, 9),
    and ``derivatives``: shape (n_terms, 2, n_samples, 9).
    """
    blocks = monomials(terms, x)  # (3, n_samples, n_terms)
    channels = [term.channel for term in terms]
    basis = T.reshape(len(T), N_CHANNELS, 9)[:, channels]  # (n_samples, n_terms, 9)
    values = np.moveaxis(blocks[0][:, :, None] * basis, 1, 0)
    derivatives = np.moveaxis(blocks[1:, :, :, None] * basis, 2, 0)
    return values, derivatives


def channel_arrays(terms: Sequence[TensorTerm], x: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values and derivatives of terms of *one* channel, the nine tensor components folded into one.

    Within a channel all terms share the tensor of a sample, so φT_k and φ‖T_k‖ have the same inner products:
    an isometry that makes the signatures nine times shorter.

    Returns ``values``: shape (n_terms, n_samples),
    and ``derivatives``: shape (n_terms, 2, n_samples).
    """
    channels = {term.channel for term in terms}
    if len(channels) != 1:
        raise ParameterError(f"The terms must share one channel. Got channels {sorted(channels)}.")
    norm = np.linalg.norm(T[:, channels.pop()], axis=(1, 2))
    blocks = monomials(terms, x) * norm[:, None]
    return blocks[0].T, np.moveaxis(blocks[1:], 2, 0)
