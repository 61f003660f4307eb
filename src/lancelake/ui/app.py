"""The application: the page, its assets and the calls of the page."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lancelake.ui import rows, views
from lancelake.ui.calls import endpoint
from lancelake.ui.guard import Access, Guard
from lancelake.ui.open_tables import OpenTables

_THREADS = 8
_PAGE = "index.html"
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_READS = {
    "/api/tables": views.tables,
    "/api/tables/{table}": views.table,
    "/api/tables/{table}/versions": views.versions,
    "/api/tables/{table}/commit": views.commit,
    "/api/tables/{table}/schema": views.schema,
    "/api/tables/{table}/schema-changes": views.schema_changes,
    "/api/tables/{table}/fragments": views.fragments,
    "/api/tables/{table}/fragment": views.fragment,
    "/api/tables/{table}/rows": rows.rows,
    "/api/tables/{table}/count": rows.count,
    "/api/tables/{table}/image": rows.image,
    "/api/tables/{table}/text": rows.text,
    "/api/tables/{table}/mem-wal": views.mem_wal,
}
_QUERIES = {
    "/api/tables/{table}/sql": rows.sql,
    "/api/tables/{table}/search": rows.search,
}


def application(tables: OpenTables, access: Access) -> Guard:
    """Return the application for some tables."""
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="explorer")
    routes = [
        *(Route(path, endpoint(tables, answer, threads)) for path, answer in _READS.items()),
        *(
            Route(path, endpoint(tables, answer, threads), methods=["POST"])
            for path, answer in _QUERIES.items()
        ),
        *(_asset(path, name, data) for path, name, data in _assets()),
    ]
    return Guard(Starlette(routes=routes), access)


def _assets() -> list[tuple[str, str, bytes]]:
    """Return the path, name and content of each file of the page; nothing else is served."""
    folder = resources.files("lancelake.ui") / "assets"
    files = [(f"/assets/{item.name}", item.name, item.read_bytes()) for item in folder.iterdir()]
    page = (folder / _PAGE).read_bytes()
    return [("/", _PAGE, page), *files]


def _asset(path: str, name: str, data: bytes) -> Route:
    media_type = _TYPES[f".{name.rpartition('.')[2]}"]

    async def serve(_: Request) -> Response:
        return Response(data, media_type=media_type)

    endpoint: Any = serve
    return Route(path, endpoint)
