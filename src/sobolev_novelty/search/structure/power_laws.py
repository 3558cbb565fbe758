"""Power laws c · Π vᵏ and a + c · Π vᵏ with simple exponents, where the logarithms say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sobolev_novelty.algebra.writing import scaled, writable
from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.power_law import fit_power_law, simple_exponent
from sobolev_novelty.search.structure.dictionaries import Variable, power_products

#: Share of the rows whose sign a law may miss: noise, where the target is near zero.
MAX_OTHER_SIGN = 0.05
#: How far an offset may be from the least value of the target, in units of its spread: sqrt(1 + u) of a u that goes
#: over ten powers of ten has rows a hair's breadth above one.
GAPS = np.logspace(-18.0, 1.0, 115)


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

        gaps = spread * GAPS
        scores = [misfit(gap) for gap in gaps]
        best = int(np.argmin(scores))
        if scores[best] > 0.2 or best in (0, len(gaps) - 1):
            continue
        gap = _golden(misfit, gaps[best - 1], gaps[best + 1])
        forms.extend(
            Expression.of("add", form, sign * (edge - gap)) for form in power_law(variables, t - sign * (edge - gap))
        )
    return forms


def _golden(function: Callable[[float], float], low: float, high: float, n_steps: int = 60) -> float:
    """Minimum of a unimodal function by golden sections, in the logarithm."""
    a, b = np.log(low), np.log(high)
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(n_steps):
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        a, b = (a, d) if function(float(np.exp(c))) < function(float(np.exp(d))) else (c, b)
    return float(np.exp((a + b) / 2.0))
