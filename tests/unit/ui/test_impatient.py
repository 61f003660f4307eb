"""Connections whose request does not arrive are closed."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from lancelake.ui import server as impatient
from lancelake.ui.server import IdleTimeout
from tests.unit.ui.conftest import PATIENCE_S


async def _empty(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _received(sent: bytes) -> bytes:
    config = uvicorn.Config(_empty, http=IdleTimeout, lifespan="off", timeout_keep_alive=3600)
    config.load()
    server = await asyncio.get_running_loop().create_server(
        lambda: IdleTimeout(config=config, server_state=ServerState(), app_state={}),
        "127.0.0.1",
        0,
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(sent)
        found = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        return found


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (b"", 0),
        (b"GET / HTTP/1.1\r\nHost: ", 0),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n", 1),
    ],
    ids=["nothing", "half a head", "half of a second head"],
)
def test_a_request_that_does_not_arrive_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, answers: int
) -> None:
    monkeypatch.setattr(impatient, "SECONDS", 0.1)
    assert asyncio.run(_received(sent)).count(b"HTTP/1.1 204") == answers
