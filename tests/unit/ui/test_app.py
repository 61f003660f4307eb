"""The page and its assets."""

from __future__ import annotations

import re
from importlib import resources

import pytest
from starlette.testclient import TestClient

from tests.unit.ui.conftest import AUTHORIZED

ASSETS = sorted(item.name for item in (resources.files("lancelake.ui") / "assets").iterdir())
REFERENCE = re.compile(r'(?:from|href=|src=)\s*"(?:\./|/assets/)([^"#]+)"')


def test_the_page_is_served_without_a_token(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("name", ASSETS)
def test_what_an_asset_refers_to_is_served(client: TestClient, name: str) -> None:
    answer = client.get(f"/assets/{name}")
    assert answer.status_code == 200
    assert set(REFERENCE.findall(answer.text)) <= set(ASSETS)


@pytest.mark.parametrize("name", [n for n in ASSETS if n.endswith((".js", ".html"))])
def test_nothing_becomes_markup_or_code(client: TestClient, name: str) -> None:
    text = client.get(f"/assets/{name}").text
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in text
    assert "https://" not in text and "style=" not in text


@pytest.mark.parametrize(
    "path", ["/assets/../app.py", "/assets/%2e%2e/app.py", "/assets/app.py", "/assets/", "/etc"]
)
def test_other_files_are_not_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_query_is_not_answered_to_a_get(client: TestClient, photos_id: str) -> None:
    assert client.get(f"/api/tables/{photos_id}/sql", headers=AUTHORIZED).status_code == 405
