"""Random expressions, crossover and mutation on sums of terms: the genetic engine's hands.

A genome is a tuple of terms without coefficients; the loop fits the coefficients. Every function takes a generator and
returns a new genome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.expression import Expression
from sobolev_novelty.operators import OPERATORS, Operator

Genome = tuple[Expression, ...]
ONE = Expression.of(1.0)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What random expressions are made of.

    Parameters
    ----------
    names : tuple of str
    weights : tuple of float
        How often each variable is drawn; sums to 1.
    unary, binary : tuple of Operator
    max_terms, max_term_size : int
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    unary: tuple[Operator, ...]
    binary: tuple[Operator, ...]
    max_terms: int = 6
    max_term_size: int = 25

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        weights: Sequence[float],
        operators: Sequence[str],
        max_terms: int,
        max_term_size: int,
    ) -> Vocabulary:
        rows = [OPERATORS[name] for name in operators if name not in ("neg",)]
        total = sum(weights)
        return cls(
            tuple(names), tuple(w / total for w in weights),
            tuple(op for op in rows if op.arity == 1), tuple(op for op in rows if op.arity == 2) or (OPERATORS["mul"],),
            max_terms, max_term_size,
        )  # fmt: skip

    def variable(self, rng: np.random.Generator) -> Expression:
        return Expression.of(self.names[int(rng.choice(len(self.names), p=self.weights))])

    def leaf(self, rng: np.random.Generator) -> Expression:
        return (
            self.variable(rng)
            if rng.random() < 0.85
            else Expression.of(float(np.round(rng.normal(0.0, 2.0), 2)) or 1.0)
        )


def random_tree(vocabulary: Vocabulary, rng: np.random.Generator, size: int) -> Expression:
    """A random expression of about ``size`` nodes that contains a variable."""
    if size <= 1:
        return vocabulary.variable(rng)
    if vocabulary.unary and (size == 2 or rng.random() < 0.3):
        op = vocabulary.unary[int(rng.integers(len(vocabulary.unary)))]
        return Expression.of(op, random_tree(vocabulary, rng, size - 1))
    op = vocabulary.binary[int(rng.integers(len(vocabulary.binary)))]
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
        count = int(
            np.clip(rng.integers(1, max(len(mother), len(father)) + 2), 1, min(len(pool), vocabulary.max_terms))
        )
        return tuple(pool[i] for i in sorted(rng.choice(len(pool), count, replace=False)))
    place = int(rng.integers(len(mother)))
    term, donor = mother[place], father[int(rng.integers(len(father)))]
    graft = donor.subtree(int(rng.integers(len(donor))))
    return (*mother[:place], term.replace(int(rng.integers(len(term))), graft), *mother[place + 1 :])


def mutated(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """One random change."""
    change = _CHANGES[int(rng.integers(len(_CHANGES)))]
    return change(genome, vocabulary, rng)


def checked(genome: Genome, vocabulary: Vocabulary) -> Genome | None:
    """The genome without repeated terms, or None where it is too large or empty."""
    terms = tuple(dict.fromkeys(genome))
    if not terms or len(terms) > vocabulary.max_terms or any(len(term) > vocabulary.max_term_size for term in terms):
        return None
    return terms if any(term.variables for term in terms) else None


def as_form(genome: Genome) -> Expression:
    """The genome as one expression for the loop."""
    total = genome[0]
    for term in genome[1:]:
        total = Expression.of("add", total, term)
    return total


def _at_random(genome: Genome, rng: np.random.Generator) -> int:
    """A term to change; the offset only if there is nothing else."""
    places = [i for i, term in enumerate(genome) if term.variables] or list(range(len(genome)))
    return places[int(rng.integers(len(places)))]


def _changed(genome: Genome, place: int, term: Expression) -> Genome:
    return (*genome[:place], term, *genome[place + 1 :])


def _new_subtree(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    place = _at_random(genome, rng)
    term = genome[place]
    return _changed(
        genome, place, term.replace(int(rng.integers(len(term))), random_tree(vocabulary, rng, int(rng.integers(1, 6))))
    )


def _new_token(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    place = _at_random(genome, rng)
    term = genome[place]
    spot = int(rng.integers(len(term)))
    token = term.tokens[spot]
    if isinstance(token, Operator):
        choices = [op for op in (vocabulary.unary if token.arity == 1 else vocabulary.binary) if op is not token]
        if not choices:
            return genome
        other = choices[int(rng.integers(len(choices)))]
        return _changed(genome, place, Expression((*term.tokens[:spot], other, *term.tokens[spot + 1 :])))
    return _changed(genome, place, term.replace(spot, vocabulary.leaf(rng)))


def _another_term(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    return (*genome, random_tree(vocabulary, rng, int(rng.integers(1, 8))))


def _one_term_less(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    if len(genome) < 2:
        return _new_subtree(genome, vocabulary, rng)
    place = int(rng.integers(len(genome)))
    return genome[:place] + genome[place + 1 :]


def _wrapped(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    if not vocabulary.unary:
        return genome
    place = _at_random(genome, rng)
    term = genome[place]
    spot = int(rng.integers(len(term)))
    op = vocabulary.unary[int(rng.integers(len(vocabulary.unary)))]
    return _changed(genome, place, term.replace(spot, Expression.of(op, term.subtree(spot))))


def _multiplied(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    place = _at_random(genome, rng)
    op = "mul" if rng.random() < 0.6 else "div"
    return _changed(
        genome, place, Expression.of(op, genome[place], random_tree(vocabulary, rng, int(rng.integers(1, 4))))
    )


def _hoisted(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    place = _at_random(genome, rng)
    term = genome[place]
    return _changed(genome, place, term.subtree(int(rng.integers(len(term)))))


def _with_constant(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """A constant the fit can move: c·e or e + c somewhere inside a term."""
    place = _at_random(genome, rng)
    term = genome[place]
    spot = int(rng.integers(len(term)))
    inner = term.subtree(spot)
    if rng.random() < 0.5:
        changed = Expression.of("mul", float(rng.choice([0.5, 1.0, 2.0, -1.0])), inner)
    else:
        changed = Expression.of("add", inner, float(rng.choice([1.0, -1.0, 0.5, 2.0])))
    return _changed(genome, place, term.replace(spot, changed))


def _joined(genome: Genome, vocabulary: Vocabulary, rng: np.random.Generator) -> Genome:
    """Two terms become one: their product, quotient, or a function of their sum."""
    if len(genome) < 2:
        return _multiplied(genome, vocabulary, rng)
    i, j = (int(k) for k in rng.choice(len(genome), 2, replace=False))
    rest = tuple(term for k, term in enumerate(genome) if k not in (i, j))
    op = vocabulary.binary[int(rng.integers(len(vocabulary.binary)))]
    whole = Expression.of(op, genome[i], genome[j])
    if vocabulary.unary and rng.random() < 0.4:
        whole = Expression.of(vocabulary.unary[int(rng.integers(len(vocabulary.unary)))], whole)
    return (*rest, whole)


_CHANGES: tuple[Callable[[Genome, Vocabulary, np.random.Generator], Genome], ...] = (
    _new_subtree, _new_subtree, _new_token, _new_token, _another_term, _one_term_less, _wrapped, _multiplied, _hoisted,
    _with_constant, _joined,
)  # fmt: skip
