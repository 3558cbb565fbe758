"""R_SN of the candidates of one round (Eq. D.1), for tree searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.metric.batch import TermNovelties, novelties
from sobolev_novelty.metric.deletion import without_least_needed
from sobolev_novelty.search.contract.engine import Candidate, SobolevGuidance


@dataclass(slots=True)
class Reranker:
    """Diagnoses each candidate of a round once."""

    sample: Sample  # rows on which novelty is computed
    guidance: SobolevGuidance
    #: The control: novelties that are looked at together are dealt out at random among all their terms.
    shuffle: np.random.Generator | None = None
    n_calls: int = 0
    known: dict[Expression, TermNovelties] = field(default_factory=dict)

    def look_at(self, candidates: Sequence[Candidate]) -> None:
        """Diagnose candidates in one call."""
        fresh = [e for e in dict.fromkeys(c.expression for c in candidates) if e not in self.known]
        if not fresh:
            return
        found = novelties(fresh, self.sample, order=self.guidance.order)
        self.known.update(zip(fresh, found if self.shuffle is None else _dealt(found, self.shuffle), strict=True))
        self.n_calls += len(fresh)

    def guided(self, candidate: Candidate) -> float:
        """R_SN: the reward less the weighted penalty for terms of low novelty."""
        self.look_at([candidate])
        return candidate.reward - self.guidance.weight * self.known[candidate.expression].penalty(self.guidance.tau)

    def best(self, ranked: Sequence[Candidate]) -> tuple[float, Candidate]:
        """The largest R_SN, of candidates sorted by their reward, and whose it is.

        The penalty is never negative: once the reward falls to the best R_SN, the rest need not be looked at.
        """
        best = (self.guided(ranked[0]), ranked[0])
        for candidate in ranked[1:]:
            if candidate.reward <= best[0]:
                break
            guided = self.guided(candidate)
            if guided > best[0]:
                best = (guided, candidate)
        return best

    def without_least_needed(self, candidate: Candidate) -> Expression | None:
        """The candidate without the term whose deletion costs least; None where there is none."""
        guidance = self.guidance
        if guidance.deletes == "none":
            return None
        self.look_at([candidate])
        return without_least_needed(self.known[candidate.expression], self.sample, guidance.deletes, guidance.tau)


def by_reward(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sorted, the best first."""
    return sorted(candidates, key=lambda c: -c.reward)


def _dealt(found: Sequence[TermNovelties], rng: np.random.Generator) -> list[TermNovelties]:
    nu = np.concatenate([own.nu for own in found]) if found else np.zeros(0)
    nu = rng.permutation(nu)
    starts = np.cumsum([0, *(len(own) for own in found)])
    return [replace(own, nu=nu[start : start + len(own)]) for own, start in zip(found, starts, strict=False)]
