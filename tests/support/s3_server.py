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


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running S3 endpoint."""

    endpoint: str

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
    server = make_server("127.0.0.1", 0, _OneAtATime(), threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield S3Server(endpoint=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Silent(MotoRequestHandler):
    def log(self, *_: object) -> None:
        pass


class _OneAtATime:
    """Makes conditional puts atomic: moto checks first and writes later."""

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        with self._lock:
            return list(self._app(environ, start_response))
