"""Who may ask: only pages that this server itself has given to somebody who knows its token.

Other users of the machine can reach a loopback port, and so can any web page that the user's browser has open. The
first lack the token. The second are kept out by the cookie, which is not sent from other sites, by the check of
``Origin``, and by that of ``Host``: a name that an attacker points at 127.0.0.1 (DNS rebinding) is not ours.

A browser sends the cookie to every port of 127.0.0.1, so that somebody else's server on this machine may get to know
it. It opens nothing by itself: whatever holds data also asks for a key that only the page has, in the storage of its
tab.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

#: Brings the key; a page of another origin cannot set it without asking first, and nobody answers that question.
KEY_HEADER = "X-Sobolev-Key"
_NO_TOKEN = (
    "This page needs the key in its address. Open the address that 'sobolev app' printed in the terminal; "
    "each start of the program has a new one."
)


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(slots=True)
class Gate:
    """The secrets of one server, and the checks that every request passes."""

    port: int  # where the server listens; part of the cookie's name, as browsers share cookies between ports
    token: str = field(default_factory=_secret)  # opens the page as often as one likes
    visit: str = field(default_factory=_secret)  # the cookie: this browser has opened the page
    key: str = field(default_factory=_secret)  # what the page shows for everything that holds data
    _tickets: set[str] = field(default_factory=set)

    @property
    def address(self) -> str:
        """Where the page is, with the token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def ticket_address(self) -> str:
        """An address that opens the page once.

        A browser that is started with an address shows it to every user of the machine in the list of processes.
        """
        ticket = _secret()
        self._tickets.add(ticket)
        return f"http://127.0.0.1:{self.port}/?ticket={ticket}"

    @property
    def cookie(self) -> str:
        """The header that makes a browser send the cookie from now on, from our own pages only."""
        return f"{self._name}={self.visit}; Path=/; HttpOnly; SameSite=Strict"

    def opens(self, query: Mapping[str, list[str]]) -> bool:
        """Whether the query of an address brings the token, or a ticket that was not used before."""
        if any(_same(given, self.token) for given in query.get("token", ())):
            return True
        used = {ticket for ticket in self._tickets for given in query.get("ticket", ()) if _same(given, ticket)}
        self._tickets -= used
        return bool(used)

    def refusal(
        self, method: str, headers: Mapping[str, str], *, key: str = "", is_opened: bool = False, is_page: bool = False
    ) -> str | None:
        """Why a request is refused, as a sentence; None where it may pass.

        ``key``: the key in the address of a frame or a download, which cannot have headers of their own.
        ``is_opened``: whether the address itself brought the token.
        ``is_page``: whether the page itself is asked for, which holds no data.
        """
        hosts = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")]
        if (headers.get("Host") or "").lower() not in hosts:
            return f"This server answers to {hosts[0]} only."
        if not is_opened and not self._has_cookie(headers.get("Cookie") or ""):
            return _NO_TOKEN
        origin = headers.get("Origin")
        is_foreign = origin is not None and origin not in [f"http://{host}" for host in hosts]
        if is_foreign or (not is_opened and headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")):
            return "Another page asked for this. Only the app's own page may."
        given = headers.get(KEY_HEADER) or (key if method == "GET" else "")
        return None if is_page or _same(given, self.key) else _NO_TOKEN

    @property
    def _name(self) -> str:
        return f"sobolev-{self.port}"

    def _has_cookie(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self._name)
        except CookieError:
            return False
        return found is not None and _same(found.value, self.visit)


def _same(given: str, known: str) -> bool:
    """Compared in a time that tells nothing of where they differ."""
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), known.encode())
