"""Files of formulas: one per line, a JSON list, or JSON lines; read one by one, written whole or not at all."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from sobolev_novelty.core.output import whole_file
from sobolev_novelty.errors import DataError, ParameterError

FORMS = ("auto", "text", "json", "jsonl")
_SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}
#: Longer records are not read; nothing that long is a formula.
MAX_RECORD = 1 << 20
_BLOCK = 1 << 16


class Record(NamedTuple):
    """One entry of a file.

    ``number`` is its line, or its place in the list, from 1; ``raw`` the entry as it is in the file, ``formula`` its
    text in UTF-8, ``problem`` why it has none.
    """

    number: int
    raw: bytes
    formula: bytes
    problem: str = ""


def form_of(path: Path, form: str = "auto") -> str:
    """How a file is written: what was said, or what follows from its name.

    >>> form_of(Path("laws.json")), form_of(Path("laws.txt")), form_of(Path("-"), "jsonl")
    ('json', 'text', 'jsonl')
    """
    if form not in FORMS:
        raise ParameterError(f"'form' must be one of {', '.join(FORMS)}. Got {form!r}.")
    return form if form != "auto" else _SUFFIXES.get(path.suffix.lower(), "text")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to read, or standard input for ``-``."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror}. Check the path and its permissions.") from error
    with file:
        yield file


@contextmanager
def written_whole(path: Path | None) -> Iterator[IO[bytes] | None]:
    """A file to write that gets its name when it is complete; standard output for ``-``, nothing for None.

    A run that is killed leaves whatever had the name before.
    """
    if path is None or str(path) == "-":
        yield None if path is None else sys.stdout.buffer
        if path is not None:
            sys.stdout.buffer.flush()
        return
    with whole_file(path) as file:
        yield file


def read_records(stream: IO[bytes], form: str, field: str = "formula") -> Iterator[Record]:
    """The entries of a file, in order; memory does not grow with its length.

    Empty lines and lines that begin with ``#`` are left out. Entries of JSON are texts, or objects with ``field``.

    >>> import io
    >>> [record.formula for record in read_records(io.BytesIO(b'["x0 + 1", {"formula": "x1"}]'), "json")]
    [b'x0 + 1', b'x1']
    """
    if form == "json":
        yield from _of_list(stream, field)
        return
    for number, line in _lines(stream):
        raw = line.strip()
        if not raw or raw[0] == 35:  # '#'
            continue
        if len(line) > MAX_RECORD:
            yield Record(number, b"", b"", f"The line is longer than {MAX_RECORD} bytes.")
        elif form == "text":
            yield Record(number, raw, raw)
        else:
            yield _of_json_line(number, raw, field)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_RECORD + 1):
        number += 1
        rest = line
        while len(rest) > MAX_RECORD and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_RECORD + 1)
        yield number, line


def _of_json_line(number: int, raw: bytes, field: str) -> Record:
    try:
        entry = json.loads(raw)
    except (ValueError, RecursionError):
        return Record(number, raw, b"", "The line is not JSON.")
    return _of_entry(number, raw, entry, field)


def _of_entry(number: int, raw: bytes, entry: Any, field: str) -> Record:
    text = entry.get(field) if isinstance(entry, dict) else entry
    if not isinstance(text, str):
        return Record(number, raw, b"", f"The entry is neither a text nor an object with a text '{field}'.")
    return Record(number, raw, text.encode("utf-8", errors="replace"))


def _of_list(stream: IO[bytes], field: str) -> Iterator[Record]:
    """Entries of ``[..., ...]``, decoded one at a time."""
    window = _Window(stream)
    mark = window.take()
    if mark != "[":
        raise DataError(f"This is not a JSON list: it begins with {mark!r}. Give one formula per line, or a list.")
    if window.peek() == "]":
        return
    number = 0
    while mark in ("[", ","):
        number += 1
        entry, raw = window.entry(number)
        yield _of_entry(number, raw.encode("utf-8", errors="replace"), entry, field)
        mark = window.take()
    if mark != "]":
        raise DataError(f"The JSON list breaks off after entry {number}: got {mark!r} instead of a comma or ']'.")


class _Window:
    """The part of a JSON text that is being read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._scanner = json.JSONDecoder()
        self._text = ""
        self._start = 0

    def _read_on(self) -> bool:
        block = self._stream.read(_BLOCK)
        self._text = self._text[self._start :] + self._decoder.decode(block, final=not block)
        self._start = 0
        return bool(block)

    def peek(self) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            while self._start < len(self._text) and self._text[self._start].isspace():
                self._start += 1
            if self._start < len(self._text) or not self._read_on():
                return self._text[self._start : self._start + 1]

    def take(self) -> str:
        """The same, and go past it."""
        character = self.peek()
        self._start += len(character)
        return character

    def entry(self, number: int) -> tuple[Any, str]:
        """The next value, and how it is written."""
        self.peek()
        while True:
            try:
                entry, end = self._scanner.raw_decode(self._text, self._start)
            except (ValueError, RecursionError) as error:
                if len(self._text) - self._start > MAX_RECORD or not self._read_on():
                    raise DataError(f"Entry {number} of the JSON list cannot be read: {error}.") from error
            else:
                if end == len(self._text) and self._read_on():
                    continue  # a number may go on
                raw = self._text[self._start : end]
                self._start = end
                return entry, raw
