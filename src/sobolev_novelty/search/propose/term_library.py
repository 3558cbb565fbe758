r"""The terms from which the tree search draws: products of powers and atoms, with their values on some rows.

Notation
--------
``U``  values of the terms, shape (n_terms, n_rows), each scaled by its largest magnitude;  ``t``  a target on the same
rows
``w``  weights of the rows; columns and target are multiplied by them before lengths are taken
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from sobolev_novelty import kernels
from sobolev_novelty.algebra.products import Product
from sobolev_novelty.algebra.writing import Writer, product, raised
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import own_operators
from sobolev_novelty.core.sample import FloatArray, Sample
from sobolev_novelty.search.problem.units import HUGE, TINY
from sobolev_novelty.search.propose import vocabulary as words

MAX_TERMS = 5000
MAX_LEARNED = 200
#: Terms that vary by less than this share of their size are left out.
NEARLY_CONSTANT = 0.02
#: Monomials whose periodograms are looked at.
MAX_ARGUMENTS = 120


@dataclass(slots=True)
class Library:
    """Terms and their values; grows by terms of good candidates.

    ``U``, ``squares``: float32, shape (n_terms, n_rows), values, each term scaled by its largest magnitude, and their
    squares.
    """

    sample: Sample
    products: list[Product | None]  # how a term is made up; ``None`` for a learned one
    expressions: list[Expression]
    U: FloatArray
    squares: FloatArray
    exact: FloatArray  # shape (n_terms, n_rows): values
    n_given: int
    known: set[Expression] = field(default_factory=set)
    places: dict[Expression, int] = field(default_factory=dict)
    version: int = 0

    def __post_init__(self) -> None:
        self.places = {e: i for i, e in enumerate(self.expressions)}

    def __len__(self) -> int:
        return len(self.expressions)

    @property
    def atoms(self) -> list[int]:
        """Places of the terms that are a single factor, and not a power of a variable."""
        return [i for i, p in enumerate(self.products) if p is not None and _is_atom(p)]

    def values(self, expressions: Sequence[Expression]) -> FloatArray:
        """Values on the library's rows, shape (n, n_rows); those of its own terms are at hand."""
        places = [self.places.get(e) for e in expressions]
        known = [place for place in places if place is not None]
        if len(known) == len(places):
            return self.exact[known]
        return values_on(self.sample, expressions)

    def learn(self, expressions: Iterable[Expression]) -> None:
        """Add terms of good candidates; the oldest learned ones give way."""
        fresh = [e for e in dict.fromkeys(expressions) if e not in self.known]
        if not fresh:
            return
        self.known.update(fresh)
        values = self.values(fresh)
        usable = _usable(values)
        kept = [e for e, keep in zip(fresh, usable, strict=True) if keep]
        n_learned = len(self) - self.n_given
        drop = max(0, n_learned + len(kept) - MAX_LEARNED)
        rest = [*range(self.n_given), *range(self.n_given + drop, len(self))]
        self.expressions = [self.expressions[i] for i in rest] + kept
        self.products = [self.products[i] for i in rest] + [None] * len(kept)
        self.U = np.concatenate([self.U[rest], _scaled(values[usable])])
        self.squares = np.concatenate([self.squares[rest], self.U[len(rest) :] ** 2])
        self.exact = np.concatenate([self.exact[rest], values[usable]])
        self.places = {e: i for i, e in enumerate(self.expressions)}
        self.version += 1


def values_on(sample: Sample, expressions: Sequence[Expression]) -> FloatArray:
    """Values of expressions on a sample, shape (n_expressions, n_samples)."""
    return np.asarray(kernels.derivatives(kernels.compile_programs(expressions, sample.names), sample.X)[:, 0])


def _usable(values: FloatArray) -> npt.NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        largest = np.abs(values).max(axis=1)
        # What hardly varies repeats the constant: tanh of a large argument, say.
        varies = np.std(values, axis=1) > NEARLY_CONSTANT * largest
    return np.asarray(np.isfinite(largest) & (largest > 1e-100) & (largest < 1e100) & varies)


def _scaled(values: FloatArray) -> FloatArray:
    return np.asarray(values / np.abs(values).max(axis=1, keepdims=True), dtype=np.float32)


def make_library(
    sample: Sample, writer: Writer, rng: np.random.Generator, *, y: FloatArray | None = None, max_terms: int = MAX_TERMS
) -> Library:
    """All short products of powers and atoms, up to a cap; beyond it longer ones are drawn at random.

    With a target ``y``, oscillations of it along monomials join the atoms.

    >>> from sobolev_novelty.core.sample import as_sample
    >>> library = make_library(as_sample(np.linspace(1, 2, 50)), Writer(("mul", "square")), np.random.default_rng(0))
    >>> [str(e) for e in library.expressions]
    ['1', 'x0', 'square(x0)', 'x0*square(x0)', 'square(square(x0))']
    """
    domains = {name: _domain(row) for name, row in zip(sample.names, sample.X, strict=True)}
    monomials = list(_monomials(sample.names, domains))
    atoms = atoms_of(sample.names, writer)
    if y is not None:
        atoms += periodic_atoms(sample, y, monomials, writer)
    by_size = {n: [m for m in monomials if len(m.factors) == n] for n in (1, 2, 3)}
    small = [m for m in by_size[1] if abs(m.factors[0][1]) <= 2.0]
    singles = [Product(((atom, 1.0),)) for atom in atoms]
    share = max_terms // 4
    chosen = [
        *[Product(), *by_size[1], *singles][:max_terms],
        *(by_size[n][i] for n in (2, 3) for i in _drawn(len(by_size[n]), share, rng)),
        *_drawn_products(singles, small, share, rng),
        *_drawn_products(singles, by_size[2], share, rng),
        *_drawn_products(singles, singles, share, rng),
    ]
    written = [(p, writer.product(p)) for p in list(dict.fromkeys(chosen))[:max_terms]]
    pairs = [(p, e) for p, e in written if e is not None]
    values = values_on(sample, [e for _, e in pairs])
    usable = _usable(values)
    usable[0] = True  # the constant itself
    kept = [pair for pair, keep in zip(pairs, usable, strict=True) if keep]
    expressions = [e for _, e in kept]
    U = _scaled(values[usable])
    return Library(sample, [p for p, _ in kept], expressions, U, U**2, values[usable], len(kept), set(expressions))


def _is_atom(term: Product) -> bool:
    return len(term.factors) == 1 and term.factors[0][1] == 1.0 and len(term.factors[0][0]) > 1


def _drawn(size: int, n: int, rng: np.random.Generator) -> list[int]:
    """All places below ``size``, or ``n`` of them at random, in order."""
    return list(range(size)) if size <= n else sorted(rng.choice(size, n, replace=False).tolist())


def _drawn_products(
    left: Sequence[Product], right: Sequence[Product], n: int, rng: np.random.Generator
) -> list[Product]:
    """Products of a left and another, right factor: all, or ``n`` at random."""
    pairs = (divmod(i, len(right)) for i in _drawn(len(left) * len(right), n, rng))
    return [left[i].times(right[j]) for i, j in pairs if left[i] is not right[j]]


def periodic_atoms(
    sample: Sample, y: FloatArray, monomials: Sequence[Product], writer: Writer, n_best: int = 4
) -> list[Expression]:
    """sin(c u) and cos(c u) for the monomials u and frequencies c that explain most of ``y`` (a periodogram each)."""
    found: list[tuple[float, Expression]] = []
    target = y - y.mean()
    total = float(target @ target)
    if not writer.has("mul", "sin", "cos") or not 0.0 < total < np.inf:
        return []
    arguments = [m for m in monomials if all(abs(k) == 1.0 for _, k in m.factors)][:MAX_ARGUMENTS]
    written = [e for e in (writer.product(m) for m in arguments) if e is not None]
    for expression, u in zip(written, values_on(sample, written), strict=True):
        span = float(np.ptp(u))
        if not TINY < span < HUGE:
            continue
        c = 2.0 * np.pi / span * words.TURNS
        phase = np.outer(c, u)
        waves = np.stack([np.sin(phase), np.cos(phase)], axis=1)  # (frequency, 2, row)
        waves -= waves.mean(axis=2, keepdims=True)
        inner = waves @ target
        gram = waves @ waves.transpose(0, 2, 1) + 1e-9 * len(y) * np.eye(2)
        explained = np.einsum("fi,fi->f", inner, np.linalg.solve(gram, inner[:, :, None])[:, :, 0]) / total
        best = int(np.argmax(explained))
        found.append((float(explained[best]), Expression.of("mul", float(c[best]), expression)))
    found.sort(key=lambda entry: -entry[0])
    return [Expression.of(name, argument) for _, argument in found[:n_best] for name in words.WAVES]


def _domain(row: FloatArray) -> str:
    """Either "positive", "signed" (never near zero) or "any"."""
    smallest = float(np.min(np.abs(row)))
    if smallest < 1e-6 * float(np.max(np.abs(row))):
        return "any"
    return "positive" if float(np.min(row)) > 0.0 else "signed"


def _monomials(names: Sequence[str], domains: dict[str, str]) -> Iterable[Product]:
    for size, exponents in enumerate(words.DRAWN_MONOMIALS, 1):
        for chosen in combinations(names, size):
            bases = [Expression.of(name) for name in chosen]
            for powers in itertools.product(exponents, repeat=size):
                if all(_is_allowed(domains[name], p) for name, p in zip(chosen, powers, strict=True)):
                    yield Product(tuple(zip(bases, powers, strict=True)))


def _is_allowed(domain: str, exponent: float) -> bool:
    if not exponent.is_integer():
        return domain == "positive"
    return exponent > 0.0 or domain != "any"


def atoms_of(names: Sequence[str], writer: Writer) -> list[Expression]:
    """Functions of one variable, of a product, a ratio, a sum or a difference of two, that the operators can write."""
    atoms: list[Expression] = []
    for name in names:
        x = Expression.of(name)
        atoms += _functions(x, Expression.of("mul", 1.0, x) if writer.has("mul") else x, words.ATOM_SCALES)
        sums = [Expression.of("add", e, 1.0) for e in (x, raised(x, 2.0))]
        atoms += [Expression.of(function, s) for function in words.OF_SHIFTED for s in sums]
    for first, second in combinations(names, 2):
        atoms += _of_pair(Expression.of(first), Expression.of(second))
    return list(dict.fromkeys(e for e in map(writer.written, atoms) if e is not None))


def _functions(x: Expression, free: Expression, scales: Sequence[float] = ()) -> list[Expression]:
    """Elementary functions of ``x``, or of ``free``, which is x with a factor that the fit may change."""
    found = []
    for name in words.WAVES:
        found.append(Expression.of(name, x))
        found += [Expression.of(name, Expression.of("mul", c, x)) for c in scales]
        found.append(Expression.of("square", Expression.of(name, x)))
    found += [Expression.of("exp", Expression.of("mul", c, x)) for c in (1.0, -1.0)]
    own = [Expression.of(row, x) for row in own_operators() if row.arity == 1]
    return [*found, Expression.of("tanh", free), Expression.of("log", x), *own]


def _of_pair(a: Expression, b: Expression) -> list[Expression]:
    sums = [Expression.of(name, a, b) for name in ("sub", "add")]
    ratios = [Expression.of("div", a, b), Expression.of("div", b, a)]
    found = [f for argument in (Expression.of("mul", a, b), *ratios, *sums) for f in _functions(argument, argument)]
    found += [product([(s, k)]) for s in sums for k in words.OF_SUMS]
    squares = raised(a, 2.0), raised(b, 2.0)
    quadratic = [Expression.of(name, *squares) for name in ("add", "sub")]
    quadratic += [Expression.of("sub", 1.0, raised(ratio, 2.0)) for ratio in ratios]
    for s in quadratic:
        root = Expression.of("sqrt", s)
        found += [s, Expression.of("inv", s), root, Expression.of("inv", root)]
    return found
