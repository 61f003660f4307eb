"""Parameters are checked, and errors become documents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from lancelake.ui import calls
from lancelake.ui.calls import Call, json_response
from tests.unit.ui.conftest import AUTHORIZED, Ask, status_of_post


@pytest.mark.parametrize("version", ["-1", "x", "1e3", "९", "9" * 30])
def test_a_version_that_is_not_a_number_is_refused(ask: Ask, photos_id: str, version: str) -> None:
    assert ask(f"tables/{photos_id}", 400, version=version)["code"] == "invalid_request"


def test_a_version_that_does_not_exist_is_not_found(ask: Ask, photos_id: str) -> None:
    assert "was not found" in ask(f"tables/{photos_id}", 404, version=99)["problem"]


def test_an_error_states_its_table(ask: Ask, photos_id: str) -> None:
    found = ask(f"tables/{photos_id}/rows", 400, filter="nothing > 1")
    assert "photos.lance" in found["place"] and "nothing" in found["problem"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000])
def test_a_body_that_is_not_an_object_is_refused(
    client: TestClient, photos_id: str, body: bytes
) -> None:
    headers = {**AUTHORIZED, "Content-Type": "application/json"}
    answer = client.post(f"/api/tables/{photos_id}/sql", content=body, headers=headers)
    assert answer.status_code == 400


def test_a_body_that_does_not_arrive_is_refused(
    client: TestClient, photos_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_BODY_SECONDS", 0.1)

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {}

    assert status_of_post(client.app, f"/api/tables/{photos_id}/sql", receive) == 400


def test_a_form_is_refused(client: TestClient, photos_id: str) -> None:
    answer = client.post(
        f"/api/tables/{photos_id}/sql", data={"query": "select 1"}, headers=AUTHORIZED
    )
    assert answer.status_code == 400


def test_a_large_body_is_refused(send: Ask, photos_id: str) -> None:
    found = send(f"tables/{photos_id}/sql", {"query": "x" * 300_000}, 400)
    assert "at most" in found["problem"]


def test_a_long_filter_is_refused(ask: Ask, send: Ask, photos_id: str) -> None:
    found = send(f"tables/{photos_id}/search", {"text": "a", "filter": "x" * 70_000}, 400)
    assert "characters" in found["problem"]


def test_an_unexpected_failure_is_an_error_document(
    ask: Ask, photos_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(Call, "open", fail)
    found = ask(f"tables/{photos_id}/commit", 500)
    assert found["problem"] == "RuntimeError: first line"


def test_texts_that_cannot_be_encoded_are_replaced() -> None:
    assert json_response({"a": "\ud800"}).body == b'{"a":"?"}'
