"""Which equations of the fronts make the system: first each state for itself, then all of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.dynamics.differentiation import SmoothCurve
from sobolev_novelty.dynamics.matching import IntegralMatching, without_a_term
from sobolev_novelty.dynamics.shooting import shoot
from sobolev_novelty.dynamics.trajectories import Trajectory

#: Equations of a state that are compared by shooting, and how much longer than the best their description may be.
N_RIVALS, RIVAL_LENGTH = 3, 60.0
#: A term is tried for deletion where the misfit of its equation would grow by less than this factor.
DELETION = 2.0


class SystemChoice:
    """Chooses one equation per state.

    Integral matching compares the equations of each front; it takes the smoothed states for the true ones. Those that
    it cannot tell apart, and terms that may stand for an error of the smoothing, are decided by multiple shooting,
    which knows only what was measured.

    ``trajectories``, ``curves``: measured and smoothed.
    ``names``: the inputs of the equations.
    """

    def __init__(self, trajectories: Sequence[Trajectory], curves: Sequence[SmoothCurve], names: Sequence[str]) -> None:
        self.trajectories, self.curves, self.names = trajectories, curves, tuple(names)
        n_states = trajectories[0].x.shape[1]
        self._matchings = [IntegralMatching(trajectories, curves, k, self.names) for k in range(n_states)]

    def best(self, chosen: Sequence[Expression], fronts: Sequence[Sequence[Expression]]) -> list[Expression]:
        """The system with the shortest description.

        ``chosen``: what the regressor chose for each state: always among the candidates.
        """
        rivals = [self._rivals(k, own, front) for k, (own, front) in enumerate(zip(chosen, fronts, strict=True))]
        system = [own[0] for own in rivals]
        length = self._length(system)
        for k, own in enumerate(rivals):
            for rival in own[1:]:
                trial = [*system[:k], rival, *system[k + 1 :]]
                found = self._length(trial)
                if found < length:
                    system, length = trial, found
        return self._without_needless_terms(system, length)

    def _rivals(self, state: int, own: Expression, front: Sequence[Expression]) -> list[Expression]:
        """Equations of a state with the shortest descriptions, the best first, and the regressor's choice."""
        matching = self._matchings[state]
        found = matching.best([own, *(expression for expression in front if expression != own)])
        if not found:
            return [own]
        near = [m.expression for m in found if m.length < found[0].length + RIVAL_LENGTH][:N_RIVALS]
        kept = matching.fit(own)
        return list(dict.fromkeys([*near, *([] if kept is None else [kept.expression])]))

    def _without_needless_terms(self, system: list[Expression], length: float) -> list[Expression]:
        for k, matching in enumerate(self._matchings):
            is_shorter = True
            while is_shorter:
                is_shorter = False
                present = matching.fit(system[k])
                for expression in without_a_term(system[k]):
                    rest = matching.fit(expression)
                    if rest is None or present is None or rest.error > DELETION * present.error:
                        continue
                    trial = [*system[:k], rest.expression, *system[k + 1 :]]
                    found = self._length(trial)
                    if found < length:
                        system, length, is_shorter = trial, found, True
                        break
        return system

    def _length(self, system: Sequence[Expression]) -> float:
        found = shoot(system, self.names, self.trajectories, self.curves, only_short=True)
        return math.inf if found is None else found.length(len(self.names))
