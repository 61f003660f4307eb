"""The server of the explorer, on the loopback interface."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import uvicorn

from lancelake.clock import Ids, SystemIds
from lancelake.errors import InvalidRequestError
from lancelake.storage.location import Location
from lancelake.ui.app import application
from lancelake.ui.guard import Access
from lancelake.ui.open_tables import OpenTables

_LOOPBACK = "127.0.0.1"
_WORDS_OF_TOKEN = 3
_WAITING = 64


def serve(
    roots: Sequence[Location],
    *,
    port: int = 0,
    ready: Callable[[str], None],
    ids: Ids | None = None,
) -> None:
    """Serve the tables at some locations until the process is interrupted.

    `ready` is called with the address to open when the server accepts connections. The address has
    the token of the session in its fragment, which browsers do not send.
    """
    token = new_token(ids or SystemIds())
    with _listening(port) as listener:
        number = listener.getsockname()[1]
        app = application(OpenTables(roots), Access.at(number, token))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        ready(f"http://{_LOOPBACK}:{number}/#token={token}")
        uvicorn.Server(config).run(sockets=[listener])


def new_token(ids: Ids) -> str:
    """Return a random token of 192 bits."""
    return "".join(f"{ids.random_u64():016x}" for _ in range(_WORDS_OF_TOKEN))


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_LOOPBACK, port))
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        problem = f"port {port} cannot be used: {error.strerror or error}"
        raise InvalidRequestError(problem, action="Choose another with --port.") from error
    return listener
