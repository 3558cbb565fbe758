"""Any OpenAI-compatible chat endpoint as a proposer: vLLM, Ollama, llama.cpp, hosted ones.

Standard-library HTTP. The key comes from the environment, is read when a call is made, kept nowhere, and taken out of
everything that comes back before anyone sees it. Redirects are not followed, proxies are not used: what is sent goes to
the address that was given. Answers are limited in time and size, and failures are sentences in the answer, never
exceptions: a search goes on.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import numpy as np

from sobolev_novelty.core.expression import Expression
from sobolev_novelty.core.parameters import COUNT, SECONDS, TEXT, WORD, checked_class, list_of, number, one_of, whole
from sobolev_novelty.engines.igsr.grammar import gbnf, json_schema
from sobolev_novelty.engines.igsr.guesses import model_guesses
from sobolev_novelty.engines.igsr.talk.protocol import Answer, Question
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.contract.engine import Problem

logger = logging.getLogger(__name__)

#: Environment variables with a key: one for any endpoint, and one that goes to its owner's hosts only.
KEY, OPENAI_KEY = "SOBOLEV_LLM_KEY", "OPENAI_API_KEY"
OPENAI_HOSTS = ("openai.com", "openai.azure.com")
#: What answers are limited to, in bytes; an answer of a dozen terms has a few thousand.
MAX_BYTES = 1_000_000
#: First wait before a retry, and the longest, in seconds.
BACKOFF, MAX_BACKOFF = 0.5, 30.0
#: Words of a server that an error message repeats.
MAX_WORDS = 200
HIDDEN = "[key]"
#: Characters below which a key is no secret.
MIN_KEY = 8
#: Calls as a source of guesses.
N_GUESS_CALLS = 3
_STRUCTURES = ("grammar", "json_schema", "none")


@checked_class(
    base_url=TEXT,
    model=WORD,
    temperature=number(0.0),
    n_terms=COUNT,
    max_answer_tokens=COUNT,
    timeout=SECONDS,
    max_retries=whole(),
    concurrency=COUNT,
    structured=one_of("auto", *_STRUCTURES),
    n_guess_calls=COUNT,
    refused=list_of(TEXT, "a list of texts"),
)
@dataclass(frozen=True, slots=True)
class ChatProposer:
    """A language model behind an OpenAI-compatible endpoint.

    A key is taken from the environment variable ``SOBOLEV_LLM_KEY``, or, for hosts of OpenAI, ``OPENAI_API_KEY``.

    Parameters
    ----------
    base_url : str
        As other clients take it: ``http://127.0.0.1:8080/v1``.
    model : str
        As the endpoint calls it.
    temperature : float
    n_terms : int
        Terms asked for in one call, unless the engine asks for another number.
    max_answer_tokens : int
    timeout : float
        Seconds for one attempt.
    max_retries : int
        Further attempts after 408, 429, 5xx and broken connections, with growing waits.
    concurrency : int
        Calls at once.
    structured : {"auto", "grammar", "json_schema", "none"}
        How the server is told what may come: a GBNF grammar (llama.cpp), a JSON schema (OpenAI, vLLM, Ollama), or not
        at all. ``"auto"`` tries them in this order and keeps to what the server does not refuse.
    n_guess_calls : int
        Calls when it is a source of guesses.

    Examples
    --------
    >>> ChatProposer("http://127.0.0.1:8080/v1", "smollm2").model
    'smollm2'
    """

    base_url: str
    model: str
    temperature: float = 0.8
    n_terms: int = 8
    max_answer_tokens: int = 256
    timeout: float = 120.0
    max_retries: int = 3
    concurrency: int = 1
    structured: Literal["auto", "grammar", "json_schema", "none"] = "auto"
    n_guess_calls: int = N_GUESS_CALLS
    refused: list[str] = field(default_factory=list, repr=False, compare=False)  # ways the server did not take

    def __post_init__(self) -> None:
        url = _split(self.base_url)
        if url is None or url.scheme not in ("http", "https") or not url.hostname:
            raise ParameterError("'base_url' must be an address such as http://127.0.0.1:8080/v1.")
        if url.username or url.password or url.query or url.fragment:
            raise ParameterError(f"'base_url' must not hold a key or a password. Set the environment variable {KEY}.")

    def ask(self, question: Question) -> Answer:
        """One call, with retries; the answer says what happened."""
        begin = time.monotonic()
        end = begin + question.seconds
        problem, n_retries = "", 0
        while True:
            attempt = self._attempt(question, end)
            if isinstance(attempt, _Said):
                return attempt.answer(time.monotonic() - begin, n_retries)
            problem = attempt.problem
            logger.info("call to %s: %s", self.host, problem)
            wait = max(min(BACKOFF * 2.0**n_retries, MAX_BACKOFF), min(attempt.retry_after, MAX_BACKOFF))
            if not attempt.is_passing or n_retries >= self.max_retries or time.monotonic() + wait >= end:
                return Answer(problem=problem, seconds=time.monotonic() - begin, n_retries=n_retries)
            n_retries += 1
            time.sleep(wait)

    def guesses(self, problem: Problem, rng: np.random.Generator) -> Iterable[Expression]:
        """Starting points for any engine: what the model offers for the problem, alone and together."""
        return model_guesses(self, problem, rng, n_calls=self.n_guess_calls)

    @property
    def host(self) -> str:
        """Where questions go."""
        return str(urlsplit(self.base_url).hostname)

    # --- one attempt

    def _attempt(self, question: Question, end: float) -> _Said | _Failed:
        for way in _STRUCTURES if self.structured == "auto" else (self.structured,):
            if way in self.refused:
                continue
            result = self._exchange(self._body(question, way), end)
            # Who does not know a way to structure answers refuses the request; the next one is tried, and remembered.
            if isinstance(result, _Failed) and result.status in (400, 422) and way != "none" and self._is_auto:
                self.refused.append(way)
                continue
            return result
        return result

    @property
    def _is_auto(self) -> bool:
        return self.structured == "auto"

    def _body(self, question: Question, way: str) -> bytes:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.prompt},
            ],
            "temperature": self.temperature,
            "max_tokens": self.max_answer_tokens,
            "seed": question.seed,
            "stream": False,
        }
        if way == "grammar":
            body["grammar"] = gbnf(question.vocabulary, question.n_terms)
        elif way == "json_schema":
            schema = json_schema(question.vocabulary, question.n_terms)
            body["response_format"] = {
                "type": "json_schema", "json_schema": {"name": "terms", "strict": True, "schema": schema},
            }  # fmt: skip
        return json.dumps(body).encode()

    def _exchange(self, body: bytes, end: float) -> _Said | _Failed:
        """Send one request and read one answer, within the time and size that are allowed."""
        url = urlsplit(self.base_url)
        key = _key(url)
        seconds = min(self.timeout, end - time.monotonic())
        if seconds <= 0.0:
            return _Failed("No time was left for the call.")
        connection = _connection(url, seconds)
        is_over = threading.Event()
        watch: threading.Timer | None = None
        begin = time.monotonic()
        try:
            connection.connect()
            # The socket's own limit holds between two bytes; this one for all of them.
            watch = threading.Timer(max(seconds - (time.monotonic() - begin), 0.0), _shut, [connection.sock, is_over])
            watch.daemon = True
            watch.start()
            headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "sobolev"}
            if key:
                headers["Authorization"] = f"Bearer {key}"
            connection.request("POST", url.path.rstrip("/") + "/chat/completions", body, headers)
            response = connection.getresponse()
            raw = response.read(MAX_BYTES + 1)
            if is_over.is_set():  # to the reader it looks like an end
                raise TimeoutError
            if response.length and len(raw) <= MAX_BYTES:  # announced and never sent
                raise http.client.IncompleteRead(b"", response.length)
            return _judged(response, raw, key)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if is_over.is_set() or isinstance(error, TimeoutError):
                return _Failed(f"No complete answer came within {seconds:.3g} s.", is_passing=True)
            # Messages of the HTTP client can repeat what the server sent; those of the system cannot.
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            return _Failed(f"The connection to {self.host} failed: {reason}.", is_passing=True)
        finally:
            if watch is not None:
                watch.cancel()
            connection.close()


@dataclass(frozen=True, slots=True)
class _Failed:
    """Why an attempt failed, and whether another may succeed."""

    problem: str
    is_passing: bool = False
    status: int = 0
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class _Said:
    """What the model said, the key taken out."""

    text: str
    prompt_tokens: int | None
    answer_tokens: int | None
    finish_reason: str

    def answer(self, seconds: float, n_retries: int) -> Answer:
        return Answer(self.text, self.prompt_tokens, self.answer_tokens, seconds, self.finish_reason, n_retries)


def _judged(response: http.client.HTTPResponse, raw: bytes, key: str) -> _Said | _Failed:
    """The answer of a complete exchange."""
    status = response.status
    if len(raw) > MAX_BYTES:
        return _Failed(f"The answer is larger than {MAX_BYTES} bytes.", status=status)
    if 300 <= status < 400:
        to = _split(response.getheader("Location") or "")
        where = _words(to.hostname if to is not None and to.hostname else "elsewhere", key)
        return _Failed(
            f"The server redirects to {where}, which is not followed. Give the final address.", status=status
        )
    try:
        content = json.loads(raw.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        content = None
    if status != 200:
        said = _words(_message_of(content), key)
        is_passing = status in (408, 409, 429) or status >= 500
        problem = f"The server answered {status}{': ' + said if said else ''}."
        return _Failed(problem, is_passing, status, _seconds(response.getheader("Retry-After")))
    said_or_problem = "The answer is not JSON." if content is None else _said(content, key)
    return _Failed(said_or_problem, status=status) if isinstance(said_or_problem, str) else said_or_problem


def _said(content: Any, key: str) -> _Said | str:
    """What the model said, or what is wrong with the answer."""
    try:
        choice = content["choices"][0]
        text = choice["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return "The answer has no 'choices' with a message."
    if not isinstance(text, str):
        return "The message of the answer is not text."
    usage = content.get("usage")
    finish = choice.get("finish_reason")
    reason = finish if isinstance(finish, str) and re.fullmatch(r"[a-z_]{1,20}", finish) else ""
    return _Said(_without_key(text, key), _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), reason)


def _key(url: SplitResult) -> str:
    own = os.environ.get(KEY, "")
    host = url.hostname or ""
    if not own and any(host == known or host.endswith("." + known) for known in OPENAI_HOSTS):
        own = os.environ.get(OPENAI_KEY, "")
    return own.strip()


def _connection(url: SplitResult, seconds: float) -> http.client.HTTPConnection:
    assert url.hostname is not None
    if url.scheme == "https":
        return http.client.HTTPSConnection(
            url.hostname, url.port, timeout=seconds, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(url.hostname, url.port, timeout=seconds)


def _shut(sock: socket.socket, is_over: threading.Event) -> None:
    """End a connection from another thread: whoever waits for it waits no longer."""
    is_over.set()
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _split(address: str) -> SplitResult | None:
    try:
        url = urlsplit(address)
        _ = url.port  # an impossible one raises
    except ValueError:
        return None
    return url


def _without_key(text: str, key: str) -> str:
    # "x" and "none" stand for a key at local servers; taken out, they would take terms with them.
    return text.replace(key, HIDDEN) if len(key) >= MIN_KEY else text


def _words(text: str, key: str) -> str:
    """A server's own words, short and printable, the key taken out first."""
    clean = "".join(c if c.isprintable() else " " for c in _without_key(text, key))
    return " ".join(clean.split())[:MAX_WORDS].rstrip(".")


def _message_of(content: Any) -> str:
    error = content.get("error") if isinstance(content, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


def _seconds(header: str | None) -> float:
    try:
        return min(max(0.0, float(header or 0.0)), MAX_BACKOFF)
    except ValueError:
        return 0.0
