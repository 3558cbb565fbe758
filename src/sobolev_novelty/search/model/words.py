"""What a fitted model says of itself: the equation, and why it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.expression import short_text
from sobolev_novelty.price.numbers import n_numbers
from sobolev_novelty.search.choose.choice import Choice

#: Probability of so much lack of fit by chance below which the sentence speaks of it, as usual in tests of lack of fit.
LACKING = 0.01


def described(model: Any) -> str:
    """The chosen equation and the reason; before ``fit`` the arguments, as scikit-learn shows them."""
    if not hasattr(model, "expression_"):
        return repr(model)
    lines = [short_text(model.expression_), getattr(model, "reason_", ""), getattr(model, "noise_", "")]
    return "\n".join(line for line in lines if line)


def reason(choice: Choice) -> str:
    """Why this equation, for a person."""
    own, written = choice.chosen, short_text(choice.chosen.expression)
    rest = (p for p in choice.priced if p is not own and math.isfinite(p.nats) and choice.differs(p))
    other = next(rest, None)
    if other is None:
        return f"{written}: no different equation was found."
    ahead = other.nats - own.nats
    behind = f"{number_text(abs(ahead), digits=2)} nats {'ahead of' if ahead >= 0.0 else 'behind'}"
    text = f"{written}: {behind} the next different equation, {short_text(other.expression)}."
    return " ".join([text, *(finding.sentence for finding in own.found or ()), lack_of_fit(choice)]).rstrip()


def lack_of_fit(choice: Choice) -> str:
    """Where inputs came more than once: whether the equation misses their means by more than the rows scatter."""
    rows, replicates = choice.rows, choice.rows.replicates
    spare, m = replicates.n_rows - replicates.n_distinct, replicates.n_distinct
    n_lack = m - n_numbers(choice.chosen.expression)
    if not spare or n_lack < 1 or not np.isfinite(choice.chosen.values).all():
        return ""
    w = np.ones_like(rows.y) if rows.weights is None else rows.weights
    pure, lack = replicates.split((rows.y - choice.chosen.values) / choice.heights, w)
    if not pure > 0.0:
        return ""
    from scipy.stats import f

    p = float(f.sf((lack / n_lack) / (pure / spare), n_lack, spare))
    word = "misses the means of repeated rows" if p < LACKING else "meets the means of repeated rows"
    return f"Among {m} different inputs it {word} (p = {number_text(p, digits=2)}; {spare} repeats)."


__all__ = ["described", "lack_of_fit", "reason"]
