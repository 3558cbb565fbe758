"""Why a search ended: what the code asks about, and the sentence that a person reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class StopReason(Enum):
    """Why a search ended; the value is its sentence, with places for details.

    >>> stop = StopReason.EVALUATIONS.with_details(800)
    >>> stop.reason is StopReason.EVALUATIONS, str(stop)
    (True, 'The budget of 800 evaluations is spent.')
    """

    EVALUATIONS = "The budget of {} evaluations is spent."
    SECONDS = "The budget of {:g} seconds is spent."
    EXACT = "The fit is exact up to rounding."
    CONSTANT = "The target is constant."
    EXHAUSTED = "{}"
    NOTHING_NEW = "The engine proposed nothing new in {} rounds."
    CALLBACK = "A callback ended the search."
    ELSEWHERE = "Another island found an exact fit."
    INTERRUPTED = "Interrupted; the best so far was kept."

    def with_details(self, *details: object) -> Stop:
        """The reason with what its sentence leaves open; that of an exhausted engine is the engine's own."""
        return Stop(self, self.value.format(*details))

    @property
    def is_by_user(self) -> bool:
        """Whether the user asked for the end: nothing further is waited for."""
        return self in (StopReason.CALLBACK, StopReason.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Stop:
    """The reason why a search ended, and its sentence with details."""

    reason: StopReason
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    def and_also(self, sentence: str) -> Stop:
        """The same reason with a further sentence."""
        return replace(self, sentence=f"{self.sentence} {sentence}")
