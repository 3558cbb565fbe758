r"""An optimizer for PySINDy that deletes columns by what their deletion costs, and breaks near-ties by novelty.

PySINDy's thresholds compare coefficients, whose size depends on units and on which other columns are there. Here a
column is deleted for what it costs: deleting column i and refitting the others raises the error by

.. math:: c_i = |b_i|\,\|\phi_i\|\,\nu_i

(the deletion-and-refit theorem), with ν_i its novelty beside the columns that are left. Deletions that cost about the
same are told apart by novelty: the columns that remain shall be as distinct as possible. Where columns are dependent,
as 1, sin² and cos² are, all of them are free to delete; several orders of deletion are therefore followed side by
side.

Notation
--------
``U``  columns of the library scaled to unit length, as a triangular factor R;  ``y``  one target, scaled to length 1
``b``  coefficients of U;  ``nu``  novelties, values only: the optimizer sees no derivatives of the library
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev_novelty.core.linear.projection import factor, residuals
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError, require

require("pysindy", extra="dynamics")

from pysindy.optimizers import BaseOptimizer  # noqa: E402

Support = tuple[int, ...]

#: A column must explain more than this share of what the model leaves unexplained: errors of estimated derivatives are
#: smooth, and columns can follow them.
UNEXPLAINED = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """A set of columns with its least-squares fit; costs and error are relative to the target."""

    support: Support
    b: FloatArray
    nu: FloatArray
    error: float

    @property
    def costs(self) -> FloatArray:
        return np.asarray(np.abs(self.b) * self.nu)

    @property
    def least_novelty(self) -> float:
        return float(self.nu.min()) if len(self.nu) else 1.0


class NoveltyOptimizer(BaseOptimizer):  # type: ignore[misc]
    """Backward elimination by deletion cost, near-ties broken by novelty.

    Parameters
    ----------
    threshold : float
        A column stays if deleting it would raise the error by at least this share of the target's root mean square,
        and by half of the error that is there. It has no unit, unlike the threshold on coefficients of
        ``pysindy.STLSQ``.
    min_novelty : float
        Columns with a novelty up to this beside the others are deleted whatever they cost: their coefficients are known
        ``1/min_novelty`` times worse than their contribution.
    tie : float
        Models whose errors differ by less than this share of ``threshold`` are tied: the one whose least novel column
        is the most novel wins.
    beam_width : int
        Orders of deletion that are followed side by side.
    normalize_columns, copy_X, initial_guess, unbias
        As in ``pysindy.optimizers.BaseOptimizer``; the columns are always scaled inside.

    Attributes
    ----------
    coef_ : ndarray of shape (n_targets, n_columns)
    novelty_ : ndarray of shape (n_targets, n_columns)
        Novelty of each column that is kept, beside the others that are; ``nan`` for deleted ones.
    ties_ : list of list of tuple of int
        For each target, other sets of as many columns that fit as well: the data do not tell them apart.

    Examples
    --------
    >>> x = np.linspace(0.0, 6.0, 200)
    >>> library = np.column_stack([np.ones_like(x), np.sin(x) ** 2, np.cos(x) ** 2])
    >>> NoveltyOptimizer().fit(library, 3.0 * np.sin(x) ** 2).coef_.round(6).tolist()
    [[0.0, 3.0, 0.0]]
    """

    def __init__(
        self,
        threshold: float = 0.02,
        min_novelty: float = 0.01,
        tie: float = 0.1,
        beam_width: int = 12,
        *,
        normalize_columns: bool = False,
        copy_X: bool = True,
        initial_guess: Any = None,
        unbias: bool = True,
    ) -> None:
        super().__init__(normalize_columns=normalize_columns, copy_X=copy_X, initial_guess=initial_guess, unbias=unbias)
        for name, value in (("threshold", threshold), ("min_novelty", min_novelty), ("tie", tie)):
            if not 0.0 <= value < 1.0:
                raise ParameterError(f"'{name}' must be at least 0 and below 1. Got {value}.")
        if beam_width < 1:
            raise ParameterError(f"'beam_width' must be at least 1. Got {beam_width}.")
        self.threshold = threshold
        self.min_novelty = min_novelty
        self.tie = tie
        self.beam_width = beam_width

    def _reduce(self, x: Any, y: Any) -> None:
        """PySINDy's hook: sets ``coef_`` for the library's columns ``x`` and the targets ``y``."""
        columns, targets = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self.coef_ = np.zeros((targets.shape[1], columns.shape[1]))
        self.novelty_ = np.full(self.coef_.shape, np.nan)
        self.ties_: list[list[Support]] = []
        for k, target in enumerate(targets.T):
            models = self._settled(columns, target)
            best = models[0]
            rows = list(best.support)
            self.ties_.append([other.support for other in models[1:] if self._is_tied(other, best)])
            if rows:
                self.novelty_[k, rows] = best.nu
                self.coef_[k, rows] = np.linalg.lstsq(columns[:, rows], target, rcond=None)[0]
        self.history_.append(self.coef_)

    def _settled(self, columns: FloatArray, target: FloatArray) -> list[_Model]:
        """Models from which no column is to be deleted, the best first."""
        lengths = np.linalg.norm(columns, axis=0)
        length = float(np.linalg.norm(target))
        usable = np.flatnonzero(lengths > 0.0)
        if length == 0.0 or not len(usable):
            return [_Model((), np.zeros(0), np.zeros(0), 1.0)]
        # One factorisation: all models are fitted to R, whose rows have the geometry of the samples.
        R = factor(np.column_stack([columns[:, usable] / lengths[usable], target / length]))
        known: dict[Support, _Model] = {}

        def model(support: Support) -> _Model:
            if support not in known:
                known[support] = _fitted(R, support)
            return known[support]

        beam, settled = [model(tuple(range(len(usable))))], []
        while beam:
            children: dict[Support, None] = {}
            for parent in beam:
                least = max(self.threshold, UNEXPLAINED * parent.error)
                spare = np.flatnonzero((parent.costs < least) | (parent.nu <= self.min_novelty))
                if not len(spare):
                    settled.append(parent)
                for i in spare:
                    children[parent.support[:i] + parent.support[i + 1 :]] = None
            beam = self._ranked([model(support) for support in children])[: self.beam_width]
        fewest = min(len(found.support) for found in settled)
        found = self._ranked([found for found in settled if len(found.support) == fewest])
        return [_Model(tuple(usable[list(m.support)].tolist()), m.b, m.nu, m.error) for m in found]

    def _is_tied(self, model: _Model, best: _Model) -> bool:
        return abs(model.error - best.error) <= self.tie * self.threshold

    def _ranked(self, models: list[_Model]) -> list[_Model]:
        """By error; those tied with the best one first, by their least novel column."""
        if not models:
            return []
        least = min(models, key=lambda model: model.error)
        return sorted(
            models,
            key=lambda model: (
                (False, -model.least_novelty, model.error)
                if self._is_tied(model, least)
                else (True, model.error, -model.least_novelty)
            ),
        )


def _fitted(R: FloatArray, support: Support) -> _Model:
    """Least squares of the last column of R on some of the others."""
    if not support:
        return _Model((), np.zeros(0), np.zeros(0), float(np.linalg.norm(R[:, -1])))
    U = R[:, list(support)]
    b: FloatArray = np.asarray(np.linalg.lstsq(U, R[:, -1], rcond=1e-12)[0], dtype=np.float64)
    error = float(np.linalg.norm(R[:, -1] - U @ b))
    return _Model(support, b, residuals(U).nu, error)
