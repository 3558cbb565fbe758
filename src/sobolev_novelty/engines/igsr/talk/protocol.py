"""What passes between the engine and whoever offers terms."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sobolev_novelty.core.parameters import Kind


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What terms may be made of."""

    names: tuple[str, ...]  # variables, as they are shown
    operators: tuple[str, ...]  # canonical names
    ranges: tuple[tuple[float, float], ...]  # tuple of (float, float): smallest and largest value of each variable


@dataclass(frozen=True, slots=True)
class Question:
    """One call.

    Parameters
    ----------
    system, prompt : str
        All that a language model is shown.
    vocabulary : Vocabulary
    current : tuple of str
        The terms of the model that is to be extended, as they are shown.
    n_terms : int
        How many terms are wanted.
    seed : int
    version : str
        Of the prompt.
    seconds : float
        How long the answer may take; not part of the question's identity.
    """

    system: str
    prompt: str
    vocabulary: Vocabulary
    current: tuple[str, ...]
    n_terms: int
    seed: int
    version: str
    seconds: float = math.inf

    def digest(self, model: str, temperature: float) -> str:
        """The hash under which a transcript keeps the answer."""
        said = [self.version, model, temperature, self.seed, self.n_terms, self.system, self.prompt]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; never an exception.

    Parameters
    ----------
    text : str
        Empty where the call failed.
    prompt_tokens, answer_tokens : int or None
        As the endpoint counted them; None where it did not.
    seconds : float
    finish_reason : str
        As the endpoint said it: "stop", "length" …
    n_retries : int
    problem : str
        Why the call failed, as a sentence; empty where it did not.
    is_replayed : bool
        Whether it came from a transcript.
    """

    text: str = ""
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    seconds: float = 0.0
    finish_reason: str = ""
    n_retries: int = 0
    problem: str = ""
    is_replayed: bool = False


@runtime_checkable
class Proposer(Protocol):
    """Something that offers terms: a language model, a recording of one, a sampler.

    Everything it keeps is copied when an engine is cloned: no open files, sockets or locks.
    """

    @property
    def model(self) -> str:
        """Its name in transcripts and results."""

    @property
    def temperature(self) -> float:
        """0 for one that does not draw."""

    @property
    def concurrency(self) -> int:
        """Questions worth asking at once."""

    @property
    def n_terms(self) -> int:
        """Terms worth asking for in one call."""

    @property
    def max_answer_tokens(self) -> int:
        """The longest answer, for the token budget."""

    def ask(self, question: Question) -> Answer:
        """One call. Failures are in the answer; waits ``question.seconds`` at most."""


#: A proposer as an argument. Not by ``isinstance``: a transcript's properties read its file.
PROPOSER = Kind(
    "a proposer of terms such as ChatProposer",
    lambda v: callable(getattr(v, "ask", None)) and not isinstance(v, type),
)
