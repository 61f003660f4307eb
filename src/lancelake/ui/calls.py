"""Calls of the explorer, and the tables it has open."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lancelake import errors
from lancelake.caches import RecentlyUsed
from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.descriptions import MAIN
from lancelake.core.values.metadata import Snapshot, layout
from lancelake.storage.location import Location

_MOST_TABLES = 5_000
_MOST_SNAPSHOTS = 8
_ID_DIGITS = 16

_Seen = tuple[str, str, int, int]
"""Key of a manifest: its table, its path, its size and the time of its last change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableList:
    """The tables below the given roots, and problems of roots that cannot be searched."""

    tables: dict[str, Location]
    problems: tuple[str, ...]


class OpenTables:
    """The tables at the given roots; requests name one by its id and never by a path."""

    def __init__(self, roots: Iterable[Location]) -> None:
        self._roots = tuple(roots)
        self._known: dict[str, Location] = {}
        # Decoded fragments of a version are kept with it.
        self._snapshots: RecentlyUsed[_Seen, Snapshot] = RecentlyUsed(_MOST_SNAPSHOTS)
        self._lock = threading.Lock()

    @property
    def roots(self) -> tuple[str, ...]:
        """URIs of the roots."""
        return tuple(root.uri for root in self._roots)

    def search(self) -> TableList:
        """Search the roots again."""
        problems: list[str] = []
        tables = {table_id(table): table for table in self._found(problems)}
        with self._lock:
            self._known = tables
        return TableList(tables=tables, problems=tuple(problems))

    def location(self, key: str) -> Location:
        """Return the location of a table; raise NotFoundError for an id that is not one."""
        location = self._known.get(key) or self.search().tables.get(key)
        if location is None:
            raise errors.NotFoundError("there is no such table")
        return location

    def snapshot(self, key: str, branch: str | None, version: int | None) -> Snapshot:
        """Open a version of a table; by default the newest of the main line."""
        root = TablePlace(self.location(key))
        if branch not in (None, MAIN):
            root.load_branch(branch or "")
        line = root.branch(branch)
        place = line.location
        name = line.latest_version() if version is None else line.find_version(version)
        info = place.store.head(layout.manifest(name.name))
        seen = (place.uri, info.path, info.size_bytes, info.modified_ns)
        return self._snapshots.get(seen, partial(Snapshot.load, place, name))

    def _found(self, problems: list[str]) -> Iterator[Location]:
        left = _MOST_TABLES
        for root in self._roots:
            try:
                search = TablePlace(root).find_tables(left)
            except errors.LanceTableError as error:
                problems.append(f"{root.uri}: {error.problem}")
                continue
            yield from search.tables
            left -= len(search.tables)
            if not search.is_complete:
                problems.append(f"{root.uri}: there are more tables than are listed")
            elif not search.tables:
                problems.append(f"{root.uri}: no tables were found here")


def table_id(location: Location) -> str:
    """Return the id of a table, which is the same in every session."""
    return hashlib.sha256(location.uri.encode()).hexdigest()[:_ID_DIGITS]


_MOST_BODY = 256 << 10
_BODY_SECONDS = 10.0
_MOST_TEXT = 64 << 10
_MOST_NUMBER = (1 << 64) - 1
_STATUS: tuple[tuple[type[errors.LanceTableError], int], ...] = (
    (errors.InvalidRequestError, 400),
    (errors.NotFoundError, 404),
    (errors.UnsupportedError, 422),
    (errors.MissingPackageError, 422),
)
_NOT_OURS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request: the tables, the table that it names, and its parameters."""

    tables: OpenTables
    table: str
    parameters: Mapping[str, str]
    body: Mapping[str, Any]

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number from 0 to a limit."""
        text = self.parameters.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal()) or len(text) > len(str(_MOST_NUMBER)):
            raise errors.InvalidRequestError(f"{name} must be a number")
        return min(int(text), most)

    def required(self, name: str) -> int:
        """Return a number that must be given."""
        if name not in self.parameters:
            raise errors.InvalidRequestError(f"{name} is missing")
        return self.number(name, 0, _MOST_NUMBER)

    def optional(self, name: str) -> int | None:
        """Return a number, or None."""
        return None if self.parameters.get(name) is None else self.required(name)

    def text(self, name: str) -> str | None:
        """Return a text of the address or of the body; None if it is missing or empty."""
        value = self.body.get(name, self.parameters.get(name))
        if value is None or value == "":
            return None
        if not isinstance(value, str) or len(value) > _MOST_TEXT:
            raise errors.InvalidRequestError(
                f"{name} must be a text of at most {_MOST_TEXT:,} characters"
            )
        return value

    @property
    def location(self) -> Location:
        """Location of the table."""
        return self.tables.location(self.table)

    def open(self) -> Table:
        """Open the version that the request names; by default the newest of the main line."""
        version = self.optional("version")
        return Table(self.tables.snapshot(self.table, self.text("branch"), version))


Answer = Callable[[Call], Any]
"""Handler of a call: returns a response, or what becomes one as JSON."""


Run = Callable[[Call, Request], Awaitable[Response]]
"""Answers a call, on a thread or in another process."""


def endpoint(tables: OpenTables, run: Run) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that answers calls."""

    async def handle(request: Request) -> Response:
        try:
            call = Call(
                tables=tables,
                table=request.path_params.get("table", ""),
                parameters=dict(request.query_params),
                body=await asyncio.wait_for(_body(request), _BODY_SECONDS),
            )
        except errors.InvalidRequestError as error:
            return error_response(error)
        except TimeoutError:
            return error_response(errors.InvalidRequestError("the request did not arrive in time"))
        return await run(call, request)

    return handle


def on_threads(answer: Answer, threads: Executor) -> Run:
    """Answer on threads of this process."""

    async def run(call: Call, _: Request) -> Response:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, answer_call, answer, call)

    return run


async def wait_for_disconnect(request: Request) -> None:
    """Wait until the client of a request whose body was read is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def json_response(value: Any, status: int = 200) -> Response:
    """Return a response with a JSON document."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Lone surrogates of names and values cannot be encoded.
    return Response(text.encode(errors="replace"), status, media_type="application/json")


async def _body(request: Request) -> Mapping[str, Any]:
    if request.method != "POST":
        return {}
    if request.headers.get("content-type") != "application/json":
        raise errors.InvalidRequestError("the content type must be application/json")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _MOST_BODY:
            raise errors.InvalidRequestError(f"a request has at most {_MOST_BODY:,} bytes")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise errors.InvalidRequestError("the request is not JSON") from error
    if not isinstance(body, dict):
        raise errors.InvalidRequestError("the request must be an object")
    return body


def answer_call(answer: Answer, call: Call) -> Response:
    """Return the response of a handler, or its error."""
    try:
        content = answer(call)
        return content if isinstance(content, Response) else json_response(content)
    except errors.LanceTableError as error:
        return error_response(error)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # panics of the codec are not exceptions
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
        body = {"code": "internal", "problem": problem, "place": "", "next_step": None}
        return json_response(body, _NOT_OURS)


def error_response(error: errors.LanceTableError) -> Response:
    """Return the response for an error."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), _NOT_OURS)
    body = {
        "code": error.code,
        "problem": error.problem,
        "place": error.place(),
        "next_step": error.next_step,
    }
    return json_response(body, status)
