"""S3 for tests: a moto server on loopback, in this process."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # it has no stubs
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

_REGION = "us-east-1"
_KEY = "test-key"
_SECRET = "test-secret"
# moto keeps its buckets as long as the process lives, whatever server made them.
_bucket_numbers = itertools.count()


class Faults:
    """A status that conditional puts are answered with, before or after they are carried out."""

    def __init__(self) -> None:
        self.hits = 0
        self.is_carried_out = False
        self._status: int | None = None
        self._burst = 1
        self._puts = 0

    def begin(self, status: int, *, burst: int, is_carried_out: bool = False) -> None:
        """Answer `burst` puts with a status, let the next one succeed, and so on."""
        self._status, self._burst, self.is_carried_out = status, burst, is_carried_out
        self.hits = self._puts = 0

    def end(self) -> None:
        """Let all puts succeed."""
        self._status = None

    def due(self, environ: Any) -> int | None:
        """Return the status that a request is answered with; None to carry it out."""
        has_condition = {"HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"} & environ.keys()
        if self._status is None or environ["REQUEST_METHOD"] != "PUT" or not has_condition:
            return None
        is_hit = self._puts % (self._burst + 1) < self._burst
        self._puts += 1
        self.hits += is_hit
        return self._status if is_hit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running S3 endpoint."""

    endpoint: str
    faults: Faults

    @property
    def storage_options(self) -> dict[str, str]:
        """What a storage client needs to reach the server."""
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": _KEY,
            "aws_secret_access_key": _SECRET,
            "aws_region": _REGION,
            "allow_http": "true",
        }

    def new_bucket(self) -> str:
        """Make an empty bucket and return its name."""
        name = f"bucket-{next(_bucket_numbers)}"
        self._client().create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        """Return every key of a bucket, as the server sees it."""
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def upload(self, folder: Path, uri: str) -> None:
        """Copy the files of a folder to a place in a bucket."""
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        client = self._client()
        for path in folder.rglob("*"):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(folder).as_posix()}"
                client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())

    def _client(self) -> Any:  # boto3 makes its classes at run time
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=_KEY,
            aws_secret_access_key=_SECRET,
            region_name=_REGION,
        )


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server as long as the block does."""
    faults = Faults()
    app = _OneAtATime(faults)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield S3Server(endpoint=f"http://127.0.0.1:{server.server_port}", faults=faults)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Silent(MotoRequestHandler):
    def log(self, *_: object) -> None:
        pass


class _OneAtATime:
    """Makes conditional puts atomic: moto checks first and writes later."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        with self._lock:
            status = self._faults.due(environ)
            if status is None:
                return list(self._app(environ, start_response))
            if self._faults.is_carried_out:
                list(self._app(environ, lambda *_: None))
            else:
                # Unread, the body would be the beginning of the next request.
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(f"{status} Fault", [("Content-Type", "text/plain")])
            return [b""]
