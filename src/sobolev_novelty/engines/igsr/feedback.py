"""What is told about the parent's terms before new ones are proposed: one function for each kind.

Each returns "" where there is nothing to say; the prompt is then that of plain IGSR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import Sample
from sobolev_novelty.engines.igsr.additive import Additive
from sobolev_novelty.metric.guidance import feedback as novelty_words
from sobolev_novelty.search.contract.engine import SobolevGuidance

#: A term whose removal raises the validation error by less than this share of it hardly matters.
LITTLE = 0.05
#: Terms and pairs that are listed at most.
MAX_LITTLE, MAX_MUCH, MAX_PAIRS = 3, 2, 2


@dataclass(frozen=True, slots=True, eq=False)
class Parent:
    """The model that is to be extended, as it is shown."""

    terms: tuple[Expression, ...]  # in the names that are shown, the constant not among them
    expression: Expression | None  # the whole model; None for an empty one
    inputs: Sample  # the fixed training sample, in the names that are shown
    fitted: Additive | None  # the terms on both parts of the rows, in the same order
    guidance: SobolevGuidance  # threshold and order of the diagnosis
    intercept: str = "free"  # {"free", "term"}: what the constant is in the diagnosis


def nothing(parent: Parent) -> str:
    """Plain IGSR."""
    return ""


def by_novelty(parent: Parent) -> str:
    """At most three low-novelty and two high-novelty terms (Appendix D.3)."""
    if parent.expression is None:
        return ""
    guidance = parent.guidance
    return novelty_words(
        parent.expression, parent.inputs, tau=guidance.tau, order=guidance.order, intercept=parent.intercept
    )


def by_influence(parent: Parent) -> str:
    """Drop-one and pairwise influence, each after a refit of the others."""
    if parent.fitted is None or not parent.terms:
        return ""
    places = list(range(len(parent.terms)))
    error, single = parent.fitted.influence(places)
    order = sorted(places, key=lambda j: single[j])
    little = [j for j in order if single[j] < LITTLE * error][:MAX_LITTLE]
    pairs = []
    for i in places:
        for j in places[:i]:
            rest = [k for k in places if k not in (i, j)]
            together = parent.fitted.error(rest) - error
            if together > LITTLE * error and single[i] + single[j] < 0.5 * together:
                pairs.append((together, j, i))
    if not little and not pairs:
        return ""
    lines = []
    if little:
        lines.append("These terms hardly matter: without them, the others refitted, the error is nearly the same:")
        lines += [f"- {parent.terms[j]}" for j in little]
    if pairs:
        lines.append("In these pairs either term can stand in for the other, but one of them is needed:")
        lines += [f"- {parent.terms[i]} and {parent.terms[j]}" for _, i, j in sorted(pairs, reverse=True)[:MAX_PAIRS]]
    much = [j for j in reversed(order) if j not in little][:MAX_MUCH]
    if much:
        lines.append("These terms matter most:")
        lines += [f"- {parent.terms[j]}" for j in much]
    lines.append("Propose terms that explain what these leave unexplained.")
    return "\n".join(lines)


def by_both(parent: Parent) -> str:
    """Novelty first, then influence."""
    return "\n\n".join(words for words in (by_novelty(parent), by_influence(parent)) if words)


FEEDBACK: dict[str, Callable[[Parent], str]] = {
    "none": nothing,
    "novelty": by_novelty,
    "influence": by_influence,
    "novelty+influence": by_both,
}
