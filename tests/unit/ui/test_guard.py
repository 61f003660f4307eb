"""Requests that do not come from the explorer's own page are refused."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.unit.ui.conftest import AUTHORIZED, BASE, TOKEN


def test_a_request_with_the_token_is_answered(client: TestClient) -> None:
    assert client.get("/api/tables", headers=AUTHORIZED).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}0"},
        {"Authorization": TOKEN},
        {"Authorization": b"Bearer \xff"},
        {"Cookie": f"token={TOKEN}"},
    ],
)
def test_a_request_without_the_token_is_refused(
    client: TestClient, headers: dict[str, str | bytes]
) -> None:
    assert client.get("/api/tables", headers=headers).status_code == 401


def test_the_token_in_the_address_has_no_effect(client: TestClient) -> None:
    assert client.get("/api/tables", params={"token": TOKEN}).status_code == 401


@pytest.mark.parametrize("path", ["/", "/api/tables", "/assets/main.js"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "localhost.:8000"]
)
def test_a_foreign_host_header_is_refused(client: TestClient, path: str, host: str) -> None:
    assert client.get(path, headers={**AUTHORIZED, "Host": host}).status_code == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:8001"]
)
def test_a_request_of_another_origin_is_refused(client: TestClient, origin: str) -> None:
    headers = {**AUTHORIZED, "Origin": origin}
    assert client.get("/api/tables", headers=headers).status_code == 403


def test_a_request_of_its_own_origin_is_answered(client: TestClient) -> None:
    headers = {**AUTHORIZED, "Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/tables", headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_fetch_of_another_site_is_refused(client: TestClient, site: str) -> None:
    headers = {**AUTHORIZED, "Sec-Fetch-Site": site}
    assert client.get("/api/tables", headers=headers).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods_that_do_not_read_are_refused(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/tables", headers=AUTHORIZED).status_code == 405


@pytest.mark.parametrize("path", ["/", "/api/tables", "/nothing"])
def test_every_answer_limits_what_a_page_can_do(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
