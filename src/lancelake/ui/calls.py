"""Calls of the page: parameters of a request, and answers and errors as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    MissingPackageError,
    NotFoundError,
    UnsupportedError,
)
from lancelake.storage.location import Location
from lancelake.ui.open_tables import OpenTables

_MOST_BODY = 256 << 10
_MOST_TEXT = 64 << 10
_MOST_NUMBER = (1 << 64) - 1
_STATUS: tuple[tuple[type[LanceTableError], int], ...] = (
    (InvalidRequestError, 400),
    (NotFoundError, 404),
    (UnsupportedError, 422),
    (MissingPackageError, 422),
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
            raise InvalidRequestError(f"{name} must be a number")
        return min(int(text), most)

    def required(self, name: str) -> int:
        """Return a number that must be given."""
        if name not in self.parameters:
            raise InvalidRequestError(f"{name} is missing")
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
            raise InvalidRequestError(f"{name} must be a text of at most {_MOST_TEXT:,} characters")
        return value

    @property
    def location(self) -> Location:
        """Location of the table."""
        return self.tables.location(self.table)

    @property
    def snapshot(self) -> Snapshot:
        """The version that the request names; by default the newest of the main line."""
        return self.tables.snapshot(self.table, self.text("branch"), self.optional("version"))


Answer = Callable[[Call], Any]
"""Handler of a call: returns a response, or what becomes one as JSON."""


def endpoint(
    tables: OpenTables, answer: Answer, threads: Executor
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that answers calls in other threads."""

    async def handle(request: Request) -> Response:
        try:
            call = Call(
                tables=tables,
                table=request.path_params.get("table", ""),
                parameters=dict(request.query_params),
                body=await _body(request),
            )
        except InvalidRequestError as error:
            return _failed(error)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, _answered, answer, call)

    return handle


def as_json(value: Any, status: int = 200) -> Response:
    """Return a response with a JSON document."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Lone surrogates of names and values cannot be encoded.
    return Response(text.encode(errors="replace"), status, media_type="application/json")


async def _body(request: Request) -> Mapping[str, Any]:
    if request.method != "POST":
        return {}
    if request.headers.get("content-type") != "application/json":
        raise InvalidRequestError("the content type must be application/json")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _MOST_BODY:
            raise InvalidRequestError(f"a request has at most {_MOST_BODY:,} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("the request is not JSON") from error
    if not isinstance(found, dict):
        raise InvalidRequestError("the request must be an object")
    return found


def _answered(answer: Answer, call: Call) -> Response:
    try:
        found = answer(call)
        return found if isinstance(found, Response) else as_json(found)
    except LanceTableError as error:
        return _failed(error)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # panics of the codec are not exceptions
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
        body = {"code": "internal", "problem": problem, "place": "", "next_step": None}
        return as_json(body, _NOT_OURS)


def _failed(error: LanceTableError) -> Response:
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), _NOT_OURS)
    body = {
        "code": error.code,
        "problem": error.problem,
        "place": error.place(),
        "next_step": error.next_step,
    }
    return as_json(body, status)
