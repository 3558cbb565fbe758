"""Fast waves: a target that oscillates many times over the rows, in a product, quotient or sum of the inputs.

An interpolant knows nothing of such a target and no short sum resembles it, but the right argument at the right
frequency stands out of a periodogram by itself.

Notation
--------
``u``  an argument, scaled to magnitudes up to 1;  ``k·δ`` a frequency;  ``|Σ t exp(i·k·δ·u)|²`` the power
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sobolev_novelty.algebra.writing import scaled, weighted_sum, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.structure.dictionaries import arguments
from sobolev_novelty.search.propose.subproblem import Variable

#: Arguments that are tried.
N_ARGUMENTS = 120
#: Peaks whose frequency is worth a fit, at most one for each argument.
KEPT = 8


def waves(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """Forms a + b·sin(c·w) + d·cos(c·w) at the highest peaks of all arguments w."""
    inner = arguments(variables, limit=N_ARGUMENTS)
    sizes = np.abs(inner.values).max(axis=1)
    fine = np.flatnonzero(np.isfinite(sizes) & (sizes > 0.0) & (np.ptp(inner.values, axis=1) > 0.0))
    if not len(fine):
        return []
    turn = np.exp(1j * words.FREQUENCY_STEP * inner.values[fine] / sizes[fine, None])
    phase, centred = turn.copy(), t - t.mean()
    power = np.empty((int(words.HIGHEST_FREQUENCY / words.FREQUENCY_STEP), len(fine)))
    for k in range(len(power)):
        power[k] = np.abs(phase @ centred) ** 2
        phase *= turn
    highest = power.argmax(axis=0)
    best = np.argsort(-power.max(axis=0), kind="stable")[:KEPT]
    found = ((int(fine[j]), words.FREQUENCY_STEP * (1 + int(highest[j])) / float(sizes[fine[j]])) for j in best)
    return writable(lambda peak: _fitted(inner.expression(peak[0]), inner.values[peak[0]], peak[1], t), found)


def _fitted(argument: Expression, w: FloatArray, frequency: float, t: FloatArray) -> Expression:
    columns = np.stack([np.ones_like(w), np.sin(frequency * w), np.cos(frequency * w)])
    inside = scaled(frequency, argument)
    parts = Expression.of(1.0), Expression.of("sin", inside), Expression.of("cos", inside)
    return weighted_sum(zip(least_squares(columns, t).tolist(), parts, strict=True))
