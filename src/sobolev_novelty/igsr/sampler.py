"""The embedded default: terms drawn at random from a grammar. No model, no network, no data but the ranges of inputs.

It answers the same questions in the same words as a language model, through the same parser, so it is the control of
every comparison: what a model adds is what it does better than this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sobolev_novelty.expression import format_name
from sobolev_novelty.igsr.protocol import Answer, Question, Vocabulary

#: Exponents of a factor, and how often each is drawn.
_POWERS = (1.0, 2.0, 3.0, 0.5, -1.0, -2.0, -0.5)
_POWER_SHARES = (0.5, 0.15, 0.04, 0.07, 0.16, 0.06, 0.02)
#: Functions of which each is drawn as often as any other.
_FUNCTIONS = ("sin", "cos", "exp", "log", "sqrt", "tanh", "inv", "square", "arcsin", "arccos")
#: Share of the draws that change a term of the current model.
_NEAR = 0.35
#: Draws for each term that is wanted; what needs an operator that is not allowed is drawn again.
_TRIES = 6


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
        draw = _Draw(np.random.default_rng(question.seed), question.vocabulary, question.current)
        terms: dict[str, None] = {}
        for _ in range(_TRIES * question.n_terms):
            term = draw.term()
            if term is not None:
                terms[term] = None
            if len(terms) == question.n_terms:
                break
        return Answer("\n".join(terms), finish_reason="stop")


class _Draw:
    """Random texts; None where the operators do not allow what was drawn."""

    def __init__(self, rng: np.random.Generator, vocabulary: Vocabulary, current: tuple[str, ...]) -> None:
        self.rng = rng
        self.has = frozenset(vocabulary.operators)
        self.current = current
        self.names = [format_name(name) for name in vocabulary.names]
        self.low = dict(zip(self.names, (low for low, _ in vocabulary.ranges), strict=True))
        self.away = {  # inputs that keep away from zero may stand below a line
            name: low > 0.0 or high < 0.0 for name, (low, high) in zip(self.names, vocabulary.ranges, strict=True)
        }
        self.functions = [name for name in _FUNCTIONS if name in self.has]

    def term(self) -> str | None:
        kinds: tuple[tuple[float, Callable[[], str | None]], ...] = (
            (0.30, self.monomial), (0.25, self.function), (0.25, self.product), (0.20, self.quotient),
        )  # fmt: skip
        if self.current and self.rng.random() < _NEAR:
            return self.neighbour()
        return kinds[int(self.rng.choice(len(kinds), p=[share for share, _ in kinds]))][1]()

    def name(self) -> str:
        return self.names[int(self.rng.integers(len(self.names)))]

    def power(self, name: str | None = None) -> str:
        """A power of an input, of any where none is named."""
        name = name or self.name()
        exponent = float(self.rng.choice(_POWERS, p=_POWER_SHARES))
        if exponent == 1.0:
            return name
        if exponent < 0.0 and not self.away[name]:
            exponent = -exponent
        if exponent % 1.0 and not self.low[name] >= 0.0:
            exponent = 2.0
        text = {0.5: f"sqrt({name})", -0.5: f"1/sqrt({name})", -1.0: f"1/{name}", -2.0: f"1/{name}**2"}
        return text.get(exponent, f"{name}**{exponent:g}")

    def monomial(self) -> str | None:
        n = min(int(self.rng.choice((1, 2, 3, 4), p=(0.25, 0.4, 0.25, 0.1))), len(self.names))
        chosen = self.rng.choice(len(self.names), n, replace=False)
        return self.multiplied([self.power(self.names[int(k)]) for k in chosen])

    def multiplied(self, factors: list[str | None]) -> str | None:
        known = [factor for factor in factors if factor is not None]
        if len(known) < len(factors):
            return None
        text = known[0]
        for factor in known[1:]:
            below = factor.startswith("1/")
            if ("div" if below else "mul") not in self.has:
                return None
            text += f"/{factor[2:]}" if below else f"*{factor}"
        return text

    def argument(self) -> str | None:
        """What stands inside a function, often with a number that the fit may change."""
        inside = self.total() if self.rng.random() < 0.3 else self.monomial()
        if inside is not None and "mul" in self.has and self.rng.random() < 0.5:
            number = float(np.round(np.exp(self.rng.normal(0.0, 1.0)), 2))
            return f"{number if self.rng.random() < 0.6 else -number:g}*({inside})"
        return inside

    def total(self) -> str | None:
        """A sum or difference of two short products, or of one and a number."""
        sign = [symbol for name, symbol in (("add", "+"), ("sub", "-")) if name in self.has]
        first, second = self.multiplied([self.power()]), self.multiplied([self.power() for _ in range(2)])
        if not sign or first is None or second is None:
            return None
        if self.rng.random() < 0.4:
            second = f"{np.exp(self.rng.normal(0.0, 1.0)):.2g}"
        return f"{first} {sign[int(self.rng.integers(len(sign)))]} {second}"

    def function(self) -> str | None:
        inside = self.argument()
        if inside is None or not self.functions:
            return None
        name = self.functions[int(self.rng.integers(len(self.functions)))]
        if name == "exp" and self.rng.random() < 0.5 and "mul" in self.has:
            inside = f"-1*({inside})"
        return f"{name}({inside})"

    def product(self) -> str | None:
        return self.multiplied([self.monomial(), self.function()])

    def quotient(self) -> str | None:
        """A product over a sum, or over the root of one."""
        below = self.total()
        if below is None or "div" not in self.has:
            return None
        above = self.monomial() if self.rng.random() < 0.7 else "1"
        kinds = ["({})", "sqrt({})", "({})**2"] if "sqrt" in self.has else ["({})"]
        return None if above is None else f"{above}/{kinds[int(self.rng.integers(len(kinds)))].format(below)}"

    def neighbour(self) -> str | None:
        """A term of the current model, changed: times or over something, or with another input in one place."""
        term = f"({self.current[int(self.rng.integers(len(self.current)))]})"
        kind = self.rng.random()
        if kind < 0.35:
            return self.multiplied([term, self.power()])
        if kind < 0.55:
            return self.multiplied([term, self.function()])
        if kind < 0.7:
            return f"{term}/({self.total()})" if "div" in self.has else None
        old, new = self.name(), self.name()
        if kind < 0.85:
            inner = self.multiplied([new, self.power()])
            return term.replace(old, f"({inner})", 1) if old in term and inner else None
        inner = self.total()
        return term.replace(old, f"({inner})", 1) if old in term and inner else None
