"""Calls, tokens and money: counted, and refused beforehand where a limit would be passed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from sobolev_novelty.core.parameters import COUNT, NOTHING, POSITIVE, checked_class, list_of, number
from sobolev_novelty.engines.igsr.talk.answers import Reading
from sobolev_novelty.engines.igsr.talk.protocol import Answer, Question
from sobolev_novelty.errors import ParameterError

#: Tokens per character assumed until an endpoint has counted some: formulas have short tokens.
TOKENS_PER_CHARACTER = 0.5
#: Once tokens were counted, a prompt is taken for this much longer than the densest one so far.
MARGIN = 1.1


@checked_class(
    calls=COUNT | NOTHING,
    tokens=COUNT | NOTHING,
    cost=POSITIVE | NOTHING,
    prices=list_of(number(0.0), "two numbers of at least 0", at_least=2, at_most=2) | NOTHING,
)
@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use of its proposer.

    Parameters
    ----------
    calls, tokens : int, optional
        Calls, and tokens of prompts and answers together.
    cost : float, optional
        Money, in the currency of ``prices``.
    prices : (float, float), optional
        Of a million tokens of prompts and of answers.

    Examples
    --------
    >>> Limits(calls=20, cost=0.5, prices=(0.15, 0.6)).calls
    20
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    prices: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.cost is not None and self.prices is None:
            raise ParameterError("'cost' needs 'prices': of a million tokens of prompts and of answers.")


@dataclass(slots=True)
class Ledger:
    """What was asked, what came back, and what it cost."""

    limits: Limits = field(default_factory=Limits)
    n_calls: int = 0
    n_failed: int = 0
    n_replayed: int = 0
    n_offered: int = 0
    n_parsed: int = 0
    n_kept: int = 0
    n_malformed: int = 0
    n_repeated: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    failures_in_a_row: int = 0
    last_problem: str = ""
    density: float = TOKENS_PER_CHARACTER  # tokens per character of a prompt, at most
    open_calls: int = 0
    open_tokens: tuple[int, int] = (0, 0)  # reserved for calls under way: prompts, answers

    @property
    def cost(self) -> float:
        """Money spent."""
        return self._price(self.prompt_tokens, self.answer_tokens)

    def reserve(self, question: Question, max_answer_tokens: int) -> str:
        """Set aside what a call may use; otherwise the limit that it would pass, as words."""
        limits = self.limits
        prompt = self.open_tokens[0] + math.ceil(self.density * (len(question.system) + len(question.prompt)))
        answer = self.open_tokens[1] + max_answer_tokens
        if limits.calls is not None and self.n_calls + self.open_calls >= limits.calls:
            return f"the limit of {limits.calls} calls is reached"
        if limits.tokens is not None and self.prompt_tokens + self.answer_tokens + prompt + answer > limits.tokens:
            return f"one more call could pass the limit of {limits.tokens} tokens"
        if limits.cost is not None and self.cost + self._price(prompt, answer) > limits.cost:
            return f"one more call could pass the limit of {limits.cost:g} in money"
        self.open_calls += 1
        self.open_tokens = prompt, answer
        return ""

    def settle(self) -> None:
        """The calls under way are over."""
        self.open_calls, self.open_tokens = 0, (0, 0)

    def enter(self, question: Question, answer: Answer, reading: Reading) -> None:
        """Count a call; tokens that nobody counted are estimated."""
        asked = len(question.system) + len(question.prompt)
        self.n_calls += 1
        self.n_replayed += answer.is_replayed
        if answer.problem:
            self.n_failed += 1
            self.failures_in_a_row += 1
            self.last_problem = answer.problem
        else:
            self.failures_in_a_row = 0
        if answer.prompt_tokens is not None and asked:
            seen = answer.prompt_tokens / asked
            known = self.density if self.prompt_tokens and self.density != TOKENS_PER_CHARACTER else 0.0
            self.density = max(known, MARGIN * seen)
        self.prompt_tokens += _counted(answer.prompt_tokens, asked)
        self.answer_tokens += _counted(answer.answer_tokens, len(answer.text))
        self.n_offered += reading.n_offered
        self.n_parsed += len(reading.terms)
        self.n_malformed += reading.n_malformed
        self.n_repeated += reading.n_repeated

    def counts(self) -> dict[str, Any]:
        """In words, for the result."""
        found: dict[str, Any] = {
            "calls made": self.n_calls, "terms offered": self.n_offered, "parsed": self.n_parsed, "kept": self.n_kept,
            "tokens": self.prompt_tokens + self.answer_tokens,
        }  # fmt: skip
        others = {
            "calls failed": self.n_failed, "calls replayed": self.n_replayed, "lines not read": self.n_malformed,
            "terms repeated": self.n_repeated, "cost": round(self.cost, 6), "last problem": self.last_problem,
        }  # fmt: skip
        return found | {name: value for name, value in others.items() if value}

    def _price(self, prompt_tokens: int, answer_tokens: int) -> float:
        per_prompt, per_answer = self.limits.prices or (0.0, 0.0)
        return (per_prompt * prompt_tokens + per_answer * answer_tokens) / 1e6


def _counted(tokens: int | None, n_characters: int) -> int:
    return math.ceil(n_characters / 4) if tokens is None else tokens
