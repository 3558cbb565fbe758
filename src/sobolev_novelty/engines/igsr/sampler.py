"""The embedded default: terms drawn at random from a grammar. No model, no network, no data but the ranges of inputs.

It answers the same questions in the same words as a language model, through the same parser, so it is the control of
every comparison: what a model adds is what it does better than this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sobolev_novelty.core.expression import format_name
from sobolev_novelty.core.parameters import COUNT, WORD, checked_class, number
from sobolev_novelty.engines.igsr.talk.answers import read_answer
from sobolev_novelty.engines.igsr.talk.protocol import Answer, Question, Vocabulary
from sobolev_novelty.search.propose.vocabulary import DRAWN, DRAWN_EXPONENTS, FOR_DRAWN

T = TypeVar("T")

_POWERS, _SHARES = tuple(DRAWN_EXPONENTS), tuple(DRAWN_EXPONENTS.values())
#: Share of the draws that change a term of the current model.
_NEAR = 0.35
#: Draws for each term that is wanted; what the operators cannot write is drawn again.
_TRIES = 12


@checked_class(concurrency=COUNT, n_terms=COUNT, model=WORD, temperature=number(0.0), max_answer_tokens=COUNT)
@dataclass(frozen=True, slots=True)
class GrammarSampler:
    """Draws terms from a grammar; the proposer of ``engine="igsr"`` unless another one is given.

    Parameters
    ----------
    concurrency : int
        Questions asked in each round.
    n_terms : int
        Terms offered in one answer, unless the engine asks for another number.

    Examples
    --------
    >>> vocabulary = Vocabulary(("x0", "x1"), ("add", "mul", "div", "sin", "square"), ((0.5, 1.0), (1.0, 2.0)))
    >>> question = Question("", "", vocabulary, (), n_terms=3, seed=0, version="1")
    >>> len(GrammarSampler().ask(question).text.splitlines())
    3
    """

    concurrency: int = 8
    n_terms: int = 24
    model: str = "grammar sampler"
    temperature: float = 1.0
    max_answer_tokens: int = 200

    def ask(self, question: Question) -> Answer:
        """Terms, one per line."""
        vocabulary = question.vocabulary
        draw = _Draw(np.random.default_rng(question.seed), vocabulary, question.current)
        is_free = set(vocabulary.operators) >= FOR_DRAWN
        terms: dict[str, None] = {}
        for _ in range(_TRIES * question.n_terms):
            term = draw.term()
            if is_free or read_answer(term, vocabulary, max_terms=1).terms:
                terms[term] = None
            if len(terms) == question.n_terms:
                break
        return Answer("\n".join(terms), finish_reason="stop")


class _Draw:
    """Random texts, in the usual operators and in those functions that are allowed."""

    def __init__(self, rng: np.random.Generator, vocabulary: Vocabulary, current: tuple[str, ...]) -> None:
        self.rng = rng
        self.current = current
        self.names = [format_name(name) for name in vocabulary.names]
        ranges = dict(zip(self.names, vocabulary.ranges, strict=True))
        self.signed = [name for name, (low, _) in ranges.items() if low < 0.0]
        # Inputs that keep away from zero may stand below a line.
        self.away = {name: low > 0.0 or high < 0.0 for name, (low, high) in ranges.items()}
        self.functions = [name for name in DRAWN if name in vocabulary.operators]

    def one_of(self, items: Sequence[T]) -> T:
        return items[int(self.rng.integers(len(items)))]

    def term(self) -> str:
        kinds: tuple[tuple[float, Callable[[], str]], ...] = (
            (0.30, self.monomial), (0.25, self.function), (0.25, self.product), (0.20, self.quotient),
        )  # fmt: skip
        if self.current and self.rng.random() < _NEAR:
            return self.neighbour()
        return kinds[int(self.rng.choice(len(kinds), p=[share for share, _ in kinds]))][1]()

    def power(self, name: str | None = None) -> str:
        """A power of an input, of any where none is named."""
        name = name or self.one_of(self.names)
        exponent = float(self.rng.choice(_POWERS, p=_SHARES))
        if exponent < 0.0 and not self.away[name]:
            exponent = -exponent
        if exponent % 1.0 and name in self.signed:
            exponent = 2.0
        text = {1.0: name, 0.5: f"sqrt({name})", -0.5: f"1/sqrt({name})", -1.0: f"1/{name}", -2.0: f"1/{name}**2"}
        return text.get(exponent, f"{name}**{exponent:g}")

    def monomial(self) -> str:
        n = min(int(self.rng.choice((1, 2, 3, 4), p=(0.25, 0.4, 0.25, 0.1))), len(self.names))
        chosen = self.rng.choice(len(self.names), n, replace=False)
        return _multiplied(*(self.power(self.names[int(k)]) for k in chosen))

    def argument(self) -> str:
        """What stands inside a function, often with a number that the fit may change."""
        inside = self.total() if self.rng.random() < 0.3 else self.monomial()
        if self.rng.random() < 0.5:
            number = float(np.round(np.exp(self.rng.normal(0.0, 1.0)), 2))
            return f"{number if self.rng.random() < 0.6 else -number:g}*({inside})"
        return inside

    def total(self, signs: str = "+-") -> str:
        """A sum or difference of two short products, or of one and a number."""
        second = _multiplied(self.power(), self.power())
        if self.rng.random() < 0.4:
            second = f"{np.exp(self.rng.normal(0.0, 1.0)):.2g}"
        return f"{self.power()} {self.one_of(signs)} {second}"

    def function(self) -> str:
        inside = self.argument()
        bare = not any(name in inside for name in self.signed)
        functions = [name for name in self.functions if bare or name not in ("sqrt", "log")]
        if not functions:
            return inside
        name = self.one_of(functions)
        return f"{name}(-1*({inside}))" if name == "exp" and self.rng.random() < 0.5 else f"{name}({inside})"

    def product(self) -> str:
        return _multiplied(self.monomial(), f"({self.function()})")

    def quotient(self) -> str:
        """A product over a sum, over its square, or over its root."""
        above = self.monomial() if self.rng.random() < 0.7 else "1"
        return f"{above}/{self.one_of(('({})', 'sqrt({})', '({})**2')).format(self.total('+++-'))}"

    def neighbour(self) -> str:
        """A term of the current model, changed: times or over something, or with another input in one place."""
        term = f"({self.one_of(self.current)})"
        kind = self.rng.random()
        if kind < 0.35:
            return _multiplied(term, self.power())
        if kind < 0.55:
            return _multiplied(term, f"({self.function()})")
        if kind < 0.7:
            return f"{term}/({self.total('+++-')})"
        inner = _multiplied(self.one_of(self.names), self.power()) if kind < 0.85 else self.total()
        return term.replace(self.one_of(self.names), f"({inner})", 1)


def _multiplied(*factors: str) -> str:
    text = factors[0]
    for factor in factors[1:]:
        text += f"/{factor[2:]}" if factor.startswith("1/") else f"*{factor}"
    return text
