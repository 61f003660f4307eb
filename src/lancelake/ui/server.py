"""Server of the explorer: routes, who may call them, and how long it waits for a client."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lancelake.clock import Ids, SystemIds
from lancelake.errors import InvalidRequestError
from lancelake.storage.location import Location
from lancelake.ui import calls, views
from lancelake.ui.queries import Queries

SECONDS = 10.0


class IdleTimeout(H11Protocol):
    """Closes a connection whose next request has not begun after some seconds.

    uvicorn limits the time between requests, but not that of an incomplete head.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._expect()

    def on_response_complete(self) -> None:
        """Start to wait for the next request."""
        super().on_response_complete()
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(SECONDS, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


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

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._access.hosts:
            return _refuse(421, "this server does not have that name")
        if scope["method"] not in _METHODS:
            return _refuse(405, "the explorer only reads")
        origins = {f"http://{host}" for host in self._access.hosts}
        if any(origin not in origins for origin in headers.getlist("origin")):
            return _refuse(403, "requests of other pages are refused")
        if not scope["path"].startswith(_API):
            return None
        if headers.get("sec-fetch-site", "none") not in _OWN_FETCHES:
            return _refuse(403, "requests of other pages are refused")
        authorization = headers.get("authorization", "")
        expected = f"{_BEARER}{self._access.token}"
        if not hmac.compare_digest(authorization.encode(), expected.encode()):
            return _refuse(401, "the token is missing or wrong")
        return None


def _refuse(status: int, problem: str) -> JSONResponse:
    body = {"code": "refused", "problem": problem, "place": "", "next_step": None}
    return JSONResponse(body, status)


_THREADS = 8
_PAGE = "index.html"
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_READS = {
    "/api/tables": views.tables,
    "/api/tables/{table}": views.table,
    "/api/tables/{table}/versions": views.versions,
    "/api/tables/{table}/commit": views.commit,
    "/api/tables/{table}/schema": views.schema,
    "/api/tables/{table}/schema-changes": views.schema_changes,
    "/api/tables/{table}/fragments": views.fragments,
    "/api/tables/{table}/fragment": views.fragment,
    "/api/tables/{table}/image": views.image,
    "/api/tables/{table}/text": views.text,
    "/api/tables/{table}/mem-wal": views.mem_wal,
}
_FILTERED = {
    "/api/tables/{table}/rows": views.rows,
    "/api/tables/{table}/count": views.count,
}
_QUERIES = {
    "/api/tables/{table}/sql": views.sql,
    "/api/tables/{table}/search": views.search,
}


def application(tables: calls.OpenTables, access: Access, queries: Queries) -> Guard:
    """Return the application for some tables."""
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="explorer")

    def run_apart_if_filtered(answer: calls.Answer) -> calls.Run:
        here = calls.on_threads(answer, threads)

        async def run(call: calls.Call, request: Request) -> Response:
            # Conditions of a user can take any time and memory, and so can queries.
            if not (call.body.get("query") or _has_filter(call)):
                return await here(call, request)
            return await queries.answer(
                answer.__name__, call, lambda: calls.wait_for_disconnect(request)
            )

        return run

    routes = [
        *(
            Route(path, calls.endpoint(tables, calls.on_threads(answer, threads)))
            for path, answer in _READS.items()
        ),
        *(
            Route(path, calls.endpoint(tables, run_apart_if_filtered(answer)))
            for path, answer in _FILTERED.items()
        ),
        *(
            Route(path, calls.endpoint(tables, run_apart_if_filtered(answer)), methods=["POST"])
            for path, answer in _QUERIES.items()
        ),
        *(_asset(path, name, data) for path, name, data in _assets()),
    ]
    return Guard(Starlette(routes=routes), access)


def _has_filter(call: calls.Call) -> bool:
    return bool(call.body.get("filter") or call.parameters.get("filter"))


def _assets() -> list[tuple[str, str, bytes]]:
    """Return the path, name and content of each file of the page; nothing else is served."""
    folder = resources.files("lancelake.ui") / "assets"
    files = [(f"/assets/{item.name}", item.name, item.read_bytes()) for item in folder.iterdir()]
    page = (folder / _PAGE).read_bytes()
    return [("/", _PAGE, page), *files]


def _asset(path: str, name: str, data: bytes) -> Route:
    media_type = _TYPES[f".{name.rpartition('.')[2]}"]

    async def serve(_: Request) -> Response:
        return Response(data, media_type=media_type)

    endpoint: Any = serve
    return Route(path, endpoint)


_LOOPBACK = "127.0.0.1"
_WORDS_OF_TOKEN = 3
_WAITING = 64


def serve(
    roots: Sequence[Location],
    *,
    port: int = 0,
    ready: Callable[[str], None],
    ids: Ids | None = None,
) -> None:
    """Serve the tables at some locations until the process is interrupted.

    `ready` is called with the address to open when the server accepts connections. The address has
    the token of the session in its fragment, which browsers do not send.
    """
    token = new_token(ids or SystemIds())
    with _listen_on(port) as listener, Queries(roots) as queries:
        number = listener.getsockname()[1]
        app = application(calls.OpenTables(roots), Access.at(number, token), queries)
        config = uvicorn.Config(
            app,
            http=IdleTimeout,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        ready(f"http://{_LOOPBACK}:{number}/#token={token}")
        uvicorn.Server(config).run(sockets=[listener])


def new_token(ids: Ids) -> str:
    """Return a random token of 192 bits."""
    return "".join(f"{ids.random_u64():016x}" for _ in range(_WORDS_OF_TOKEN))


def _listen_on(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_LOOPBACK, port))
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        problem = f"port {port} cannot be used: {error.strerror or error}"
        raise InvalidRequestError(problem, action="Choose another with --port.") from error
    return listener
