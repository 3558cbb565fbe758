r"""Many-term laws whose terms overlap as much as asked: where the structure of sums can be seen at all.

The suites ``identifiability`` and ``identifiability_held`` are drawn by the same generator with different seeds; the
second is looked at once. Each law is one drawn cell of the design

    terms × inputs × condition × noise × rows × setting × shape

in which every level of every factor is drawn equally often. The name of a task says its cell:
``law007-t5-d3-c100-noise10-n200-box-sum``.

Notation
--------
``φ_i``  terms of the law after its brackets are distributed, as columns of values on reference rows
``u_i``  the same with length 1;  the *condition* is that of the matrix of the u_i

Terms are drawn from elementary functions of one or two inputs, first so that they overlap little. Then one of two dials
raises the condition to what the cell asks: the *range* of all inputs shrinks towards a point away from zero, or a term
gets a *twin*, the same with a slightly different inner constant. Condition 1 means: at most :data:`WELL_CONDITIONED`.
Coefficients make all terms similarly large. A ``product`` is a product of two sums.

In a *box* inputs are uniform and independent. Along a *trajectory* each is a sum of two waves of one time, and rows are
evenly spaced in it. Noise is normal, a share of the law's spread. Test rows are as the training rows, without noise;
far rows fill a box twice as wide.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from sobolev_novelty.algebra.terms import additive_terms
from sobolev_novelty.core.sample import FloatArray
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.kernels.evaluate import evaluate
from sobolev_novelty.lab.bench.problems.tasks import Law
from sobolev_novelty.language.parsing import parse
from sobolev_novelty.metric.guidance import farthest_first

IDENTIFIABILITY = ("identifiability", "identifiability_held")
#: Seeds of the two suites, and laws in each.
SEEDS, N_LAWS = (3810, 3811), 300
TERMS = (3, 4, 5, 6, 7, 8)
INPUTS = (1, 2, 3, 4, 5)
CONDITIONS = (1, 10, 100, 1000, 10_000)
NOISES = (0.0, 0.01, 0.1)
ROWS = (50, 200, 1000)
SETTINGS = ("box", "trajectory")
#: One in five is a product of two sums, where its number of terms allows it: summands of the second sum.
SHAPES, SECOND_SUM = ("sum", "sum", "sum", "sum", "product"), {4: 2, 6: 3, 8: 4}
#: Largest condition of a law of condition 1, and how near others come, as a share.
WELL_CONDITIONED, NEAR = 3.0, 0.1
N_REFERENCE, N_TEST = 1000, 1000
#: Half of the widest range, the narrowest as a share of it, and where the ranges shrink to.
WIDE, NARROWEST, TOWARDS = 2.0, 0.02, (1.0, 2.0)
#: Twins differ by these shares of their inner constant, from the dial at 0 to the dial at 1.
TWINS = (1.0, 1e-6)
#: Sizes of the terms, and how often a law is drawn anew.
SIZES, MAX_DRAWS = (0.4, 1.0), 400
#: Terms of a random pool for each one that is taken.
POOL = 10
#: Periods of a trajectory.
PERIODS = 3.0

_WAVES = (1.0, 1.5708, 2.0, 3.0, 3.1416, 4.7124)
#: Elementary terms of an input ``a`` (and of another one, ``b``), and their inner constants.
ONE = (
    ("{a}", ()), ("{a}**2", ()), ("{a}**3", ()), ("sin({k}*{a})", _WAVES), ("cos({k}*{a})", _WAVES),
    ("exp({k}*{a})", (-1.0, -0.5, 0.5, 1.0)), ("tanh({k}*{a})", (1.0, 2.0)), ("1/(1 + {k}*{a}**2)", (0.5, 1.0, 2.0)),
)  # fmt: skip
TWO = (
    ("{a}*{b}", ()), ("{a}**2*{b}", ()), ("{a}*sin({k}*{b})", _WAVES), ("{a}*cos({k}*{b})", _WAVES),
    ("{a}*exp({k}*{b})", (-0.5, 0.5)), ("{a}/(1 + {k}*{b}**2)", (0.5, 1.0, 2.0)), ("sin({k}*{a}*{b})", (1.0, 2.0)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """What a law was drawn to be."""

    number: int
    n_terms: int
    n_inputs: int
    condition: int
    noise: float
    n_rows: int
    setting: str
    shape: str

    @property
    def name(self) -> str:
        """The task's name in stores."""
        return (
            f"law{self.number:03d}-t{self.n_terms}-d{self.n_inputs}-c{self.condition}-noise{100 * self.noise:g}"
            f"-n{self.n_rows}-{self.setting}-{self.shape}"
        )


@dataclass(frozen=True, slots=True)
class Piece:
    """An elementary term: its formula without the inner constant, the constant, and its inputs."""

    text: str
    k: float | None
    inputs: tuple[str, ...]

    def written(self) -> str:
        """Its formula."""
        names = dict(zip("ab", self.inputs, strict=False))
        return self.text.format(**names, k="" if self.k is None else f"{self.k:.6g}")


@dataclass(frozen=True, slots=True)
class ManyTermLaw(Law):
    """A drawn law, where its inputs lie, and how well its terms are told apart there.

    ``centre``, ``half``: middle and half width of the range of each input.
    """

    formula: str
    variables: tuple[str, ...]
    centre: tuple[float, ...]
    half: tuple[float, ...]
    #: Of each input along a trajectory: two frequencies and two phases; empty in a box.
    waves: tuple[tuple[float, ...], ...]
    condition: float  # of the unit columns of its terms on reference rows

    def rows(self, n: int, rng: np.random.Generator, width: float = 1.0) -> FloatArray:
        """Rows as the setting has them; with another width than 1, of a box that is so many times as wide."""
        unit = _unit_rows(self.waves if width == 1.0 else (), len(self.variables), n, rng)
        return np.asarray(np.array(self.centre) + width * np.array(self.half) * unit)


@cache
def cells(suite: str) -> tuple[Cell, ...]:
    """The design of a suite.

    >>> found = cells("identifiability")
    >>> len(found), sum(cell.condition == 1 for cell in found)
    (300, 60)
    """
    if suite not in IDENTIFIABILITY:
        raise ParameterError(f"'suite' must be one of {', '.join(IDENTIFIABILITY)}. Got '{suite}'.")
    rng = np.random.default_rng(SEEDS[IDENTIFIABILITY.index(suite)])
    factors = (TERMS, INPUTS, CONDITIONS, NOISES, ROWS, SETTINGS, SHAPES)
    drawn = [rng.permutation(np.resize(np.arange(len(levels)), N_LAWS)) for levels in factors]
    found = []
    for number, places in enumerate(zip(*(column.tolist() for column in drawn), strict=True)):
        n_terms, d, condition, noise, n, setting, shape = (levels[k] for levels, k in zip(factors, places, strict=True))
        is_sum = n_terms not in SECOND_SUM
        d = min(d, n_terms + 1)  # twins have the same inputs
        found.append(Cell(number, n_terms, d, condition, noise, n, setting, "sum" if is_sum else shape))
    return tuple(found)


def cell_named(suite: str, name: str) -> Cell:
    """The cell of this name."""
    for cell in cells(suite):
        if cell.name == name:
            return cell
    raise ParameterError(f"The suite '{suite}' has no law '{name}'.")


@cache
def drawn_law(suite: str, cell: Cell) -> ManyTermLaw:
    """The law of a cell: a function of the suite's seed and the cell."""
    rng = np.random.default_rng([SEEDS[IDENTIFIABILITY.index(suite)], cell.number])
    for _ in range(MAX_DRAWS):
        law = _attempt(cell, rng)
        if law is not None:
            return law
    raise AssertionError(f"No law was found for the cell {cell.name}.")


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The rows of a law: with noise, as the training rows without, and from a box twice as wide."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    X_far: FloatArray


def drawn_rows(suite: str, cell: Cell, seed: int) -> Drawn:
    """The rows of a law: a function of its name and the seed."""
    law = drawn_law(suite, cell)
    rng = np.random.default_rng([seed, zlib.crc32(cell.name.encode())])
    X = law.rows(cell.n_rows, rng)
    X_test = law.rows(N_TEST, rng)
    sigma = cell.noise * float(np.std(law.values(X_test)))
    return Drawn(X, law.values(X) + sigma * rng.normal(size=len(X)), X_test, law.rows(N_TEST, rng, width=2.0))


def condition_of(columns: FloatArray) -> float:
    """Condition of the columns, each of length 1.

    >>> condition_of(np.array([[3.0, 0.0], [0.0, 5.0]]))
    1.0
    """
    lengths = np.linalg.norm(columns, axis=0)
    if not (np.isfinite(lengths).all() and lengths.all()):
        return math.inf
    singular = np.linalg.svd(columns / lengths, compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0.0 else math.inf


def _unit_rows(waves: Sequence[Sequence[float]], d: int, n: int, rng: np.random.Generator) -> FloatArray:
    if not waves:
        return rng.uniform(-1.0, 1.0, (n, d))
    t = np.linspace(0.0, 2.0 * np.pi * PERIODS, n)
    columns = [0.7 * np.sin(f * t + p) + 0.3 * np.sin(g * t + q) for f, g, p, q in waves]
    return np.column_stack(columns)


@dataclass(frozen=True, slots=True, eq=False)
class _Dial:
    """Sums of pieces and what raises their condition: a narrower range of all inputs, or a nearer twin.

    From 0 to 1; at 0 the range is the widest, or the twin far away.
    """

    sums: tuple[tuple[Piece, ...], ...]
    unit: FloatArray
    towards: FloatArray
    is_range: bool

    def pieces(self, dial: float) -> tuple[tuple[Piece, ...], ...]:
        """The pieces; the last one is the twin of the first of its sum."""
        first = self.sums[-1][0]
        if self.is_range or first.k is None:
            return self.sums
        k = first.k * (1.0 + TWINS[0] ** (1.0 - dial) * TWINS[1] ** dial)
        return (*self.sums[:-1], (*self.sums[-1][:-1], replace(first, k=float(f"{k:.6g}"))))

    def box(self, dial: float) -> tuple[FloatArray, FloatArray]:
        """Middle and half width of the range of each input."""
        dial = dial if self.is_range else 0.0
        half = float(f"{WIDE * NARROWEST**dial:.3g}")
        return np.round(dial * self.towards, 3), np.full(len(self.towards), half)

    def condition(self, dial: float) -> float:
        """Of the terms that the sums, multiplied, have on the reference rows."""
        centre, half = self.box(dial)
        X = centre + half * self.unit
        columns = np.ones((len(X), 1))
        for pieces in self.pieces(dial):
            own = np.column_stack([evaluate(parse(piece.written()), X) for piece in pieces])
            columns = (columns[:, :, None] * own[:, None, :]).reshape(len(X), -1)
        return condition_of(columns)

    def turned_to(self, condition: float) -> float | None:
        """Where it must stand, by bisection; None where it cannot come near."""
        if condition == 1:
            return 0.0 if self.condition(0.0) <= WELL_CONDITIONED else None
        low, high = 0.0, 1.0
        if not self.condition(low) < condition < self.condition(high):
            return None
        for _ in range(20):
            middle = (low + high) / 2.0
            share = self.condition(middle) / condition
            if abs(share - 1.0) < NEAR:
                return middle
            low, high = (middle, high) if share < 1.0 else (low, middle)
        return None


def _attempt(cell: Cell, rng: np.random.Generator) -> ManyTermLaw | None:
    """One draw; None where it does not come near the condition that is asked for, or has other terms."""
    names = tuple(f"x{k}" for k in range(cell.n_inputs))
    waves = _waves(cell, rng)
    unit = _unit_rows(waves, cell.n_inputs, N_REFERENCE, rng)
    sizes = (2, SECOND_SUM[cell.n_terms]) if cell.shape == "product" else (cell.n_terms,)
    sums = tuple(_distinct_pieces(names, size, WIDE * unit, rng) for size in sizes)
    is_range = cell.condition == 1 or bool(rng.integers(2)) or sums[-1][0].k is None
    dial = _Dial(sums, unit, rng.uniform(*TOWARDS, cell.n_inputs), is_range)
    used = {name for pieces in dial.pieces(0.0) for piece in pieces for name in piece.inputs}
    turned = dial.turned_to(cell.condition) if used == set(names) else None
    if turned is None:
        return None
    centre, half = dial.box(turned)
    sums_as_text = [_sum_text(pieces, centre + half * unit, rng) for pieces in dial.pieces(turned)]
    formula = "*".join(f"({text})" for text in sums_as_text) if len(sums) > 1 else sums_as_text[0]
    law = parse(formula)
    if len(additive_terms(law).terms) != cell.n_terms or set(law.variables) != set(names):
        return None
    box = tuple(centre.tolist()), tuple(half.tolist())
    return ManyTermLaw(formula, names, *box, waves, dial.condition(turned))


def _waves(cell: Cell, rng: np.random.Generator) -> tuple[tuple[float, ...], ...]:
    if cell.setting == "box":
        return ()
    low, high = (0.5, 2.0, 0.0, 0.0), (2.0, 4.0, 6.28, 6.28)
    return tuple(tuple(np.round(rng.uniform(low, high), 3).tolist()) for _ in range(cell.n_inputs))


def _distinct_pieces(names: tuple[str, ...], size: int, X: FloatArray, rng: np.random.Generator) -> tuple[Piece, ...]:
    """Those of a random pool that overlap least."""
    pool = list(dict.fromkeys(_piece(names, rng) for _ in range(POOL * size)))
    columns = np.column_stack([evaluate(parse(piece.written()), X) for piece in pool])
    order, _ = farthest_first(columns / np.linalg.norm(columns, axis=0), size)
    return tuple(pool[i] for i in order)


def _piece(names: tuple[str, ...], rng: np.random.Generator) -> Piece:
    kinds = TWO if len(names) > 1 and rng.random() < 0.5 else ONE
    text, constants = kinds[int(rng.integers(len(kinds)))]
    k = float(rng.choice(constants)) if constants else None
    n_inputs = 1 if kinds is ONE else 2
    return Piece(text, k, tuple(names[int(i)] for i in rng.permutation(len(names))[:n_inputs]))


def _sum_text(pieces: Sequence[Piece], X: FloatArray, rng: np.random.Generator) -> str:
    """A sum whose terms are similarly large, their signs drawn."""
    written = []
    for text in (piece.written() for piece in pieces):
        length = float(np.sqrt(np.mean(evaluate(parse(text), X) ** 2)))
        size = math.exp(rng.uniform(math.log(SIZES[0]), math.log(SIZES[1])))
        written.append(f"{float(rng.choice((-1.0, 1.0))) * size / length:.3g}*{text}")
    return " + ".join(written)
