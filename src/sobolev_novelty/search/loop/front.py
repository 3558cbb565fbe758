"""The Pareto front of error and complexity, and the choice of one expression from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sobolev_novelty.search.contract.engine import Candidate

#: Errors below this differ by rounding only and do not rank candidates.
ROUNDING_NMSE = 1e-24
#: Errors that differ by less, relative to their size, are those of one equation spelled in two ways.
_SAME = 1e-9
#: Nodes, and share of its own, by which others are longer than an equation that describes the rows best, where that is
#: no accident of how far the search came.
LONGER, LONGER_SHARE = 8, 0.3


@dataclass(frozen=True, slots=True, eq=False)
class ParetoFront:
    """Candidates that no other one beats in both error and complexity, simplest first.

    >>> from sobolev_novelty.core.expression import Expression
    >>> def fitted(name, nmse): return Candidate(Expression.of(name), Expression.of(name), nmse, 1.0 - nmse)
    >>> front = ParetoFront().including(fitted("x0", 0.5)).including(fitted("x1", 0.2))
    >>> [str(c.expression) for c in front]
    ['x1']
    """

    candidates: tuple[Candidate, ...] = ()

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index: int) -> Candidate:
        return self.candidates[index]

    def admits(self, nmse: float, complexity: int) -> bool:
        """Whether a candidate with these numbers would be on the front."""
        error = max(nmse, ROUNDING_NMSE)
        if not error < float("inf"):
            return False
        return not any([c.nmse <= error and c.complexity <= complexity for c in self.candidates])

    def including(self, candidate: Candidate) -> ParetoFront:
        """The front after this candidate was offered; of equals the earlier stays."""
        if not self.admits(candidate.nmse, candidate.complexity):
            return self
        error = max(candidate.nmse, ROUNDING_NMSE)
        kept = [c for c in self.candidates if c.complexity < candidate.complexity or max(c.nmse, ROUNDING_NMSE) < error]
        return ParetoFront(tuple(sorted([*kept, candidate], key=lambda c: c.complexity)))

    def including_all(self, candidates: Iterable[Candidate]) -> ParetoFront:
        """The front after all of these were offered."""
        front = self
        for candidate in candidates:
            front = front.including(candidate)
        return front


def undominated(candidates: Sequence[Candidate]) -> list[int]:
    """Places of the first candidate, whatever its worth, and of those that no other is as good as in both respects.

    Spelling changes complexities: two equations of a front may become one. Of equals the earlier stays.
    """

    def is_beaten(i: int) -> bool:
        own = candidates[i]
        error = max(own.nmse, ROUNDING_NMSE) * (1.0 + _SAME)
        return any(
            c.nmse <= error and (c.complexity, j) < (own.complexity, i) for j, c in enumerate(candidates) if j != i
        )

    return [i for i in range(len(candidates)) if i == 0 or not is_beaten(i)]


def distinct(ranked: Iterable[Candidate], most: int) -> list[Candidate]:
    """The first of those that have the same error, at most so many, in their order.

    Two fits with the same error to six digits are one equation: a constant that began elsewhere, another spelling, a
    part that adds nothing. A population that keeps them all soon holds nothing else.

    >>> from sobolev_novelty.core.expression import Expression
    >>> def fitted(name, nmse): return Candidate(Expression.of(name), Expression.of(name), nmse, 1.0 - nmse)
    >>> [str(c.expression) for c in distinct([fitted("x0", 0.1), fitted("x1", 0.1 + 1e-9), fitted("x2", 0.2)], 5)]
    ['x0', 'x2']
    """
    kept: dict[str, Candidate] = {}
    for candidate in ranked:
        kept.setdefault(f"{candidate.nmse:.5e}", candidate)
        if len(kept) >= most:
            break
    return list(kept.values())


def layers(candidates: Iterable[Candidate], most: int) -> list[Candidate]:
    """The best of each complexity, at most so many of different errors, where the first beats all simpler ones.

    >>> from sobolev_novelty.language.parsing import parse
    >>> def fitted(text, nmse): return Candidate(parse(text), parse(text), nmse, 1.0 - nmse)
    >>> found = layers([fitted("x0", 0.3), fitted("x1", 0.5), fitted("sin(x0)", 0.4), fitted("x0*x1", 0.1)], 1)
    >>> [str(c.expression) for c in found]
    ['x0', 'x0*x1']
    """
    found: list[Candidate] = []
    least = float("inf")
    ordered = sorted(candidates, key=lambda c: (c.complexity, c.nmse))
    for _, equals in groupby(ordered, key=lambda c: c.complexity):
        best = distinct(equals, most)
        if best[0].nmse < least:
            least = best[0].nmse
            found += best
    return found


def only_noise_is_left(candidates: Sequence[Candidate], n_rows: int, n_inputs: int, longest: int) -> bool:
    """Whether much longer equations than the one with the shortest description were found, and describe no better.

    ``longest``: complexity of the longest equation that was best on the rows of the search.

    >>> from sobolev_novelty.language.parsing import parse
    >>> def fitted(text, nmse): return Candidate(parse(text), parse(text), nmse, 1.0 - nmse)
    >>> found = [fitted("x0", 0.5), fitted("x0*x1", 0.1)]
    >>> only_noise_is_left(found, 1000, 2, 20), only_noise_is_left(found, 1000, 2, 5)
    (True, False)
    """
    best = min(candidates, key=lambda c: c.nats(n_rows, n_inputs)).complexity
    return longest >= best + max(LONGER, LONGER_SHARE * best)


def select(front: ParetoFront) -> Candidate | None:
    """The expression to report: the simplest exact fit, or else the largest R_base.

    No novelty enters here (Appendix D.1). ``None`` for an empty front. See
    :func:`sobolev_novelty.core.score.choice_rank`.
    """
    return max(front, key=lambda candidate: candidate.rank, default=None)
