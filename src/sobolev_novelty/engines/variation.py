"""Random expressions, crossover and mutation on sums of terms: the genetic engine's hands.

A genome is a tuple of terms without coefficients; the loop fits the coefficients. Every function takes a generator and
returns a new genome.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sobolev_novelty.algebra.writing import ONE, chained
from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.operators import OPERATORS, Operator
from sobolev_novelty.search.propose.vocabulary import BESIDE_PARTS, IN_FRONT_OF_PARTS

Genome = tuple[Expression, ...]
Change = Callable[["Genome", "Vocabulary", np.random.Generator], "Genome"]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What random expressions are made of."""

    names: tuple[str, ...]
    weights: tuple[float, ...]  # how often each variable is drawn; sums to 1
    unary: tuple[Operator, ...]
    binary: tuple[Operator, ...]
    max_terms: int = 6
    max_term_size: int = 25
    cumulated: tuple[float, ...] = field(init=False)  # sums of the weights up to each variable
    variables: tuple[Expression, ...] = field(init=False)  # the names as expressions

    def __post_init__(self) -> None:
        sums = np.cumsum(self.weights)
        object.__setattr__(self, "cumulated", tuple((sums / sums[-1]).tolist()))
        object.__setattr__(self, "variables", tuple(Expression.of(name) for name in self.names))

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        weights: Sequence[float],
        operators: Sequence[str],
        max_terms: int,
        max_term_size: int,
    ) -> Vocabulary:
        """The vocabulary of a problem; weights are scaled to sum to 1."""
        rows = [OPERATORS[name] for name in operators if name not in ("neg",)]
        total = sum(weights)
        return cls(
            tuple(names), tuple(w / total for w in weights),
            tuple(op for op in rows if op.arity == 1), tuple(op for op in rows if op.arity == 2) or (OPERATORS["mul"],),
            max_terms, max_term_size,
        )  # fmt: skip

    def variable(self, rng: np.random.Generator) -> Expression:
        """A variable at random."""
        # What rng.choice with p does, and draws, without its checks: most of the time of breeding went into them.
        return self.variables[bisect_right(self.cumulated, rng.random())]

    def leaf(self, rng: np.random.Generator) -> Expression:
        """A variable, or now and then a constant."""
        if rng.random() < 0.85:
            return self.variable(rng)
        return Expression.of(float(np.round(rng.normal(0.0, 2.0), 2)) or 1.0)


def random_tree(vocabulary: Vocabulary, rng: np.random.Generator, size: int) -> Expression:
    """A random expression of about ``size`` nodes that contains a variable."""
    if size <= 1:
        return vocabulary.variable(rng)
    if vocabulary.unary and (size == 2 or rng.random() < 0.3):
        return Expression.of(_drawn(vocabulary.unary, rng), random_tree(vocabulary, rng, size - 1))
    op = _drawn(vocabulary.binary, rng)
    left = int(rng.integers(1, max(2, size - 1)))
    second = vocabulary.leaf(rng) if size - 1 - left <= 1 else random_tree(vocabulary, rng, size - 1 - left)
    return Expression.of(op, random_tree(vocabulary, rng, left), second)


def random_genome(vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """One to three random terms, and often an offset."""
    terms = [random_tree(vocabulary, rng, int(rng.integers(1, 9))) for _ in range(int(rng.integers(1, 4)))]
    return (*terms, ONE) if rng.random() < 0.7 else tuple(terms)


def crossed(mother: Genome, father: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """Terms of both parents, or a subtree of one inside a term of the other."""
    if rng.random() < 0.5:
        pool = list(dict.fromkeys(mother + father))
        most = min(len(pool), vocabulary.max_terms)
        count = min(int(rng.integers(1, max(len(mother), len(father)) + 2)), most)
        return tuple(pool[i] for i in sorted(rng.choice(len(pool), count, replace=False)))
    place = int(rng.integers(len(mother)))
    term, donor = mother[place], father[int(rng.integers(len(father)))]
    graft = donor.subtree(int(rng.integers(len(donor))))
    return (*mother[:place], term.replace(int(rng.integers(len(term))), graft), *mother[place + 1 :])


def mutated(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """One random change."""
    return _CHANGES[int(rng.integers(len(_CHANGES)))](genome, vocabulary, rng)


def checked(genome: Genome, vocabulary: Vocabulary) -> Genome | None:
    """The genome without repeated terms, or None where it is too large or empty."""
    terms = tuple(dict.fromkeys(genome))
    if not terms or len(terms) > vocabulary.max_terms:
        return None
    if max([len(term.tokens) for term in terms]) > vocabulary.max_term_size:
        return None
    return terms if any(map(_has_variable, terms)) else None


def as_form(genome: Genome) -> Expression:
    """The genome as one expression for the loop."""
    return chained("add", genome)


def _has_variable(term: Expression) -> bool:
    return any([isinstance(token, str) for token in term.tokens])


def _at_random(genome: Genome, rng: np.random.Generator) -> int:
    """A term to change; the offset only if there is nothing else."""
    places = [i for i, term in enumerate(genome) if _has_variable(term)] or list(range(len(genome)))
    return places[int(rng.integers(len(places)))]


def _drawn(operators: Sequence[Operator], rng: np.random.Generator) -> Operator:
    return operators[int(rng.integers(len(operators)))]


def _changed(genome: Genome, place: int, term: Expression) -> Genome:
    return (*genome[:place], term, *genome[place + 1 :])


def _at_a_spot(change: Callable[[Expression, int, Vocabulary, np.random.Generator], Expression]) -> Change:
    """A change of one term at a random token."""

    def changed(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
        place = _at_random(genome, rng)
        term = genome[place]
        return _changed(genome, place, change(term, int(rng.integers(len(term))), vocabulary, rng))

    changed.__name__ = change.__name__
    return changed


@_at_a_spot
def _new_subtree(term: Expression, spot: int, vocabulary: Vocabulary, rng: np.random.Generator) -> Expression:
    return term.replace(spot, random_tree(vocabulary, rng, int(rng.integers(1, 6))))


@_at_a_spot
def _new_token(term: Expression, spot: int, vocabulary: Vocabulary, rng: np.random.Generator) -> Expression:
    token = term.tokens[spot]
    if not isinstance(token, Operator):
        return term.replace(spot, vocabulary.leaf(rng))
    choices = [op for op in (vocabulary.unary if token.arity == 1 else vocabulary.binary) if op is not token]
    if not choices:
        return term
    return Expression._trusted((*term.tokens[:spot], _drawn(choices, rng), *term.tokens[spot + 1 :]))


@_at_a_spot
def _hoisted(term: Expression, spot: int, vocabulary: Vocabulary, rng: np.random.Generator) -> Expression:
    return term.subtree(spot)


@_at_a_spot
def _wrapped(term: Expression, spot: int, vocabulary: Vocabulary, rng: np.random.Generator) -> Expression:
    if not vocabulary.unary:
        return term
    return term.replace(spot, Expression.of(_drawn(vocabulary.unary, rng), term.subtree(spot)))


@_at_a_spot
def _with_constant(term: Expression, spot: int, vocabulary: Vocabulary, rng: np.random.Generator) -> Expression:
    """A constant the fit can move: c·e or e + c somewhere inside the term."""
    inner = term.subtree(spot)
    if rng.random() < 0.5:
        return term.replace(spot, Expression.of("mul", float(rng.choice(IN_FRONT_OF_PARTS)), inner))
    return term.replace(spot, Expression.of("add", inner, float(rng.choice(BESIDE_PARTS))))


def _another_term(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    return (*genome, random_tree(vocabulary, rng, int(rng.integers(1, 8))))


def _one_term_less(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    if len(genome) < 2:
        return _new_subtree(genome, vocabulary, rng)
    place = int(rng.integers(len(genome)))
    return genome[:place] + genome[place + 1 :]


def _multiplied(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    place = _at_random(genome, rng)
    op = "mul" if rng.random() < 0.6 else "div"
    factor = random_tree(vocabulary, rng, int(rng.integers(1, 4)))
    return _changed(genome, place, Expression.of(op, genome[place], factor))


def _joined(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """Two terms become one: their product, quotient, or a function of their sum."""
    if len(genome) < 2:
        return _multiplied(genome, vocabulary, rng)
    i, j = (int(k) for k in rng.choice(len(genome), 2, replace=False))
    rest = tuple(term for k, term in enumerate(genome) if k not in (i, j))
    whole = Expression.of(_drawn(vocabulary.binary, rng), genome[i], genome[j])
    if vocabulary.unary and rng.random() < 0.4:
        whole = Expression.of(_drawn(vocabulary.unary, rng), whole)
    return (*rest, whole)


def _shared(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """The other terms are multiplied by a factor of one of them: laws have factors in common."""
    if len(genome) < 2:
        return _multiplied(genome, vocabulary, rng)
    place = _at_random(genome, rng)
    op, factor = _drawn_factor(genome[place], rng)
    if factor is None:
        return _multiplied(genome, vocabulary, rng)
    return tuple(term if k == place else Expression.of(op, term, factor) for k, term in enumerate(genome))


def _drawn_factor(term: Expression, rng: np.random.Generator) -> tuple[str, Expression | None]:
    """A factor of a product or quotient, and whether it is to be multiplied or divided by; None where there is none."""
    is_above = True
    while isinstance(op := term.head, Operator) and op.name in ("mul", "div"):
        place = int(rng.integers(2))
        is_above ^= op.name == "div" and place == 1
        term = term.children[place]
        if rng.random() < 0.3:
            break
    return "mul" if is_above else "div", term if term.variables else None


_CHANGES: tuple[Change, ...] = (
    _new_subtree, _new_subtree, _new_token, _new_token, _another_term, _one_term_less, _wrapped, _multiplied, _hoisted,
    _with_constant, _joined, _shared,
)  # fmt: skip
