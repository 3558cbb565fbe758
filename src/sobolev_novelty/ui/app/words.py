"""Errors in the words of the page: its own labels in place of the library's arguments."""

from __future__ import annotations

from sobolev_novelty.errors import in_callers_words

#: Argument of the library -> label on the page.
LABELS = {
    "target": "Target", "features": "Inputs", "separator": "Separator", "decimal": "Decimal mark",
    "encoding": "Encoding", "has_header": "First line is data", "variables": "Variables", "dialect": "Written for",
    "seconds": "Seconds", "max_complexity": "Largest size", "select": "Choice", "row": "Equation of the file",
}  # fmt: skip


def in_words(error: Exception) -> str:
    """The message of an error as a user of the page reads it.

    >>> from sobolev_novelty.errors import ParameterError
    >>> in_words(ParameterError("'seconds' must be positive. Got 0."))
    'Seconds must be positive. Got 0.'
    """
    return in_callers_words(error, LABELS)


def megabytes(n_bytes: int) -> str:
    """A size as people read it.

    >>> megabytes(104_857_600), megabytes(1_500)
    ('100 MB', '0.0014 MB')
    """
    return f"{n_bytes / 2**20:.2g} MB" if n_bytes < 2**20 else f"{n_bytes / 2**20:,.0f} MB"
