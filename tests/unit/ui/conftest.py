"""The explorer's application, asked without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import lancelake
from lancelake.storage.location import Location
from lancelake.ui.app import application
from lancelake.ui.guard import Access
from lancelake.ui.open_tables import OpenTables, table_id
from tests.support.explorer_tables import build_hostile, build_photos

PORT = 8000
TOKEN = "5" * 48
BASE = f"http://127.0.0.1:{PORT}"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}

Ask = Callable[..., Any]


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
def client(tables: OpenTables) -> TestClient:
    """Return a client without a token."""
    return TestClient(application(tables, Access.at(PORT, TOKEN)), base_url=BASE)


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
