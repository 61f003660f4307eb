"""S3 server (moto) on loopback with injected delays and failures, in a separate process.

Its argument is a JSON object: `seed`, `log`, `slow`, `slow_s`, `fail`, `conflict`. The
first line of its output has the ports: one without faults, one with them.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # it has no stubs

from soak.journal import Journal

_REPO = Path(__file__).resolve().parents[1]
BUCKET = "soak"


def options_of(port: int) -> dict[str, str]:
    """Return what a client needs to reach the server."""
    return {
        "aws_endpoint": f"http://127.0.0.1:{port}",
        "aws_access_key_id": "soak-key",
        "aws_secret_access_key": "soak-secret",
        "aws_region": "us-east-1",
        "allow_http": "true",
    }


@contextmanager
def endpoint(seed: str, log: Path, faults: dict[str, float]) -> Iterator[tuple[int, int]]:
    """Run a server with a bucket; return a port without faults, and one with them."""
    given = json.dumps({"seed": seed, "log": str(log), **faults})
    server = subprocess.Popen(
        [sys.executable, "-m", "soak.endpoint", given],
        stdout=subprocess.PIPE,
        text=True,
        cwd=_REPO,
    )
    try:
        assert server.stdout is not None
        calm, faulty = json.loads(server.stdout.readline())
        options = options_of(calm)
        boto3.client(
            "s3",
            endpoint_url=options["aws_endpoint"],
            aws_access_key_id=options["aws_access_key_id"],
            aws_secret_access_key=options["aws_secret_access_key"],
            region_name=options["aws_region"],
        ).create_bucket(Bucket=BUCKET)
        yield calm, faulty
    finally:
        server.kill()
        server.wait()


class _OneAtATime:
    """Makes conditional puts atomic: moto checks first and writes later."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        with self._lock:
            return list(self._app(environ, start_response))


class _Faulty:
    """Answers late, or says that it cannot answer now, before anything is done."""

    def __init__(self, app: Any, given: dict[str, Any]) -> None:
        self._app = app
        self._given = given
        self._chance = random.Random(given["seed"])
        self._journal = Journal(given["log"], "endpoint", "s3")

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        given, chance = self._given, self._chance
        call, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if chance.random() < given.get("slow", 0):
            self._journal.fault("slow", call, path)
            time.sleep(chance.random() * given["slow_s"])
        if chance.random() < given.get("fail", 0):
            self._journal.fault("failed", call, path)
            return _refused(environ, start_response, "503 Slow Down")
        is_conditional = bool({"HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"} & environ.keys())
        if call == "PUT" and is_conditional and chance.random() < given.get("conflict", 0):
            self._journal.fault("conflict", call, path)
            return _refused(environ, start_response, "409 ConditionalRequestConflict")
        found: Iterable[bytes] = self._app(environ, start_response)
        return found


def _refused(environ: Any, start_response: Any, status: str) -> Iterable[bytes]:
    # The body is read, or the next request on the connection would begin with it.
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response(status, [("Content-Type", "text/plain")])
    return [status.encode()]


def main() -> None:
    """Serve until killed."""
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415  # only the server needs it
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415

    class Silent(MotoRequestHandler):
        def log(self, *_: object) -> None:
            pass

    app = _OneAtATime(DomainDispatcherApplication(create_backend_app))
    servers = [
        make_server("127.0.0.1", 0, each, threaded=True, request_handler=Silent)
        for each in (app, _Faulty(app, json.loads(sys.argv[1])))
    ]
    print(json.dumps([server.server_port for server in servers]), flush=True)
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
