"""The server listens on the loopback interface, at an address with a token."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import uvicorn

from lancelake.clock import SystemIds
from lancelake.errors import InvalidRequestError
from lancelake.ui.server import IdleTimeout, new_token, serve


def test_a_token_has_192_random_bits() -> None:
    tokens = {new_token(SystemIds()) for _ in range(100)}
    assert len(tokens) == 100 and {len(token) for token in tokens} == {48}


def test_a_port_in_use_is_an_error() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InvalidRequestError, match=f"port {port} cannot be used"):
            serve([], port=port, ready=lambda _: None)


def test_connections_are_closed_that_send_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[uvicorn.Config] = []

    class Server:
        def __init__(self, config: uvicorn.Config) -> None:
            configs.append(config)

        def run(self, **_: Any) -> None:
            """Serve nothing."""

    monkeypatch.setattr(uvicorn, "Server", Server)
    serve([], ready=lambda _: None)
    assert [config.http for config in configs] == [IdleTimeout]
