"""What the chosen rows will buy, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.core.digits import number_text
from sobolev_novelty.core.sample import FloatArray

#: Standard deviations from which two equations count as told apart: the wrong one fits better in 0.6 % of cases.
APART = 5.0
_ORIGINS = {
    "given": "as given",
    "target": "from the residuals of the best fit",
    "model": "from the residuals of the model",
    "assumed": "assumed, a tenth of the spread of the first equation; give 'sigma' if you know it",
}


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Standard deviations between the equations of each pair, after each number of rows."""

    #: tuple of (str, str): the equations; for the terms of one equation, the term and "".
    pairs: tuple[tuple[str, str], ...]
    #: shape (n_steps + 1, n_pairs): of both directions the smaller. The first pair is that of the two leading
    #: equations.
    sigmas: FloatArray
    risks: FloatArray  # shape (n_steps + 1,)
    same: tuple[tuple[str, str], ...] = ()  # tuple of (str, str): equations that are one function with other constants

    @property
    def leading(self) -> FloatArray:
        """Of the first pair; 0 where there is none."""
        return self.sigmas[:, 0] if self.pairs else np.zeros(len(self.risks))

    @property
    def closest(self) -> FloatArray:
        """Of the two that are most alike."""
        return np.asarray(self.sigmas.min(axis=1)) if self.pairs else np.zeros(len(self.risks))


def sentences(
    found: Differences,
    *,
    sigma: float,
    origin: str,
    asked: int,
    n_candidates: int,
    n_left_out: int,
    is_pool: bool,
    novelties: Sequence[str] = (),
) -> str:
    """All that is to be said, one fact per line."""
    n = len(found.risks) - 1
    lines = [f"Noise: σ = {number_text(sigma, digits=3)}, {_ORIGINS[origin]}."]
    lines += [_apart(found, n), *novelties] if n else []
    if n:
        now, then = (_percent(float(found.risks[k])) for k in (0, n))
        lines.append(f"Chance that a wrong one of two would fit better: {now} now, {then} after {_rows(n)}.")
    lines += [f"{a} and {b} are one function with other constants: no row tells them apart." for a, b in found.same[:3]]
    if n < asked and found.pairs:
        lines.append(_nothing_more(found, n, n_candidates=n_candidates, is_pool=is_pool))
    if n_left_out:
        lines.append(f"{n_left_out:,} candidates were left out: an equation is not finite there.")
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %" if share >= 5e-5 else "below 0.01 %"


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def _apart(found: Differences, n: int) -> str:
    """By how much the leading equations, or the equation without its least term, would differ."""
    before, after = found.sigmas[0], found.sigmas[n]
    a, b = found.pairs[0]
    if b:
        head = f"The leading equations {a} and {b} differ"
        said = f"{head} by {_sigmas(before[0])} now and by {_sigmas(after[0])} after {_rows(n)}."
    else:
        said = " ".join(
            f"Without {term} it differs by {_sigmas(before[k])} now and by {_sigmas(after[k])} after {_rows(n)}."
            for k, (term, _) in enumerate(found.pairs)
        )
    done = np.flatnonzero(found.closest >= APART)
    if len(done):
        k = int(done[0])
        margin = "" if k == n else ": the further rows are a margin"
        all_of = "That is" if len(found.pairs) == 1 else "Every two are" if b else "Every term is"
        return f"{said} {all_of} {APART:g}σ apart {'now' if k == 0 else f'after {_rows(k)}'}{margin}."
    if len(found.pairs) == 1 or not b:
        return said
    k = int(after.argmin())
    return f"{said} Most alike after {_rows(n)}: {found.pairs[k][0]} and {found.pairs[k][1]}, by {_sigmas(after[k])}."


def _sigmas(value: float) -> str:
    return f"{value:.1f}σ" if value < 99.95 else f"{value:.0f}σ"


def _nothing_more(found: Differences, n: int, *, n_candidates: int, is_pool: bool) -> str:
    if is_pool and n == n_candidates:
        return f"The pool has no more than {_rows(n)} where every equation is finite."
    k = int(found.sigmas[n].argmin())
    one, other = found.pairs[k]
    what = f"{one} and {other}" if other else f"the equation with and without {one}"
    after, where = f" after {_rows(n)}" if n else "", "the pool" if is_pool else "the box"
    left = _sigmas(found.sigmas[n][k])
    return f"Nothing more is to be gained{after}: no row of {where} tells {what} further apart ({left})."
