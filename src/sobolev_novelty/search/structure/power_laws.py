"""Power laws c · Π vᵏ and a + c · Π vᵏ with simple exponents, where the logarithms say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sobolev_novelty.algebra.writing import product, scaled, writable
from sobolev_novelty.data import FloatArray
from sobolev_novelty.expression import Expression
from sobolev_novelty.search.power_law import common_sign, fit_power_law, simple_exponent
from sobolev_novelty.search.structure.dictionaries import Variable


def power_law(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """The law t = c · Π vᵏ with simple exponents, where the logarithms say so."""
    return writable(lambda law: scaled(law[0], law[1].expression), power_laws(variables, t))


def power_laws(variables: Sequence[Variable], t: FloatArray) -> list[tuple[float, Variable]]:
    """The same as factor and monomial; none where no power law is near."""
    positive = [v for v in variables if v.is_positive]
    sign = common_sign(t)
    if not positive or not sign:
        return []
    exponents, scale, misfit = fit_power_law(np.stack([v.values for v in positive]), t)
    if misfit > 0.05:
        return []
    powers = [simple_exponent(k) for k in exponents.tolist()]
    values = np.exp(powers @ np.log([v.values for v in positive]))
    monomial = product((v.expression, k) for v, k in zip(positive, powers, strict=True))
    return [(sign * scale, Variable(monomial, values))]


def offset_power_law(variables: Sequence[Variable], t: FloatArray) -> list[Expression]:
    """The law t = a + c · Π vᵏ: the offset is found by a line search on how well the logarithms fit."""
    positive = [v for v in variables if v.is_positive]
    if not positive:
        return []
    basis = np.stack([np.log(v.values) for v in positive] + [np.ones(len(t))]).T
    Q, _ = np.linalg.qr(basis)
    spread = np.ptp(t)
    forms: list[Expression] = []
    for sign in (1.0, -1.0):
        edge = float((sign * t).min())

        def misfit(gap: float, sign: float = sign, edge: float = edge) -> float:
            logs = np.log(sign * t - edge + gap)
            left = logs - Q @ (Q.T @ logs)
            return float(left.std() / max(logs.std(), 1e-300))

        gaps = spread * np.logspace(-6, 1, 43)
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
