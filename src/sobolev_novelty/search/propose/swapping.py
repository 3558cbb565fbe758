"""A term of an archive in the place of the one that an expression needs least: sums are recombined, not lengthened.

Three readings of "least needed" and "promising": ``novelty`` is the paper's signal; ``size`` and ``random`` do the same
without it, for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.terms import sum_of_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.metric.batch import TermNovelties, conditional_novelty
from sobolev_novelty.metric.deletion import costs_of, least_needed
from sobolev_novelty.metric.guidance import TermArchive
from sobolev_novelty.search.propose.pursuit import explained_shares, finite_columns

#: Terms tried in the place of one, and how many times as many are looked at before novelty or chance decides.
N_SWAPPED, SHORTLIST = 4, 3


@dataclass(slots=True)
class Swaps:
    """The archive, the rows on which terms are compared, and how swaps are guided.

    ``cost`` is one of :data:`~sobolev_novelty.metric.deletion.COSTS`.
    """

    archive: TermArchive
    sample: Sample
    y: FloatArray
    kind: str
    cost: str

    def keep(self, offered: Iterable[Expression], rng: np.random.Generator) -> None:
        """Offer fitted terms, those of the best expressions first.

        By novelty the archive keeps those with the largest residual outside the span of the others; by size the first
        that fit in, new ones before old ones; at random any.
        """
        if self.kind == "novelty":
            self.archive.update(list(offered), self.sample)
            return
        pool = list(dict.fromkeys([*offered, *self.archive.terms]))
        values = derivatives(pool, self.sample, 0)[:, 0] if pool else np.zeros((0, 1))
        kept = [pool[int(i)] for i in np.flatnonzero(np.isfinite(values).all(axis=1))]
        if self.kind == "random":
            kept = [kept[int(i)] for i in rng.permutation(len(kept))]
        self.archive.terms = kept[: self.archive.capacity]

    def of(self, found: TermNovelties, rng: np.random.Generator) -> list[Expression]:
        """The expression with terms of the archive in the place of the one it needs least; a fit sets coefficients.

        What explains most of what the other terms leave is looked at first; of these the most novel beside the terms
        that stay, or any, are tried.
        """
        least = self._least_needed(found, rng)
        own = {term.expression for term in found.terms}
        terms = [term for term in self.archive.terms if term not in own]
        if least is None or not terms:
            return []
        rest = [term for i, term in enumerate(found.terms) if i != least]
        stay = [term.expression for term in rest]
        columns = finite_columns(stay, self.sample)
        left = self.y - columns @ least_squares(columns.T, self.y)
        gain = np.nan_to_num(explained_shares(finite_columns(terms, self.sample), left))
        first = np.argsort(-gain, kind="stable")[: SHORTLIST * N_SWAPPED]
        if self.kind == "novelty":
            nu = conditional_novelty([terms[int(i)] for i in first], stay, self.sample, order=self.archive.order)
            first = first[np.argsort(-np.nan_to_num(nu), kind="stable")]
        elif self.kind == "random":
            first = rng.permutation(first)
        return [Expression.of("add", sum_of_terms(rest), terms[int(j)]) for j in first[:N_SWAPPED]]

    def _least_needed(self, found: TermNovelties, rng: np.random.Generator) -> int | None:
        if self.kind == "random":
            return int(rng.integers(len(found.terms))) if len(found.terms) > 1 else None
        cost = "size" if self.kind == "size" else "novelty" if self.cost == "none" else self.cost
        return least_needed(costs_of(found, self.sample, cost))
