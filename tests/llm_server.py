"""A local chat endpoint that answers, or misbehaves, as a test wants it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """Hands each request to the server's behaviour."""

    server: ChatServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        request = {"path": self.path, "headers": dict(self.headers), "body": json.loads(raw)}
        self.server.received.append(request)
        with suppress(OSError):  # the client may have hung up: it was told to
            self.server.behaviour(self, request)

    def log_message(self, *arguments: Any) -> None:
        pass

    def send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def say(self, text: str, **usage: int) -> None:
        """A proper answer."""
        content: dict[str, Any] = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        if usage:
            content["usage"] = usage
        self.send(200, json.dumps(content).encode(), Content_Type="application/json")


class ChatServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour = behaviour
        self.received: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, *arguments: Any) -> None:
        pass


@contextmanager
def chat_server(behaviour: Behaviour) -> Iterator[ChatServer]:
    """A server on a free port of this machine."""
    server = ChatServer(behaviour)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def saying(text: str, **usage: int) -> Behaviour:
    """Always the same answer."""
    return lambda handler, request: handler.say(text, **usage)
