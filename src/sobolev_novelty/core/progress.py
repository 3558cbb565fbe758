"""How far a task is: one protocol for everything that takes a while.

A function that takes a while has an argument ``on_progress`` and calls it with a value that fulfils :class:`Progress`:
a :class:`Step`, or a value of its own with more fields. Whoever shows progress takes any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """What is told about a task under way."""

    @property
    def done(self) -> float:
        """How much is done, in the task's own unit: rows, bytes, evaluations, seconds."""

    @property
    def total(self) -> float | None:
        """How much there is to do, in the same unit; None where nobody knows."""

    @property
    def note(self) -> str:
        """What is being done now, in a few words; may be empty."""


@dataclass(frozen=True, slots=True)
class Step:
    """The plainest :class:`Progress`.

    >>> Step(3, 10, "resampling")
    Step(done=3, total=10, note='resampling')
    """

    done: float
    total: float | None = None
    note: str = ""


OnProgress: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """An ``on_progress`` that tells nobody: the default."""


def part_of(whole: Progress, on_progress: OnProgress) -> OnProgress:
    """Tell where the whole stands; what comes back is the ``on_progress`` of its next part, which adds its notes.

    >>> part_of(Step(2, 5, "fold 3"), print)(Step(1, 99, "fitting"))
    Step(done=2, total=5, note='fold 3')
    Step(done=2, total=5, note='fold 3: fitting')
    """
    on_progress(whole)
    return lambda part: on_progress(Step(whole.done, whole.total, f"{whole.note}: {part.note}"))


def tracked(items: Sequence[T], on_progress: OnProgress, note: str = "") -> Iterator[T]:
    """The items in order; each is told as done when the next one is asked for.

    >>> list(tracked("ab", print))
    Step(done=1, total=2, note='')
    Step(done=2, total=2, note='')
    ['a', 'b']
    """
    for done, item in enumerate(items, start=1):
        yield item
        on_progress(Step(done, len(items), note))
