"""The explorer's application, asked without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message

import lancelake
from lancelake.storage.location import Location
from lancelake.ui.calls import OpenTables, table_id
from lancelake.ui.queries import Queries
from lancelake.ui.server import Access, application
from tests.support.explorer_tables import build_hostile, build_photos

PORT = 8000
TOKEN = "5" * 48
BASE = f"http://127.0.0.1:{PORT}"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}

Ask = Callable[..., Any]
PATIENCE_S = 120.0
"""For answers that do not come."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tables to show, beside one that must not be shown."""
    root = tmp_path_factory.mktemp("explorer")
    build_photos(root / "given" / "photos.lance")
    build_hostile(root / "given" / "deep" / "hostile.lance")
    lancelake.write_dataset(pa.table({"secret": [1]}), root / "secret.lance")
    return root


@pytest.fixture(scope="session")
def tables(folder: Path) -> OpenTables:
    """Return the tables that are given."""
    given = folder / "given"
    return OpenTables([Location.parse(given, confine_to=[given])])


@pytest.fixture(scope="session")
def photos_id(folder: Path) -> str:
    """Return the id of the table with photos."""
    return table_id(Location.parse(folder / "given" / "photos.lance"))


@pytest.fixture(scope="session")
def client(tables: OpenTables, folder: Path) -> Iterator[TestClient]:
    """Yield a client without a token."""
    given = folder / "given"
    with Queries([Location.parse(given, confine_to=[given])]) as queries:
        yield TestClient(application(tables, Access.at(PORT, TOKEN), queries), base_url=BASE)


@pytest.fixture(scope="session")
def ask(client: TestClient) -> Ask:
    """Return a function that asks with the token, and returns the document of the answer."""

    def asked(path: str, status: int = 200, **parameters: Any) -> Any:
        answer = client.get(f"/api/{path}", params=parameters, headers=AUTHORIZED)
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked


@pytest.fixture(scope="session")
def send(client: TestClient) -> Ask:
    """Return a function that sends a document with the token."""

    def sent(path: str, body: Any, status: int = 200, **parameters: Any) -> Any:
        answer = client.post(f"/api/{path}", params=parameters, json=body, headers=AUTHORIZED)
        assert answer.status_code == status, answer.text
        return answer.json()

    return sent


def status_of_post(
    application: ASGIApp, path: str, receive: Callable[[], Awaitable[Message]]
) -> int:
    """Return the status of the answer to a request with the token, whose body is received."""
    headers = {"host": f"127.0.0.1:{PORT}", "content-type": "application/json", **AUTHORIZED}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        await asyncio.wait_for(application(scope, receive, send), PATIENCE_S)

    asyncio.run(ask())
    return int(sent[0]["status"])
