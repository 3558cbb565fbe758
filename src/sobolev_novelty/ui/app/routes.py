"""What each address answers. Paths are compared, never put together: there is no way to a file that is not listed."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from sobolev_novelty.errors import DataError, ParameterError, SobolevError
from sobolev_novelty.report.render.figures.style import STYLE
from sobolev_novelty.tables.format import TableFormat
from sobolev_novelty.ui.app.downloads import FILES, download
from sobolev_novelty.ui.app.words import in_words
from sobolev_novelty.ui.app.workspace import Question, Workspace

#: Nothing is loaded from anywhere but this server, no script stands in a page, and no other page may frame ours.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.css": ("app.css", "text/css; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/front.js": ("front.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
#: Addresses of the page itself, which holds no data.
PAGE = frozenset(_STATIC)


@dataclass(frozen=True, slots=True)
class Request:
    """What reaches a route: headers, and the body of a POST."""

    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        try:
            content = json.loads(self.body.decode("utf-8")) if self.body else {}
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"The page sent something that is not JSON: {error}.") from error
        if not isinstance(content, dict):
            raise ParameterError("The page sent something that is not a JSON object.")
        return content

    @property
    def file_name(self) -> str:
        """The name of an uploaded file, without folders."""
        name = unquote(self.headers.get("X-File-Name") or "").replace("\\", "/").rpartition("/")[2]
        if not name:
            raise DataError("The file has no name. Give it one that says its kind, such as data.csv.")
        return name[-200:]


@dataclass(frozen=True, slots=True)
class Response:
    """What a route answers."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def json_response(content: object, status: int = 200) -> Response:
    """An answer for the page's script."""
    return Response(json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8"), status=status)


def with_key(page: Response, key: str, cookie: str) -> Response:
    """The page as it is opened: with the key, which its script keeps for this tab, and with the cookie."""
    body = page.body.replace(b'name="key" content=""', f'name="key" content="{key}"'.encode())
    return replace(page, body=body, headers={**page.headers, "Set-Cookie": cookie})


@cache
def static_file(path: str) -> Response:
    """A file of the page itself."""
    name, content_type = _STATIC[path]
    body = files("sobolev_novelty.ui.app").joinpath("static", name).read_bytes()
    if name == "app.css":  # the colours and letters of the report
        body = STYLE.encode("utf-8") + body
    return Response(body, content_type, headers={"Content-Security-Policy": PAGE_POLICY})


def report_response(workspace: Workspace) -> Response:
    """The report as the page's frame shows it: no script runs in it, whatever the names of the columns are."""
    if workspace.analysis is None:
        raise DataError("There is no report yet.")
    page = workspace.analysis.page
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-same-origin"
    )
    headers = {"Content-Security-Policy": policy}
    return Response(page.encode("utf-8"), "text/html; charset=utf-8", headers=headers)


def _table(workspace: Workspace, request: Request) -> None:
    asked = {
        name: unquote(request.headers.get(f"X-Table-{name}") or "") or None
        for name in ("Separator", "Decimal", "Encoding")
    }
    written = TableFormat(
        asked["Separator"], asked["Decimal"], asked["Encoding"], request.headers.get("X-Table-Header") != "no"
    )
    workspace.open_table(request.file_name, request.body, written)


def _example(workspace: Workspace, request: Request) -> None:
    from sobolev_novelty.ui.app.example import example_question, example_table

    workspace.take_table(example_table())
    workspace.report(example_question())


def _fit(workspace: Workspace, request: Request) -> None:
    given = request.json()
    workspace.start_fit(Question.of(given), given)


#: Path -> what a POST does; all of them answer with the state after it.
ACTIONS: dict[str, Callable[[Workspace, Request], None]] = {
    "/api/table": _table,
    "/api/model": lambda workspace, request: workspace.open_model(request.file_name, request.body),
    "/api/report": lambda workspace, request: workspace.report(Question.of(request.json())),
    "/api/prune": lambda workspace, request: workspace.prune(Question.of(request.json())),
    "/api/next": lambda workspace, request: workspace.measure_next(Question.of(request.json())),
    "/api/pruned": lambda workspace, request: workspace.take_pruned(),
    "/api/cancel": lambda workspace, request: workspace.cancel(),
    "/api/fit": _fit,
    "/api/stop": lambda workspace, request: workspace.stop_fit(),
    "/api/choose": lambda workspace, request: workspace.choose(request.json().get("index")),
    "/api/example": _example,
}
#: Those whose body is a file; the others take some JSON.
UPLOADS = ("/api/table", "/api/model")


def get(workspace: Workspace, path: str) -> Response | None:
    """The answer to a GET; None where there is nothing at this path."""
    if path in _STATIC:
        return static_file(path)
    if path == "/report":
        return report_response(workspace)
    if path == "/api/state":
        return json_response(workspace.state())
    name = path.removeprefix("/download/")
    if path.startswith("/download/") and name in FILES:
        body, content_type = download(workspace, name)
        return Response(body, content_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})
    return None


def post(workspace: Workspace, path: str, request: Request) -> Response:
    """Do what is asked for and answer with the state after it, or say why it cannot be done.

    An equation that cannot be read is an answer like any other: a browser takes a status of 400 for a fault of the page
    and says so in its console.
    """
    try:
        ACTIONS[path](workspace, request)
    except SobolevError as error:
        return json_response({"error": in_words(error)})
    return json_response(workspace.state())
