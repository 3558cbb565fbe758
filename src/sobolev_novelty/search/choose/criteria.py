"""What is found against an equation: behaviour that no row shows.

Each criterion is a function of an equation, its values and the rows, and gives a finding or nothing. A finding adds
nats; nothing forbids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.expression import Expression, short_text
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.rows import Rows
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import values as values_at
from sobolev_novelty.report.resolution.turning_points import wave_turns

#: Nats of behaviour that no row shows: of true laws on their own tables 13 of 746 have it (613 everyday tables and the
#: 133 laws of the white box), and ln(746/13) = 4.05.
HIDDEN_NATS = 4.0
#: A value this many times as far from the middle of the values at the rows as the farthest of them is a pole's.
RUNAWAY = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that speaks against an equation."""

    kind: str
    sentence: str
    number: float  # what was measured
    threshold: float  # from where on it counts
    nats: float


Criterion = Callable[[Expression, FloatArray, Rows], Finding | None]


def hidden_pole(expression: Expression, values: FloatArray, rows: Rows) -> Finding | None:
    """Values beyond all that rows show, in the box of the inputs or just outside it.

    Of n rows drawn from a population of which the equation spoils a share s none lies there by chance with probability
    (1 − s)ⁿ. A pole with rows on both sides of it, at which the values at the rows grow, is one that the rows show: it
    costs what it spoils and no more.
    """
    factors, n = list(_denominators(expression)), len(rows)
    at_rows, *elsewhere = (values_at([expression, *factors], place) for place in (rows.sample, rows.beside, rows.box))
    is_shown = np.array([q.min() < 0.0 < q.max() for q in at_rows[1:]], dtype=bool)
    low, high = float(values.min()), float(values.max())
    away = np.abs(values - np.median(values))
    grows = bool(away.max() > RUNAWAY * np.median(away))
    reach = RUNAWAY * max(0.5 * (high - low), 1e-12 * max(abs(low), abs(high)))
    shares, is_hidden = [], False
    with np.errstate(all="ignore"):
        for found in elsewhere:
            is_beyond = ~(np.abs(found[0] - 0.5 * (low + high)) <= reach)
            changes = ((np.sign(found[1:]) != np.sign(at_rows[1:, :1])) & ~is_shown[:, None]).any(axis=0)
            shares.append(float(np.mean(is_beyond | changes)))
            is_hidden |= bool(changes.any() or (is_beyond.any() and not (grows and is_shown.any())))
    if not (shares[0] > 0.0 or is_hidden):
        return None
    nats = HIDDEN_NATS * is_hidden - n * math.log1p(-min(shares[0], 1.0 - 1.0 / (n + 1)))
    where = f"{100.0 * max(shares):.2g} % of the box of the inputs"
    return Finding("pole", f"It has a pole or no value in {where}, and no row there.", max(shares), 0.0, nats)


def _denominators(expression: Expression) -> Iterator[Expression]:
    """Factors of what is divided by."""
    for place, token in enumerate(expression.tokens):
        if isinstance(token, Operator):
            if token.name in ("div", "inv", "pow", "powabs"):
                parts = expression.subtree(place).children
                if token.name in ("pow", "powabs"):
                    exponent = parts[1].tokens[0]
                    if len(parts[1].tokens) > 1 or not isinstance(exponent, float) or exponent >= 0.0:
                        continue
                yield from _factors(parts[1 if token.name == "div" else 0])
            elif token.name == "tan":
                yield Expression.of("cos", expression.subtree(place + 1))


def _factors(q: Expression) -> Iterator[Expression]:
    head = q.head.name if isinstance(q.head, Operator) else ""
    if head in ("mul", "neg", "square", "cube", "sqrt", "abs", "cbrt"):
        for child in q.children:
            yield from _factors(child)
    elif head in ("pow", "powabs"):
        yield from _factors(q.children[0])
    elif q.variables:
        yield q


def hidden_turns(expression: Expression, values: FloatArray, rows: Rows) -> Finding | None:
    """Waves that turn between the rows: with h hidden turns about h + 1 waves have the same values there."""
    hidden = [turns.hidden for turns in wave_turns([expression], rows.sample)[0] if not turns.is_resolved]
    if not hidden:
        return None
    nats = HIDDEN_NATS + sum(math.log1p(h) for h in hidden)
    text = f"{short_text(expression)} turns {sum(hidden)} times between the rows, and no row shows it."
    return Finding("wave", text, float(sum(hidden)), 0.0, nats)


CRITERIA: tuple[Criterion, ...] = (hidden_pole, hidden_turns)


def findings(expression: Expression, values: FloatArray, rows: Rows) -> tuple[Finding, ...]:
    """All that is found against an equation."""
    if not expression.variables or not np.isfinite(values).all():
        return ()
    found = (criterion(expression, values, rows) for criterion in CRITERIA)
    return tuple(finding for finding in found if finding is not None)
