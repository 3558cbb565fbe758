"""Power laws c · Π vᵏ and a + c · Π vᵏ with simple exponents, where the logarithms say so, and exponentials of sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sobolev_novelty.algebra.numbers import nearest_simple
from sobolev_novelty.algebra.writing import scaled, writable
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import least_squares
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.search.propose.structure.dictionaries import power_products
from sobolev_novelty.search.propose.subproblem import Variable
from sobolev_novelty.search.propose.vocabulary import OFFSETS

#: Exponents nearer than this to a fraction with a denominator up to 4 are taken for it.
FRACTION_TOLERANCE = 0.02


def fit_power_law(columns: FloatArray, t: FloatArray) -> tuple[FloatArray, float, float]:
    """The power law that comes nearest to ``t``; neither it nor the columns, shape (n_variables, n_rows), may be 0.

    Returns ``exponents``: shape (n_variables,): as least squares gives them.
    Returns ``scale``: the factor c.
    Returns ``misfit``: spread of what is left of log |t|, relative to the spread of log |t|.

    >>> v = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 5.0, 3.0]])
    >>> fit_power_law(v, 3.0 * v[0] ** 2 / v[1])[0].round(9).tolist()
    [2.0, -1.0]
    """
    logs = np.log(np.abs(t))
    rows = np.vstack([np.log(np.abs(columns)), np.ones((1, len(t)))])
    k = least_squares(rows, logs)
    spread = max(float(logs.std()), 1e-300)
    return k[:-1], float(np.exp(k[-1])), float((logs - k @ rows).std()) / spread


def simple_exponent(k: float) -> float:
    """The simple fraction that an exponent stands for, or else the nearest multiple of one half.

    >>> simple_exponent(0.34), simple_exponent(1.93), simple_exponent(0.9)
    (0.3333333333333333, 2.0, 1.0)
    """
    fraction = nearest_simple(k, FRACTION_TOLERANCE)
    return round(2.0 * k) / 2.0 if fraction is None else fraction


def common_sign(t: FloatArray) -> float:
    """1 or -1 where all rows have that sign, otherwise 0."""
    return 1.0 if (t > 0.0).all() else -1.0 if (t < 0.0).all() else 0.0


#: Share of the rows whose sign a law may miss: noise, where the target is near zero.
MAX_OTHER_SIGN = 0.05
#: Parts of the logarithm of a law, at most.
MAX_PARTS = 4


def power_law(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """The law t = c · Π vᵏ with simple exponents, where the logarithms say so."""
    return writable(lambda law: scaled(law[0], law[1].expression), power_laws(variables, t))


def power_laws(variables: Sequence[Variable], t: FloatArray) -> list[tuple[float, Variable]]:
    """The same as factor and monomial; none where no power law is near."""
    usable = _usable(variables)
    if not usable or not t.all():
        return []
    exponents, scale, misfit = fit_power_law(np.stack([v.values for v in usable]), t)
    if misfit > 0.05:
        return []
    # Only whole powers of an input that is negative somewhere.
    powers = [
        simple_exponent(k) if v.is_positive else float(round(k))
        for v, k in zip(usable, exponents.tolist(), strict=True)
    ]
    monomial = power_products(usable, np.array([powers]))
    sign = float(np.sign(np.mean(np.sign(t) * np.sign(monomial.values[0]))))
    if (np.sign(t) * np.sign(monomial.values[0]) != sign).mean() > MAX_OTHER_SIGN:
        return []
    return [(sign * scale, Variable(monomial.expression(0), monomial.values[0]))]


def _usable(variables: Sequence[Variable]) -> list[Variable]:
    """Those whose size has a logarithm."""
    return [v for v in variables if v.values.all()]


def offset_power_law(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """The law t = a + c · Π vᵏ: the offset is found by a line search on how well the logarithms fit."""
    usable = _usable(variables)
    if not usable:
        return []
    basis = np.stack([np.log(np.abs(v.values)) for v in usable] + [np.ones(len(t))]).T
    Q, _ = np.linalg.qr(basis)
    spread = np.ptp(t)
    forms: list[Expression] = []
    for sign in (1.0, -1.0):
        edge = float((sign * t).min())

        def misfit(gap: float, sign: float = sign, edge: float = edge) -> float:
            logs = np.log(sign * t - edge + gap)
            left = logs - Q @ (Q.T @ logs)
            return float(left.std() / max(logs.std(), 1e-300))

        gaps = spread * OFFSETS
        scores = [misfit(gap) for gap in gaps]
        best = int(np.argmin(scores))
        if scores[best] > 0.2 or best in (0, len(gaps) - 1):
            continue
        gap = _golden(misfit, gaps[best - 1], gaps[best + 1])
        forms.extend(
            Expression.of("add", form, sign * (edge - gap)) for form in power_law(variables, t - sign * (edge - gap))
        )
    return forms


def log_linear_laws(variables: Sequence[Variable], y: FloatArray) -> list[Expression]:
    """Laws whose logarithm is a sum of a few of ln v, v, 1/v and v²: powers of any exponent, and exponentials.

    Over decades a row counts by its share, and in the logarithm all rows count alike. The sums are those of a forward
    selection, of one part, of two, and so on.

    >>> t = np.linspace(0.1, 9.0, 50)
    >>> v = Variable(Expression.of("t"), t)
    >>> [str(law.rounded(3)) for law in log_linear_laws([v], 2.0 * t**1.3)][:1]
    ['exp(0.693 + 1.3*log(t))']
    """
    if not ((y > 0.0).all() or (y < 0.0).all()) or len(y) <= MAX_PARTS + 1:
        return []
    parts: list[tuple[Expression, FloatArray]] = []
    for v in variables:
        parts += [(Expression.of("log", v.expression), np.log(v.values))] if v.is_positive else []
        parts.append((v.expression, v.values))
        parts += [(Expression.of("inv", v.expression), 1.0 / v.values)] if v.values.all() else []
        parts.append((Expression.of("square", v.expression), v.values**2))
    target, chosen = np.log(np.abs(y)), list[int]()
    columns = np.array([values / max(float(np.abs(values).max()), 1e-300) for _, values in parts])
    laws = []
    for _ in range(min(MAX_PARTS, len(parts))):
        A = np.vstack([np.ones(len(y)), columns[chosen]])
        Q = np.linalg.qr(A.T)[0]
        left = target - Q @ (Q.T @ target)
        Z = columns - (columns @ Q) @ Q.T
        lengths = np.linalg.norm(Z, axis=1)
        gains = np.where(lengths > 1e-9 * np.sqrt(len(y)), np.abs(Z @ left) / np.maximum(lengths, 1e-300), -1.0)
        gains[chosen] = -1.0
        chosen.append(int(np.argmax(gains)))
        rows = np.vstack([np.ones(len(y)), *(parts[k][1] for k in chosen)])
        b = np.linalg.lstsq(rows.T, target, rcond=None)[0].tolist()
        total = Expression.of(b[0])
        for coefficient, k in zip(b[1:], chosen, strict=True):
            total = Expression.of("add", total, Expression.of("mul", coefficient, parts[k][0]))
        law = Expression.of("exp", total)
        laws.append(law if y[0] > 0.0 else Expression.of("neg", law))
    return laws


def _golden(function: Callable[[float], float], low: float, high: float, n_steps: int = 60) -> float:
    """Minimum of a unimodal function by golden sections, in the logarithm."""
    a, b = np.log(low), np.log(high)
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(n_steps):
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        a, b = (a, d) if function(float(np.exp(c))) < function(float(np.exp(d))) else (c, b)
    return float(np.exp((a + b) / 2.0))
