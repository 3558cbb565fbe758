"""Laws drawn from a seed, and imitations of them: what the experiments with `next_rows` are run on.

A law is a sum of one to three products of powers and curves of its inputs, on a box. An imitation is the same law with
one of its factors replaced by another curve that has as many constants, all constants fitted to the law on the whole
box; it misses the law by 2 to 20 % of its spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.writing import weighted_sum
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.search.fit.fitting import fit_terms
from sobolev_novelty.search.fit.forms import split_form

POWERS = ("{z}", "{z}", "{z}**2", "{z}**3", "sqrt({z})", "1/{z}", "{z}**1.5", "1/{z}**2")
CURVES = ("log({z})", "exp({z})", "exp(-{z})", "tanh({z})", "sin({z})", "cos({z})")
#: Curves with a constant of their own.
BENT = (
    "exp(-{c}*{z})", "exp({c}*{z})", "sin({c}*{z})", "cos({c}*{z})", "tanh({c}*{z})", "log({z} + {c})",
    "sqrt({z} + {c})", "1/({z} + {c})", "exp(-{c}*{z}**2)", "1/(1 + {c}*{z}**2)", "{z}/({z} + {c})",
)  # fmt: skip
#: Curves that are tried in the place of one; what an imitation misses, as a share of the law's spread.
N_TRIED, MISSES = 6, (0.02, 0.2)
#: Rows on which an imitation is fitted and the spread is taken.
N_DENSE = 400

Factor = tuple[str, int, float | None]
Product = tuple[float, list[Factor]]


@dataclass(frozen=True, slots=True)
class Law:
    """An equation in a box."""

    terms: tuple[Product, ...]
    offset: float | None
    low: FloatArray
    high: FloatArray

    @property
    def expression(self) -> Expression:
        """As an expression in x0, x1, …"""
        written = [
            f"({c})*" + "*".join(f"({curve.format(z=f'x{k}', c=inner)})" for curve, k, inner in factors)
            for c, factors in self.terms
        ]
        offset = [] if self.offset is None else [f"({self.offset})"]
        return parse(" + ".join(written + offset), names=[f"x{k}" for k in range(len(self.low))])

    def rows(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Rows drawn evenly from the box."""
        return self.low + (self.high - self.low) * rng.random((n, len(self.low)))

    @property
    def spread(self) -> float:
        """Standard deviation over the box; nan where the law is not finite or leaves an input out."""
        values = evaluate(self.expression, self.rows(N_DENSE, np.random.default_rng(0)))
        used = len(self.expression.variables) == len(self.low)
        return float(values.std()) if used and np.isfinite(values).all() else float("nan")


@dataclass(frozen=True, slots=True)
class Pair:
    """A law and its imitation."""

    law: Law
    imitation: Expression
    misses: float


def fitted(expression: Expression, X: FloatArray, y: FloatArray, *, n_starts: int = 3) -> tuple[Expression, float]:
    """An equation with its constants fitted, and the squared error."""
    form = split_form(expression)
    found = fit_terms(
        [form.terms], X, y, free=[form.free], n_iterations=30, n_starts=n_starts if any(form.free) else 1,
        rng=np.random.default_rng(0),
    )[0]  # fmt: skip
    return weighted_sum(zip(found.coefficients.tolist(), found.terms, strict=True)), found.loss


def laws(
    seed: int, *, least_inputs: int = 1, most_inputs: int = 5, most_terms: int = 3, is_plain: bool = False
) -> Iterator[Law]:
    """Laws whose values are finite and of a sensible size, without end; plain ones have no constants in curves."""
    rng = np.random.default_rng(seed)
    while True:
        law = _drawn(rng, (least_inputs, most_inputs), most_terms, is_plain)
        if 1e-3 < law.spread < 1e3:
            yield law


def _drawn(rng: np.random.Generator, inputs: tuple[int, int], most_terms: int, is_plain: bool) -> Law:
    d = int(rng.integers(inputs[0], inputs[1] + 1))
    low = rng.choice([0.1, 0.5, 1.0, 1.0], d)
    high = low + rng.uniform(1.0, 4.0, d)
    terms: list[Product] = []
    for t in range(int(rng.integers(1, most_terms + 1))):
        n_factors = int(rng.integers(1 if t else (d + 1) // 2, d + 1))
        factors = [_factor(rng, int(k), is_plain) for k in rng.choice(d, n_factors, replace=False)]
        terms.append((round(float(rng.choice([-1, 1]) * rng.uniform(0.5, 3.0)), 2), factors))
    offset = round(float(rng.uniform(-2.0, 2.0)), 2) if rng.random() < 0.5 else None
    return Law(tuple(terms), offset, low, high)


def _factor(rng: np.random.Generator, k: int, is_plain: bool) -> Factor:
    kind = (0.7 if is_plain else 1.0) * rng.random()
    if kind < 0.7:
        return str(rng.choice(POWERS if kind < 0.5 else CURVES)), k, None
    return str(rng.choice(BENT)), k, round(float(rng.uniform(0.5, 2.0)), 2)


def pairs(seed: int) -> Iterator[Pair]:
    """Laws with their imitations, without end."""
    rng = np.random.default_rng([seed, 1])
    for law in laws(seed):
        found = _imitation(law, rng)
        if found is not None:
            yield found


def _imitation(law: Law, rng: np.random.Generator) -> Pair | None:
    """The best of some imitations of one factor; None where none is near, or all are the law."""
    t = int(rng.integers(len(law.terms)))
    k = int(rng.integers(len(law.terms[t][1])))
    curve, place, inner = law.terms[t][1][k]
    others = [c for c in (dict.fromkeys(POWERS + CURVES) if inner is None else BENT) if c != curve]
    rng.shuffle(others)
    X, whole, spread = law.rows(N_DENSE, np.random.default_rng(0)), split_form(law.expression), law.spread
    y = evaluate(law.expression, X)
    best: Pair | None = None
    for other in others[:N_TRIED]:
        factors = [*law.terms[t][1][:k], (other, place, inner), *law.terms[t][1][k + 1 :]]
        terms = (*law.terms[:t], (law.terms[t][0], factors), *law.terms[t + 1 :])
        candidate = Law(terms, law.offset, law.low, law.high).expression
        form = split_form(candidate)
        if (form.n_free, len(form.terms)) != (whole.n_free, len(whole.terms)):
            continue
        if not np.isfinite(evaluate(candidate, X)).all():
            continue
        expression, loss = fitted(candidate, X, y)
        misses = float(np.sqrt(loss / len(y))) / spread
        if MISSES[0] < misses < MISSES[1] and (best is None or misses < best.misses):
            best = Pair(law, expression, misses)
    return best
