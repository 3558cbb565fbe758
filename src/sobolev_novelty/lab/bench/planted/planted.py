r"""Planted terms: can a verdict tell a term that does not belong from those that do?

Each case is a law, a number of rows and a level of noise. The target is the law plus normal noise of ``noise`` times
its standard deviation. One term is planted beside those of the law, and all coefficients are refitted. The four kinds:

*imitation*
    A true term, bent: between 0.03 and 0.3 of its spread is outside what the true terms and a constant rebuild. In half
    of the cases a form without constants is tried first (sin(t), t*log(x), …). The data do not contain it.
*tiny*
    A simple function of the inputs that the others do not imitate (VIF at most 10). The data do contain it, with an
    effect of half the standard error with which its coefficient can be known from these rows at this noise: leaving it
    out lowers the expected error on new rows.
*noise*
    The best of :data:`N_TRIED` waves, bumps, poles and powers of one input, with constants fitted to the noise of these
    very rows. The data do not contain it.
*origin*
    A true term with one of its inputs counted from another origin, 0.1 to 0.5 standard deviations away. The data do
    not contain it.

The constant is not judged: every method has a free intercept. True terms that these rows cannot determine are judged
like all others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.algebra.terms import additive_terms
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.linear.least_squares import fit_columns
from sobolev_novelty.core.linear.projection import unit_columns
from sobolev_novelty.core.sample import FloatArray, Sample, as_sample
from sobolev_novelty.kernels.evaluate import derivatives
from sobolev_novelty.lab.bench.problems.tasks import Task
from sobolev_novelty.language.parsing import parse

KINDS = ("imitation", "tiny", "noise", "origin")
ROWS = (200, 1000)
NOISES = (0.01, 0.1)
#: Candidates among which the term fitted to noise is the best.
N_TRIED = 400
#: Share of an imitation's spread that is outside the true terms, at least and at most.
OUTSIDE = (0.03, 0.3)
#: Effect of a tiny term, in standard errors of its coefficient.
TINY = 0.5
_PLAIN_IMITATIONS = (
    "sin({t})", "tanh({t})", "exp({t})", "log({t})", "sqrt({t})", "{t}**2", "{t}**3", "1/{t}", "{t}*{v}", "{t}/{v}",
    "{t}*sqrt({v})", "{t}*log({v})", "{t}*exp({v})", "{t}*cos({v})", "sqrt(1 + {t}**2)", "log(1 + {t}**2)",
)  # fmt: skip
#: Attempts at a planted term before a law is given up for this kind.
N_ATTEMPTS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One law with one planted term, the last of ``terms``."""

    law: str
    kind: str
    noise: float
    seed: int
    terms: tuple[Expression, ...]
    sample: Sample
    y: FloatArray


def cases(task: Task, n_rows: int, noise: float, seed: int, kinds: Sequence[str] = KINDS) -> Iterator[Case]:
    """The cases of one law, one for each kind that the law allows; the same for the same seed."""
    rng = np.random.default_rng([seed, zlib.crc32(task.name.encode()), n_rows, round(1e6 * noise)])
    X, y = task.sample(n_rows, rng)
    expressions = [t.expression for t in additive_terms(task.positional_expression) if not t.is_constant]
    sample = as_sample(X)
    values = derivatives(expressions, sample, 1)
    usable = np.isfinite(values).all(axis=(0, 1)) & np.isfinite(y)
    if not expressions or usable.sum() < 32 or np.ptp(y[usable]) == 0.0:
        return
    sample, y, values = sample.rows(usable), y[usable], values[:, 0, usable]
    if (np.ptp(values, axis=1) == 0.0).any():
        return
    sigma = noise * float(y.std())
    for kind in kinds:
        own = np.random.default_rng([*rng.integers(0, 2**31, 2), KINDS.index(kind)])
        errors = sigma * own.normal(size=len(y))
        found = _PLANTERS[kind](_Bed(tuple(expressions), values, sample, sigma, errors), own)
        if found is not None:
            planted, effect = found
            yield Case(task.name, kind, noise, seed, (*expressions, planted), sample, y + effect + errors)


@dataclass(frozen=True, slots=True, eq=False)
class _Bed:
    """What a term is planted in."""

    terms: tuple[Expression, ...]
    values: FloatArray
    sample: Sample
    sigma: float
    errors: FloatArray

    def column(self, text: str) -> tuple[Expression, FloatArray] | None:
        """The expression of a text and its values; None where a value or slope is not finite or it is constant."""
        return self.of(parse(text, names=self.sample.names))

    def of(self, expression: Expression) -> tuple[Expression, FloatArray] | None:
        rows = derivatives([expression], self.sample, 1)[0]
        return (expression, rows[0]) if np.isfinite(rows).all() and np.ptp(rows[0]) > 0.0 else None

    def outside(self, column: FloatArray) -> float:
        """Share of a column's spread that the terms and a constant do not rebuild."""
        found = fit_columns(self.values, column / np.abs(column).max())
        return float(np.sqrt(found.rss / found.tss)) if found.tss > 0.0 else 0.0


Planted = tuple[Expression, FloatArray] | None
_NOTHING = np.zeros(())


def _imitation(bed: _Bed, rng: np.random.Generator) -> Planted:
    low, high = OUTSIDE
    plain = [
        written.format(t=f"({term})", v=name)
        for term in bed.terms
        for name in bed.sample.names
        for written in _PLAIN_IMITATIONS
    ]
    # Half of the imitations bring no constants of their own, as far as the law has such.
    order = rng.permutation(len(plain))[:N_ATTEMPTS] if rng.random() < 0.5 else ()
    for k in order:
        found = bed.column(plain[k])
        if found is not None and low <= bed.outside(found[1]) <= high:
            return found[0], _NOTHING
    for _ in range(N_ATTEMPTS):
        k, j = rng.integers(len(bed.terms)), rng.integers(len(bed.sample.names))
        found = _bent(bed, int(k), int(j), int(rng.integers(4)), float(np.exp(rng.uniform(np.log(low), np.log(high)))))
        if found is not None and low <= bed.outside(found[1]) <= high:
            return found[0], _NOTHING
    return None


def _bent(bed: _Bed, k: int, j: int, family: int, target: float) -> Planted:
    """Term k, bent until ``target`` of its spread is outside the true terms; the bend's strength by bisection."""
    x, column, name = bed.sample.X[j], bed.values[k], bed.sample.names[j]
    if x.std() == 0.0:
        return None
    centred = f"(({bed.terms[k]}) - ({_six(float(column.mean()))}))"
    low, high, best = 1e-3, 3.0, None
    for _ in range(10):
        strength = float(np.sqrt(low * high))
        e, along = _six(strength / float(column.std())), _six(strength / float(x.std()))
        texts = (
            f"({bed.terms[k]})*(1 + {along}*({name} - ({_six(float(x.mean()))})))",
            f"sin({e}*{centred})",
            f"exp({e}*{centred})",
            f"tanh({e}*{centred})",
        )
        found = bed.column(texts[family])
        if found is None or bed.outside(found[1]) > target:
            high = strength
        else:
            low, best = strength, found
    return best


def _tiny(bed: _Bed, rng: np.random.Generator) -> Planted:
    names, X = bed.sample.names, bed.sample.X
    for _ in range(N_ATTEMPTS):
        j, k = rng.integers(len(names), size=2)
        v, s = names[j], float(X[j].std())
        if s == 0.0:
            continue
        wave, decay = _six(rng.uniform(1, 3) / s), _six(rng.uniform(0.3, 1) / s)
        texts = (
            v, f"{v}**2", f"{v}**3", f"{v}*{names[k]}", f"1/{v}", f"log({v})", f"sin({wave}*{v})", f"exp(-{decay}*{v})",
        )  # fmt: skip
        found = bed.column(texts[rng.integers(len(texts))])
        outside = 0.0 if found is None else bed.outside(found[1])
        if found is None or outside**2 < 0.1:
            continue
        column = found[1] - found[1].mean()
        error = bed.sigma / (np.linalg.norm(column) * outside)
        return found[0], float(rng.choice([-TINY, TINY])) * error * column
    return None


def _noise(bed: _Bed, rng: np.random.Generator) -> Planted:
    tried = [_wild(bed.sample, rng) for _ in range(N_TRIED)]
    columns = derivatives(tried, bed.sample, 0)[:, 0]
    usable = np.flatnonzero(np.isfinite(columns).all(axis=1) & (np.abs(columns).max(axis=1) < 1e100))
    Z = unit_columns((columns[usable] - columns[usable].mean(axis=1, keepdims=True)).T)[0]
    known = unit_columns((bed.values - bed.values.mean(axis=1, keepdims=True)).T)[0]
    basis = np.linalg.qr(known)[0]
    Z -= basis @ (basis.T @ Z)
    left = np.linalg.norm(Z, axis=0)
    gain = np.where(left < 0.1, 0.0, np.abs(Z.T @ bed.errors) / np.maximum(left, 0.1))
    for k in np.argsort(-gain)[:N_ATTEMPTS]:
        found = bed.of(tried[usable[k]])
        if found is not None:
            return found[0], _NOTHING
    return None


def _wild(sample: Sample, rng: np.random.Generator) -> Expression:
    """A wave, a pole, a bump or a power of one input, with constants of its own."""
    j = int(rng.integers(sample.n_features))
    v, x, of = sample.names[j], sample.X[j], Expression.of
    s, low, high = float(x.std()), float(x.min()), float(x.max())
    wave = _six(float(np.exp(rng.uniform(0.0, np.log(300.0))) / max(s, 1e-300)))
    away = of("sub", v, _six(float(rng.uniform(low - 0.1 * s, high + 0.1 * s))))
    width = _six(float(np.exp(rng.uniform(np.log(0.01), np.log(0.3))) * s))
    family, power = int(rng.integers(6)), float(rng.integers(1, 5))
    if family < 2:
        return of("sin" if family else "cos", of("mul", wave, v))
    if family < 4:
        return of("div", 1.0, away if family == 2 else of("square", away))
    return of("exp", of("neg", of("square", of("div", away, width)))) if family == 4 else of("pow", v, -power)


def _origin(bed: _Bed, rng: np.random.Generator) -> Planted:
    for _ in range(N_ATTEMPTS):
        term = bed.terms[rng.integers(len(bed.terms))]
        name = str(rng.choice(term.variables))
        spread = float(bed.sample.X[bed.sample.names.index(name)].std())
        shift = _six(float(rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 0.5) * spread))
        shifted = Expression.of("add", name, shift)
        tokens = [part for token in term.tokens for part in (shifted.tokens if token == name else (token,))]
        found = bed.of(Expression(tokens))
        if found is not None and bed.outside(found[1]) > 1e-6:
            return found[0], _NOTHING
    return None


_PLANTERS: dict[str, Callable[[_Bed, np.random.Generator], Planted]] = {
    "imitation": _imitation,
    "tiny": _tiny,
    "noise": _noise,
    "origin": _origin,
}


def _six(value: float) -> float:
    """Six digits, as an equation would be written."""
    return float(f"{value:.6g}")
