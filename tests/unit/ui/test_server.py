"""The server listens on the loopback interface, at an address with a token."""

from __future__ import annotations

import socket

import pytest

from lancelake.clock import SystemIds
from lancelake.errors import InvalidRequestError
from lancelake.ui.server import new_token, serve


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
