"""Record and replay: one JSON line per call.

A transcript is a proposer around another one. What it has an answer to is answered from the file; other questions go
on, and their answers are written down at once, so that a killed run resumes without asking again. Without another
proposer nothing is ever asked: a question that is not in the file is a failed call.
"""

from __future__ import annotations

import errno
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import NOTHING, checked_class
from sobolev_novelty.engines.igsr.guesses import model_guesses
from sobolev_novelty.engines.igsr.talk.answers import read_answer
from sobolev_novelty.engines.igsr.talk.protocol import PROPOSER, Answer, Proposer, Question
from sobolev_novelty.errors import DataError
from sobolev_novelty.search.contract.engine import Problem

FORMAT = "sobolev-novelty transcript"
#: How every line begins.
_HEAD = json.dumps({"format": FORMAT})[:-1]


@checked_class(proposer=PROPOSER | NOTHING)
@dataclass(frozen=True, slots=True)
class Transcript:
    """Answers from a file, and from another proposer where the file has none.

    Parameters
    ----------
    path : str or Path
        JSON lines; made where it does not exist and ``proposer`` is given.
    proposer : Proposer, optional
        Whom to ask what is not in the file; without one the file is only replayed.

    Examples
    --------
    >>> Transcript("calls.jsonl").proposer is None
    True
    """

    path: str | Path
    proposer: Proposer | None = None
    known: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def model(self) -> str:
        """The recorded model's name."""
        return str(self._first("model")) if self.proposer is None else self.proposer.model

    @property
    def temperature(self) -> float:
        """The recorded model's temperature."""
        return float(self._first("temperature")) if self.proposer is None else self.proposer.temperature

    @property
    def n_terms(self) -> int:
        """Terms of the recorded questions."""
        return int(self._first("n_terms")) if self.proposer is None else self.proposer.n_terms

    @property
    def concurrency(self) -> int:
        """Calls at once when it was recorded: the search depends on it."""
        return int(self._first("concurrency")) if self.proposer is None else self.proposer.concurrency

    @property
    def max_answer_tokens(self) -> int:
        """The longest answer that was allowed."""
        return int(self._first("max_answer_tokens")) if self.proposer is None else self.proposer.max_answer_tokens

    def ask(self, question: Question) -> Answer:
        """The recorded answer, or a new one, which is recorded."""
        digest = question.digest(self.model, self.temperature)
        line = self._lines().get(digest)
        # A failed call was not answered: only a pure replay repeats it.
        if line is not None and (self.proposer is None or not line["problem"]):
            return _answer(line)
        if self.proposer is None:
            return Answer(problem=f"The transcript '{self.path}' has no answer to this question.", is_replayed=True)
        answer = self.proposer.ask(question)
        self._record(digest, question, answer)
        return answer

    def guesses(self, problem: Problem, rng: np.random.Generator) -> Iterable[Expression]:
        """Starting points for any engine, from the same calls."""
        return model_guesses(self, problem, rng)

    def _record(self, digest: str, question: Question, answer: Answer) -> None:
        assert self.proposer is not None
        reading = read_answer(answer.text, question.vocabulary, max_terms=2 * question.n_terms)
        content = asdict(answer)
        del content["is_replayed"]
        line = {
            "format": FORMAT, "hash": digest, "prompt_version": question.version, "model": self.model,
            "temperature": self.temperature, "seed": question.seed, "n_terms": question.n_terms,
            "concurrency": self.concurrency, "max_answer_tokens": self.max_answer_tokens,
            **content, "seconds": round(answer.seconds, 3), "parsed": [str(term) for term in reading.terms],
            "n_malformed": reading.n_malformed, "prompt": question.prompt,
        }  # fmt: skip
        self.known[digest] = line
        try:
            _append(Path(self.path), line)
        except OSError as error:
            warnings.warn(
                f"The transcript '{self.path}' could not be written ({error.strerror or error}); the search goes on.",
                stacklevel=2,
            )

    def _lines(self) -> dict[str, dict[str, Any]]:
        if not self.known and Path(self.path).is_file():
            self.known.update(_read(Path(self.path)))
        return self.known

    def _first(self, name: str) -> Any:
        lines = self._lines()
        if not lines:
            raise DataError(f"The transcript '{self.path}' holds no calls. Record one: give a proposer.")
        return next(iter(lines.values()))[name]


_KINDS: dict[str, type | tuple[type, ...]] = {
    "hash": str, "model": str, "temperature": (int, float), "n_terms": int, "concurrency": int,
    "max_answer_tokens": int, "text": str, "problem": str, "finish_reason": str, "n_retries": int,
    "seconds": (int, float), "prompt_tokens": (int, type(None)), "answer_tokens": (int, type(None)),
}  # fmt: skip


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file by their hash; one that is cut short, where a run was killed, is left out."""
    try:
        texts = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise DataError(f"The transcript '{path}' cannot be read: {error}.") from error
    found: dict[str, dict[str, Any]] = {}
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            if text.startswith(_HEAD) or _HEAD.startswith(text):
                continue
            line = None
        if not _is_line(line):
            raise DataError(f"Line {number} of the transcript '{path}' is not a recorded call. Give another file.")
        found[line["hash"]] = line
    return found


def _append(path: Path, line: Mapping[str, Any]) -> None:
    """One write, begun on a fresh line: calls at once do not mix, and a killed run costs one line at most."""
    text = json.dumps(line, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a character, as a model may say it in JSON: it is written as its number
        text = json.dumps(line)
    with path.open("ab", buffering=0) as file:
        content = (f"{text}\n" if _ends_a_line(path) else f"\n{text}\n").encode("utf-8")
        if file.write(content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _ends_a_line(path: Path) -> bool:
    """Whether a file is empty or ends with a line break."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return True
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _is_line(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and line.get("format") == FORMAT
        and all(isinstance(line.get(name), kind) and name in line for name, kind in _KINDS.items())
    )


def _answer(line: dict[str, Any]) -> Answer:
    return Answer(
        line["text"], line["prompt_tokens"], line["answer_tokens"], line["seconds"], line["finish_reason"],
        line["n_retries"], line["problem"], is_replayed=True,
    )  # fmt: skip
