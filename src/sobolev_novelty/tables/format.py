"""How a text table is written: separator, decimal mark, encoding, header; what is not given is guessed."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any

from sobolev_novelty.core.sample import repeated
from sobolev_novelty.errors import DataError, ParameterError
from sobolev_novelty.tables.lines import (
    MISSING,
    Split,
    Uncommented,
    header_in,
    is_blank,
    is_units,
    skipped_note,
    start_of_table,
    without_comments,
)

#: Bytes at the start of a table from which its format is guessed.
HEAD = 2**18
#: Bytes in which the header and one row must end.
LONGEST_HEAD = 2**25
#: Text behind compressed bytes that is read at once, in megabytes, if nothing else is said.
MAX_MEGABYTES = 128
#: Rows of the head that are looked at.
_N_ROWS = 200
#: Columns separated by any number of spaces, as pandas writes it.
BLANKS = r"\s+"
#: In the order of preference where several would do: '1,5;2,5' is two numbers.
_SEPARATORS = ("\t", ";", ",", "|", BLANKS)
_SPELLINGS = {"tab": "\t", "\\t": "\t", "space": BLANKS, " ": BLANKS, BLANKS: BLANKS}
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?\Z")
_DECIMAL_POINT = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?\Z")


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How a text table is written; ``None`` is guessed.

    >>> TableFormat(separator="::")
    Traceback (most recent call last):
    ...
    sobolev_novelty.errors.ParameterError: 'separator' must be one character, 'tab' or 'space'. Got '::'.
    """

    #: What separates the columns: one character, ``"tab"``, or ``"space"`` for any number of spaces.
    separator: str | None = None
    decimal: str | None = None  # {".", ","}: the decimal mark
    #: The encoding, by any name that Python knows. The guess is UTF-8, UTF-16 or Windows-1252.
    encoding: str | None = None
    has_header: bool = True  # whether the first line names the columns; otherwise they are ``x0, x1, …``
    #: A compressed file that holds more than this, and more than 30 times its own size, is refused: a few kilobytes can
    #: hold gigabytes. Where files are read in chunks, each chunk may hold as much.
    max_megabytes: int = MAX_MEGABYTES
    #: What lines begin with that are not part of the table; empty for none. The guess is ``#``, ``%``, ``!`` or ``;``.
    comment: str | None = None
    #: Lines above the names, comments not counted. The guess: lines of another width than the table.
    skip_rows: int | None = None
    sheet: str | None = None  # of a workbook; by default the first that is not empty

    def __post_init__(self) -> None:
        if self.comment and len(self.comment) != 1:
            raise ParameterError(f"'comment' must be one character, or empty for none. Got {self.comment!r}.")
        if self.skip_rows is not None and self.skip_rows < 0:
            raise ParameterError(f"'skip_rows' must be 0 or more. Got {self.skip_rows}.")
        if self.max_megabytes < 1:
            raise ParameterError(f"'max_megabytes' must be at least 1. Got {self.max_megabytes}.")
        if self.separator is not None and len(self.separator) != 1 and self.separator not in _SPELLINGS:
            raise ParameterError(f"'separator' must be one character, 'tab' or 'space'. Got {self.separator!r}.")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"'decimal' must be '.' or ','. Got {self.decimal!r}.")
        try:
            "".encode(self.encoding or "utf-8")  # unlike codecs.lookup, refuses base64 and the like
        except LookupError:
            raise ParameterError(
                f"'encoding' must be the name of an encoding, such as utf-8 or latin-1. Got {self.encoding!r}."
            ) from None


@dataclass(frozen=True, slots=True)
class TextLayout:
    """A format with nothing left to guess, the names of the columns, and notes on what was guessed."""

    separator: str
    decimal: str
    encoding: str
    encoding_errors: str
    names: tuple[str, ...]
    n_skipped: int
    notes: tuple[str, ...]
    comment: str | None = None
    units: dict[str, str] = field(default_factory=dict)

    def opened(self, handle: IO[bytes]) -> IO[bytes]:
        """The text without its comment lines: bytes in the encoding of :meth:`options`."""
        if self.comment is None:
            return handle
        return io.BufferedReader(Uncommented(handle, self.encoding, self.encoding_errors, self.comment))

    def options(self) -> dict[str, Any]:
        """How pandas reads this text."""
        return {
            "sep": self.separator, "decimal": self.decimal,
            "encoding": self.encoding if self.comment is None else "utf-8",
            "encoding_errors": self.encoding_errors, "header": None, "names": list(self.names),
            "skiprows": self.n_skipped, "index_col": False, "skipinitialspace": True, "low_memory": False,
            "na_values": list(MISSING),
            # In a table of one column a blank line is a missing entry.
            "skip_blank_lines": len(self.names) > 1,
        }  # fmt: skip


def layout_of(head: bytes, written: TableFormat, source: str, *, suffix: str = "") -> TextLayout:
    r"""The layout of a text that starts with ``head``.

    ``head``: the first :data:`HEAD` bytes; fewer are the whole text.
    ``source``: the file's name, for messages.
    ``suffix``: its kind by name, such as ``".tsv"``.

    >>> layout_of(b"mass;speed\n1,5;2\n", TableFormat(), "data.csv").names
    ('mass', 'speed')
    """
    text, encoding, notes = _decoded(head, written, source)
    if len(head) >= HEAD:  # the last line may be cut off
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    marked = without_comments(text, _SPELLINGS.get(written.separator or "", written.separator), written.comment)
    separator = written.separator
    if separator is None:
        separator = _guessed_separator(marked.text, suffix)
    separator = _SPELLINGS.get(separator, separator)
    rows = _rows(marked.text, separator)
    full = [row for row in rows if not is_blank(row)]
    if not full and text.strip():  # a name beyond what the csv module reads
        raise DataError(
            f"An entry in the first lines of '{source}' is longer than {csv.field_size_limit()} characters. Shorten "
            "the names, or say what separates the columns ('separator').",
            arguments=["separator"],
        )
    if not full:
        raise DataError(f"'{source}' is empty. Give a table with a header line and a row for each measurement.")
    head_lines = _head_lines(rows, written, lambda line: _rows(line, separator), marked.leading)
    rows = [row for row in rows[head_lines.n_skipped :] if not is_blank(row)]
    decimal = written.decimal
    if decimal is None and _has_decimal_commas(rows, separator):
        decimal = ","
        notes += ("Numbers are read with a decimal comma: 1,5 is one and a half.",)
    names = _column_names(source, head_lines.names, separator, decimal or ".", written.has_header)
    n_comments = marked.n_comments - head_lines.names_in_comment
    if n_comments:
        notes += (f"{n_comments} line{' is a comment' if n_comments == 1 else 's are comments'}: {marked.mark} …",)
    units = dict(zip(names, (unit.strip("[]() ") for unit in head_lines.units), strict=False))
    if units:
        told = ", ".join(f"{name} in {unit}" for name, unit in list(units.items())[:4] if unit)
        notes += (f"The line below the names holds units and is not a row: {told}{' …' * (len(units) > 4)}.",)
    return TextLayout(
        separator, decimal or ".", encoding, "strict" if written.encoding else "backslashreplace", tuple(names),
        head_lines.n_skipped, notes + skipped_note(head_lines.above), marked.mark, units,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _HeadLines:
    """What stands before the rows of numbers: lines above the table, names, units."""

    names: list[str]
    n_skipped: int
    above: list[list[str]]
    units: list[str]
    names_in_comment: bool


def _head_lines(rows: list[list[str]], written: TableFormat, split: Split, comments: Sequence[str]) -> _HeadLines:
    first = start_of_table(rows) if written.skip_rows is None and written.has_header else 0
    first = max(first, written.skip_rows or 0)
    first += next((k for k, row in enumerate(rows[first:]) if not is_blank(row)), 0)
    start = first
    above = rows[:start] if written.skip_rows is None else []
    if start >= len(rows):
        raise ParameterError(f"'skip_rows' leaves no line of {len(rows)}. Got {written.skip_rows}.")
    if not written.has_header:
        return _HeadLines(rows[start], start, above, [], False)
    names = header_in(comments, len(rows[start]), split) if _all_numbers(rows[start]) else None
    if names is not None:
        return _HeadLines(names, start, above, [], True)
    later = [k for k in range(start + 1, len(rows)) if not is_blank(rows[k])]
    if len(later) > 1 and is_units(rows[later[0]], [rows[k] for k in later[1:]]):
        return _HeadLines(rows[start], later[0] + 1, above, rows[later[0]], False)
    return _HeadLines(rows[start], start + 1, above, [], False)


def _all_numbers(row: Sequence[str]) -> bool:
    return all(_is_number(entry, ".") or _is_number(entry, ",") for entry in row if entry.strip())


def _decoded(head: bytes, written: TableFormat, source: str) -> tuple[str, str, tuple[str, ...]]:
    """The head as text, its encoding, and a note where that is a guess that may be wrong."""
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    tried = [written.encoding] if written.encoding else ["utf-16"] if marked else ["utf-8-sig", "cp1252", "latin-1"]
    if tried[-1] == "latin-1" and b"\0" in head:  # latin-1 would make text of anything
        tried = tried[:1]
    for encoding in tried:
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = decoder.decode(head, final=len(head) < HEAD)
        except UnicodeError as error:
            reason = str(error)
            continue
        if "\0" in text:
            reason = "it holds characters that no text has"
            continue
        guessed = () if encoding == tried[0] else (f"The table is not UTF-8 text; it is read as {encoding}.",)
        return text.removeprefix("\ufeff"), encoding, guessed
    raise not_text(source, reason)


def not_text(source: str, reason: str) -> DataError:
    """The error for bytes that are not text in the encoding that was given or guessed."""
    return DataError(
        f"'{source}' cannot be read as text: {reason}. Save it as UTF-8, or give its 'encoding'.",
        arguments=["encoding"],
    )


def _rows(text: str, separator: str) -> list[list[str]]:
    """The first rows, blank ones included."""
    lines = io.StringIO(text, newline=None)
    if separator == BLANKS:
        return [line.split() for line in islice(lines, _N_ROWS)]
    rows: list[list[str]] = []
    with suppress(csv.Error):  # such as an entry of megabytes: what was read before it is enough
        for row in islice(csv.reader(lines, delimiter=separator, skipinitialspace=True), _N_ROWS):
            rows.append(row)
    return rows


def _guessed_separator(text: str, suffix: str) -> str:
    """The separator that gives the first row more than one entry and most rows as many as the first."""
    usual = {".tsv": "\t", ".tab": "\t"}.get(suffix, ",")
    best, best_share = usual, 0.5
    for separator in _SEPARATORS:
        if separator == BLANKS and suffix in (".csv", ".tsv", ".tab"):  # spaces belong to the entries
            continue
        rows = _rows(text.lstrip("#"), separator)
        rows = [row for row in rows[start_of_table(rows) :] if not is_blank(row)]
        if not rows or len(rows[0]) < 2:
            continue
        share = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        if share > best_share:
            best, best_share = separator, share
    return best


def _has_decimal_commas(rows: Sequence[Sequence[str]], separator: str) -> bool:
    entries = [entry.strip() for row in rows for entry in row]
    commas = [entry for entry in entries if _DECIMAL_COMMA.match(entry)]
    if separator == "," and all(re.search(r",\d{3}\Z", entry) for entry in commas):
        return False  # "1,234" among numbers separated by commas is more likely a thousand than a fraction
    return bool(commas) and not any(_DECIMAL_POINT.match(entry) for entry in entries)


def _column_names(source: str, first: Sequence[str], separator: str, decimal: str, has_header: bool) -> list[str]:
    if not has_header:
        return [f"x{k}" for k in range(len(first))]
    names = [entry.strip() for entry in first]
    names = [names[0].lstrip("#").strip(), *names[1:]]  # numpy.savetxt writes its header as a comment
    if separator == BLANKS and len(names) > 1 and not names[0]:
        names = names[1:]
    if all(_is_number(name, decimal) for name in names if name):
        raise DataError(
            f"The first line of '{source}' holds numbers, not names. Add a header line, or say that there is none "
            "('has_header').",
            arguments=["has_header"],
        )
    if len(names) == 1 and separator not in "; \t" and any(mark in names[0] for mark in ";\t|"):
        raise DataError(
            f"'{source}' has one column, '{names[0]}'. Say what separates the columns ('separator').",
            arguments=["separator"],
        )
    twice = repeated([name for name in names if name])
    if twice:
        raise DataError(f"'{source}' has more than one column named '{twice[0]}'. Rename them.")
    # Spreadsheets and pandas write an unnamed column of row numbers.
    return [name or f"unnamed{k}" for k, name in enumerate(names)]


def _is_number(text: str, decimal: str) -> bool:
    try:
        float(text.replace(decimal, "."))
    except ValueError:
        return False
    return any(character.isdigit() for character in text)  # float() also reads 'nan' and 'infinity'
