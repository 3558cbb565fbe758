"""Which lines of a text are the table: instruments write comments, headings and units around it."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from sobolev_novelty.errors import shortened

#: What lines that are not part of the table may begin with.
MARKS = "#%!;"
#: Entries that stand for a missing value, besides those that pandas knows (empty, NA, nan, null …).
MISSING = ("?", "-", ".", "--", "---", "n.d.", "N.D.", "#DIV/0!", "#REF!", "#VALUE!", "#NUM!", "#NAME?", "#NULL!")
_CELL_ERROR = re.compile(r"#(N/A|NA|DIV/0!|REF!|VALUE!|NUM!|NAME\?|NULL!)")
_NUMBER = re.compile(r"[<>≤≥]?\s*[+-]?(\d[\d.,'’\s]*|[.,]\d+)([eE][+-]?\d+)?\Z")
_BRACKETED = re.compile(r"[\[(].*[\])]\Z")
_ABSENT = {"", "na", "nan", "null", "none", "n/a", "inf", "-inf", *(entry.lower() for entry in MISSING)}

Split = Callable[[str], list[list[str]]]


@dataclass(frozen=True, slots=True)
class Marked:
    """A text without its comment lines."""

    text: str
    mark: str | None = None  # what the lines that were taken out begin with
    leading: tuple[str, ...] = ()  # those before the first line of the table, without their mark
    n_comments: int = 0


def without_comments(text: str, separator: str | None, mark: str | None) -> Marked:
    r"""A text without the lines that begin with ``mark``, or with the first of :data:`MARKS` that fits.

    >>> without_comments("% lab 3\n% 2024\na,b\n1,2\n", None, None)
    Marked(text='a,b\n1,2\n', mark='%', leading=(' lab 3', ' 2024'), n_comments=2)
    """
    lines = text.splitlines(keepends=True)
    for candidate in MARKS if mark is None else mark:
        if candidate == separator:
            continue
        is_comment = [is_comment_line(line, candidate) for line in lines]
        kept = [line for line, out in zip(lines, is_comment, strict=True) if not out and line.strip()]
        if not any(is_comment) or not kept or (candidate == ";" and mark is None and any(";" in line for line in kept)):
            continue
        first = next(k for k, out in enumerate(is_comment) if not out and lines[k].strip())
        later = [out for out, line in zip(is_comment[first:], lines[first:], strict=True) if line.strip()]
        if mark is None and not any(is_comment[:first]) and 2 * sum(later) >= len(later):
            continue  # the names of most rows begin like that
        text = "".join(line for line, out in zip(lines, is_comment, strict=True) if not out)
        leading = tuple(line.strip()[1:].rstrip() for line in lines[:first] if line.strip())
        return Marked(text, candidate, leading, sum(is_comment))
    return Marked(text)


def is_comment_line(line: str, mark: str) -> bool:
    """Whether a line begins with the mark; an error that a spreadsheet wrote into a cell is not a comment."""
    start = line.lstrip()
    return start.startswith(mark) and not _CELL_ERROR.match(start)


class Uncommented(io.RawIOBase):
    """A stream of bytes, as UTF-8 and without the lines that begin with a mark."""

    def __init__(self, handle: IO[bytes], encoding: str, errors: str, mark: str) -> None:
        text = io.TextIOWrapper(handle, encoding=encoding, errors=errors)
        self._text = text
        self._parts: Iterator[bytes] = (line.encode() for line in text if not is_comment_line(line, mark))
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer."""
        while len(self._rest) < len(buffer):
            part = next(self._parts, b"")
            if not part:
                break
            self._rest += part
        given, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)

    def close(self) -> None:
        """Let go of the bytes; whoever opened them closes them."""
        if not self.closed:
            self._text.detach()
        super().close()


def is_blank(row: Sequence[str]) -> bool:
    """Whether a row has no entry."""
    return not any(entry.strip() for entry in row)


def is_number(entry: str) -> bool:
    """Whether an entry may stand in a column of numbers, whatever its decimal mark; a missing one may.

    >>> [is_number(entry) for entry in ("1,5", "<0.1", "1'234.5", "n/a", "V", "2024-01-01")]
    [True, True, True, True, False, False]
    """
    text = entry.strip()
    return text.lower() in _ABSENT or _NUMBER.match(text) is not None


def start_of_table(rows: Sequence[Sequence[str]]) -> int:
    """The index of the line of names: the first row of the usual width, where it holds names and no number.

    >>> start_of_table([["Run 3"], [], ["t", "U"], ["0", "1"], ["1", "3"]])
    2
    """
    first = next((k for k, row in enumerate(rows) if not is_blank(row)), 0)
    widths = Counter(map(_width, rows))
    widths.pop(0, None)
    if not widths:
        return first
    usual = max(widths, key=lambda width: (widths[width], width))
    start = next(k for k, row in enumerate(rows) if _width(row) == usual)
    holds_names = not any(is_number(entry) for entry in rows[start])
    return start if usual > 1 and widths[usual] > 1 and start > first and holds_names else first


def _width(row: Sequence[str]) -> int:
    """Entries up to the last that is not empty: spreadsheets fill all lines up to the longest."""
    return max((k + 1 for k, entry in enumerate(row) if entry.strip()), default=0)


def header_in(comments: Sequence[str], width: int, split: Split) -> list[str] | None:
    """The last comment that has a name for each column, where the first row of the table has numbers already."""
    for comment in reversed(comments):
        found = split(comment.strip())
        if found and len(found[0]) == width and not is_blank(found[0]) and not all(map(is_number, found[0])):
            return found[0]
    return None


def is_units(row: Sequence[str], later: Sequence[Sequence[str]]) -> bool:
    """Whether the row below the names holds units: no number, where all later rows hold one.

    A single such entry may be a mistake in the data, so there have to be two, or it stands in brackets.

    >>> is_units(["s", "V", ""], [["0", "1.5", "x"], ["1", "1.7", "y"]])
    True
    """
    full = [other for other in later if len(other) == len(row)]
    if not full:
        return False
    numeric = [k for k in range(len(row)) if all(is_number(other[k]) for other in full)]
    said = [row[k].strip() for k in numeric if row[k].strip()]
    if any(is_number(row[k]) for k in numeric if row[k].strip() not in ("", "-", "1")):
        return False
    names = [entry for entry in said if entry not in ("-", "1")]
    return len(names) > 1 or (len(names) == 1 and _BRACKETED.match(names[0]) is not None)


def skipped_note(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What is said of the lines above the names."""
    told = [shortened(" ".join(row).strip(), 40) for row in rows if not is_blank(row)]
    if not told:
        return ()
    lines = "line is" if len(told) == 1 else f"{len(told)} lines are"
    return (f"The first {lines} not part of the table and left out: {', '.join(told[:3])}{' …' * (len(told) > 3)}.",)
