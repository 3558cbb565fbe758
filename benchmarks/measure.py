"""Timing: two things in turn, in one process, on one thread. What is reported is their ratio.

One-thread measures count the processor time of the process, so that other load on the machine does not enter;
measures of several threads count wall time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Parameters
    ----------
    name, must, aim : str
        What is asked.
    value : float
        Median.
    low, high : float
        Quartiles over the repeats of this run.
    unit : str
        ``"x"`` for a ratio.
    is_met : bool
        Whether the median meets ``must``.
    note : str
    """

    name: str
    must: str
    aim: str
    value: float
    low: float
    high: float
    unit: str
    is_met: bool
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def seconds(action: Callable[[], Any], n_calls: int = 1) -> float:
    """Processor time of one call, all threads of the process together."""
    start = time.process_time()
    for _ in range(n_calls):
        action()
    return (time.process_time() - start) / n_calls


def wall_seconds(action: Callable[[], Any]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turn(
    first: Callable[[], Any], second: Callable[[], Any], repeats: int, n_calls: tuple[int, int] = (1, 1)
) -> Any:
    """Times of shape (repeats, 2), both warm, taken in turn so that other load on the machine meets both."""
    first()
    second()
    return np.array([[seconds(first, n_calls[0]), seconds(second, n_calls[1])] for _ in range(repeats)])


def spread(values: Any) -> tuple[float, float, float]:
    """Median and quartiles."""
    median, low, high = np.percentile(values, [50, 25, 75])
    return float(median), float(low), float(high)


def at_least(name: str, values: Any, must: float, aim: float, *, unit: str = "x", note: str = "") -> Measure:
    median, low, high = spread(values)
    return Measure(name, f"≥ {must:g}", f"≥ {aim:g}", median, low, high, unit, median >= must, note)


def at_most(name: str, values: Any, must: float, aim: float, *, unit: str = "x", note: str = "") -> Measure:
    median, low, high = spread(values)
    return Measure(name, f"≤ {must:g}", f"≤ {aim:g}", median, low, high, unit, median <= must, note)


def plain(name: str, values: Any, unit: str = "x", note: str = "") -> Measure:
    """A line that nobody asked for."""
    median, low, high = spread(values)
    return Measure(name, "–", "–", median, low, high, unit, True, note)
