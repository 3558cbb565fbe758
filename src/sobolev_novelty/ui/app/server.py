"""The server: loopback only, every request checked at the gate, errors in plain words, no log of what was asked."""

from __future__ import annotations

import logging
import os
import socket
import socketserver
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from sobolev_novelty.errors import ParameterError, SobolevError
from sobolev_novelty.ui.app import routes
from sobolev_novelty.ui.app.gate import Gate
from sobolev_novelty.ui.app.routes import Request, Response, json_response
from sobolev_novelty.ui.app.words import in_words, megabytes
from sobolev_novelty.ui.app.workspace import Workspace

#: Bytes of a request that brings no file.
MAX_JSON = 2**20
#: Connections that have not sent a request yet.
MAX_STRANGERS = 32
#: How long a request that is refused for its size is read on, so that the browser gets to see the answer.
_LINGER_SECONDS = 2.0

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _Strangers:
    """Connections that have not shown yet that they may ask: the oldest is closed when there are too many of them.

    Anybody on this machine can open connections and say nothing. Each would keep a thread and a file for a minute,
    until none is left for the owner, whose browser says who it is at once.
    """

    def __init__(self) -> None:
        self._waiting: dict[socket.socket, None] = {}
        self._guard = threading.Lock()

    def add(self, connection: socket.socket) -> None:
        with self._guard:
            self._waiting[connection] = None
            oldest = next(iter(self._waiting)) if len(self._waiting) > MAX_STRANGERS else None
            if oldest is not None:
                del self._waiting[oldest]
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)

    def remove(self, connection: socket.socket) -> None:
        with self._guard:
            self._waiting.pop(connection, None)


class AppServer(ThreadingHTTPServer):
    """A server for one workspace on 127.0.0.1.

    ``port``: 0 for any that is free.
    """

    daemon_threads = True
    # A browser opens half a dozen connections at once; with the usual queue of five some are reset on a busy machine.
    request_queue_size = 128
    # Elsewhere it would let another program listen on the same port.
    allow_reuse_address = os.name == "posix"

    def __init__(self, workspace: Workspace, port: int = 0) -> None:
        self.workspace = workspace
        self.strangers = _Strangers()
        if not 0 <= port <= 65_535:
            raise ParameterError(f"'port' must be from 0 to 65535. Got {port}.")
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            reason = error.strerror or error
            raise ParameterError(f"'port' {port} cannot be used: {reason}. Give another one, or 0 for any.") from error
        self.gate = Gate(self.server_address[1])

    def server_bind(self) -> None:
        """Bind without asking who we are: the base class would look the address up in the network's names."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def close(self) -> None:
        """Stop listening and end a search that is running."""
        self.server_close()
        self.workspace.close()


class _Refused(Exception):
    """A request that gets no further; not an error of the library's users."""

    def __init__(self, status: HTTPStatus, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class _Handler(BaseHTTPRequestHandler):
    server: AppServer
    timeout = 60
    server_version = "sobolev"
    sys_version = ""
    # HTTP/1.0 answers one request per connection: what is left of a refused one is never taken for another.
    protocol_version = "HTTP/1.0"

    def setup(self) -> None:
        """Begin as a stranger."""
        super().setup()
        self.server.strangers.add(self.connection)

    def finish(self) -> None:
        """The last answer has been sent."""
        self.server.strangers.remove(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self._handle(self._get)

    def do_POST(self) -> None:
        self._handle(self._post)

    def _get(self) -> Response:
        url, gate = self._address(), self.server.gate
        query = parse_qs(url.query)
        is_opened = url.path == "/" and gate.opens(query)
        self._pass_gate(key=query.get("key", [""])[0], is_opened=is_opened, is_page=url.path in routes.PAGE)
        found = routes.get(self.server.workspace, url.path)
        if found is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "There is nothing at this address.")
        return routes.with_key(found, gate.key, gate.cookie) if is_opened else found

    def _post(self) -> Response:
        self._pass_gate()
        path = self._address().path
        if path not in routes.ACTIONS:
            raise _Refused(HTTPStatus.NOT_FOUND, "There is nothing at this address.")
        body = self._body(self.server.workspace.limit if path in routes.UPLOADS else MAX_JSON)
        return routes.post(self.server.workspace, path, Request(self._plain_headers(), body))

    def _address(self) -> SplitResult:
        try:
            return urlsplit(self.path)
        except ValueError as error:  # such as 'http://['
            raise _Refused(HTTPStatus.BAD_REQUEST, "This is not an address.") from error

    def _pass_gate(self, **asked: Any) -> None:
        hosts = self.headers.get_all("Host") or []
        words = self.server.gate.refusal(self.command, self._plain_headers(), **asked)
        if words is not None or len(hosts) != 1:
            raise _Refused(HTTPStatus.FORBIDDEN, words or "This request names several hosts.")
        self.server.strangers.remove(self.connection)

    def _plain_headers(self) -> dict[str, str]:
        return {name.title(): str(value) for name, value in self.headers.items()}

    def _body(self, limit: int) -> bytes:
        length = self.headers.get("Content-Length") or ""
        if not (length.isascii() and length.isdigit()) or self.headers.get("Transfer-Encoding"):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "The request does not say how long it is.")
        if len(length) > 15 or int(length) > limit:
            self._linger()
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The file has {megabytes(int(length[:15]))}; the app takes {megabytes(limit)} at most. Start it with "
                "a larger --limit, or use 'sobolev report' or 'sobolev fit', which read files of any size.",
            )
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            words = f"Only {len(body)} of {length} bytes arrived: the connection ended too early. Send it again."
            raise _Refused(HTTPStatus.BAD_REQUEST, words)
        return body

    def _linger(self) -> None:
        """Read and forget what is still coming: a browser that is cut off while it sends shows no answer."""
        end = time.monotonic() + _LINGER_SECONDS
        self.connection.settimeout(0.2)
        try:
            while time.monotonic() < end and self.rfile.read1(2**16):
                pass
        except OSError:
            pass

    def _handle(self, answer: Any) -> None:
        try:
            response = answer()
        except _Refused as refused:
            response = json_response({"error": refused.words}, refused.status)
            if self.command == "GET" and self.path.partition("?")[0] == "/":  # a person reads this
                response = Response(f"{refused.words}\n".encode(), "text/plain; charset=utf-8", refused.status)
        except SobolevError as error:
            response = json_response({"error": in_words(error)}, HTTPStatus.BAD_REQUEST)
        except (ConnectionError, TimeoutError):
            self.close_connection = True
            return
        except Exception as error:
            logging.getLogger(__name__).exception("A request failed.")
            words = f"This failed, and the fault is ours ({type(error).__name__}). The terminal shows the details."
            response = json_response({"error": words}, HTTPStatus.INTERNAL_SERVER_ERROR)
        self._send(response)

    def _send(self, response: Response) -> None:
        try:
            self.send_response(response.status)
            headers = {"Content-Type": response.content_type, "Content-Length": str(len(response.body)), **_HEADERS}
            for name, value in {**headers, "Content-Security-Policy": "default-src 'none'", **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.body)
        except ConnectionError:  # the page was closed meanwhile
            self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Requests that are not understood: plain words instead of a page that repeats them."""
        self.close_connection = True
        if not hasattr(self, "command"):
            self.command = ""
        self.request_version = getattr(self, "request_version", "HTTP/1.0")
        self._send(json_response({"error": f"{HTTPStatus(code).phrase}."}, code))

    def log_message(self, format: str, *args: Any) -> None:
        """Addresses hold the token, bodies the user's data: nothing is logged."""
