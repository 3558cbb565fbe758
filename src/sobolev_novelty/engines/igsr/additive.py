r"""Additive models on two parts of the rows: coefficients from the training part, error and influence on the other.

Both parts are reduced to triangular factors once; every error below is then a matter of a dozen rows.

Notation
--------
``T``, ``V``  triangular factors of [1, φ_1 … φ_m, y] on the training and the validation rows;  ``b``  coefficients
:math:`\Delta_j = E_{-j} - E`  influence of term j: what its removal, the others refitted, adds to the validation error
:math:`E`, which is relative to the target's variance on the validation rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.projection import factor
from sobolev_novelty.core.operators import OPERATORS
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.search.contract.engine import Problem

BoolArray = npt.NDArray[np.bool_]

#: Rows that are looked at, and the share of them that validates.
MAX_ROWS, VALIDATION_SHARE = 800, 0.25
#: Validation errors below this are rounding: no term has influence there.
ROUNDING = 1e-24
#: A term with one of these operators of whose sum of squares one row holds this share, among so many rows or more, is a
#: pole. Without them it is an input with an outlier.
_WITH_POLES = frozenset(OPERATORS[name] for name in ("div", "inv", "pow", "log", "tan", "cot"))
ONE_ROW_SHARE, MIN_ROWS_FOR_POLES = 0.5, 40


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """Terms beside a constant on both parts of the rows.

    ``T``, ``V``: shape (m + 2, m + 2).
    """

    terms: tuple[Expression, ...]  # the constant not among them
    T: FloatArray
    V: FloatArray
    total: float  # sum of squares of ``y`` about its mean on the validation rows

    def error(self, places: Sequence[int]) -> float:
        """Validation error of the model with these terms and a constant."""
        columns = _columns(places)
        b = np.linalg.pinv(self.T[:, columns]) @ self.T[:, -1]
        return self._error(columns, b[:, None])[0]

    def influence(self, places: Sequence[int]) -> tuple[float, list[float]]:
        """Validation error of the model with these terms, and what it rises by without each of them."""
        columns = _columns(places)
        inverse = np.linalg.pinv(self.T[:, columns])
        b = inverse @ self.T[:, -1]
        G = inverse @ inverse.T
        variance = np.diagonal(G)[1:]
        # Refitted without term j: b - G_j b_j / G_jj.
        without = b[:, None] - G[:, 1:] * (b[1:] / np.where(variance > 0.0, variance, np.inf))
        errors = self._error(columns, np.column_stack([b, without]))
        return errors[0], [error - errors[0] for error in errors[1:]]

    def extended(self, start: Sequence[int], n_terms: int) -> list[int]:
        """``start`` and the terms that explain most of what is left on the training rows, one after the other."""
        chosen = list(start)
        columns = self.T[:, :-1]
        basis = np.zeros((0, len(self.T)))
        residual = self.T[:, -1].copy()
        for place in _columns(chosen):
            basis, residual = _with(columns[:, place], basis, residual)
        lengths = np.einsum("ij,ij->j", columns, columns)
        while len(chosen) < n_terms:
            rest = columns - basis.T @ (basis @ columns)
            left = np.einsum("ij,ij->j", rest, rest)
            gain = np.where(left > 1e-10 * lengths, (residual @ rest) ** 2 / np.maximum(left, 1e-300), 0.0)
            best = int(np.argmax(gain))
            if not gain[best] > 1e-12 * float(residual @ residual) or best - 1 in chosen or best == 0:
                break
            chosen.append(best - 1)
            basis, residual = _with(columns[:, best], basis, residual)
        return chosen

    def screened(self, places: Sequence[int], *, min_influence: float, max_terms: int, max_nodes: int) -> list[int]:
        """Without the terms that do not matter, the weakest first, the others refitted each time.

        A term goes where its removal raises the validation error by less than ``min_influence`` of it, or while there
        are too many terms or nodes.
        """
        kept = list(places)
        while kept:
            error, influence = self.influence(kept)
            weakest = min(range(len(kept)), key=lambda k: influence[k])
            nodes = sum(len(self.terms[j]) + 3 for j in kept) + 1
            is_weak = influence[weakest] < max(min_influence * error, ROUNDING)
            if not is_weak and len(kept) <= max_terms and nodes <= max_nodes:
                break
            del kept[weakest]
        return kept

    def _error(self, columns: list[int], b: FloatArray) -> list[float]:
        residual = self.V[:, columns] @ b - self.V[:, -1:]
        with np.errstate(over="ignore"):
            return [float(e) for e in np.einsum("ij,ij->j", residual, residual) / self.total]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The rows on which models are compared, in two parts, drawn once for a run.

    ``y``, ``root``: shape (n_rows,), target, and the square roots of the weights.
    """

    sample: Sample  # rows of both parts, the training rows first
    y: FloatArray
    root: FloatArray
    n_training: int

    @classmethod
    def of(cls, problem: Problem, rng: np.random.Generator) -> Parts:
        """Split the problem's rows at random."""
        rows = rng.permutation(problem.sample.n_samples)[:MAX_ROWS]
        n_training = len(rows) - max(1, round(VALIDATION_SHARE * len(rows)))
        weights = np.ones_like(problem.y) if problem.weights is None else problem.weights
        return cls(problem.sample.rows(rows), problem.y[rows], np.sqrt(weights[rows]), n_training)

    @property
    def training_sample(self) -> Sample:
        """The training rows."""
        return self.sample.rows(np.arange(self.n_training))

    def ranked(self, given: Sequence[Expression], groups: Sequence[Sequence[Expression]]) -> list[Expression]:
        """Of each group the term that explains most of what the given ones leave on the training rows; best first.

        A group is one form with several starting values of its constants: the right form is not lost to a bad start.
        """
        n, root = self.n_training, self.root[: self.n_training]
        sample = self.training_sample
        fixed = np.vstack([np.ones(n), values(given, sample)]) * root
        basis = np.linalg.qr(np.nan_to_num(fixed, posinf=0.0, neginf=0.0).T)[0].T
        y = self.y[:n] * root
        residual = y - basis.T @ (basis @ y)
        terms = [term for group in groups for term in group]
        columns = values(terms, sample) * root
        usable, size = _usable(terms, columns)
        columns = np.where(usable[:, None], columns, 0.0) / np.where(usable, size, 1.0)[:, None]
        lengths = np.einsum("ij,ij->i", columns, columns)
        with np.errstate(all="ignore"):
            rest = lengths - np.sum((columns @ basis.T) ** 2, axis=1)
            fresh = rest > 1e-8 * lengths
            gain = np.where(fresh, (columns @ residual) ** 2 / np.where(fresh, rest, 1.0), -1.0)
        found: list[tuple[float, int, Expression]] = []
        start = 0
        for place, group in enumerate(groups):
            own = gain[start : start + len(group)]
            best = int(np.argmax(own)) if len(group) else 0
            if len(group) and own[best] > 0.0:
                found.append((-float(own[best]), place, group[best]))
            start += len(group)
        return [term for _, _, term in sorted(found, key=lambda entry: entry[:2])]

    def additive(self, terms: Sequence[Expression]) -> Additive:
        """The terms on both parts; those that are not finite everywhere or are constant are left out."""
        columns = values(terms, self.sample)
        usable, size = _usable(terms, columns)
        kept = tuple(term for term, use in zip(terms, usable, strict=True) if use)
        columns = columns[usable] / size[usable, None]
        table = np.vstack([np.ones_like(self.y), columns, self.y]).T * self.root[:, None]
        n = self.n_training
        part = self.root[n:]
        y = self.y[n:]
        total = float(np.sum((part * (y - np.average(y, weights=np.maximum(part**2, 1e-300)))) ** 2))
        if not total > 0.0:  # a single validation row, or equal ones
            total = max(float(np.sum((self.root * (self.y - self.y.mean())) ** 2)), 1e-300)
        return Additive(kept, _square(factor(table[:n])), _square(factor(table[n:])), total)


def _usable(terms: Sequence[Expression], columns: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Terms that are finite, vary, and do not live on one row, as a pole does; and their largest magnitudes."""
    with np.errstate(all="ignore"):
        size = np.abs(columns).max(axis=1, initial=0.0)
        varies = np.ptp(columns, axis=1) > 1e-9 * size if len(columns) else np.zeros(0, dtype=bool)
        usable = np.isfinite(size) & (size > 1e-100) & (size < 1e100) & varies
        if columns.shape[1] >= MIN_ROWS_FOR_POLES:
            n_equal_rows = np.sum((columns / np.where(size > 0.0, size, 1.0)[:, None]) ** 2, axis=1)
            may_be_poles = np.array([not _WITH_POLES.isdisjoint(term.tokens) for term in terms], dtype=bool)
            usable &= (n_equal_rows > 1.0 / ONE_ROW_SHARE) | ~may_be_poles
    return usable, size


def values(terms: Sequence[Expression], sample: Sample) -> FloatArray:
    """Values of terms, shape (n_terms, n_rows)."""
    if not terms:
        return np.zeros((0, sample.n_samples))
    with np.errstate(all="ignore"):
        return np.asarray(kernels.derivatives(kernels.compile_programs(terms, sample.names), sample.X)[:, 0])


def _columns(places: Sequence[int]) -> list[int]:
    return [0, *(place + 1 for place in places)]


def _square(R: FloatArray) -> FloatArray:
    """A factor of fewer rows than columns, with rows of zeros below."""
    missing = R.shape[1] - R.shape[0]
    return R if missing <= 0 else np.vstack([R, np.zeros((missing, R.shape[1]))])


def _with(column: FloatArray, basis: FloatArray, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
    q = column - basis.T @ (basis @ column)
    q = q - basis.T @ (basis @ q)
    length = float(np.linalg.norm(q))
    if not length > 1e-12 * float(np.linalg.norm(column)):
        return basis, residual
    q = q / length
    return np.vstack([basis, q]), residual - q * float(q @ residual)
