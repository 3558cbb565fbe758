"""The chat proposer against a server that misbehaves on purpose."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llm_server import Behaviour, Handler, chat_server, saying
from sobolev_novelty.engines.igsr.engine import IGSR
from sobolev_novelty.engines.igsr.ledger import Limits
from sobolev_novelty.engines.igsr.talk import chat
from sobolev_novelty.engines.igsr.talk.chat import ChatProposer
from sobolev_novelty.engines.igsr.talk.protocol import Answer, Question, Vocabulary
from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.loop.loop import Budget
from sobolev_novelty.search.model.regressor import SymbolicRegressor

KEY = "sk-very-secret-0123456789"
VOCABULARY = Vocabulary(("x0", "x1"), ("add", "sub", "mul", "div", "sin", "square"), ((0.5, 2.0), (0.5, 2.0)))
QUESTION = Question("system", "prompt", VOCABULARY, (), 4, 7, "1", 20.0)
X = np.random.default_rng(0).uniform(0.5, 2.0, (80, 2))
Y = 2.0 * X[:, 0] * X[:, 1] + np.sin(X[:, 0])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "BACKOFF", 0.01)
    monkeypatch.setenv(chat.KEY, KEY)
    monkeypatch.delenv(chat.OPENAI_KEY, raising=False)


def ask(behaviour: Behaviour, question: Question = QUESTION, **options: Any) -> tuple[Answer, list[dict[str, Any]]]:
    with chat_server(behaviour) as server:
        answer = ChatProposer(server.url, "m", **options).ask(question)
        return answer, server.received


def test_a_question_and_its_answer_in_full() -> None:
    answer, received = ask(saying("x0*x1", prompt_tokens=12, completion_tokens=3), temperature=0.3)
    assert (answer.text, answer.prompt_tokens, answer.answer_tokens) == ("x0*x1", 12, 3)
    assert (answer.finish_reason, answer.problem, answer.n_retries) == ("stop", "", 0)
    body = received[0]["body"]
    assert received[0]["path"] == "/v1/chat/completions"
    assert received[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    assert [message["content"] for message in body["messages"]] == ["system", "prompt"]
    assert (body["model"], body["temperature"], body["seed"], body["stream"]) == ("m", 0.3, 7, False)
    assert body["grammar"].startswith("root ::=")


# --- misbehaviour: what the answer says of it


def failing_first(status: int, n: int = 2, **headers: str) -> Behaviour:
    left = [n]

    def behave(handler: Handler, request: dict[str, Any]) -> None:
        left[0] -= 1
        if left[0] >= 0:
            handler.send(status, b"{}", **headers)
        else:
            handler.say("x0")

    return behave


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_what_passes_is_tried_again(status: int) -> None:
    answer, received = ask(failing_first(status))
    assert (answer.text, answer.n_retries, len(received)) == ("x0", 2, 3)


def test_retries_end() -> None:
    answer, received = ask(failing_first(500, n=99), max_retries=2)
    assert answer.problem == "The server answered 500."
    assert (answer.text, answer.n_retries, len(received)) == ("", 2, 3)


def test_a_server_may_say_how_long_to_wait() -> None:
    begin = time.monotonic()
    answer, _ = ask(failing_first(429, n=1, Retry_After="0.3"))
    assert answer.text == "x0" and time.monotonic() - begin >= 0.3


def test_no_retry_is_begun_that_the_time_does_not_allow() -> None:
    answer, received = ask(failing_first(429, n=99, Retry_After="20"), replace(QUESTION, seconds=0.5))
    assert answer.problem == "The server answered 429." and len(received) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_does_not_pass_is_not_tried_again(status: int) -> None:
    said = json.dumps({"error": {"message": "no such model"}}).encode()
    answer, received = ask(lambda handler, request: handler.send(status, said))
    assert answer.problem == f"The server answered {status}: no such model." and len(received) == 1


def slow(handler: Handler, request: dict[str, Any]) -> None:
    time.sleep(1.5)
    handler.say("x0")


def dribbling_body(handler: Handler, request: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def dribbling_head(handler: Handler, request: dict[str, Any]) -> None:
    for _ in range(100):
        handler.wfile.write(b"H")
        handler.wfile.flush()
        time.sleep(0.05)


@pytest.mark.parametrize("behaviour", [slow, dribbling_body, dribbling_head])
def test_a_slow_server_is_left_in_time(behaviour: Behaviour) -> None:
    begin = time.monotonic()
    answer, _ = ask(behaviour, timeout=0.4, max_retries=0)
    assert answer.problem == "No complete answer came within 0.4 s."
    assert time.monotonic() - begin < 1.4


def truncated(handler: Handler, request: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"message": {"content": "x0')
    handler.wfile.flush()
    handler.connection.close()
    handler.close_connection = True


def truncated_chunks(handler: Handler, request: dict[str, Any]) -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b'5\r\n{"cho\r\n20\r\nices')
    handler.wfile.flush()
    handler.close_connection = True


@pytest.mark.parametrize("behaviour", [truncated, truncated_chunks])
def test_half_an_answer_is_none(behaviour: Behaviour) -> None:
    answer, received = ask(behaviour, max_retries=1)
    assert answer.text == "" and answer.problem.startswith("The connection to 127.0.0.1 failed")
    assert len(received) == 2


def large(handler: Handler, request: dict[str, Any]) -> None:
    handler.say("x0\n" * 3_500_000)


def html(handler: Handler, request: dict[str, Any]) -> None:
    handler.send(200, b"<html><body>Sign in</body></html>", Content_Type="text/html")


def raw(content: bytes) -> Behaviour:
    return lambda handler, request: handler.send(200, content)


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        (large, "The answer is larger than 1000000 bytes."),
        (html, "The answer is not JSON."),
        (raw(b'{"choices": ['), "The answer is not JSON."),
        (raw(b"[" * 200_000), "The answer is not JSON."),
        (raw(b"\xff\xfe\x00"), "The answer is not JSON."),
        (raw(b"{}"), "The answer has no 'choices' with a message."),
        (raw(b'"text"'), "The answer has no 'choices' with a message."),
        (raw(b'{"choices": [{"message": {"content": 5}}]}'), "The message of the answer is not text."),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_said_in_a_sentence(behaviour: Behaviour, problem: str) -> None:
    answer, received = ask(behaviour)
    assert (answer.text, answer.problem, len(received)) == ("", problem, 1)


def test_counts_that_are_not_numbers_are_left() -> None:
    content = {"choices": [{"message": {"content": "x0"}, "finish_reason": 5}], "usage": {"prompt_tokens": "many"}}
    answer, _ = ask(raw(json.dumps(content).encode()))
    assert (answer.text, answer.prompt_tokens, answer.finish_reason) == ("x0", None, "")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with chat_server(saying("x0")) as other:

        def redirect(handler: Handler, request: dict[str, Any]) -> None:
            handler.send(status, b"", Location=f"{other.url}/chat/completions")

        answer, _ = ask(redirect)
        assert other.received == []
    assert answer.problem == "The server redirects to 127.0.0.1, which is not followed. Give the final address."


def test_nobody_listening_is_said_in_a_sentence() -> None:
    with chat_server(saying("x0")) as server:
        url = server.url
    answer = ChatProposer(url, "m", max_retries=0).ask(QUESTION)
    assert answer.problem == "The connection to 127.0.0.1 failed: Connection refused."


# --- structured answers


def test_a_server_that_refuses_grammars_is_asked_otherwise_and_that_is_remembered() -> None:
    def picky(handler: Handler, request: dict[str, Any]) -> None:
        if "grammar" in request["body"] or "response_format" in request["body"]:
            handler.send(400, b'{"error": {"message": "unknown field"}}')
        else:
            handler.say("x0")

    with chat_server(picky) as server:
        proposer = ChatProposer(server.url, "m")
        assert [proposer.ask(QUESTION).text for _ in range(2)] == ["x0", "x0"]
        assert len(server.received) == 4


def test_a_schema_is_sent_where_it_is_asked_for() -> None:
    answer, received = ask(saying('{"terms": ["x0"]}'), structured="json_schema")
    assert received[0]["body"]["response_format"]["json_schema"]["schema"]["required"] == ["terms"]
    assert answer.text == '{"terms": ["x0"]}'


# --- the key


def echo(handler: Handler, request: dict[str, Any]) -> None:
    handler.say(f"your key is {request['headers']['Authorization']}\nx0*x1")


def echo_error(handler: Handler, request: dict[str, Any]) -> None:
    said = {"error": {"message": f"bad key {request['headers']['Authorization']}"}}
    handler.send(401, json.dumps(said).encode())


def echo_location(handler: Handler, request: dict[str, Any]) -> None:
    handler.send(302, b"", Location=f"http://{KEY}.example.org/")


def echo_status_line(handler: Handler, request: dict[str, Any]) -> None:
    handler.wfile.write(f"{KEY} {KEY}\r\n\r\n".encode())


@pytest.mark.parametrize("behaviour", [echo, echo_error, echo_location, echo_status_line])
def test_a_key_that_is_echoed_appears_nowhere(
    behaviour: Behaviour, caplog: pytest.LogCaptureFixture, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from sobolev_novelty.engines.igsr.talk.transcript import Transcript

    caplog.set_level(logging.DEBUG)
    path = tmp_path / "calls.jsonl"
    with chat_server(behaviour) as server:
        proposer = ChatProposer(server.url, "m", max_retries=1)
        engine = IGSR(Transcript(path, proposer), limits=Limits(calls=3))
        model = SymbolicRegressor(engine, budget=Budget(max_evaluations=60), random_state=0).fit(X, Y)
        assert server.received[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    model.save(tmp_path / "model.json")
    files = [path.read_text(), (tmp_path / "model.json").read_text()]
    seen = [*files, caplog.text, repr(model), repr(proposer), str(model.counts_), *capsys.readouterr()]
    assert all(KEY not in text and KEY[:12] not in text for text in seen)


def test_a_placeholder_for_a_key_takes_nothing_out_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chat.KEY, "x")
    answer, received = ask(saying("x0*x1"))
    assert answer.text == "x0*x1" and received[0]["headers"]["Authorization"] == "Bearer x"


def test_a_key_that_no_header_can_hold_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chat.KEY, f"{KEY}\nInjected: header")
    answer, _ = ask(saying("x0*x1"), max_retries=0)
    assert answer.problem == "The connection to 127.0.0.1 failed: ValueError."


def test_a_key_in_the_address_is_refused_without_repeating_it() -> None:
    for url in (f"http://user:{KEY}@127.0.0.1/v1", f"http://127.0.0.1/v1?key={KEY}"):
        with pytest.raises(ParameterError, match="must not hold a key") as error:
            ChatProposer(url, "m")
        assert KEY not in str(error.value)


def test_the_key_of_openai_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(chat.KEY)
    monkeypatch.setenv(chat.OPENAI_KEY, KEY)
    _, received = ask(saying("x0"))
    assert "Authorization" not in received[0]["headers"]
    for host, expected in (("api.openai.com", KEY), ("openai.com.evil.org", ""), ("notopenai.com", "")):
        assert chat._key(chat.urlsplit(f"https://{host}/v1")) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "ftp://x"}, "'base_url' must be an address"),
        ({"base_url": "http://[::1"}, "'base_url' must be an address"),
        ({"base_url": "http://h:99999999"}, "'base_url' must be an address"),
        ({"model": ""}, "'model' must be text that is not empty"),
        ({"structured": "xml"}, "'structured' must be 'auto'"),
        ({"timeout": 0}, "'timeout' must be a number of seconds above 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ChatProposer(**({"base_url": "http://127.0.0.1/v1", "model": "m"} | options))


# --- a whole search beside each of these servers

HOSTILE = "\n".join(
    ["__import__('os').system('touch hacked')", "9**9**9**9", "(" * 100_000 + "x0" + ")" * 100_000, "x0" * 300,
     "<script>alert(1)</script>", "\x1b[31mx0", "x0\x00", "exp(" * 39 + "x0" + ")" * 39, "1e999*x0", "{{7*7}}",
     "x0*x1", "open('/etc/passwd').read()"]
)  # fmt: skip


@pytest.mark.parametrize(
    "behaviour",
    [slow, dribbling_body, truncated, truncated_chunks, large, html, raw(b"{"), saying(HOSTILE), saying(""),
     failing_first(429, n=3), failing_first(500, n=99), echo],
)  # fmt: skip
def test_a_search_goes_on_within_its_budget(behaviour: Behaviour, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    begin = time.monotonic()
    with chat_server(behaviour) as server:
        engine = IGSR(ChatProposer(server.url, "m", timeout=0.5, max_retries=1), limits=Limits(calls=4))
        model = SymbolicRegressor(engine, budget=Budget(seconds=3.0), random_state=0).fit(X, Y)
        n_received = len(server.received)
    assert time.monotonic() - begin < 9.0
    assert np.isfinite(model.predict(X)).all()
    assert 1 <= model.counts_["calls made"] <= 4 and n_received >= model.counts_["calls made"]
    answered = model.counts_["calls made"] - model.counts_.get("calls failed", 0)
    assert answered > 0 or model.counts_["last problem"]
    assert list(tmp_path.iterdir()) == []


def test_hostile_lines_are_counted_and_the_good_one_is_read() -> None:
    with chat_server(saying(HOSTILE)) as server:
        engine = IGSR(ChatProposer(server.url, "m"), limits=Limits(calls=1))
        model = SymbolicRegressor(engine, budget=Budget(max_evaluations=50), random_state=0).fit(X, Y)
    assert model.counts_["lines not read"] >= 8
    assert "x0*x1" in str(model.expression_)
