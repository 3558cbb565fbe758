"""The three words on a term, each with its mark and its number; shared by all that show a report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sobolev_novelty.core.digits import number_text, percent_text, typeset_interval
from sobolev_novelty.report.render.sentences import BADGES, Data, novelty_text, term_verdict


@dataclass(frozen=True, slots=True)
class Word:
    """One word on a term."""

    text: str  # for a person
    mark: str  # one character
    is_good: bool | None  # none where nothing is judged
    number: str = ""  # what the word comes from; empty where there is nothing

    @property
    def kind(self) -> str:
        """Class of the style sheet: high, low or none."""
        return "none" if self.is_good is None else "high" if self.is_good else "low"


_MARKS = {
    "distinct": "✓", "partly distinct": "~", "imitated": "✗", "few rows": "!", "unresolved": "!", "intercept": "·",
    "null": "∅", "no verdict": "?",
}  # fmt: skip
_LONG = {"few rows": "on few rows", "unresolved": "too fast for rows", "null": "zero on all rows"}
_NEEDED = {"yes": ("needed", "✓"), "little": ("small", "~"), "shared": ("shared", "~"), "no": ("not needed", "✗")}
_DETERMINED = {
    "yes": ("determined", "✓"), "no": ("not determined", "✗"), "one-sided": ("one-sided", "~"), "flat": ("flat", "✗"),
}  # fmt: skip
_NOTHING = Word("–", "–", None)


def distinct_word(term: Data) -> Word:
    """Whether other terms can imitate it; its number is ν with a free intercept.

    >>> distinct_word({"is_null": False, "verdict": {"distinct": "yes", "novelty": 0.671}})
    Word(text='distinct', mark='✓', is_good=True, number='ν 0.671')
    """
    word = term_verdict(term)
    is_good = None if word in ("intercept", "no verdict") else word == BADGES["yes"]
    nu = term["verdict"]["novelty"]
    return Word(_LONG.get(word, word), _MARKS[word], is_good, "" if nu is None else f"ν {novelty_text(nu)}")


def needed_word(term: Data) -> Word:
    """What is lost without it; its number is the share of the prediction's spread."""
    found = term["verdict"]
    if found["needed"] not in _NEEDED:
        return _NOTHING
    text, mark = _NEEDED[found["needed"]]
    loss = percent_text(found["loss"])
    if found["partner"] is None:
        return Word(text, mark, found["needed"] == "yes", loss)
    return Word(f"{text} with {found['partner']}", mark, False, f"{loss}; both {percent_text(found['pair_loss'])}")


def determined_word(term: Data) -> Word:
    """Whether the data fix its coefficient; its number is the interval of the coefficient, refitted."""
    found = term["verdict"]
    if found["distinct"] == "constant" or found["determined"] not in _DETERMINED:
        return Word(_NOTHING.text, _NOTHING.mark, None, interval_of(term))  # the intercept is not judged
    text, mark = _DETERMINED[found["determined"]]
    return Word(text, mark, found["determined"] == "yes", interval_of(term))


def interval_of(term: Data) -> str:
    """The interval of the coefficient, typeset; empty where there is none."""
    if not term["verdict"]["interval"]:
        return ""
    low, high = term["verdict"]["interval"]
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    middle = 0.5 * (low + high)
    return typeset_interval(low, high, middle if math.isfinite(middle) else term["coefficient"] or 0.0)


def is_within_interval(term: Data) -> bool:
    """Whether the coefficient as given lies within its interval; true where there is none."""
    ends, b = term["verdict"]["interval"], term["coefficient"]
    if not ends or b is None:
        return True
    low, high = ends
    room = 1e-9 * abs(b)  # an exact fit has an interval without width
    return bool((low is None or b >= low - room) and (high is None or b <= high + room))


def half_width(term: Data) -> float | None:
    """Half the width of the coefficient's interval; None where a side is open or there is no interval.

    At most the coefficient itself, so that two digits of it are always shown: the interval is that of the coefficient
    refitted, and a reader must know again the one that was given.
    """
    ends = term["verdict"]["interval"]
    return None if not ends or None in ends else min(0.5 * (ends[1] - ends[0]), abs(term["coefficient"] or math.inf))


def coefficient_text(term: Data) -> str:
    """The coefficient to the digits that its interval allows."""
    return number_text(term["coefficient"], half_width(term))


def digits_of_equation(data: Data) -> dict[float, float]:
    """|coefficient| -> half-width of its interval, for the numbers of the equation that are coefficients."""
    widths = ((abs(term["coefficient"] or 0.0), half_width(term)) for term in data["terms"])
    return {size: width for size, width in widths if width is not None}
