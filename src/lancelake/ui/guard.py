"""Refusal of requests that do not come from the explorer's own page."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_API = "/api/"
_METHODS = ("GET", "HEAD", "POST")
_OWN_FETCHES = ("same-origin", "none")
_BEARER = "Bearer "
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may ask: the names of this server, and the token of this session."""

    hosts: frozenset[str]
    token: str

    @staticmethod
    def at(port: int, token: str) -> Access:
        """Return the access to a server on the loopback interface."""
        return Access(hosts=frozenset((f"127.0.0.1:{port}", f"localhost:{port}")), token=token)


class Guard:
    """Checks each request, and adds headers to each response that limit what a page can do.

    The Host header defeats names that an attacker points to this machine; the Origin and
    Sec-Fetch-Site headers defeat pages of other sites; the token defeats other users of this
    machine. The page itself has no data, and is served without a token.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._access.hosts:
            return _refused(421, "this server does not have that name")
        if scope["method"] not in _METHODS:
            return _refused(405, "the explorer only reads")
        origins = {f"http://{host}" for host in self._access.hosts}
        if any(origin not in origins for origin in headers.getlist("origin")):
            return _refused(403, "requests of other pages are refused")
        if not scope["path"].startswith(_API):
            return None
        if headers.get("sec-fetch-site", "none") not in _OWN_FETCHES:
            return _refused(403, "requests of other pages are refused")
        given = headers.get("authorization", "")
        expected = f"{_BEARER}{self._access.token}"
        if not hmac.compare_digest(given.encode(), expected.encode()):
            return _refused(401, "the token is missing or wrong")
        return None


def _refused(status: int, problem: str) -> JSONResponse:
    body = {"code": "refused", "problem": problem, "place": "", "next_step": None}
    return JSONResponse(body, status)
