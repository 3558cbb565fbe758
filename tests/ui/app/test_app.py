"""``sobolev app`` without a browser: who gets in, what is refused, what comes out."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sobolev_novelty.errors import ParameterError
from sobolev_novelty.search.model.regressor import SymbolicRegressor
from sobolev_novelty.tables.files import Table
from sobolev_novelty.ui.app.downloads import FILES
from sobolev_novelty.ui.app.gate import Gate
from sobolev_novelty.ui.app.routes import ACTIONS
from sobolev_novelty.ui.app.server import MAX_JSON, AppServer
from sobolev_novelty.ui.app.workspace import Question, Workspace
from sobolev_novelty.ui.cli.main import app as command_line

LIMIT = 100_000
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a\r\nSet-Cookie: b=c", "=cmd|' /C calc'!A0"]


def shown(gate: Gate) -> dict[str, str]:
    """What a page that was opened sends with every request."""
    return {
        "Host": f"127.0.0.1:{gate.port}", "Cookie": f"sobolev-{gate.port}={gate.visit}", "X-Sobolev-Key": gate.key,
    }  # fmt: skip


def opened(port: int, address: str) -> dict[str, str]:
    """The same, learnt as a browser learns it: from the answer to the address that was printed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/" + address.partition("/?")[2].join(["?", ""]))
    answer = connection.getresponse()
    (key,) = re.findall(r'<meta name="key" content="(\S+)">', answer.read().decode())
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0], "X-Sobolev-Key": key}


@dataclass
class Client:
    """Asks a server as its own page would, unless told otherwise."""

    server: AppServer

    def __call__(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        headers: dict[str, str | None] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        port = self.server.server_port
        usual = shown(self.server.gate)
        sent = {name: value for name, value in (usual | (headers or {})).items() if value is not None}
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, *arguments: Any) -> dict[str, Any]:
        status, _, body = self(method, path, *arguments)
        assert status == 200, body
        return dict(json.loads(body))

    def upload(self, content: bytes, name: str = "data.csv", path: str = "/api/table") -> dict[str, Any]:
        return self.json("POST", path, content, {"X-File-Name": name})


@pytest.fixture
def client() -> Iterator[Client]:
    server = AppServer(Workspace(limit=LIMIT))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield Client(server)
    server.shutdown()
    server.close()
    thread.join(5.0)


def table(names: tuple[str, str, str] = ("a", "b", "y"), n_rows: int = 80) -> bytes:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, n_rows), rng.normal(size=n_rows)
    y = 2.4 * np.sin(a) + np.cos(3 * a) + rng.normal(0.0, 0.05, n_rows)
    return pd.DataFrame(dict(zip(names, (a, b, y)))).to_csv(index=False).encode()


# --- who gets in


def test_only_this_computer_is_listened_to(client: Client) -> None:
    assert client.server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/state", "/report", "/download/report.html", "/nothing"])
@pytest.mark.parametrize("cookie", [None, "sobolev-1=x", "sobolev-{port}=wrong", "sobolev-{port}=", "\x80;=", "é=1"])
def test_nobody_gets_anything_without_the_token(client: Client, path: str, cookie: str | None) -> None:
    given = None if cookie is None else cookie.replace("{port}", str(client.server.server_port))
    status, headers, body = client("GET", path, None, {"Cookie": given})
    assert status == 403
    assert b"printed in the terminal" in body and (path == "/" or list(json.loads(body)) == ["error"])
    assert client.server.gate.token.encode() not in body and "Set-Cookie" not in headers


def test_the_address_with_the_token_gives_a_cookie_that_stays_with_our_pages(client: Client) -> None:
    gate = client.server.gate
    status, headers, body = client("GET", f"/?token={gate.token}", None, {"Cookie": None})
    assert status == 200 and b"Sobolev Novelty" in body
    assert headers["Set-Cookie"] == f"sobolev-{gate.port}={gate.visit}; Path=/; HttpOnly; SameSite=Strict"
    secrets = {*(gate.token, gate.visit, gate.key), *(Gate(gate.port).token, Gate(gate.port).key)}
    assert len(secrets) == 5 and all(len(secret) >= 40 for secret in secrets)
    assert gate.key.encode() in body and gate.token.encode() not in body
    # Only the page itself is opened so, not the data.
    assert client("GET", f"/api/state?token={gate.token}", None, {"Cookie": None})[0] == 403


def test_the_cookie_alone_opens_nothing(client: Client) -> None:
    """A browser sends it to every port of this machine: another user's server may know it."""
    client("POST", "/api/example", {})
    gate = client.server.gate
    assert client.json("GET", "/api/state")["report"] is not None
    paths = ["/api/state", "/report", *(f"/download/{name}" for name in FILES)]
    for key in (None, "", "wrong", gate.visit, gate.token):
        given = {"X-Sobolev-Key": key}
        for path in (*paths, f"/report?number=1&key={key}"):
            status, _, body = client("GET", path, None, given)
            assert status == 403 and b"printed in the terminal" in body, path
        for path in ACTIONS:
            assert client("POST", f"{path}?key={gate.key}", {}, given)[0] == 403, path
        status, headers, body = client("GET", "/", None, given)
        assert status == 200 and gate.key.encode() not in body and "Set-Cookie" not in headers
        assert gate.key.encode() not in client("GET", f"/?token={gate.visit}", None, given)[2]
    # A frame and a download have no headers of their own.
    for path in ("/report?number=1&", "/download/report.html?"):
        assert client("GET", f"{path}key={gate.key}", None, {"X-Sobolev-Key": None})[0] == 200
        assert client("GET", f"{path}key={gate.key}", None, {"X-Sobolev-Key": None, "Cookie": None})[0] == 403


def test_a_ticket_opens_the_page_once(client: Client) -> None:
    address = client.server.gate.ticket_address()
    assert client.server.gate.token not in address
    path = "/" + address.partition("/?")[2].join(["?", ""])
    assert client("GET", path, None, {"Cookie": None})[0] == 200
    assert client("GET", path, None, {"Cookie": None})[0] == 403


@pytest.mark.parametrize(
    "host", ["attacker.example", "127.0.0.1", "127.0.0.1:1", "localhost.attacker.example:{port}", ""]
)
def test_a_name_that_points_here_is_not_ours(client: Client, host: str) -> None:
    host = host.replace("{port}", str(client.server.server_port))
    for path in ("/", "/api/state", f"/?token={client.server.gate.token}"):
        status, _, body = client("GET", path, None, {"Host": host})
        assert status == 403 and b"answers to 127.0.0.1" in body


def test_localhost_is_a_name_of_ours(client: Client) -> None:
    assert client("GET", "/api/state", None, {"Host": f"localhost:{client.server.server_port}"})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Sobolev-Key": None},
    ],
)
def test_another_page_cannot_ask_for_anything(client: Client, headers: dict[str, str | None]) -> None:
    port = str(client.server.server_port)
    given = {name: value and value.replace("{port}", port) for name, value in headers.items()}
    status, _, body = client("POST", "/api/example", {}, given)
    assert status == 403 and ("key" if "X-Sobolev-Key" in headers else "app's own page may") in body.decode()
    assert client.json("GET", "/api/state")["table"] is None


def test_our_own_page_may_ask(client: Client) -> None:
    origin = {"Origin": f"http://127.0.0.1:{client.server.server_port}", "Sec-Fetch-Site": "same-origin"}
    assert client("POST", "/api/stop", {}, origin)[0] == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "HEAD", "BREW"])
def test_other_methods_are_not_known(client: Client, method: str) -> None:
    status, headers, body = client(method, "/")
    assert status == 501 and b"<" not in body
    assert not [name for name in headers if name.startswith("Access-Control")]


def test_every_answer_forbids_what_we_do_not_use(client: Client) -> None:
    client("POST", "/api/example", {})
    for path in ("/", "/app.js", "/api/state", "/report", "/download/report.html", "/nothing"):
        _, headers, _ = client("GET", path)
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer" and "Access-Control-Allow-Origin" not in headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    assert "sandbox allow-same-origin" in client("GET", "/report")[1]["Content-Security-Policy"]


def test_the_page_loads_only_what_is_here(client: Client) -> None:
    for path in ("/", "/app.css", "/app.js", "/page.js", "/front.js", "/icon.svg"):
        status, _, body = client("GET", path)
        text = body.decode().replace("http://www.w3.org/2000/svg", "")
        assert status == 200 and not re.search(r"https?:|//[a-z]+\.[a-z]|@import|url\(|innerHTML|\beval\b", text), path
    page = client("GET", "/")[2].decode()
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)


# --- what is refused


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py", "/static/index.html", "/..%2f..%2fetc/passwd", "/download/../../etc/passwd", "//etc/passwd",
        "/download/", "/download/model.json/..", "/api/table", "/app.js/", "/app.js%00", "/report.html", "/index.html",
    ],
)  # fmt: skip
def test_there_is_no_way_to_other_files(client: Client, path: str) -> None:
    status, _, body = client("GET", path)
    assert status == 404 and json.loads(body) == {"error": "There is nothing at this address."}


def test_a_file_over_the_limit_is_refused_with_words(client: Client) -> None:
    status, _, body = client("POST", "/api/table", b"a,b\n" + b"1,2\n" * LIMIT, {"X-File-Name": "data.csv"})
    assert status == 413
    words = json.loads(body)["error"]
    assert "The file has 0.38 MB; the app takes 0.095 MB at most." in words and "--limit" in words
    assert client.json("GET", "/api/state")["table"] is None
    assert client("POST", "/api/report", b" " * (MAX_JSON + 1))[0] == 413


@pytest.mark.parametrize(
    "headers", [{"Content-Length": "-1"}, {"Content-Length": "x"}, {"Transfer-Encoding": "chunked"}]
)
def test_a_request_must_say_how_long_it_is(client: Client, headers: dict[str, str]) -> None:
    port = client.server.server_port
    lines = [f"{name}: {value}" for name, value in (shown(client.server.gate) | headers).items()]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall(("POST /api/report HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode())
        assert b" 411 " in raw.recv(100)


def test_half_an_upload_is_no_table(client: Client) -> None:
    """Every body of every action, cut at every byte: a browser that is closed meanwhile changes nothing."""
    port, workspace = client.server.server_port, client.server.workspace
    rows = b"a,y\n" + b"".join(b"%d,%d\n" % (k, 222000 + k) for k in range(4))
    fame = b'Complexity,Loss,Equation\n1,2.0,"a"\n4,0.01,"a*22"\n'
    bodies = {path: b'{"index": 0, "equation": "a + 1"}' for path in ACTIONS} | {"/api/table": rows, "/api/model": fame}
    usual = shown(client.server.gate)
    before = workspace.state()
    for path, body in bodies.items():
        headers = usual | {"X-File-Name": "data.csv", "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        for n_bytes in range(len(body)):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
                raw.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body[:n_bytes])
                raw.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: raw.recv(4096), b""))
            assert b" 400 " in answer.partition(b"\r\n")[0], (path, n_bytes, answer)
            assert f"{n_bytes} of {len(body)} bytes".encode() in answer
            assert workspace.state() == before, (path, n_bytes)
    assert client.upload(rows)["table"]["n_rows"] == 4


@pytest.mark.parametrize("line", [b"", b"nonsense", b"GET", b"GET / HTTP/9.9", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b"])
def test_nonsense_is_answered_in_one_sentence(client: Client, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", client.server.server_port), timeout=10) as raw:
        raw.sendall(line + b"\r\n\r\n")
        raw.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
    assert b"<" not in answer and b"Traceback" not in answer
    assert client("GET", "/api/state")[0] == 200


@pytest.mark.parametrize("target", ["http://[", "http://[::1", "//[", "/?a=%", "http://a:b:c/", "*", "?", "#"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_address_that_is_none_is_no_fault_of_ours(
    client: Client, target: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [f"{name}: {value}" for name, value in shown(client.server.gate).items()]
    with socket.create_connection(("127.0.0.1", client.server.server_port), timeout=10) as raw:
        raw.sendall(f"{method} {target} HTTP/1.1\r\n{chr(13).join(lines)}\r\nContent-Length: 0\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
    assert answer.split(b" ")[1] in (b"200", b"400", b"403", b"404") and caplog.text == ""


@pytest.mark.skipif(os.name != "posix", reason="the number of open files is limited as on POSIX")
def test_silent_connections_do_not_lock_the_owner_out(tmp_path: Path) -> None:
    start = "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)); "
    start += "runpy.run_module('sobolev_novelty', run_name='__main__', alter_sys=True)"
    arguments = [sys.executable, "-c", start, "app", "--no-browser", "--json"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    silent: list[socket.socket] = []
    try:
        assert process.stdout is not None
        told = json.loads("".join(process.stdout.readline() for _ in range(4)))
        for k in range(400):
            silent.append(socket.create_connection(("127.0.0.1", told["port"]), timeout=10))
            with suppress(OSError):
                silent[-1].sendall(b"GET / HTTP/1.1\r\n"[: k % 17])
        headers = opened(told["port"], told["url"])
        connection = http.client.HTTPConnection("127.0.0.1", told["port"], timeout=10)
        connection.request("GET", "/api/state", headers=headers)
        assert connection.getresponse().status == 200
    finally:
        for raw in silent:
            raw.close()
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/report", b"{", "not JSON"),
        ("/api/report", b"[1]", "not a JSON object"),
        ("/api/report", b"{}", "There is no table yet"),
        ("/api/report", b'{"equation": 3}', "must be text"),
        ("/api/report", b'{"features": "a"}', "Inputs must be a list"),
        ("/api/prune", b"{}", "There is no table yet"),
        ("/api/fit", b"{}", "There is no table yet"),
        ("/api/stop", b"{}", "No search is running"),
        ("/api/choose", b'{"index": 0}', "No search has finished"),
        ("/api/pruned", b"{}", "There is no pruned equation yet"),
        ("/api/table", b"a,b\n1,2", "The file has no name"),
        ("/api/model", b"x", "The file has no name"),
    ],
)
def test_what_cannot_be_done_is_said(client: Client, path: str, body: bytes, words: str) -> None:
    assert words in client.json("POST", path, body)["error"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"equation": ""}, "There is no equation yet"),
        ({"equation": "a + ?"}, "(Character 5, near 'a + ?'.)"),
        ({"equation": "a", "target": "nothing"}, "Target: 'data.csv' has no column 'nothing'"),
        ({"equation": "a", "dialect": "klingon"}, "Written for must be 'plain'"),
        ({"equation": "x1"}, "Say which: Variables x0 or Variables x1. (Character 1"),
    ],
)
def test_errors_use_the_words_of_the_page(client: Client, question: dict[str, Any], words: str) -> None:
    client.upload(table())
    assert words in client.json("POST", "/api/report", question)["error"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Target is missing"),
        ({"target": "y", "seconds": 0}, "Seconds must be a number from 1 to 86400"),
        ({"target": "y", "seconds": "long"}, "Seconds must be a number"),
        ({"target": "y", "max_complexity": 2.5}, "Largest size must be a whole number"),
        ({"target": "y", "select": "nonsense"}, "Choice must be 'price'"),
    ],
)
def test_a_search_with_wrong_settings_does_not_start(client: Client, options: dict[str, Any], words: str) -> None:
    client.upload(table())
    assert words in client.json("POST", "/api/fit", options)["error"]
    assert client.json("GET", "/api/state")["fit"] is None


def test_a_fault_of_ours_is_confessed_and_shown_in_the_terminal(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(ACTIONS, "/api/stop", lambda workspace, request: 1 / 0)
    status, _, body = client("POST", "/api/stop", {})
    assert status == 500 and "the fault is ours (ZeroDivisionError)" in json.loads(body)["error"]
    assert "ZeroDivisionError" in caplog.text


# --- what comes out


def test_a_report_and_everything_that_can_be_taken_away(client: Client) -> None:
    state = client.upload(table())
    assert state["table"]["n_rows"] == 80 and state["target"] == "y"
    state = client.json("POST", "/api/report", {"equation": "y = 2.1*sin(a) + 0.3*a + cos(3*a)"})
    assert state["target"] == "y" and state["equation"] == "2.1*sin(a) + 0.3*a + cos(3*a)"
    page = client("GET", "/report")[2].decode()
    assert "1 of 3 terms is distinct" in page and "Parity" in page
    for name in FILES:
        status, headers, body = client("GET", f"/download/{name}")
        if name in ("model.json", "front.csv"):
            assert status == 400 and b"No search has finished yet" in body
            continue
        if name == "next-rows.csv":
            assert status == 400 and b"No rows were chosen yet: press Next rows" in body
            continue
        assert status == 200 and body.strip(), name
        assert headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert client("GET", "/download/report.html")[2].decode() == page
    assert client("GET", "/download/equation-excel.txt")[2].startswith(b"=")
    assert b"COS((3.0*A2))" in client("GET", "/download/equation-excel.txt")[2]


def test_the_page_of_a_report_may_use_its_own_style_and_nothing_else(client: Client) -> None:
    import base64
    import hashlib

    client("POST", "/api/example", {})
    _, headers, body = client("GET", "/report")
    (style,) = re.findall(r"<style>(.*?)</style>", body.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in headers["Content-Security-Policy"]


def test_rows_to_measure_next_are_shown_with_what_they_buy_and_can_be_saved(client: Client) -> None:
    client.upload(table())
    state = client.json("POST", "/api/next", {"equation": "2.1*sin(a) + 0.3*a", "target": "y"})
    found = state["next"]
    assert found["columns"][0] == "a" and len(found["rows"]) == 10 and len(found["steps"]) == 11
    assert any("Without sin(a) it differs by" in words for words in found["words"])
    assert client("GET", "/download/next-rows.csv")[2].decode().count("\n") == 11
    assert client.json("POST", "/api/report", {"equation": "2.1*sin(a)", "target": "y"})["next"] is None


def test_pruning_can_be_taken_or_left(client: Client) -> None:
    client.upload(table())
    state = client.json("POST", "/api/prune", {"equation": "2.1*sin(a) + 0.3*a + cos(3*a)", "target": "y"})
    assert [step["term"] for step in state["pruned"]["deleted"]] == ["a"]
    assert state["report"]["equation"] == "2.1*sin(a) + 0.3*a + cos(3*a)"
    after = client.json("POST", "/api/pruned", {})
    assert after["pruned"] is None and after["equation"] == state["pruned"]["after"]
    assert after["report"]["number"] == state["report"]["number"] + 1


def test_the_number_of_a_report_never_comes_back(client: Client) -> None:
    """The page draws a report when its number is a new one."""
    numbers = []
    for seed in range(3):
        client.upload(table(n_rows=80 + seed))
        for equation in ("sin(a)", "sin(a) + b"):
            state = client.json("POST", "/api/report", {"equation": equation, "target": "y"})
            numbers.append(state["report"]["number"])
        client.json("POST", "/api/example", {})
    assert len(set(numbers)) == len(numbers) == 6 and numbers == sorted(numbers)


def test_a_table_is_read_as_the_page_says(client: Client) -> None:
    rows = "\n".join(f"{k},5;{k * k}" for k in range(1, 60)).encode()
    answer = client.upload(rows)
    assert "First line is data" in answer["error"]
    headers = {"X-File-Name": "data.csv", "X-Table-Header": "no", "X-Table-Separator": ";", "X-Table-Decimal": ","}
    state = client.json("POST", "/api/table", rows, headers)
    assert [column["name"] for column in state["table"]["columns"]] == ["x0", "x1"]
    assert state["table"]["preview"][0] == ["1.5", "1"]
    assert (
        "Separator must be" in client.json("POST", "/api/table", rows, headers | {"X-Table-Separator": "::"})["error"]
    )
    assert "does not say what kind" in client.upload(rows, "data.doc")["error"]
    # What was there before stays.
    assert client.json("GET", "/api/state")["table"] == state["table"]


#: Files that need a search, or rivals of the equation.
SEARCHED = ("model.json", "front.csv", "next-rows.csv")


def test_hostile_names_are_text_everywhere(client: Client) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).uniform(1.0, 2.0, (60, 4)), columns=HOSTILE)
    frame["y"] = frame.sum(axis=1)
    state = client.upload(frame.to_csv(index=False).encode(), "%3Cb%3E..%2F..%2F%22table%0d%0a.csv")
    assert state["table"]["name"] == '"table\r\n.csv'  # JSON: the page shows it as text
    client.json("POST", "/api/report", {"equation": "x0 + x1*x2 + x3", "target": "y"})
    for path in ("/report", *(f"/download/{name}" for name in FILES if name not in SEARCHED)):
        status, headers, body = client("GET", path)
        assert status == 200 and "Set-Cookie" not in headers
        if path.endswith("html") or path == "/report":
            assert not re.search(rb"<script|<img|onerror=alert\(1\)>", body)
    answer = client.json("POST", "/api/report", {"equation": HOSTILE[0], "target": HOSTILE[0]})
    assert "error" in answer


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model.json", b"{", "cannot be read as JSON"),
        ("model.json", b'{"format": "other"}', "is not a saved model"),
        ("model.json", b"{" * 100_000, "cannot be read as JSON"),
        ("law.txt", b"", "holds no equation"),
        ("law.txt", b"\xff\xfe\x00", "is not text"),
        ("hall_of_fame.csv", b"Complexity,Loss,Equation\n", "hall of fame"),
    ],
)
def test_a_model_file_that_is_none_is_refused(client: Client, name: str, content: bytes, words: str) -> None:
    assert words in client.upload(content[:LIMIT], name, "/api/model")["error"]


def test_a_model_file_brings_its_equations(client: Client) -> None:
    state = client.upload(
        b'Complexity,Loss,Equation\n1,2.0,"a"\n4,0.01,"sin(a) * 2.4"\n', "hall_of_fame.csv", "/api/model"
    )
    assert state["equation"] == "sin(a) * 2.4" and state["dialect"] == "pysr"
    assert state["model_file"] == {"name": "hall_of_fame.csv", "equations": ["a", "sin(a) * 2.4"]}
    assert client.upload(b" 2*a\n", "law.txt", "/api/model")["equation"] == "2*a"


# --- what takes long


def large() -> tuple[pd.DataFrame, str]:
    """A table and an equation whose report and pruning take a minute."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1.0, 2.0, (20_000, 6)), columns=list("abcdef"))
    terms = [f"{rng.uniform():.3f}*sin({rng.uniform(1, 9):.3f}*{name})" for name in "abcdef" * 10]
    return frame.assign(y=frame["a"] * frame["b"] + rng.normal(0.0, 0.01, len(frame))), " + ".join(terms)


@pytest.mark.parametrize("path", ["/api/report", "/api/prune"])
@pytest.mark.parametrize("seconds", [0.0, pytest.param(2.0, marks=pytest.mark.slow)])
def test_a_report_can_be_cancelled(client: Client, path: str, seconds: float) -> None:
    frame, equation = large()
    workspace = client.server.workspace
    workspace.take_table(Table(frame, "data.csv"))
    before = client.json("POST", "/api/report", {"equation": "a", "target": "y"})
    answers: list[dict[str, Any]] = []
    question = {"equation": equation, "target": "y"}
    thread = threading.Thread(target=lambda: answers.append(client.json("POST", path, question)))
    thread.start()
    time.sleep(seconds)
    wait(lambda: "error" not in client.json("POST", "/api/cancel", {}))
    begin = time.monotonic()
    thread.join(60.0)
    assert answers == [{"error": "Cancelled: what was shown before stays."}] and time.monotonic() - begin < 20.0
    assert client.json("GET", "/api/state") == before
    assert "Nothing is under way" in client.json("POST", "/api/cancel", {})["error"]
    after = client.json("POST", "/api/report", {"equation": "a + b", "target": "y"})
    assert after["report"]["number"] > before["report"]["number"]


# --- searches


def wait(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def test_a_search_is_seen_stopped_judged_and_kept(client: Client, tmp_path: Path) -> None:
    client.upload(table())
    client.json("POST", "/api/fit", {"target": "y", "features": ["a"], "seconds": 300, "max_complexity": 20})
    fit = client.server.workspace.fit
    assert fit is not None
    wait(lambda: len(fit.front) > 1)
    assert "A search is running" in client.json("POST", "/api/fit", {"target": "y"})["error"]
    assert "A search is running" in client.upload(table())["error"]
    state = client.json("POST", "/api/report", {"equation": "a", "target": "y"})  # one can work meanwhile
    assert state["fit"]["status"] == "running" and state["report"] is not None
    client.json("POST", "/api/stop", {})
    wait(lambda: not fit.is_running)
    state = client.json("GET", "/api/state")
    assert state["fit"]["status"] == "done" and "You stopped the search" in state["fit"]["message"]
    assert state["equation"] == state["report"]["equation"] and state["fit"]["elapsed"] < 200
    front = state["fit"]["front"]
    assert sum(row["is_best"] for row in front) == 1 and all(row["complexity"] <= 20 for row in front)
    (tmp_path / "model.json").write_bytes(client("GET", "/download/model.json")[2])
    model = SymbolicRegressor.load(tmp_path / "model.json")
    assert str(model.expression_) == state["equation"] and list(model.feature_names_in_) == ["a"]
    (tmp_path / "front.csv").write_bytes(client("GET", "/download/front.csv")[2])
    assert pd.read_csv(tmp_path / "front.csv")["complexity"].tolist() == [row["complexity"] for row in front]
    state = client.json("POST", "/api/choose", {"index": 0})
    assert state["fit"]["front"][0]["is_best"] and state["report"]["equation"] == str(model.equations_["expression"][0])
    assert "'index' must be a row" in client.json("POST", "/api/choose", {"index": 999})["error"]
    assert client.upload(table())["fit"] is None


def test_a_search_that_fails_says_why(client: Client) -> None:
    client.upload(b"a,y\n1,2\n,3\n")
    client.json("POST", "/api/fit", {"target": "y"})
    fit = client.server.workspace.fit
    assert fit is not None
    wait(lambda: not fit.is_running)
    assert fit.status == "failed" and "A fit needs at least 2 complete rows" in fit.message


def test_a_search_whose_process_is_killed_is_no_riddle(client: Client) -> None:
    client.upload(table())
    client.json("POST", "/api/fit", {"target": "y", "seconds": 300})
    fit = client.server.workspace.fit
    assert fit is not None
    fit.close()
    wait(lambda: not fit.is_running)
    assert fit.status == "failed" and "ended from outside" in fit.message
    assert client.json("GET", "/api/state")["table"] is not None


# --- the workspace and the command


@pytest.mark.parametrize(
    ("equation", "target", "expected"),
    [
        ("2*a", None, ("2*a", None)),
        ("y = 2*a", None, ("2*a", "y")),
        ("`y` = 2*a", None, ("2*a", "y")),
        (" ` y ` =2*a ", None, ("2*a ", None)),
        ("y =", None, ("y =", None)),
        ("= 2*a", None, ("= 2*a", None)),
        ("f = 2*a", None, ("2*a", None)),
        ("y = 2*a", "b", ("2*a", "b")),
        ("f(a) = 2*a", None, ("f(a) = 2*a", None)),
        ("a == 2", None, ("a == 2", None)),
    ],
)
def test_the_left_side_of_an_equation_names_the_target(
    equation: str, target: str | None, expected: tuple[str, str | None]
) -> None:
    found = Question(equation, target).without_left_side(("a", "b", "y"))
    assert (found.equation, found.target) == expected


@pytest.mark.parametrize("text", [" ", "a", "a ", "` ", "=", "a1", "_", "é ", "y = a "])
def test_a_long_line_of_anything_is_read_in_no_time(text: str) -> None:
    begin = time.monotonic()
    Question(text * (3000 // len(text))).without_left_side(("a", "y"))
    Question(text * (100_000 // len(text)) + "=").without_left_side(("a", "y"))
    assert time.monotonic() - begin < 1.0


def test_a_new_table_keeps_the_equation_and_forgets_the_rest() -> None:
    workspace = Workspace()
    from sobolev_novelty.ui.app.example import example_question, example_table

    workspace.take_table(example_table())
    workspace.report(example_question())
    workspace.take_table(example_table())
    assert workspace.question.equation == example_question().equation and workspace.analysis is None


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_does_not_exist_is_refused(port: int) -> None:
    with pytest.raises(ParameterError, match="'port' must be from 0 to 65535"):
        AppServer(Workspace(), port)


def test_the_command_says_in_one_line_what_it_cannot_do(client: Client, tmp_path: Path) -> None:
    run = CliRunner().invoke
    taken = run(command_line, ["app", "--port", str(client.server.server_port), "--no-browser"])
    assert taken.exit_code == 1 and taken.stderr.startswith("sobolev: --port")
    assert "--limit must be at least 1" in run(command_line, ["app", "--limit", "0", "--no-browser"]).stderr
    missing = run(command_line, ["app", str(tmp_path / "missing.csv"), "--no-browser"])
    assert missing.exit_code == 1 and "does not exist" in missing.stderr


def test_a_browser_gets_a_ticket_and_the_terminal_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def interrupted(self: AppServer, poll_interval: float) -> None:
        wait(lambda: bool(opened), 10.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(AppServer, "serve_forever", interrupted)
    result = CliRunner().invoke(command_line, ["app"])
    assert result.exit_code == 0 and "The page is closed." in result.stderr
    (token,) = re.findall(r"http://127\.0\.0\.1:\d+/\?token=(\S{43})\n", result.stdout)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?ticket=\S{43}", opened[0]) and token not in opened[0]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
@pytest.mark.parametrize("with_search", [False, True])
def test_ctrl_c_ends_the_server_and_its_search(tmp_path: Path, with_search: bool) -> None:
    import psutil

    (tmp_path / "data.csv").write_bytes(table())
    # Tests in the background of a shell ignore the signal, and so would a process that they start.
    start = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    start += "runpy.run_module('sobolev_novelty', run_name='__main__', alter_sys=True)"
    arguments = [sys.executable, "-c", start, "app", "data.csv", "--no-browser", "--json"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = json.loads("".join(process.stdout.readline() for _ in range(4)))
        headers = opened(told["port"], told["url"])
        connection = http.client.HTTPConnection("127.0.0.1", told["port"], timeout=60)
        if with_search:
            connection.request("POST", "/api/fit", json.dumps({"target": "y", "seconds": 600}), headers)
        else:
            connection.request("GET", "/api/state", headers=headers)
        state = json.loads(connection.getresponse().read())
        assert state["table"]["name"] == "data.csv" and (state["fit"] is not None) == with_search
        children = psutil.Process(process.pid).children(recursive=True)
        assert bool(children) == with_search
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0 and "The page is closed." in said and "Traceback" not in said
        assert psutil.wait_procs(children, timeout=60)[1] == []
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_a_search_does_not_outlive_a_server_that_was_killed(tmp_path: Path) -> None:
    import psutil

    code = (
        "from sobolev_novelty.ui.app.workspace import Question, Workspace\n"
        "from sobolev_novelty.ui.app.example import example_table\n"
        "import time\n"
        "if __name__ == '__main__':\n"
        "    workspace = Workspace(); workspace.take_table(example_table())\n"
        "    workspace.start_fit(Question(target='y'), {'seconds': 600})\n"
        "    while not workspace.fit.front: time.sleep(0.05)\n"
        "    print('running', flush=True); time.sleep(600)\n"
    )
    (tmp_path / "run.py").write_text(code)
    process = subprocess.Popen([sys.executable, "run.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "running\n"
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    process.wait()
    process.stdout.close()
    assert psutil.wait_procs(children, timeout=60)[1] == []
