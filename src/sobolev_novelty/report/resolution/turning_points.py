r"""Turning points that a term makes between neighbouring rows, where no row can show them.

Notation
--------
``f(u)``    an oscillating operator of a term and its argument: cos(3 x₀ x₁), u = 3 x₀ x₁
``u_k``     the distinct values of u at the rows, ascending;  ``gap`` the way from one to the next
``turns``   sign changes of df/du within the gaps
``shown``   sign changes of the differences f(u_{k+1}) − f(u_k): what the values at the rows can show of them
``hidden``  turns − shown, less one in the first and one in the last gap, which no row could ever show

A sum of consecutive differences has the sign of one of them, so that ``shown`` is never more than ``turns``. Turns are
counted along the argument of what oscillates and not along each input by itself: sin(n x) on n = 1 … 4 and many x makes
several turns between two values of n, but the phases n x of the rows lie close together and show all of them. Of one
input both are the same: cos(S) on S = 0.5, 1, 2 … 64 makes 20 turns; eight values show four. What does not oscillate
hides nothing, however steep it is: a logistic curve on six doses has no turning point.

Hidden turns are what another number inside the wave could have replaced: along evenly spaced u, a wave that makes one
period less from row to row has the same values. A wave with h hidden turns has been chosen from about h + 1 that these
rows cannot tell apart, so that a price in nats is ln(1 + h).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sobolev_novelty import kernels
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import Operator
from sobolev_novelty.core.sample import FloatArray, Sample

#: Operators that turn for ever: f(u) has its turns where factor·u/π − shift is whole. A pole at which the sign changes
#: counts as the two turns of the wave with the same period.
_WAVES = {"sin": (1.0, 0.5), "cos": (1.0, 0.0), "tan": (2.0, 0.5), "cot": (2.0, 0.5)}
#: Arguments that differ by less than this share of the largest are equal up to rounding.
SAME = 1e-9
#: Steps in each gap in which the turns of an operator of the user's own are looked for, and gaps looked at, at most.
OWN_STEPS, OWN_GAPS = 8, 512
#: More turns than this are not counted.
MANY = 2**53


@dataclass(frozen=True, slots=True)
class Turns:
    """Turning points of one oscillating operator along its argument.

    ``shown``, ``hidden``: see the notation.
    """

    shown: int
    hidden: int
    #: Whether half of the neighbouring rows are more than half a wave apart, beyond what evenly spaced rows can tell
    #: from a slower wave (Nyquist).
    is_apart: bool

    @property
    def is_resolved(self) -> bool:
        """Whether the rows show at least as many turns as they hide, and most are within half a wave."""
        return self.hidden <= self.shown and not self.is_apart


def hidden_turns(expression: Expression, sample: Sample) -> int:
    """Turning points of an expression that these rows hide, those of all its oscillating operators together."""
    return sum(turns.hidden for turns in wave_turns([expression], sample)[0])


def wave_turns(expressions: Sequence[Expression], sample: Sample) -> list[tuple[Turns, ...]]:
    """Of each expression the turns of its oscillating operators; empty where there are none.

    All arguments are worked out in one call of the kernel and each is sorted once: fifty equations of 2,000 rows take a
    few milliseconds. Rows in which an argument is not finite are left out.
    """
    waves = [_waves(expression) for expression in expressions]
    distinct = list(dict.fromkeys(wave for each in waves for wave in each))
    if not distinct:
        return [()] * len(expressions)
    programs = kernels.compile_programs([argument for _, argument in distinct], sample.names)
    with np.errstate(all="ignore"):
        arguments = np.asarray(kernels.derivatives(programs, sample.X)[:, 0])
        each_of = {wave: _turns(wave[0], u) for wave, u in zip(distinct, arguments, strict=True)}
    return [tuple(each_of[wave] for wave in each) for each in waves]


def are_resolved(expressions: Sequence[Expression], sample: Sample) -> npt.NDArray[np.bool_]:
    """Which expressions oscillate no faster than the rows can show."""
    return np.array([all(turns.is_resolved for turns in each) for each in wave_turns(expressions, sample)], dtype=bool)


def _waves(expression: Expression) -> list[tuple[Operator, Expression]]:
    """The operators of an expression that can turn more than once, each with its argument, once each."""
    found = [
        (token, expression.subtree(place + 1))
        for place, token in enumerate(expression.tokens)
        if isinstance(token, Operator) and (token.name in _WAVES or (token.is_own and token.arity == 1))
    ]
    return list(dict.fromkeys(found))


def _turns(op: Operator, arguments: FloatArray) -> Turns:
    u = np.sort(arguments[np.isfinite(arguments)])
    if len(u):
        u = u[np.append(True, np.diff(u) > SAME * max(-u[0], u[-1]))]
    if len(u) < 2:
        return Turns(0, 0, is_apart=False)
    return _turns_of_own(op, u) if op.is_own else _turns_of_wave(u, *_WAVES[op.name])


def _turns_of_wave(u: FloatArray, factor: float, shift: float) -> Turns:
    phase = factor * u - math.pi * shift  # the wave is cos(phase) up to its sign
    shown = _sign_changes(np.diff(np.cos(phase)))
    gaps = np.diff(phase)
    return _counted(np.diff(np.floor(phase / math.pi)), shown, is_apart=bool(np.median(gaps) > math.pi))


def _turns_of_own(op: Operator, u: FloatArray) -> Turns:
    """The same by values between the rows. Of many gaps only the widest are looked at: the others hide least."""
    shown = _sign_changes(np.diff(op.value(u)))
    wide = np.sort(np.argsort(-np.diff(u), kind="stable")[:OWN_GAPS])
    path = u[wide, None] + np.diff(u)[wide, None] * np.arange(OWN_STEPS + 1) / OWN_STEPS
    values = op.value(path.reshape(-1)).reshape(path.shape)
    turns = np.array([_sign_changes(steps) for steps in np.diff(values, axis=1)], dtype=np.float64)
    if len(wide) == len(u) - 1:  # a turn at a row lies between two gaps
        turns[0] += _sign_changes(np.diff(values, axis=1).reshape(-1)) - turns.sum()
    return _counted(turns, shown, is_apart=bool(np.median(turns) > 1.0))


def _counted(turns: FloatArray, shown: int, *, is_apart: bool) -> Turns:
    edges = min(turns[0], 1.0) + (min(turns[-1], 1.0) if len(turns) > 1 else 0.0)
    hidden = max(float(turns.sum()) - shown - edges, 0.0)
    return Turns(shown, int(min(hidden, MANY)), is_apart=is_apart)


def _sign_changes(steps: FloatArray) -> int:
    """Sign changes of a sequence; what is zero or not finite is passed over."""
    signs = np.sign(steps[np.isfinite(steps) & (steps != 0.0)])
    return int(np.count_nonzero(np.diff(signs)))
