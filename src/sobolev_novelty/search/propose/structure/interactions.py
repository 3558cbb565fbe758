"""Additive laws with one interaction: parabolas of single inputs, and a function of a product of two shifted inputs.

Under noise, and among many columns, sums are found term by term, and a wave of a product of two inputs whose zeros
nobody knows is no term of any dictionary. Here the inputs that act by themselves are found first, by parabolas; then
each pair of inputs is looked at for what it adds to the parabolas of all others.

Notation
--------
``u = (x - a)/r``  an input as a share of its range;  ``k·u·v``  the argument of an interaction
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product

import numpy as np

from sobolev_novelty.algebra.writing import scaled, weighted_sum, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose import vocabulary as words
from sobolev_novelty.search.propose.subproblem import Variable

#: Inputs that may act, and rows for each of their parabolas.
MAX_ACTING, ROWS_PER_PARABOLA = 8, 10
#: An input acts if its parabola lowers the squared error by this many times what chance would.
CLEAR = 3.0
#: Starting points that are worth a fit, in all and for each pair of inputs.
KEPT, KEPT_PER_PAIR = 16, 4
#: A parabola is written as a line where its bend explains less than this share of what the input explains.
STRAIGHT = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class _Parabola:
    """An input that acts by itself: its columns, centred, and how to write them with their coefficients."""

    variable: Variable
    columns: FloatArray

    def written(self, line: float, bend: float) -> Expression:
        """The line, or the square about its vertex; what is constant is the sum's own."""
        x, (first, second) = self.variable.expression, self.columns
        if abs(bend) * second.std() <= STRAIGHT * abs(line) * first.std():
            return scaled(line, x)
        centre = float(self.variable.values.mean())
        return scaled(bend, Expression.of("square", _shifted(x, centre - 0.5 * line / bend)))


def interactions(variables: Sequence[Variable], t: FloatArray, operators: Sequence[str]) -> list[Expression]:
    """Forms for sums of parabolas, with and without the interaction of two inputs, the best starting points of each."""
    functions = [name for name in words.FACTORS if name in operators]
    if len(t) < 2 * ROWS_PER_PARABOLA:
        return []
    every = [_parabola(v) for v in variables]
    acting = _acting(every, t)
    partners = [*acting, *(p for p in every if p not in acting)][:MAX_ACTING]
    found: list[tuple[float, Expression]] = []
    for first, second in combinations(partners, 2) if functions else ():
        others = [p for p in acting if p is not first and p is not second]
        found += _joined(first, second, others, t, functions)
    plain = writable(lambda parabolas: _without_interaction(parabolas, t), [acting] if acting else [])
    return [*plain, *(form for _, form in sorted(found, key=lambda pair: pair[0])[:KEPT])]


def _parabola(variable: Variable) -> _Parabola:
    x = variable.values - variable.values.mean()
    return _Parabola(variable, np.stack([x, x**2]))


def _acting(every: Sequence[_Parabola], t: FloatArray) -> list[_Parabola]:
    """Inputs whose parabolas lower the error clearly, one after the other."""
    acting: list[_Parabola] = []
    rest = list(every)
    columns = np.ones((1, len(t)))
    error = float(np.sum((t - t.mean()) ** 2))
    while rest and len(acting) < min(MAX_ACTING, len(t) // ROWS_PER_PARABOLA):
        errors = [_error(np.vstack([columns, p.columns]), t) for p in rest]
        best = int(np.argmin(errors))
        n_left = max(len(t) - len(columns) - 2, 1)
        if not error - errors[best] > CLEAR * 2.0 * np.log(2.0 + len(rest)) * errors[best] / n_left:
            break
        chosen = rest.pop(best)
        acting.append(chosen)
        columns, error = np.vstack([columns, chosen.columns]), errors[best]
    return acting


def _error(columns: FloatArray, t: FloatArray) -> float:
    found = t - least_squares(columns, t) @ columns
    total = float(found @ found)
    return total if np.isfinite(total) else np.inf


def _without_interaction(acting: Sequence[_Parabola], t: FloatArray) -> Expression:
    columns = np.vstack([np.ones((1, len(t))), *(p.columns for p in acting)])
    return _sum(acting, least_squares(columns, t).tolist())


def _sum(acting: Sequence[_Parabola], weights: Sequence[float], last: Expression | None = None) -> Expression:
    """The constant, the parabolas, and the interaction with the last of the weights."""
    parts = [(weights[0], Expression.of(1.0))]
    for k, parabola in enumerate(acting):
        parts.append((1.0, parabola.written(weights[1 + 2 * k], weights[2 + 2 * k])))
    if last is not None:
        parts.append((weights[-1], last))
    return weighted_sum(parts)


def _joined(
    first: _Parabola, second: _Parabola, others: Sequence[_Parabola], t: FloatArray, functions: Sequence[str]
) -> Iterator[tuple[float, Expression]]:
    """Errors and forms of the best starting points of an interaction, beside the parabolas of the other inputs."""
    base = np.vstack([np.ones((1, len(t))), *(p.columns for p in others)])
    q = np.linalg.qr(base.T)[0]
    left = t - q @ (q.T @ t)
    x, y = first.variable, second.variable
    starts = list(product(functions, words.STRENGTHS, _shares(x), _shares(y)))
    columns = np.array([_VALUES[name](k * (u * v)) for name, k, (_, u), (_, v) in starts])
    columns -= (columns @ q) @ q.T
    sizes = np.einsum("ij,ij->i", columns, columns)
    with np.errstate(all="ignore"):
        gains = np.where(sizes > 1e-9 * len(t), (columns @ left) ** 2 / sizes, 0.0)
    for best in np.argsort(-gains, kind="stable")[:KEPT_PER_PAIR].tolist():
        name, k, (a, _), (b, _) = starts[best]
        scale = k / float(np.ptp(x.values) * np.ptp(y.values))
        inside = Expression.of("mul", _shifted(x.expression, a), _shifted(y.expression, b))
        part = Expression.of(name, scaled(scale, inside))
        values = _VALUES[name](scale * (x.values - a) * (y.values - b))
        weights = least_squares(np.vstack([base, values]), t).tolist()
        for form in writable(partial(_sum, others, last=part), [weights]):
            yield float(left @ left - gains[best]), form


_VALUES: dict[str, Callable[[FloatArray], FloatArray]] = {"sin": np.sin, "cos": np.cos, "exp": np.exp}


def _shares(variable: Variable) -> list[tuple[float, FloatArray]]:
    """Where the zeros of an argument may lie, and the input as a share of its range from there."""
    low, reach = float(variable.values.min()), float(np.ptp(variable.values))
    return [(low + zero * reach, (variable.values - low) / reach - zero) for zero in words.ZEROS]


def _shifted(x: Expression, zero: float) -> Expression:
    return Expression.of("sub", x, Expression.of(zero)) if zero > 0.0 else Expression.of("add", x, Expression.of(-zero))
